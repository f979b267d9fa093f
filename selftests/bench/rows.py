# SPDX-License-Identifier: GPL-2.0
"""What the bench measures: the rows of its table, each on one network.

Sizes are in bytes. A row is measured for each contender that it applies to: the RDMA
drivers (by perftest, with the CM) and plain TCP (iperf3, qperf).
"""
import dataclasses

KIB, MIB = 1 << 10, 1 << 20
# Name, what it is in the table.
NETWORKS = {
    "lo": "one interface to itself, over lo, MTU 65536",
    "veth1500": "two namespaces, veth, MTU 1500",
    "veth9000": "two namespaces, veth, MTU 9000",
}
# From 64 B to 8 MiB in steps of 4.
SIZES = (*(64 * 4 ** step for step in range(9)), 8 * MIB)
# The most messages of a measurement have so many octets, if each counts for so many more than it
# has: enough for half a second where a gigabyte per second goes through. The fewest are what
# perftest wants at least.
MOST_OCTETS, OF_A_MESSAGE = 600 * MIB, 16 * KIB
FEWEST_MESSAGES = 5
# The most that iperf3 writes at a time.
IPERF3_MOST = MIB
FRAMED_SIZES = (4 * KIB, 64 * KIB, MIB)
LATENCY_SIZES = (2, *SIZES)
EVENT_SIZES = (2, 4 * KIB)
# Rows of other sizes are there for the plots, and those of other networks repeat what is said of
# these two: they are measured in every second round.
THOROUGH_SIZES = {"bandwidth": (64, 4 * KIB, 64 * KIB, MIB), "latency": (2, 4 * KIB)}
THOROUGH_NETWORKS = ("lo", "veth1500")
ROUND_TRIPS = 5000
# A first look is at that part of the most.
FIRST_LOOK = 50
OPERATIONS = ("write", "read", "send")


def label(size):
    """A size as it is read: 64 B, 4 KiB, 1 MiB."""
    if size < KIB:
        return f"{size} B"
    return f"{size // KIB} KiB" if size < MIB else f"{size // MIB} MiB"


@dataclasses.dataclass(frozen=True)
class Row:
    """One measurement. `kind` says how it is made (see measure), `unit` of what."""

    network: str
    kind: str            # bandwidth, rate, latency, connections, memory, cpu
    operation: str       # write, read, send; "" where it does not matter
    size: int = 0
    qps: int = 1
    events: bool = False
    framing: str = ""    # CRC, markers, at both ends; "" for neither
    typical: bool = False  # of latency: the median of the messages, not their mean

    @property
    def name(self):
        """What identifies it."""
        words = [self.network, self.kind, self.operation, self.size and label(self.size),
                 self.qps > 1 and f"{self.qps} QPs", self.events and "events", self.framing,
                 self.typical and "typical"]
        return " ".join(str(word) for word in words if word)

    @property
    def measured(self):
        """The row whose measurement gives its figure, too."""
        return dataclasses.replace(self, typical=False)

    @property
    def given(self):
        """The rows whose figures its measurement gives."""
        if self.kind == "latency" and self.size in THOROUGH_SIZES["latency"]:
            return self, dataclasses.replace(self, typical=True)
        return (self,)

    @property
    def thorough(self):
        """Whether it is measured in every round."""
        return (self.network in THOROUGH_NETWORKS
                and self.size in THOROUGH_SIZES.get(self.kind, (self.size,)))

    @property
    def unit(self):
        return {"bandwidth": "MiB/s", "rate": "kmsg/s", "latency": "µs", "connections": "1/s",
                "memory": "KiB/QP", "cpu": "s/GiB"}[self.kind]

    @property
    def more_is_better(self):
        return self.kind in ("bandwidth", "rate", "connections")

    def messages(self, number):
        """As many messages of each QP as may be, when so many are wanted."""
        most = MOST_OCTETS // (self.size + OF_A_MESSAGE) // self.qps
        fewest = FEWEST_MESSAGES
        if self.kind == "latency":
            most = min(most, ROUND_TRIPS)
            fewest = max(most // FIRST_LOOK, fewest)
        return max(min(int(number), most), fewest)

    @property
    def most(self):
        """The most messages of each QP."""
        return self.messages(MOST_OCTETS)

    @property
    def first_look(self):
        """How many messages of each QP tell what goes through."""
        return self.messages(self.most / FIRST_LOOK)

    def seconds(self, value, messages):
        """How long so many messages of each QP took at this bandwidth, rate or mean latency."""
        if self.kind == "latency":
            return messages * value * (1 if self.operation == "read" else 2) / 1e6
        if self.kind == "rate":
            return messages * self.qps / value / 1000
        return messages * self.qps * self.size / MIB / value

    def perftest(self, messages):
        """The program of perftest that measures it, and its options: what the row names, and
        the number of messages. All else is perftest's own choice."""
        kind = "lat" if self.kind == "latency" else "bw"
        options = ["-s", self.size, "-n", messages]
        if self.qps > 1:
            options += ["-q", self.qps]
        if self.events:
            options.append("-e")
        return f"ib_{self.operation}_{kind}", options

    def applies(self, contender):
        """Whether it can be measured for `riw`, `siw`, `tcp` …"""
        if contender == "tcp":
            # TCP has no operations: what is measured stands for all of them.
            return (self.kind in ("bandwidth", "latency", "cpu") and self.operation == "write"
                    and self.size <= IPERF3_MOST and self.qps == 1 and not self.framing
                    and not self.typical)
        # siw has no markers.
        return not (self.framing == "markers" and contender == "siw")


def full():
    """All rows."""
    for network in NETWORKS:
        for operation in OPERATIONS:
            for size in SIZES:
                yield Row(network, "bandwidth", operation, size)
                if operation == "write" and size in FRAMED_SIZES:
                    # Right after the row that they are compared with.
                    for framing in ("CRC", "markers"):
                        yield Row(network, "bandwidth", operation, size, framing=framing)
            yield Row(network, "rate", operation, 64)
            for size in LATENCY_SIZES:
                # An RDMA Write gives no event that a peer could wait for.
                both = operation != "write" and size in EVENT_SIZES
                for events in (False, True) if both else (False,):
                    yield from Row(network, "latency", operation, size, events=events).given
        for operation in OPERATIONS if network in THOROUGH_NETWORKS else ():
            for qps in (4, 64):
                yield Row(network, "bandwidth", operation, 64 * KIB, qps)
                yield Row(network, "rate", operation, 64, qps)
    network = "veth1500"
    for qps in (16, 100, 1000):
        yield Row(network, "bandwidth", "write", 64 * KIB, qps)
    yield Row(network, "connections", "")
    yield Row(network, "memory", "")
    for operation in OPERATIONS:
        yield Row(network, "cpu", operation, 64 * KIB)


def quick():
    """Bandwidth, message rate and latency, over veth only."""
    network = "veth1500"
    for operation in OPERATIONS:
        for size in (4 * KIB, 64 * KIB, MIB):
            yield Row(network, "bandwidth", operation, size)
            if operation == "write":
                yield Row(network, "bandwidth", operation, size, framing="CRC")
        yield Row(network, "rate", operation, 64)
        yield from Row(network, "latency", operation, 2).given
