# SPDX-License-Identifier: GPL-2.0
"""Packet captures with tcpdump, and what tshark finds in them."""

import collections
import os
import re
import signal
from contextlib import contextmanager
from pathlib import Path

from ksft import ksft_eq
from utils import bkg, cmd, wait_until

COUNTS = re.compile(r"(\d+) packets? captured\D+(\d+) packets? received by filter\D+"
                    r"(\d+) packets? dropped by kernel")

# Fields of each TCP segment; a field that occurs several times has several values.
FIELDS = ["frame.number", "tcp.stream", "tcp.len", "tcp.analysis.retransmission",
          "tcp.analysis.lost_segment", "tcp.segment", "_ws.malformed", "iwarp_mpa.pdlength",
          "iwarp_mpa.ulpdulength", "iwarp_rdma.opcode"]
Segment = collections.namedtuple("Segment", [field.split(".")[-1] for field in FIELDS])

# These dissectors take any Send for their own protocol and report errors.
OTHERS = ["rpcrdma_iwarp", "smb_direct_iwarp"]

OPCODES = {0: "RDMA Write", 1: "Read Request", 2: "Read Response", 3: "Send",
           4: "Send with Invalidate", 7: "Terminate"}


@contextmanager
def captured(node, path, what="tcp"):
    """Captures all TCP, or `what` is, of the interface of `node` during the block, without a gap."""
    # The kernel counts a packet of `lo` twice, as sent and as received; libpcap drops the first.
    seen = 2 if node.netdev == "lo" else 1
    every = f"{path}.all"
    # Without a filter: the kernel counts packets of any protocol that come before it has a filter,
    # which libpcap then drops, so the two counts would never be equal.
    with bkg(f"tcpdump -i {node.netdev} -w {every} -s 0 -B 65536", host=node) as dump:
        def caught_up():
            os.kill(dump.pid, signal.SIGUSR1)
            counts = COUNTS.findall(dump.output)
            return counts and seen * int(counts[-1][0]) == int(counts[-1][1])

        dump.says("listening on", 20)
        yield
        # On exit, tcpdump drops packets that it has not read yet. Poll rarely: each poll interrupts
        # it.
        wait_until(caught_up, 60, "tcpdump has written all", interval=1)
        dump.kill(signal.SIGINT)
        ksft_eq(COUNTS.findall(dump.output)[-1][2], "0", "packets dropped")
    cmd(["tcpdump", "-r", every, "-w", path, what], timeout=120)
    os.remove(every)


@contextmanager
def octets(node):
    """Captures TCP of the interface of `node` during the block. Yields a list, which then has what was captured."""
    found = []
    with captured(node, "octets.pcap"):
        yield found
    found.append(Path("octets.pcap").read_bytes())
    os.remove("octets.pcap")


@contextmanager
def protocols(node):
    """Captures meanwhile. Yields a dict, which then has the number of IPv4 packets of each protocol."""
    found = {}
    with captured(node, "capture", "ip and not ip multicast"):
        yield found
    shown = cmd(["tshark", "-n", "-r", "capture", "-T", "fields", "-e", "ip.proto"], timeout=100).stdout.split()
    os.remove("capture")
    # A fragment shows the protocol once.
    found.update({proto: shown.count(proto) for proto in set(shown)})


def tshark(path, *options):
    """Returns tshark's output on the segments with payload in a capture."""
    others = [option for name in OTHERS for option in ("--disable-heuristic", name)]
    # The ports are random, and may be registered for another protocol.
    return cmd(["tshark", "-r", path, "-o", "tcp.try_heuristic_first:TRUE", *others,
                "-Y", "tcp.len > 0", *options], timeout=120).stdout


def decoded(path):
    """Returns the segments with payload in a capture."""
    fields = [option for field in FIELDS for option in ("-e", field)]
    return [Segment(*(values.split(",") if values else [] for values in line.split("\t")))
            for line in tshark(path, "-T", "fields", *fields).splitlines()]
