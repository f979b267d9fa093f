# SPDX-License-Identifier: GPL-2.0
"""`verbs_target`, an ordinary user of verbs, and raw peers to attack it."""

import re
import struct
import time
from contextlib import contextmanager
from dataclasses import dataclass

import lab
from iwarp import mpa, sctp
from iwarp.peer import Peer
from ksft import ksft_eq, ksft_true
from utils import bkg, wait_until


OFFER = struct.Struct(">QIIIIIIIII")
"""The private data with the target's offer."""


@dataclass
class Offer:
    """The target's region and its keys, from its private data."""

    addr: int
    length: int
    all: int
    readable: int
    writable: int
    local: int
    other_pd: int
    revocable: int
    atomic: int
    other_atomic: int

    @classmethod
    def parse(cls, private):
        return cls(*OFFER.unpack(private[:OFFER.size]))


class Target:
    """A listening target in the namespace of `node`, and the namespace of its raw peers."""

    def __init__(self, node, raw_netns, *options, addr=""):
        self.node, self.raw_netns = node, raw_netns
        self.port = lab.new_port()
        self.process = bkg(["verbs_target", *options, addr or node.addr, self.port], host=node)
        self.process.says("listening", 20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()

    def connect(self):
        """Opens a TCP connection to it without a Request."""
        return Peer.connect(self.node.addr, self.port, self.raw_netns)

    def established(self, **depths):
        """Opens an iWARP connection to it: (peer, offer). With CRCs; with markers in both
        directions if the target's device requests them. With `depths`, as in `mpa.request`, in
        revision 2 of MPA; otherwise in revision 1, which has no depths."""
        peer = self.connect()
        markers = mpa.MARKERS if lab.setting(self.node.dev, "markers") == "1" else 0
        reply = peer.ask(mpa.CRC | markers, revision=2 if depths else 1, **depths)
        return peer, Offer.parse(reply.depths[2] if depths else reply.private)

    def mark(self):
        """Returns the current end of its output, for `says`."""
        return len(self.process.output)

    def says(self, pattern, since=0, timeout=10):
        """Waits until its output after `since` matches."""
        return wait_until(lambda: re.search(pattern, self.process.output[since:]), timeout,
                          f"the target says {pattern!r}; it said {self.process.output[since:]!r}")

    def end(self, peer):
        """Closes a connection. It has ended on return, so nobody takes its end for that of a later one."""
        mark = self.mark()
        peer.close()
        self.says(r"\d+ QP in ERROR", mark)


class SctpTarget(Target):
    """As a `Target`, reached by SCTP."""

    def connect(self, **options):  # pylint: disable=arguments-differ
        return sctp.Association.connect(self.node.addr, self.port, self.raw_netns, **options)

    def established(self, **depths):
        peer = self.connect()
        answer = peer.ask(**depths)
        ksft_eq(answer.function, sctp.ENHANCED_ACCEPT if depths else sctp.ACCEPT, "function")
        return peer, Offer.parse(answer.private)


class Witness:
    """An ordinary connection that reads the region."""

    def __init__(self, aim):
        self.peer, self.offer = aim.established()
        self.was = self.region()

    def region(self):
        """Returns what the region contains now."""
        self.peer.read(self.offer.length, self.offer.all, self.offer.addr)
        return self.peer.message()[1]

    def check(self, touched):
        """The region is as it was, or was allowed to be `touched`; the bytes around it are."""
        now = self.region()
        self.peer.say(b"G")
        ksft_eq(self.peer.message()[1], b"ok", "the bytes around the region")
        ksft_true(touched or now == self.was, "the region has changed")
        self.was = now


def ordinary(aim):
    """Opens a new ordinary connection, and ends it. Returns the seconds to its first answer."""
    begin = time.monotonic()
    peer, _ = aim.established()
    with peer:
        peer.say(b"Ehello")
        ksft_eq(peer.message()[1], b"Ehello", "answer")
        seconds = time.monotonic() - begin
        aim.end(peer)
    return seconds


@contextmanager
def wire():
    """Creates a namespace `right` with an RDMA device, connected by veth to `left` with only
    TCP."""
    with lab.cable():
        lab.bring_up("veth", "10.78.0.1/24", "fd78::1/64", "left")
        lab.bring_up("veth", "10.78.0.2/24", "fd78::2/64", "right")
        with lab.rdma_link(f"{lab.DRIVER}0", "veth", "right") as dev:
            yield lab.Node(dev, "veth", "10.78.0.2", "fd78::2", "right"), "left"
