# SPDX-License-Identifier: GPL-2.0
"""MPA startup by plain TCP (RFC 5044, section 7.1; RFC 6581): for peers that do what no driver would.

    with mpa.Peer(node, port) as peer:
        peer.send(mpa.request(data=b"hello"))
        tap.equal(peer.frame().reject, False, "reject")
"""

import errno
import socket
import struct
import time
from dataclasses import dataclass

import lab

REQUEST = b"MPA ID Req Frame"
REPLY = b"MPA ID Rep Frame"
MARKERS, CRC, REJECT, ENHANCED = 0x80, 0x40, 0x20, 0x10
PEER_TO_PEER, RTR_SEND = 0x8000, 0x4000
RTR_WRITE, RTR_READ = 0x8000, 0x4000


def frame(key, flags=0, revision=2, data=b"", length=None):
    """A startup frame; `length` is what it says of its private data."""
    return key + struct.pack(">BBH", flags, revision, len(data) if length is None else length) + data


def request(ird=1, ord=1, data=b"", flags=0, control=(0, 0), **more):
    """A Request of revision 2 with read depths."""
    depths = struct.pack(">HH", ird | control[0], ord | control[1])
    return frame(REQUEST, flags | ENHANCED, data=depths + data, **more)


def request_v1(data=b"", flags=0):
    """A Request of revision 1."""
    return frame(REQUEST, flags, 1, data)


def reply(ird=1, ord=1, data=b"", flags=0, control=(PEER_TO_PEER, RTR_WRITE), **more):
    """A Reply of revision 2 with read depths, which asks for an RDMA Write first."""
    depths = struct.pack(">HH", ird | control[0], ord | control[1])
    return frame(REPLY, flags | ENHANCED, data=depths + data, **more)


def rtr_write(stag=1):
    """A zero-length RDMA Write in an FPDU, with a CRC that says 0: for streams without CRC."""
    ulpdu = struct.pack(">BBIQ", 0xc1, 0x40, stag, 0)
    return fpdu(ulpdu)


def fpdu(ulpdu):
    """An FPDU without markers; its CRC is 0."""
    body = struct.pack(">H", len(ulpdu)) + ulpdu
    return body + b"\0" * (-len(body) % 4) + b"\0" * 4


@dataclass
class Frame:
    """A startup frame that was received."""

    key: bytes
    flags: int
    revision: int
    data: bytes

    @property
    def reject(self):
        return bool(self.flags & REJECT)

    @property
    def depths(self):
        """The two control words of an enhanced frame, and the private data behind them."""
        ird, ord = struct.unpack(">HH", self.data[:4])
        return ird, ord, self.data[4:]


class Peer:
    """A TCP connection to a server on a node that shares our network namespace."""

    def __init__(self, addr, port, sock=None, timeout=10):
        self.sock = sock or socket.create_connection((addr, port), timeout)
        self.sock.settimeout(timeout)
        self.begin = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Ends the connection with a RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def send(self, data, step=0):
        """Sends, `step` bytes at a time if that is not 0."""
        for i in range(0, len(data), step or len(data)):
            self.sock.sendall(data[i:i + (step or len(data))])
            if step:
                time.sleep(0.002)

    def receive(self, length):
        """So many bytes, or what came before the end."""
        data = b""
        while len(data) < length:
            more = self.sock.recv(length - len(data))
            if not more:
                break
            data += more
        return data

    def frame(self):
        """The startup frame that comes next, or None if the connection ends instead."""
        head = self.receive(20)
        if len(head) < 20:
            return None
        flags, revision, length = struct.unpack(">BBH", head[16:])
        return Frame(head[:16], flags, revision, self.receive(length))

    def end(self, within):
        """How the connection ends, what comes before dropped: "fin", "rst" or "alive"."""
        self.sock.settimeout(within)
        try:
            while self.sock.recv(65536):
                pass
            return "fin"
        except socket.timeout:
            return "alive"
        except OSError as reason:
            if reason.errno in (errno.ECONNRESET, errno.EPIPE):
                return "rst"
            raise


class Server:
    """A TCP server for one client after another."""

    def __init__(self, node, backlog=8):
        self.port = lab.new_port()
        self.sock = socket.create_server((node.addr, self.port), backlog=backlog)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def accept(self, timeout=10):
        """The next connection, its Request received."""
        self.sock.settimeout(timeout)
        peer = Peer(None, None, self.sock.accept()[0])
        peer.request = peer.frame()
        return peer
