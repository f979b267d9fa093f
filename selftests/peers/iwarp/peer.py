# SPDX-License-Identifier: GPL-2.0
"""A TCP connection that speaks hand-built iWARP, as either end.

Time limits are in seconds of a fast machine, and multiplied by PACE here. How long nothing must happen is in
seconds.
"""

import fcntl
import socket
import struct
import time

from ksft import PACE
from netns import NetNSEnter

from . import mpa, rdmap


SIOCOUTQ, SIOCOUTQNSD = 0x5411, 0x894B


class Gone(Exception):
    """The other end has closed or reset the connection."""


class Silent(Exception):
    """The other end sent nothing in time."""


class Peer:
    """One connection. `patience`: maximum seconds for an answer."""

    patience = 10

    def __init__(self, sock):
        self.sock = sock
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = None
        self.crc = False
        self.markers_out = self.markers_in = None
        self.msn = {rdmap.SEND_QUEUE: 0, rdmap.READ_QUEUE: 0}

    @classmethod
    def connect(cls, address, port, netns=""):
        """Connects to a listener."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with NetNSEnter(netns):
            sock = socket.socket(family, socket.SOCK_STREAM)
        sock.settimeout(cls.patience * PACE)
        sock.connect((address, port))
        return cls(sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes with FIN, or with RST if data is unread."""
        self.sock.close()

    def reset(self):
        """Closes with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def fate(self, within):
        """Returns how the connection ends: "fin", "rst" or "alive". Drops data before the end."""
        return self._fate(within * PACE)

    def lives(self, seconds):
        """Returns whether the connection does not end for `seconds`. Drops data."""
        return self._fate(seconds) == "alive"

    def _fate(self, within):
        end = time.monotonic() + within
        try:
            while (left := end - time.monotonic()) > 0:
                self.sock.settimeout(left)
                if not self.sock.recv(65536):
                    return "fin"
        except TimeoutError:
            pass
        except (ConnectionResetError, BrokenPipeError):
            return "rst"
        return "alive"

    # --- bytes

    def send(self, data):
        """Sends all data."""
        try:
            self.sock.settimeout(self.patience * PACE)
            self.sock.sendall(data)
        except (ConnectionError, BrokenPipeError) as reason:
            raise Gone(str(reason)) from None

    def send_slowly(self, data, size=1, pause=0.002):
        """Sends it in pieces, each in its own segment."""
        for at in range(0, len(data), size):
            self.send(data[at:at + size])
            time.sleep(pause)

    def receive(self, count, timeout=None):
        """Receives exactly `count` bytes."""
        end = time.monotonic() + (timeout or self.patience) * PACE
        data = b""
        while len(data) < count:
            left = end - time.monotonic()
            if left <= 0:
                raise Silent(f"{len(data)} of {count} bytes")
            self.sock.settimeout(left)
            try:
                more = self.sock.recv(count - len(data))
            except TimeoutError:
                continue
            except ConnectionError as reason:
                raise Gone(str(reason)) from None
            if not more:
                raise Gone(f"closed after {len(data)} of {count} bytes")
            data += more
        return data

    def _queued(self, request):
        return struct.unpack("i", fcntl.ioctl(self.sock, request, bytes(4)))[0]

    def unacknowledged(self):
        """Returns the number of bytes whose acknowledgment it lacks."""
        return self._queued(SIOCOUTQ)

    def unsent(self):
        """Returns the number of bytes that its socket has not sent yet."""
        return self._queued(SIOCOUTQNSD)

    def silent(self, seconds):
        """Returns whether nothing arrives for `seconds`, not even an end. Leaves data unread."""
        self.sock.settimeout(seconds)
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        except ConnectionError:
            pass
        return False

    # --- start-up

    def startup(self):
        """Receives a start-up frame, or returns None if the connection ends instead. If the frame
        asks for CRCs, FPDUs have them."""
        try:
            head = self.receive(mpa.HEAD)
        except Gone:
            return None
        frame = mpa.read_startup(head, self.receive)
        self.crc = bool(frame.flags & mpa.CRC)
        return frame

    def ask(self, flags=0, **more):
        """Sends a Request and returns the Reply. FPDUs then use the negotiated options."""
        self.send(mpa.request(flags=flags, **more))
        reply = self.startup()
        if not reply or reply.key != mpa.REPLY_KEY:
            raise ValueError(f"no reply but {reply}")
        # Either side enables CRCs for both; each side requests markers for its receive direction.
        self.crc = bool((flags | reply.flags) & mpa.CRC)
        self.markers_in = mpa.Markers() if flags & mpa.MARKERS else None
        self.markers_out = mpa.Markers() if reply.flags & mpa.MARKERS else None
        return reply

    # --- segments

    def post(self, ulpdu, **more):
        """Sends a segment in an FPDU."""
        self.send(self.frame(ulpdu, **more))

    def frame(self, ulpdu, **more):
        """Builds the FPDU of a segment with this connection's options."""
        return mpa.fpdu(ulpdu, **{"crc": self.crc, "markers": self.markers_out, **more})

    def next_msn(self, queue=rdmap.SEND_QUEUE):
        """Returns the next MSN of a queue, from 1."""
        self.msn[queue] += 1
        return self.msn[queue]

    def say(self, payload, **more):
        """SENDs a message of one segment with the correct MSN."""
        self.post(rdmap.send(self.next_msn(), payload, **more))

    def read(self, length, stag, offset, sink_stag=0x1234, sink_offset=0):
        """Sends a READ request with the correct MSN."""
        self.post(rdmap.read_request(self.next_msn(rdmap.READ_QUEUE), sink_stag, sink_offset, length,
                                     stag, offset))

    def atomic(self, operation, stag, offset, ident=0):
        """Sends an Atomic Request with the correct MSN."""
        self.post(rdmap.atomic_request(self.next_msn(rdmap.READ_QUEUE), operation, ident, stag, offset))

    def segment(self, timeout=None):
        """Receives a segment."""
        return rdmap.parse(mpa.read_fpdu(lambda n: self.receive(n, timeout), self.crc,
                                         self.markers_in))

    def message(self, timeout=None):
        """Receives a message: (its last segment, its whole payload)."""
        payload = bytearray()
        while True:
            segment = self.segment(timeout)
            payload += segment.payload
            if segment.last:
                return segment, bytes(payload)

    def ending(self, timeout=None):
        """Waits for the end of the connection: (Terminate or None, messages before it).

        Reads until the other end closes. Raises `Silent` if it does not.
        """
        said, before = None, []
        while True:
            try:
                segment, payload = self.message(timeout)
            except Gone:
                return said, before
            if segment.opcode == rdmap.TERMINATE:
                said = rdmap.parse_terminate(payload)
            else:
                before.append((segment, payload))


class Listener:
    """A TCP listener whose connections are `Peer`s."""

    def __init__(self, address, netns="", backlog=64):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with NetNSEnter(netns):
            self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((address, 0))
        self.sock.listen(backlog)
        self.port = self.sock.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def connected(self, sock):
        """Returns the peer of a connection that was accepted."""
        return Peer(sock)

    def accept(self, timeout=10):
        """Returns the next connection, after reading its `request`."""
        self.sock.settimeout(timeout * PACE)
        peer = self.connected(self.sock.accept()[0])
        peer.request = peer.startup()
        if not peer.request or peer.request.key != mpa.REQUEST_KEY:
            raise ValueError(f"no request but {peer.request}")
        return peer
