# SPDX-License-Identifier: GPL-2.0
"""Capsules of NVMe over RDMA (NVMe RDMA Transport Specification), as a host sends them."""

import struct

from iwarp import mpa
from iwarp.peer import Peer

FABRICS = 0x7f
"""The opcode of commands of NVMe over Fabrics."""
CONNECT = 1
"""A type of such a command."""
CONNECT_DATA = 1024
"""Bytes of data of a Connect command."""

SGL = 0x40
"""In the flags of a command: it has one descriptor of a data block."""
KEYED, KEYED_INVALIDATE = 0x40, 0x4f
"""Types of keyed descriptors: `KEYED_INVALIDATE` lets the target invalidate the key."""


def private_data(queue=0, depth=32):
    """Builds the private data of a connection for a queue; 0 is that of admin commands."""
    return struct.pack("<HHHHH22x", 0, queue, depth, depth - 1, 0xffff)


def keyed(addr, length, key, kind=KEYED):
    """Builds the descriptor of a data block in the host's memory."""
    return struct.pack("<Q", addr) + length.to_bytes(3, "little") + struct.pack("<IB", key, kind)


def command(opcode, ident, data=bytes(16), nsid=0, fields=bytes(24)):
    """Builds a command capsule. `data` describes its data; `fields` are the last 24 octets."""
    return struct.pack("<BBHI16x", opcode, SGL, ident, nsid) + data + fields


def connect_command(ident, data, queue=0, depth=32):
    """Builds a Connect command."""
    head = struct.pack("<BBHB19x", FABRICS, SGL, ident, CONNECT)
    return head + data + struct.pack("<HHHBxI12x", 0, queue, depth - 1, 0, 0)


def connect_data(subsystem, host, ident=bytes(16), controller=0xffff):
    """Builds the data of a Connect command: names of subsystem and host, and the host's identifier."""
    return struct.pack("<16sH238x256s256s256x", ident, controller, subsystem.encode(), host.encode())


def parse_response(capsule):
    """Parses a response capsule: (identifier of the command, status without the phase, result)."""
    result, _, _, ident, status = struct.unpack("<QHHHH", capsule)
    return ident, status >> 1, result


def connect(address, port, netns="", queue=0, depth=4):
    """Opens the connection of a queue to a target, with CRCs. Its first FPDU must come from here."""
    peer = Peer.connect(address, port, netns)
    peer.ask(mpa.CRC, private=private_data(queue), ird=depth, ord_=depth)
    return peer
