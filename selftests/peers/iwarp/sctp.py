# SPDX-License-Identifier: GPL-2.0
"""An SCTP association that speaks hand-built DDP (RFC 5043, RFC 6581 section 7), as either end.

The kernel's SCTP keeps messages apart and numbers them; all that RFC 5043 adds is built here: so a
chunk can have any DDP-SSN, and be sent in any order.
"""

import socket
import struct
import time
from dataclasses import dataclass

from ksft import PACE
from netns import NetNSEnter

from . import rdmap
from .peer import Gone, Peer, Silent

SEGMENT, CONTROL = 16, 17
"""Payload protocol identifiers."""

INITIATE, ACCEPT, REJECT, TERMINATE, ENHANCED_INITIATE, ENHANCED_ACCEPT, ENHANCED_REJECT = range(1, 8)
"""Functions of a session control chunk."""

DDP = 1
"""The adaptation indication."""

INITMSG, NODELAY, ADAPTATION_LAYER, STATUS, DELAYED_SACK, RECVRCVINFO = 2, 3, 7, 14, 16, 32
SNDINFO = 2
BINDX_ADD = 100
UNORDERED = 1


def make_socket(family, netns="", adaptation=DDP, streams=1):
    """Makes a socket of one association that announces `adaptation`."""
    with NetNSEnter(netns):
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    for option, value in ((INITMSG, struct.pack("HHHH", streams, streams, 0, 0)),
                          (NODELAY, struct.pack("i", 1)), (RECVRCVINFO, struct.pack("i", 1)),
                          (ADAPTATION_LAYER, struct.pack("I", adaptation))):
        sock.setsockopt(socket.IPPROTO_SCTP, option, value)
    return sock


@dataclass
class Chunk:
    """A received chunk. `function` and `words` (of IRD and ORD): None unless it has them."""

    ppid: int
    ssn: int
    data: bytes
    stream: int
    unordered: bool

    @property
    def function(self):
        return struct.unpack(">H", self.data[:2])[0] if self.ppid == CONTROL else None

    @property
    def words(self):
        return struct.unpack(">HH", self.data[2:6]) if (self.function or 0) > TERMINATE else None

    @property
    def private(self):
        return self.data[6:] if self.words else self.data[2:]


class Association(Peer):
    """One association with one session. `ssn_out` and `ssn_in` are the next DDP-SSNs."""

    def __init__(self, sock):  # pylint: disable=super-init-not-called
        self.sock = sock
        self.ssn_out = self.ssn_in = 0
        self.ahead = {}
        self.request = None
        self.ended = ""
        self.shut = False
        self.msn = {rdmap.SEND_QUEUE: 0, rdmap.READ_QUEUE: 0}

    @classmethod
    def connect(cls, address, port, netns="", local=None, **options):
        """Connects to a listener."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = make_socket(family, netns, **options)
        if local:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(local)
        sock.settimeout(cls.patience * PACE)
        sock.connect((address, port))
        return cls(sock)

    def abort(self):
        """Ends the association by an ABORT."""
        self.reset()

    def shutdown(self):
        """Shuts the association down."""
        self.shut = True
        self.sock.shutdown(socket.SHUT_WR)

    def exists(self):
        """Returns whether there is an association. After a SHUTDOWN of this side, receiving does not
        tell."""
        try:
            self.sock.getsockopt(socket.IPPROTO_SCTP, STATUS, 256)
        except OSError:
            return False
        return True

    def add_address(self, address):
        """Adds an IPv4 address of this end to the association, if the other end lets it."""
        one = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
        self.sock.setsockopt(socket.IPPROTO_SCTP, BINDX_ADD, one)

    def window(self):
        """Returns the bytes that the other end lets this one send now."""
        status = self.sock.getsockopt(socket.IPPROTO_SCTP, STATUS, 256)
        return struct.unpack_from("=I", status, 8)[0]

    def slow_acknowledgements(self):
        """Acknowledges a single chunk after half a second, and only every tenth at once."""
        self.sock.setsockopt(socket.IPPROTO_SCTP, DELAYED_SACK, struct.pack("iII", 0, 500, 10))

    # --- chunks

    def put(self, ppid, data, stream=0, flags=UNORDERED, bundled=False):
        """Sends a message as it is. `bundled`: together with the next one, in a packet if they fit."""
        info = struct.pack("HHIIi", stream, flags, socket.htonl(ppid), 0, 0)
        try:
            self.sock.settimeout(self.patience * PACE)
            self.sock.sendmsg([data], [(socket.IPPROTO_SCTP, SNDINFO, info)],
                              socket.MSG_MORE if bundled else 0)
        except (ConnectionError, BrokenPipeError) as reason:
            raise Gone(str(reason)) from None

    def chunk(self, ppid, data, ssn=None, **more):
        """Sends a chunk, with the next DDP-SSN unless one is given."""
        if ssn is None:
            ssn = self.ssn_out
            self.ssn_out = (ssn + 1) & 0xFFFF
        self.put(ppid, struct.pack(">H", ssn) + data, **more)

    def control(self, function, private=b"", **more):
        """Sends a session control chunk."""
        self.chunk(CONTROL, struct.pack(">H", function) + private, **more)

    def post(self, ulpdu, **more):
        """Sends a segment in a chunk."""
        self.chunk(SEGMENT, ulpdu, **more)

    def any_chunk(self, timeout=None):
        """Receives a chunk, whatever its number. Raises `Gone` at the end, and notes in `ended` whether
        that is by SHUTDOWN ("shutdown") or ABORT ("abort")."""
        return self._chunk(time.monotonic() + (timeout or self.patience) * PACE)

    def _chunk(self, end):
        while True:
            left = max(end - time.monotonic(), 0.001)
            self.sock.settimeout(min(left, 0.1) if self.shut else left)
            try:
                data, extra, _, _ = self.sock.recvmsg(70000, 256)
                break
            except TimeoutError:
                if self.shut and not self.exists():
                    self.ended = "shutdown"
                    raise Gone("shut down") from None
                if time.monotonic() >= end:
                    raise Silent("no chunk") from None
            except ConnectionError as reason:
                self.ended = "abort"
                raise Gone(str(reason)) from None
        if not data:
            self.ended = "shutdown"
            raise Gone("shut down")
        stream, _, flags, ppid = struct.unpack("HHHxxI", extra[0][2][:12])
        return Chunk(socket.ntohl(ppid), struct.unpack(">H", data[:2])[0], data[2:], stream,
                     bool(flags & UNORDERED))

    def next_chunk(self, timeout=None):
        """Receives the chunk that is next by its DDP-SSN."""
        while self.ssn_in not in self.ahead:
            chunk = self.any_chunk(timeout)
            if chunk.ssn in self.ahead or (chunk.ssn - self.ssn_in) & 0xFFFF > 32767:
                raise ValueError(f"a duplicate: {chunk}")
            self.ahead[chunk.ssn] = chunk
        chunk = self.ahead.pop(self.ssn_in)
        self.ssn_in = (self.ssn_in + 1) & 0xFFFF
        return chunk

    def silent(self, seconds):
        """Returns whether nothing arrives for `seconds`, not even an end. Loses what arrives."""
        try:
            if self.ssn_in not in self.ahead:
                self._chunk(time.monotonic() + seconds)
        except Silent:
            return True
        except Gone:
            pass
        return False

    def _fate(self, within):
        end = time.monotonic() + within
        try:
            while time.monotonic() < end:
                self._chunk(end)
        except Silent:
            # An earlier send may have got the error instead.
            if not self.exists():
                return "abort"
        except Gone:
            return self.ended
        return "alive"

    # --- session

    def initiate(self, private=b"", ird=None, ord_=None, **more):
        """Sends an Initiate; an enhanced one with these depths, if any."""
        if ird is None:
            self.control(INITIATE, private, **more)
        else:
            self.control(ENHANCED_INITIATE, struct.pack(">HH", ird, ord_) + private, **more)

    def ask(self, private=b"", ird=None, ord_=None):  # pylint: disable=arguments-differ
        """Sends an Initiate and returns the answer."""
        self.initiate(private, ird, ord_)
        return self.next_chunk()

    def accept(self, private=b"", ird=None, ord_=None):
        """Accepts, enhanced if there are depths."""
        if ird is None:
            self.control(ACCEPT, private)
        else:
            self.control(ENHANCED_ACCEPT, struct.pack(">HH", ird, ord_) + private)

    def segment(self, timeout=None):
        """Receives a segment. Raises `Gone` for a Terminate Chunk, too."""
        chunk = self.next_chunk(timeout)
        if chunk.ppid == CONTROL:
            self.ended = {TERMINATE: "terminate"}.get(chunk.function, f"function {chunk.function}")
            raise Gone(self.ended)
        return rdmap.parse(chunk.data)

    def finish(self, timeout=None):
        """Ends the session after the other end's Terminate Chunk: returns how the association ends."""
        try:
            self.control(TERMINATE)
        except Gone:
            # The other end does not wait for it.
            pass
        return self.fate(timeout or self.patience)


def packets_and_chunks(netns=""):
    """Returns the packets of SCTP and the unordered chunks that a namespace has sent."""
    with NetNSEnter(netns), open("/proc/thread-self/net/sctp/snmp", encoding="ascii") as file:
        counters = dict(line.split() for line in file)
    return int(counters["SctpOutSCTPPacks"]), int(counters["SctpOutUnorderChunks"])


class SctpListener:
    """An SCTP listener whose connections are `Association`s."""

    def __init__(self, address, netns="", backlog=64, port=0, **options):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.sock = make_socket(family, netns, **options)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((address, port))
        self.sock.listen(backlog)
        self.port = self.sock.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def accept(self, timeout=10, read=True):
        """Returns the next association, after reading its Initiate into `request`."""
        self.sock.settimeout(timeout * PACE)
        peer = Association(self.sock.accept()[0])
        if read:
            peer.request = peer.next_chunk()
        return peer
