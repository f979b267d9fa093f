# SPDX-License-Identifier: GPL-2.0
"""MPA: start-up frames (RFC 5044 §7.1, RFC 6581 §4) and FPDUs (RFC 5044 §4)."""

import struct
from dataclasses import dataclass

from .crc32c import crc32c

REQUEST_KEY = b"MPA ID Req Frame"
REPLY_KEY = b"MPA ID Rep Frame"

MARKERS = 0x80
CRC = 0x40
REJECT = 0x20
ENHANCED = 0x10

# In the IRD and ORD words of an enhanced frame.
PEER_TO_PEER = 0x8000
RTR_ZERO_SEND = 0x4000
RTR_ZERO_WRITE = 0x8000
RTR_ZERO_READ = 0x4000


def startup(key, flags=0, revision=1, private=b"", length=None):
    """A request or reply frame. `length` in place of the private data's true length."""
    return key + struct.pack(">BBH", flags, revision,
                             len(private) if length is None else length) + private


def request(private=b"", flags=0, revision=1, **more):
    """A request frame, revision 1 unless said otherwise."""
    return startup(REQUEST_KEY, flags, revision, private, **more)


def reply(private=b"", flags=0, revision=1, **more):
    """A reply frame."""
    return startup(REPLY_KEY, flags, revision, private, **more)


def enhanced(ird, ord_, private=b""):
    """The private data of an enhanced frame: IRD and ORD words before the user's."""
    return struct.pack(">HH", ird, ord_) + private


@dataclass
class Startup:
    """A start-up frame as read."""

    key: bytes
    flags: int
    revision: int
    private: bytes


def read_startup(receive):
    """Reads a start-up frame; `receive(n)` gives exactly n bytes."""
    key, flags, revision, length = struct.unpack(">16sBBH", receive(20))
    return Startup(key, flags, revision, receive(length))


def fpdu(ulpdu, crc=True, length=None, bad_crc=False):
    """An FPDU. Without `crc` the field is there, and 0."""
    frame = struct.pack(">H", len(ulpdu) if length is None else length) + ulpdu
    frame += bytes(-len(frame) % 4)
    check = crc32c(frame) if crc else 0
    return frame + struct.pack("<I", check ^ (1 if bad_crc else 0))


def read_fpdu(receive, crc=True):
    """Reads an FPDU and returns its ULPDU; raises ValueError if its CRC is wrong."""
    head = receive(2)
    length, = struct.unpack(">H", head)
    rest = receive(length + -(length + 2) % 4)
    check, = struct.unpack("<I", receive(4))
    if crc and check != crc32c(head + rest):
        raise ValueError("wrong CRC in an FPDU")
    return rest[:length]
