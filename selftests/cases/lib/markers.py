# SPDX-License-Identifier: GPL-2.0
"""Checks the markers in a capture and removes them, so that tshark can check the rest.

tshark supports markers only with one FPDU in each TCP segment. RFC 5044, section 4.3, defines
markers.

A capture is a pcap file of Ethernet frames with IPv4 and TCP. Every established connection in it is an
MPA connection with its SYN in the capture and markers in both directions.
"""

import io
import struct
from dataclasses import dataclass, field
from functools import cached_property

from iwarp import mpa
from ksft import ksft_eq

SYN = 0x02

DISTANCE = 512
"""Bytes of the stream from one marker to the next."""
SIZE = 4
"""Bytes of a marker."""


@dataclass
class Stream:
    """The data that one end of a connection has sent."""

    begin: int
    """The sequence number of the first byte."""
    data: bytearray = field(default_factory=bytearray)

    def offset(self, seq):
        return (seq - self.begin) % (1 << 32)

    def add(self, offset, payload):
        self.data.extend(bytes(max(0, offset + len(payload) - len(self.data))))
        self.data[offset:offset + len(payload)] = payload

    @cached_property
    def startup(self):
        """Bytes of its startup frame, private data included."""
        return mpa.HEAD + struct.unpack_from(">H", self.data, mpa.HEAD - 2)[0]

    def is_marker(self, offset):
        """Returns whether the byte at `offset` is part of a marker."""
        return offset >= self.startup and (offset - self.startup) % DISTANCE < SIZE

    def without(self, offset):
        """Returns the offset of the byte after all markers are removed."""
        whole, part = divmod(max(0, offset - self.startup), DISTANCE)
        return offset - whole * SIZE - min(part, SIZE)

    def judge(self):
        """Checks each marker. Returns their number."""
        end = len(self.data) - self.startup
        rest = io.BytesIO(self.data[self.startup:])

        def receive(count):
            data = rest.read(count)
            ksft_eq(len(data), count, "bytes that are there of the last FPDU")
            return data

        judged = mpa.Markers()
        while rest.tell() < end:
            mpa.read_fpdu(receive, crc=False, markers=judged)
        return len(range(0, end, DISTANCE))


@dataclass
class Packet:
    """A frame with a TCP segment."""

    when: bytes
    frame: bytearray

    def __post_init__(self):
        self.ip = 14
        self.tcp = self.ip + (self.frame[self.ip] & 15) * 4
        self.sport, self.dport, self.seq, self.ack, offset, self.flags = \
            struct.unpack_from(">HHLLBB", self.frame, self.tcp)
        self.payload = self.tcp + (offset >> 4) * 4
        # Ethernet may have padded the frame.
        total, = struct.unpack_from(">H", self.frame, self.ip + 2)
        del self.frame[self.ip + total:]

    def key(self):
        return self.sport, self.dport

    def without_markers(self, own, peer):
        """Returns the packet without its markers."""
        offset = own.offset(self.seq)
        new = self.frame[:self.payload]
        for number, byte in enumerate(self.frame[self.payload:], offset):
            if number == mpa.HEAD - 4:
                byte &= ~mpa.MARKERS
            if not own.is_marker(number):
                new.append(byte)
        struct.pack_into(">H", new, self.ip + 2, len(new) - self.ip)
        struct.pack_into(">LL", new, self.tcp + 4,
                         (own.begin + own.without(offset)) % (1 << 32),
                         (peer.begin + peer.without(peer.offset(self.ack))) % (1 << 32))
        return new


def packets(path):
    """Returns the header of a capture and its packets."""
    with open(path, "rb") as file:
        header = file.read(24)
        ksft_eq(header[:4], b"\xd4\xc3\xb2\xa1", "magic number of the capture")
        result = []
        while record := file.read(16):
            length, = struct.unpack_from("<L", record, 8)
            result.append(Packet(record[:8], bytearray(file.read(length))))
    return header, result


def take_out(path, result):
    """Writes `result`, a copy of the capture `path` without markers. Returns the number of markers.
    Checks that each has the right position and points to its FPDU."""
    header, captured = packets(path)
    streams, every = {}, []
    for packet in captured:
        key = packet.key()
        if packet.flags & SYN:
            streams[key] = Stream(packet.seq + 1)
            every.append(streams[key])
        elif len(packet.frame) > packet.payload:
            stream = streams[key]
            stream.add(stream.offset(packet.seq), packet.frame[packet.payload:])
    with open(result, "wb") as file:
        file.write(header)
        for packet in captured:
            frame = packet.frame
            own, peer = streams.get(packet.key()), streams.get(packet.key()[::-1])
            # A refused connection has the SYN of one side only, and one that ends before its startup
            # frames has no markers.
            if own and peer and not packet.flags & SYN and own.data and peer.data:
                frame = packet.without_markers(own, peer)
            file.write(packet.when + struct.pack("<LL", len(frame), len(frame)) + frame)
    return sum(stream.judge() for stream in every if stream.data)
