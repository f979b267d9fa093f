# SPDX-License-Identifier: GPL-2.0
"""DDP segments and RDMAP messages (RFC 5041 §4, RFC 5040 §4)."""

import struct
from dataclasses import dataclass

WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATE, SEND_SE, SEND_SE_INVALIDATE, TERMINATE = range(8)
IMMEDIATE, IMMEDIATE_SE, ATOMIC_REQUEST, ATOMIC_RESPONSE = range(8, 12)

SEND_QUEUE, READ_QUEUE, TERMINATE_QUEUE, ATOMIC_QUEUE = range(4)

FETCH_ADD, CMP_SWAP = 0, 2

ALL_BITS = (1 << 64) - 1

TAGGED = 0x80
LAST = 0x40


def control(opcode, tagged=False, last=True, ddp_version=1, rdmap_version=1, reserved=0):
    """Builds the two control bytes of DDP and RDMAP."""
    return bytes([(TAGGED if tagged else 0) | (LAST if last else 0) | reserved << 2 | ddp_version,
                  rdmap_version << 6 | opcode])


def tagged(opcode, stag, offset, payload=b"", **bits):
    """Builds a segment for a tagged buffer."""
    return control(opcode, tagged=True, **bits) + struct.pack(">IQ", stag, offset) + payload


def untagged(opcode, queue, msn, payload=b"", offset=0, stag=0, **bits):
    """Builds a segment for an untagged buffer; `stag` is the STag to invalidate, if any."""
    return control(opcode, **bits) + struct.pack(">IIII", stag, queue, msn, offset) + payload


def send(msn, payload, opcode=SEND, **more):
    """Builds a SEND of any type, of one segment."""
    return untagged(opcode, SEND_QUEUE, msn, payload, **more)


def write(stag, offset, payload=b"", **more):
    """Builds a segment of an RDMA WRITE."""
    return tagged(WRITE, stag, offset, payload, **more)


def read_request(msn, sink_stag, sink_offset, length, stag, offset, **more):
    """Builds an RDMA READ request."""
    return untagged(READ_REQUEST, more.pop("queue", READ_QUEUE), msn,
                    struct.pack(">IQIIQ", sink_stag, sink_offset, length, stag, offset), **more)


def read_response(stag, offset, payload, **more):
    """Builds a segment of an RDMA READ response."""
    return tagged(READ_RESPONSE, stag, offset, payload, **more)


@dataclass
class Atomic:
    """An atomic operation (RFC 7306 §5.1). FETCH_ADD ignores the last two fields."""

    code: int
    data: int
    mask: int
    compare: int = 0
    compare_mask: int = ALL_BITS


def fetch_add(add, mask=0):
    """A FetchAdd; `mask` has the top bits of its fields."""
    return Atomic(FETCH_ADD, add, mask)


def cmp_swap(compare, swap, compare_mask=ALL_BITS, swap_mask=ALL_BITS):
    """A CmpSwap."""
    return Atomic(CMP_SWAP, swap, swap_mask, compare, compare_mask)


def atomic_request(msn, operation, ident, stag, offset, **more):
    """Builds an Atomic Request (RFC 7306 §5.2.1)."""
    header = struct.pack(">IIIQQQQQ", operation.code, ident, stag, offset, operation.data,
                         operation.mask, operation.compare, operation.compare_mask)
    return untagged(ATOMIC_REQUEST, more.pop("queue", READ_QUEUE), msn, header, **more)


def atomic_response(msn, ident, original, **more):
    """Builds an Atomic Response (RFC 7306 §5.2.2)."""
    return untagged(ATOMIC_RESPONSE, more.pop("queue", ATOMIC_QUEUE), msn,
                    struct.pack(">IQ", ident, original), **more)


def parse_atomic_request(payload):
    """Parses an Atomic Request: (operation, identifier, STag, offset)."""
    code, ident, stag, offset, *fields = struct.unpack(">IIIQQQQQ", payload)
    return Atomic(code, *fields), ident, stag, offset


def parse_atomic_response(payload):
    """Parses an Atomic Response: (identifier, original value)."""
    return struct.unpack(">IQ", payload)


def immediate(msn, data, solicited=False, **more):
    """Builds Immediate Data of 8 octets (RFC 7306 §6)."""
    return untagged(IMMEDIATE_SE if solicited else IMMEDIATE, SEND_QUEUE, msn, data, **more)


def terminate(layer, etype, code, msn=1, rest=b"\0\0", **more):
    """Builds a Terminate. `rest` follows layer, type and code."""
    return untagged(TERMINATE, TERMINATE_QUEUE, msn, bytes([layer << 4 | etype, code]) + rest, **more)


@dataclass
class Segment:
    """A parsed segment. Absent fields are None."""

    opcode: int
    last: bool
    stag: int
    payload: bytes
    offset: int
    queue: int = None
    msn: int = None


def parse(ulpdu):
    """Parses a segment."""
    first, second = ulpdu[0], ulpdu[1]
    if first & 0x03 != 1 or second >> 6 != 1:
        raise ValueError(f"DDP or RDMAP version in {ulpdu[:2].hex()}")
    opcode, last = second & 0x0F, bool(first & LAST)
    if first & TAGGED:
        stag, offset = struct.unpack(">IQ", ulpdu[2:14])
        return Segment(opcode, last, stag, ulpdu[14:], offset)
    stag, queue, msn, offset = struct.unpack(">IIII", ulpdu[2:18])
    return Segment(opcode, last, stag, ulpdu[18:], offset, queue, msn)


@dataclass
class ReadRequest:
    """The fields of a READ request."""

    sink_stag: int
    sink_offset: int
    length: int
    stag: int
    offset: int


def parse_read_request(payload):
    """Parses the RDMAP header of a READ request."""
    return ReadRequest(*struct.unpack(">IQIIQ", payload))


@dataclass
class Terminate:
    """The fields of a Terminate. Absent headers are empty."""

    layer: int
    etype: int
    code: int
    length: int = None
    ddp: bytes = b""
    rdmap: bytes = b""

    @property
    def error(self):
        """(layer, type, code)"""
        return self.layer, self.etype, self.code


def parse_terminate(payload):
    """Parses the payload of a Terminate (RFC 5040 §4.8)."""
    first, code, present = payload[0], payload[1], payload[2]
    said = Terminate(first >> 4, first & 0x0F, code)
    rest = payload[4:]
    if present & 0xC0:
        said.length, = struct.unpack(">H", rest[:2])
        rest = rest[2:]
    if present & 0x40 and rest:
        size = 14 if rest[0] & TAGGED else 18
        said.ddp, rest = rest[:size], rest[size:]
    if present & 0x20:
        said.rdmap = rest[:28]
    return said
