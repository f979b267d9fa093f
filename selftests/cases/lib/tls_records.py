# SPDX-License-Identifier: GPL-2.0
"""Peers with TLS 1.3 whose handshake OpenSSL makes, and whose records behind it are made here (RFC 8446, section 5):
of any type and content, and in the case's hands before they are sent."""

import ctypes
import hashlib
import hmac
import itertools
import socket
import ssl
import struct
from pathlib import Path

from iwarp.peer import Gone, Listener, Peer
from ksft import PACE
from tls import TlsTarget

ALERT, HANDSHAKE, DATA = 21, 22, 23
"""Types of records."""
CLOSE_NOTIFY = b"\x01\x00"
KEY_UPDATE = b"\x18\x00\x00\x01\x00"
"""The message, which does not request one of the peer."""
MAX = 1 << 14
"""Maximum octets of a record's content."""
HEAD = struct.Struct(">BHH")
"""Of a record: its type as an observer sees it, the version, the length of the rest."""
VERSION = 0x0303
TAG = 16

SUITES = {"TLS_AES_128_GCM_SHA256": ("AES-128-GCM", hashlib.sha256, 16),
          "TLS_AES_256_GCM_SHA384": ("AES-256-GCM", hashlib.sha384, 32)}
"""By the name of a cipher suite: OpenSSL's name of the cipher, the hash, the octets of a key."""
GET_TAG, SET_TAG = 0x10, 0x11
"""EVP_CTRL_AEAD_GET_TAG and EVP_CTRL_AEAD_SET_TAG."""

_crypto = ctypes.CDLL("libcrypto.so.3")
for _name in ("EVP_CIPHER_fetch", "EVP_CIPHER_CTX_new"):
    getattr(_crypto, _name).restype = ctypes.c_void_p
_serial = itertools.count()


def _aead(name, key, nonce, aad, data, tag=None):
    """Encrypts data, or decrypts it if there is a tag. Returns it with the tag behind it, or without one."""
    cipher = ctypes.c_void_p(_crypto.EVP_CIPHER_fetch(None, name.encode(), None))
    ctx = ctypes.c_void_p(_crypto.EVP_CIPHER_CTX_new())
    out, length = ctypes.create_string_buffer(len(data) + TAG), ctypes.c_int()
    done = _crypto.EVP_CipherInit_ex2(ctx, cipher, key, nonce, int(tag is None), None) and \
        _crypto.EVP_CipherUpdate(ctx, None, ctypes.byref(length), aad, len(aad)) and \
        _crypto.EVP_CipherUpdate(ctx, out, ctypes.byref(length), data, len(data)) and \
        (tag is None or _crypto.EVP_CIPHER_CTX_ctrl(ctx, SET_TAG, TAG, tag)) and \
        _crypto.EVP_CipherFinal_ex(ctx, ctypes.byref(out, len(data)), ctypes.byref(length))
    if done and tag is None:
        done = _crypto.EVP_CIPHER_CTX_ctrl(ctx, GET_TAG, TAG, ctypes.byref(out, len(data)))
    _crypto.EVP_CIPHER_CTX_free(ctx)
    _crypto.EVP_CIPHER_free(cipher)
    if done != 1:
        raise ValueError("AEAD")
    return out.raw if tag is None else out.raw[:len(data)]


class Direction:
    """Seals or opens the records of one direction, from its traffic secret."""

    def __init__(self, suite, secret):
        self._name, self._hash, self._length = SUITES[suite]
        self._use(secret)

    def _use(self, secret):
        self._secret, self._number = secret, 0
        self._key, self._iv = self._expand("key", self._length), self._expand("iv", 12)

    def _expand(self, label, length):
        """Returns up to one hash of HKDF-Expand-Label without a context (RFC 8446, section 7.1)."""
        label = b"tls13 " + label.encode()
        info = struct.pack(">HB", length, len(label)) + label + b"\x00"
        return hmac.digest(self._secret, info + b"\x01", self._hash)[:length]

    def update(self):
        """Uses the next keys (RFC 8446, section 7.2)."""
        self._use(self._expand("traffic upd", self._hash().digest_size))

    def skip(self, count):
        """Counts records that OpenSSL has sealed."""
        self._number += count

    def _nonce(self):
        number = self._number
        self._number += 1
        return (int.from_bytes(self._iv, "big") ^ number).to_bytes(12, "big")

    def seal(self, kind, content, padding=0):
        """Returns a record."""
        inner = content + bytes([kind]) + bytes(padding)
        head = HEAD.pack(DATA, VERSION, len(inner) + TAG)
        return head + _aead(self._name, self._key, self._nonce(), head, inner)

    def open(self, record):
        """Returns the type and the content of a record."""
        head, sealed, tag = record[:HEAD.size], record[HEAD.size:-TAG], record[-TAG:]
        inner = _aead(self._name, self._key, self._nonce(), head, sealed, tag).rstrip(b"\x00")
        return inner[-1], inner[:-1]


def split(stream):
    """Returns the records in octets that end with a record."""
    found = []
    while stream:
        end = HEAD.size + HEAD.unpack_from(stream)[2]
        found.append(stream[:end])
        stream = stream[end:]
    return found


class Records:
    """A connection with TLS, as a `Peer` uses a socket. `raw` is the socket of TCP, `out` seals what is sent."""

    def __init__(self, raw, context, server_name=None):
        log = Path(f"keys.{next(_serial)}")
        context.keylog_filename = str(log)
        self.raw, self.alerts = raw, []
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context.wrap_bio(incoming, outgoing, server_side=server_name is None, server_hostname=server_name)
        sent = self._handshake(session, incoming, outgoing)
        secrets = dict(line.split()[::2] for line in log.read_text("ascii").splitlines() if line[0] != "#")
        client, server = (Direction(session.cipher()[0], bytes.fromhex(secrets[f"{side}_TRAFFIC_SECRET_0"]))
                          for side in ("CLIENT", "SERVER"))
        self.out, self._in = (client, server) if server_name else (server, client)
        self._octets, self._data = incoming.read(), b""
        self.tickets = 0 if server_name else len(split(sent))
        self.out.skip(self.tickets)

    def _handshake(self, session, incoming, outgoing):
        """Makes the handshake. Returns what it has sent last."""
        while True:
            try:
                session.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            octets = outgoing.read()
            self.raw.sendall(octets)
            if done:
                return octets
            if not (octets := self.raw.recv(65536)):
                raise Gone("closed in the handshake")
            incoming.write(octets)

    def settimeout(self, seconds):
        self.raw.settimeout(seconds)

    def setsockopt(self, *option):
        self.raw.setsockopt(*option)

    def close(self):
        self.raw.close()

    def put(self, kind, content, padding=0):
        """Sends a record."""
        self.raw.sendall(self.out.seal(kind, content, padding))

    def sealed(self, data, size=MAX):
        """Returns data as a list of records, each of which has `size` octets of it."""
        return [self.out.seal(DATA, data[at:at + size]) for at in range(0, len(data), size)]

    def sendall(self, data):
        """Sends data."""
        self.raw.sendall(b"".join(self.sealed(data)))

    def _fill(self, count):
        """Receives until there are so many octets. Returns whether there are."""
        while len(self._octets) < count:
            if not (octets := self.raw.recv(65536)):
                return False
            self._octets += octets
        return True

    def recv(self, count, flags=0):
        """Receives data; nothing behind an alert and a FIN, or a FIN alone. Keeps the alerts."""
        while not self._data:
            if not self._fill(HEAD.size):
                return b""
            length = HEAD.size + HEAD.unpack_from(self._octets)[2]
            if not self._fill(length):
                return b""
            record, self._octets = self._octets[:length], self._octets[length:]
            kind, content = self._in.open(record)
            if kind == ALERT:
                self.alerts.append(content)
            elif kind == DATA:
                self._data = content
        data = self._data[:count]
        if not flags & socket.MSG_PEEK:
            self._data = self._data[count:]
        return data


class RecordTarget(TlsTarget):
    """As a `TlsTarget`, with peers that make their records."""

    def connect(self):
        plain = super(TlsTarget, self).connect()
        return Peer(Records(plain.sock, self.context, self.node.addr))


class RecordListener(Listener):
    """As a `Listener`, with TLS: OpenSSL's, in this process. `tickets`: how many it sends behind each handshake."""

    def __init__(self, address, netns, trust, certificate, tickets=0):
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.load_verify_locations(trust.cert)
        self._context.load_cert_chain(certificate.cert, certificate.key)
        self._context.num_tickets = tickets
        super().__init__(address, netns)

    def connected(self, sock):
        """Makes the handshake."""
        sock.settimeout(Peer.patience * PACE)
        return Peer(Records(sock, self._context))
