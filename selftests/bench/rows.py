# SPDX-License-Identifier: GPL-2.0
"""The rows of the bench's table. Each is measured on one network.

Sizes are in bytes. A row is measured for each contender that it applies to: the RDMA drivers (with
perftest, the CM, and fio on NFS and NVMe) and plain TCP or SCTP (with iperf3, qperf, and fio on NFS).
Rows with encryption are measured for those that it can protect.
"""
import dataclasses

KIB, MIB = 1 << 10, 1 << 20
# The name of each network, and its heading in the table.
NETWORKS = {
    "lo": "one interface to itself, over lo, MTU 65536",
    "veth1500": "two namespaces, veth, MTU 1500",
    "veth9000": "two namespaces, veth, MTU 9000",
    "here1500": "one namespace, veth, MTU 1500",
}
TWO_NETWORKS = {
    "two1500": "two machines, MTU 1500",
    "two9000": "two machines, MTU 9000",
    "two65534": "two machines, MTU 65534",
}
# The ends of a transfer: who sends its data. The client sends a write or a send, the server the data of a read.
ENDS = ("sender", "receiver")
# These have all rows of programs on verbs.
MAIN_NETWORKS = ("lo", "veth1500", "veth9000")
# From 64 B to 8 MiB in steps of 4.
SIZES = (*(64 * 4 ** step for step in range(9)), 8 * MIB)
# The messages of a measurement have at most MOST_OCTETS bytes, where OF_A_MESSAGE bytes are added
# to the size of each message. That lasts half a second at 1 GB/s. FEWEST_MESSAGES is perftest's
# minimum. With several QPs, each sends at least SETTLED_MESSAGES: the first few are slower, as its
# connection has a small congestion window and a small send buffer.
MOST_OCTETS, OF_A_MESSAGE = 600 * MIB, 16 * KIB
FEWEST_MESSAGES, SETTLED_MESSAGES = 5, 40
# The largest write of iperf3, in bytes. Over SCTP, a write is a message, which has to fit into the default
# send buffer: it sends longer ones as several.
IPERF3_MOST = MIB
IPERF3_SCTP_MOST = 64 * KIB
SCTP_SIZES = (64, 64 * KIB, MIB)
ENCRYPTIONS = ("TLS", "WireGuard")
ENCRYPTED_SIZES = (4 * KIB, 64 * KIB, MIB)
ENCRYPTED_NETWORKS = ("veth1500", "veth9000")
FRAMED_SIZES = (4 * KIB, 64 * KIB, MIB)
# On lo, the FPDUs are long anyway.
FRAMINGS = ("CRC", "markers", "long FPDUs")
LO_FRAMINGS = FRAMINGS[:2]
LATENCY_SIZES = (2, *SIZES)
EVENT_SIZES = (2, 4 * KIB)
# Rows of other sizes serve the plots only, and rows of other networks add little to these two. They
# are measured in every second round.
THOROUGH_SIZES = {"bandwidth": (64, 4 * KIB, 64 * KIB, MIB), "latency": (2, 4 * KIB)}
THOROUGH_NETWORKS = ("lo", "veth1500", "here1500")
ROUND_TRIPS = 5000
# The first, short measurement has this fraction of the maximum number of messages: 1 / FIRST_LOOK.
FIRST_LOOK = 50
OPERATIONS = ("write", "read", "send")
# NVMe works only in the first network namespace.
STORAGE_NETWORKS = {"nfs": ("lo", "veth1500"), "nvme": ("lo", "here1500"),
                    "nvme rate": ("lo", "here1500")}


def label(size):
    """Formats a size: 64 B, 4 KiB, 1 MiB."""
    if size < KIB:
        return f"{size} B"
    return f"{size // KIB} KiB" if size < MIB else f"{size // MIB} MiB"


@dataclasses.dataclass(frozen=True)
class Row:
    """A row: one figure for each contender. `kind` selects how it is measured (see `measure`)."""

    network: str
    kind: str            # bandwidth, rate, latency, connections, memory, cpu, kernel, nfs, nvme, nvme rate
    operation: str       # write, read, send; "" if the kind has no operation
    size: int = 0
    qps: int = 1
    events: bool = False
    framing: str = ""    # CRC, markers or long FPDUs at both ends; "" for none of them
    typical: bool = False  # latency: the median of the messages instead of the mean
    depth: int = 0       # storage: requests in flight
    batch: int = 1       # storage: the most requests that one system call submits or completes
    transport: str = ""  # SCTP; "" for TCP
    encryption: str = ""  # TLS or WireGuard; "" for none
    end: str = ""        # kernel: sender or receiver; "" for both together

    @property
    def name(self):
        """The unique name of the row."""
        return f"{self.network} {self.kind} {self.what}".strip()

    @property
    def what(self):
        """The name of the row among those of its kind on a network."""
        words = [self.transport, self.encryption, self.operation,
                 self.size and label(self.size),
                 self.qps > 1 and f"{self.qps} QPs", self.events and "events", self.framing,
                 self.typical and "typical", self.depth and f"depth {self.depth}",
                 self.batch > 1 and f"batches of {self.batch}", self.end]
        return " ".join(str(word) for word in words if word)

    @property
    def measured(self):
        """The row whose measurement also gives the figure of this one."""
        return dataclasses.replace(self, typical=False, end="")

    @property
    def given(self):
        """The rows whose figures the measurement of this row gives."""
        if self.kind == "latency" and self.size in THOROUGH_SIZES["latency"]:
            return self, dataclasses.replace(self, typical=True)
        if self.kind == "kernel":
            return self, *(dataclasses.replace(self, end=end) for end in ENDS)
        return (self,)

    @property
    def storage(self):
        """Whether the row is I/O on storage over RDMA, measured with fio."""
        return self.kind in STORAGE_NETWORKS

    @property
    def thorough(self):
        """Whether the row is measured in every round."""
        return (self.network in (*THOROUGH_NETWORKS, *TWO_NETWORKS)
                and self.size in THOROUGH_SIZES.get(self.kind, (self.size,)))

    @property
    def unit(self):
        return {"bandwidth": "MiB/s", "rate": "kmsg/s", "latency": "µs", "connections": "1/s",
                "memory": "KiB/QP", "cpu": "s/GiB", "kernel": "ms/GiB", "nfs": "MiB/s", "nvme": "MiB/s",
                "nvme rate": "kIOPS"}[self.kind]

    @property
    def more_is_better(self):
        return self.storage or self.kind in ("bandwidth", "rate", "connections")

    def messages(self, number):
        """Limits a number of messages per QP to what the row allows."""
        most = MOST_OCTETS // (self.size + OF_A_MESSAGE) // self.qps
        fewest = FEWEST_MESSAGES if self.qps == 1 else SETTLED_MESSAGES
        if self.kind == "latency":
            most = min(most, ROUND_TRIPS)
            fewest = max(most // FIRST_LOOK, fewest)
        return max(min(int(number), most), fewest)

    @property
    def most(self):
        """The maximum number of messages per QP."""
        return self.messages(MOST_OCTETS)

    @property
    def first_look(self):
        """The number of messages per QP of the first, short measurement."""
        return self.messages(self.most / FIRST_LOOK)

    def seconds(self, value, messages):
        """Returns the seconds that `messages` messages per QP take at the figure `value`
        (bandwidth, rate or mean latency). A request of storage is a message."""
        if self.kind == "latency":
            return messages * value * (1 if self.operation == "read" else 2) / 1e6
        if self.kind in ("rate", "nvme rate"):
            return messages * self.qps / value / 1000
        return messages * self.qps * self.size / MIB / value

    def perftest(self, messages):
        """Returns the program of perftest that measures the row, and its options: those that the
        row names, and the number of messages. All others are perftest's defaults."""
        kind = "lat" if self.kind == "latency" else "bw"
        options = ["-s", self.size, "-n", messages]
        if self.qps > 1:
            options += ["-q", self.qps]
        if self.events:
            options.append("-e")
        return f"ib_{self.operation}_{kind}", options

    def fio(self, requests):
        """Returns the options of fio that measure the row: those that the row names, and the number of
        requests."""
        pattern = f"rand{self.operation}" if self.kind == "nvme rate" else self.operation
        options = [f"--rw={pattern}", f"--bs={self.size}", f"--iodepth={self.depth}",
                   f"--io_size={requests * self.size}"]
        if self.batch > 1:
            options += [f"--iodepth_batch_submit={self.batch}", "--iodepth_batch_complete_min=1",
                        f"--iodepth_batch_complete_max={self.batch}"]
        return options

    def applies(self, contender):
        """Returns whether the row can be measured for a contender: riw, siw or tcp."""
        if contender == "tcp":
            if self.storage:
                # User-Mode Linux is configured without NVMe over TCP.
                return self.kind == "nfs"
            # TCP has no operations: its rows of writes stand for all of them.
            return (self.kind in ("bandwidth", "latency", "cpu", "kernel") and self.operation == "write"
                    and self.size <= IPERF3_MOST and self.qps == 1 and not self.framing
                    and not self.typical)
        # siw has no markers, no choice of the length of FPDUs, no SCTP and no TLS.
        return contender != "siw" or not (self.framing in FRAMINGS[1:] or self.transport
                                          or self.encryption == "TLS")


def full():
    """Yields all rows."""
    for network in MAIN_NETWORKS:
        for operation in OPERATIONS:
            for size in SIZES:
                yield Row(network, "bandwidth", operation, size)
                if operation == "write" and size in FRAMED_SIZES:
                    # Directly after the row to compare with.
                    for framing in LO_FRAMINGS if network == "lo" else FRAMINGS:
                        yield Row(network, "bandwidth", operation, size, framing=framing)
            yield Row(network, "rate", operation, 64)
            for size in LATENCY_SIZES:
                # An RDMA Write raises no event at the peer.
                both = operation != "write" and size in EVENT_SIZES
                for events in (False, True) if both else (False,):
                    yield from Row(network, "latency", operation, size, events=events).given
        for size in SCTP_SIZES:
            yield Row(network, "bandwidth", "write", size, transport="SCTP")
        yield from Row(network, "latency", "write", 2, transport="SCTP").given
        if network in ENCRYPTED_NETWORKS:
            yield from encrypted(network)
        for operation in OPERATIONS if network in THOROUGH_NETWORKS else ():
            for qps in (4, 64):
                yield Row(network, "bandwidth", operation, 64 * KIB, qps)
                yield Row(network, "rate", operation, 64, qps)
    yield from storage()
    network = "veth1500"
    for qps in (16, 100, 1000):
        yield Row(network, "bandwidth", "write", 64 * KIB, qps)
    yield Row(network, "connections", "")
    yield Row(network, "memory", "")
    for operation in OPERATIONS:
        yield Row(network, "cpu", operation, 64 * KIB)


def encrypted(network):
    """Yields the rows with encryption on a network."""
    for encryption in ENCRYPTIONS:
        for size in ENCRYPTED_SIZES:
            yield Row(network, "bandwidth", "write", size, encryption=encryption)
        yield Row(network, "rate", "write", 64, encryption=encryption)
        yield from Row(network, "latency", "write", 2, encryption=encryption).given


def storage():
    """Yields the rows of NFS and NVMe."""
    for kind, networks in STORAGE_NETWORKS.items():
        for network in networks:
            if kind == "nvme rate":
                yield from requests(network)
            else:
                for operation in ("write", "read"):
                    yield Row(network, kind, operation, MIB, depth=8)


def requests(network):
    """Yields the rows of small requests of NVMe."""
    for depth, batch in ((1, 1), (32, 1), (32, 16)):
        yield Row(network, "nvme rate", "read", 4 * KIB, depth=depth, batch=batch)


def quick():
    """Yields a few rows: bandwidth, message rate, latency and NFS, over veth only."""
    network = "veth1500"
    for operation in OPERATIONS:
        for size in (4 * KIB, 64 * KIB, MIB):
            yield Row(network, "bandwidth", operation, size)
            if operation == "write":
                yield Row(network, "bandwidth", operation, size, framing="CRC")
        yield Row(network, "rate", operation, 64)
        yield from Row(network, "latency", operation, 2).given
    yield Row(network, "nfs", "read", MIB, depth=8)


def two():
    """Yields the rows of two machines: bandwidth, the CPU time of the kernels, message rate and latency."""
    for network in TWO_NETWORKS:
        streams = [Row(network, "bandwidth", operation, size, framing=framing)
                   for operation in OPERATIONS for size in (64 * KIB, MIB)
                   for framing in (("", "CRC") if operation == "write" else ("",))]
        streams.append(Row(network, "bandwidth", "write", 64 * KIB, transport="SCTP"))
        yield from streams
        for row in streams:
            yield from dataclasses.replace(row, kind="kernel").given
        for operation in OPERATIONS:
            yield Row(network, "rate", operation, 64)
        for operation in OPERATIONS:
            yield from Row(network, "latency", operation, 2).given
