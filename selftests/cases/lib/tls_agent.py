# SPDX-License-Identifier: GPL-2.0
"""A process that takes the kernel's requests for handshakes, in place of tlshd, and does what the case wants with them
(include/uapi/linux/handshake.h)."""

import errno
import os
import socket
import struct
from dataclasses import dataclass

from netns import NetNSEnter
from utils import wait_until

GENERIC, SOL_NETLINK, ADD_MEMBERSHIP = 16, 270, 1
CONTROL, GET_FAMILY, FAMILY_ID, FAMILY_NAME, GROUPS, GROUP_NAME, GROUP_ID = 0x10, 3, 1, 2, 7, 1, 2
"""The family that describes families, its command, and attributes."""
ACCEPT, DONE = 2, 3
"""Commands of the family `handshake`."""
ACCEPT_SOCKFD, ACCEPT_CLASS, ACCEPT_TYPE, ACCEPT_TIMEOUT, ACCEPT_AUTH, ACCEPT_IDENTITY = 1, 2, 3, 4, 5, 6
DONE_STATUS, DONE_SOCKFD, DONE_PEER = 1, 2, 3
"""Their attributes."""
TLSHD = 1
"""The class of handlers."""
CLIENT, SERVER = 1, 2
"""Types of handshakes."""
PSK, X509 = 2, 3
"""Ways to authenticate."""
ERROR, REQUEST, ACK = 2, 1, 4
"""NLMSG_ERROR, NLM_F_REQUEST, NLM_F_ACK."""
HEADER = struct.Struct("=IHHII")
BODY = HEADER.size + 4
"""Where the attributes begin."""


def _attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _attributes(data):
    """Returns the attributes in some octets: pairs of a type and a value."""
    found = []
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found.append((kind & 0x3fff, data[4:length]))
        data = data[length + -length % 4:]
    return found


TCP_ULP, SOL_TLS, TLS_TX, TLS_RX = 31, 282, 1, 2
TLS_1_2, TLS_1_3 = 0x0303, 0x0304
AES_GCM_128 = 51


def set_key(file, direction, version=TLS_1_3):
    """Gives a socket a key for a direction: zeros."""
    with socket.socket(fileno=os.dup(file)) as sock:
        if direction == TLS_TX:
            sock.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
        sock.setsockopt(SOL_TLS, direction, struct.pack("=HH", version, AES_GCM_128) + bytes(8 + 16 + 4 + 8))


def set_keys(file, version=TLS_1_3):
    """Gives a socket keys for both directions."""
    for direction in (TLS_TX, TLS_RX):
        set_key(file, direction, version)


@dataclass
class Handshake:
    """A handshake that the agent has taken: the file of the socket, the side, the time limit in milliseconds, the way
    to authenticate, and the pre-shared key to offer."""

    file: int
    side: int
    timeout: int
    auth: int
    key: int = 0


class Agent:
    """The agent of a node's namespace."""

    def __init__(self, node):
        with NetNSEnter(node.netns):
            self._sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC)
        self._sock.bind((0, 0))
        self._sock.settimeout(20)
        self._number = 0
        described = dict(_attributes(self._ask(CONTROL, GET_FAMILY, _attribute(FAMILY_NAME, b"handshake\0"))))
        self._family, = struct.unpack("=H", described[FAMILY_ID])
        groups = [dict(_attributes(group)) for _, group in _attributes(described[GROUPS])]
        group, = [group[GROUP_ID] for group in groups if group[GROUP_NAME] == b"tlshd\0"]
        self._sock.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, group)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._sock.close()

    def _ask(self, family, command, attributes, flags=0):
        """Sends a request. Returns the attributes of the answer, in octets. Raises `OSError` for an error."""
        self._number += 1
        body = struct.pack("=BBH", command, 1, 0) + attributes
        self._sock.send(HEADER.pack(HEADER.size + len(body), family, REQUEST | flags, self._number, 0) + body)
        while True:
            answer = self._sock.recv(65536)
            _, kind, _, number, _ = HEADER.unpack_from(answer)
            if number != self._number:
                continue  # the kernel says that there are requests
            if kind != ERROR:
                return answer[BODY:]
            code, = struct.unpack_from("=i", answer, HEADER.size)
            if code:
                raise OSError(-code, os.strerror(-code))
            return b""

    def poll(self):
        """Takes a request; returns None if there is none."""
        try:
            answer = self._ask(self._family, ACCEPT, _attribute(ACCEPT_CLASS, struct.pack("=I", TLSHD)))
        except OSError as reason:
            if reason.errno != errno.EAGAIN:
                raise
            return None
        found = dict(_attributes(answer))
        kinds = ACCEPT_SOCKFD, ACCEPT_TYPE, ACCEPT_TIMEOUT, ACCEPT_AUTH, ACCEPT_IDENTITY
        return Handshake(*(struct.unpack("=i", found[kind])[0] for kind in kinds if kind in found))

    def take(self):
        """Waits for a request, and takes it."""
        return wait_until(self.poll, 20, "a request for a handshake")

    def done(self, handshake, status=0, peer=None):
        """Ends a handshake with a status, as an errno of any size. `peer` is the key of its certificate, or the
        pre-shared key."""
        attributes = [_attribute(DONE_STATUS, struct.pack("=I", status)),
                      _attribute(DONE_SOCKFD, struct.pack("=i", handshake.file))]
        if peer is not None:
            attributes.append(_attribute(DONE_PEER, struct.pack("=I", peer)))
        self._ask(self._family, DONE, b"".join(attributes), ACK)
        os.close(handshake.file)
