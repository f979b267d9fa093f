# SPDX-License-Identifier: GPL-2.0
"""RPC-over-RDMA version 1 (RFC 8166 §4), and the RPC messages in it (RFC 5531 §9)."""

import struct
from dataclasses import dataclass

from iwarp import mpa
from iwarp.peer import Peer

VERSION = 1
MSG, NOMSG, MSGP, DONE, ERROR = range(5)
CREDITS = 32

CALL, REPLY = 0, 1
NULL = 0
"""The procedure that each program has."""

NFS = 100003


@dataclass
class Chunk:
    """One RDMA segment: a part of a chunk."""

    stag: int
    length: int
    offset: int

    def encode(self):
        return struct.pack(">IIQ", self.stag, self.length, self.offset)


@dataclass
class Message:
    """A parsed message. `reads` has (position, Chunk) pairs, `writes` lists of chunks, `reply` a list of
    chunks, or None."""

    xid: int
    credits: int
    kind: int
    reads: list
    writes: list
    reply: list
    body: bytes

    @property
    def procedure(self):
        """Returns the procedure of the call in the body."""
        return struct.unpack(">I", self.body[20:24])[0]


def message(xid, body=b"", kind=MSG, reads=(), writes=(), reply=None, credit=CREDITS):
    """Builds a message. The chunk lists are as in `Message`."""
    data = struct.pack(">IIII", xid, VERSION, credit, kind)
    for position, chunk in reads:
        data += struct.pack(">II", 1, position) + chunk.encode()
    data += struct.pack(">I", 0)
    for chunks in writes:
        data += struct.pack(">I", 1) + _array(chunks)
    data += struct.pack(">I", 0)
    return data + (struct.pack(">I", 0) if reply is None else struct.pack(">I", 1) + _array(reply)) + body


def _array(chunks):
    return struct.pack(">I", len(chunks)) + b"".join(chunk.encode() for chunk in chunks)


class _Reader:
    """The words of a message, from the first one on."""

    def __init__(self, data):
        self.data = data

    def take(self, layout):
        """Takes fields. Returns one, or a tuple."""
        size = struct.calcsize(layout)
        fields, self.data = struct.unpack(layout, self.data[:size]), self.data[size:]
        return fields if len(fields) > 1 else fields[0]

    def chunk(self):
        return Chunk(*self.take(">IIQ"))

    def array(self):
        return [self.chunk() for _ in range(self.take(">I"))]


def parse(data):
    """Parses a message of version 1."""
    reader = _Reader(data)
    xid, version, credit, kind = reader.take(">IIII")
    if version != VERSION:
        raise ValueError(f"version {version} of RPC-over-RDMA")
    reads, writes, reply = [], [], None
    while reader.take(">I"):
        reads.append((reader.take(">I"), reader.chunk()))
    while reader.take(">I"):
        writes.append(reader.array())
    if reader.take(">I"):
        reply = reader.array()
    return Message(xid, credit, kind, reads, writes, reply, reader.data)


def call(xid, procedure=NULL, args=b"", program=NFS, version=3):
    """Builds a call without credentials."""
    return struct.pack(">IIIIII", xid, CALL, 2, program, version, procedure) + bytes(16) + args


def accepted(xid, results=b""):
    """Builds a reply to a call that has succeeded."""
    return struct.pack(">III", xid, REPLY, 0) + bytes(8) + struct.pack(">I", 0) + results


def connect(address, port, netns="", depth=4):
    """Connects to a server, with CRCs. Its first FPDU must come from here."""
    peer = Peer.connect(address, port, netns)
    peer.ask(mpa.CRC, ird=depth, ord_=depth)
    return peer
