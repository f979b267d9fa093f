# SPDX-License-Identifier: GPL-2.0
"""MPA: start-up frames (RFC 5044 §7.1, RFC 6581 §4) and FPDUs (RFC 5044 §4)."""

import struct
from dataclasses import dataclass

from .crc32c import crc32c

REQUEST_KEY = b"MPA ID Req Frame"
REPLY_KEY = b"MPA ID Rep Frame"

HEAD = 20
"""Bytes of a start-up frame before its private data."""

MARKERS = 0x80
CRC = 0x40
REJECT = 0x20
ENHANCED = 0x10

# Flags in the IRD and ORD words of an enhanced frame.
PEER_TO_PEER = 0x8000
RTR_ZERO_SEND = 0x4000
RTR_ZERO_WRITE = 0x8000
RTR_ZERO_READ = 0x4000


def startup(key, flags=0, revision=2, private=b"", length=None):
    """Builds a start-up frame, valid or not. `length` overrides the private data's length."""
    return key + struct.pack(">BBH", flags, revision,
                             len(private) if length is None else length) + private


def request(private=b"", flags=0, revision=2, control=(0, 0), **depths):
    """Builds a Request frame of the client-server model."""
    return _usual(REQUEST_KEY, private, flags, revision, control, **depths)


def reply(private=b"", flags=0, revision=2, control=(PEER_TO_PEER, RTR_ZERO_WRITE), **depths):
    """Builds a Reply frame of the peer-to-peer model, with a zero-length RDMA Write as RTR."""
    return _usual(REPLY_KEY, private, flags, revision, control, **depths)


def _usual(key, private, flags, revision, control, ird=1, ord_=1):
    """Builds a valid frame. A frame of revision 2 is enhanced: the IRD and ORD words, with the bits
    of `control`, precede the user's private data."""
    if revision == 2:
        flags |= ENHANCED
        private = struct.pack(">HH", ird | control[0], ord_ | control[1]) + private
    return startup(key, flags, revision, private)


@dataclass
class Startup:
    """A parsed start-up frame."""

    key: bytes
    flags: int
    revision: int
    private: bytes

    @property
    def reject(self):
        return bool(self.flags & REJECT)

    @property
    def depths(self):
        """Returns the IRD and ORD words of an enhanced frame, and the private data behind them."""
        ird, ord_ = struct.unpack(">HH", self.private[:4])
        return ird, ord_, self.private[4:]


def read_startup(head, receive):
    """Reads the start-up frame that begins with `head`; `receive(n)` returns exactly n more
    bytes."""
    key, flags, revision, length = struct.unpack(">16sBBH", head)
    return Startup(key, flags, revision, receive(length))


class Markers:
    """One direction of a stream with markers (RFC 5044 §4.3): one every 512 bytes, each with its
    distance from the start of its FPDU."""

    def __init__(self):
        self.at = 0
        self.start = None

    def due(self, wrong=0):
        """Returns the marker that is due here, its pointer XORed with `wrong`, or nothing."""
        if self.at % 512:
            return b""
        marker = struct.pack(">HH", 0, (0 if self.start is None else self.at - self.start) ^ wrong)
        self.at += 4
        return marker

    def room(self, length):
        """Returns how many of `length` bytes of an FPDU precede the next marker."""
        if self.start is None:
            self.start = self.at
        part = min(length, 512 - self.at % 512)
        self.at += part
        return part

    def end(self):
        """Ends the FPDU."""
        self.start = None


def fpdu(ulpdu, crc=True, length=None, bad_crc=False, markers=None, bad_marker=0):
    """Builds an FPDU, with `markers` if given. Without `crc` the CRC field is 0. The pointers of
    its markers are XORed with `bad_marker`."""
    body = struct.pack(">H", len(ulpdu) if length is None else length) + ulpdu
    body += bytes(-len(body) % 4)
    if markers:
        frame = b""
        while body:
            frame += markers.due(bad_marker)
            part = markers.room(len(body))
            frame, body = frame + body[:part], body[part:]
        frame += markers.due(bad_marker)
        markers.room(4)
        markers.end()
    else:
        frame = body
    check = crc32c(frame) if crc else 0
    return frame + struct.pack("<I", check ^ (1 if bad_crc else 0))


def read_fpdu(receive, crc=True, markers=None):
    """Reads an FPDU. Returns its ULPDU. Raises ValueError if a marker or the CRC is wrong."""
    raw = b""

    def take(count):
        nonlocal raw
        data = b""
        while len(data) < count:
            if markers and (wanted := markers.due()):
                marker = receive(4)
                if marker != wanted:
                    raise ValueError(f"marker {marker.hex()}, should be {wanted.hex()}")
                raw += marker
            left = count - len(data)
            part = receive(markers.room(left) if markers else left)
            raw, data = raw + part, data + part
        return data

    length, = struct.unpack(">H", take(2))
    rest = take(length + -(length + 2) % 4)
    field = take(4)
    if markers:
        markers.end()
    if crc and field != struct.pack("<I", crc32c(raw[:-4])):
        raise ValueError("wrong CRC in an FPDU")
    return rest[:length]
