# SPDX-License-Identifier: GPL-2.0
"""Requests to list RDMA resources, as `rdma resource` and `rdma statistic` send them, and mutated."""

import random
import socket
import struct

from ksft import KsftFailEx

NETLINK_RDMA = 20
CLIENT = 5 << 10
"""RDMA_NL_NLDEV, as part of a message type."""

HEADER = struct.Struct("=IHHII")
REQUEST, ACK, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3

DEVICE, PORT, DETAILS, STAT_RES, STAT_MODE, RES_QP, RES_MR = 1, 3, 97, 75, 74, 19, 40
"""Attributes (RDMA_NLDEV_ATTR_*)."""

IDS = {10: 21, 11: 63, 12: 61, 13: 62, 14: 60, 17: 79, 19: 21, 20: 61, 21: 62, 22: 64, 23: 90, 24: 79,
       25: 90}
"""The commands that only read, RDMA_NLDEV_CMD_RES_*_GET and STAT_GET*, each with the attribute that
is the number of the object."""

INTERESTING = (0, 1, 2, 3, 4, 5, 7, 8, 255, 1 << 16, (1 << 24) - 1, 1 << 31, (1 << 32) - 1)
LONGEST_DUMP = 10000
"""Messages after which a dump counts as endless."""


class Fuzzer:
    """Sends requests. Counts what comes back."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.sent = self.answered = self.refused = 0
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA)
        self.sock.bind((0, 0))
        self.sock.settimeout(30)

    def run(self, over, devices, ids):
        """Sends requests until the event is set: see `threads.meanwhile`. `devices` and `ids` return
        numbers of devices and of objects that exist, or have existed."""
        while not over.is_set():
            try:
                self.exchange(devices(), ids())
            except OSError as reason:
                raise KsftFailEx(f"request {self.sent}: {reason}") from None
            yield

    def attribute(self, kind, payload):
        """Builds an attribute, sometimes with a wrong length or type."""
        length = 4 + len(payload)
        if self.random.random() < 0.05:
            length = self.random.choice((0, 3, 4, length - 1, length + 1, 0xffff))
        if self.random.random() < 0.05:
            kind = self.random.randrange(1 << 16)
        data = struct.pack("=HH", length & 0xffff, kind) + payload
        return data + bytes(-len(data) % 4)

    def number(self, usual):
        """Builds the payload of a number, mostly a usual one."""
        value = self.random.choice(usual) if usual and self.random.random() < 0.8 else \
            self.random.choice(INTERESTING)
        return struct.pack("=I", value)

    def body(self, command, devices, ids):
        """Builds the attributes of a request."""
        pick = self.random
        parts = [self.attribute(DEVICE, self.number(devices))]
        if pick.random() < 0.8:
            parts.append(self.attribute(IDS[command], self.number(ids)))
        if pick.random() < 0.6:
            parts.append(self.attribute(PORT, self.number([1])))
        if pick.random() < 0.7:
            parts.append(self.attribute(DETAILS, b"\1"))
        if pick.random() < 0.3:
            parts.append(self.attribute(STAT_RES, self.number([RES_QP, RES_MR])))
        if pick.random() < 0.2:
            parts.append(self.attribute(STAT_MODE, self.number([1, 2])))
        if pick.random() < 0.2:
            pick.shuffle(parts)
        data = bytearray(b"".join(parts))
        if pick.random() < 0.2:
            for _ in range(pick.randrange(1, 4)):
                data[pick.randrange(len(data))] = pick.randrange(256)
        if pick.random() < 0.05:
            del data[pick.randrange(len(data)):]
        return bytes(data)

    def exchange(self, devices, ids):
        """Sends a request and receives all of the answer."""
        command = self.random.choice(list(IDS))
        flags = REQUEST | ACK | (DUMP if self.random.random() < 0.5 else 0)
        body = self.body(command, devices, ids)
        self.sent += 1
        self.sock.send(HEADER.pack(HEADER.size + len(body), CLIENT + command, flags, self.sent, 0)
                       + body)
        for _ in range(LONGEST_DUMP):
            if self.ends(self.sock.recv(1 << 16)):
                return
        raise KsftFailEx(f"request {self.sent}: the dump does not end: {command} {flags} {body.hex()}")

    def ends(self, data):
        """Counts the messages of a datagram. Returns whether the last one of the answer is there."""
        while len(data) >= HEADER.size:
            length, kind, _, number, _ = HEADER.unpack_from(data)
            if number == self.sent and kind == ERROR:
                self.refused += struct.unpack_from("=i", data, HEADER.size)[0] != 0
                return True
            if number == self.sent and kind == DONE:
                return True
            self.answered += kind > 15
            data = data[(length + 3) & ~3:]
        return False
