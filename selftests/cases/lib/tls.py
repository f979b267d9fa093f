# SPDX-License-Identifier: GPL-2.0
"""TLS below MPA: certificates, the process that makes the kernel's handshakes (tlshd), connections, and peers that are
not riw."""

import ctypes
import errno
import itertools
import os
import signal
import socket
import ssl
import stat
from contextlib import contextmanager, suppress
from pathlib import Path

import counters
import details
import lab
from device_log import Log, may_write
from iwarp.peer import Listener, Peer
from ksft import PACE, KsftFailEx, ksft_in
from target import Target
from utils import bkg, cmd, wait_until

_serial = itertools.count()
CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


class Certificate:
    """A certificate with its key, in files."""

    def __init__(self, name):
        self.cert, self.key = f"{name}.crt", f"{name}.key"


class Authority(Certificate):
    """A certificate authority."""

    def __init__(self):
        self._name = f"ca{next(_serial)}"
        super().__init__(self._name)
        cmd(["openssl", "req", "-x509", *CURVE, "-keyout", self.key, "-out", self.cert, "-days", 2,
             "-subj", f"/CN={self._name}"])

    def issue(self, *addrs, name="", subject="/CN=riw", period=()):
        """Returns a `Certificate` for these addresses, and a name. `period`: its first and its last moment."""
        made = Certificate(f"{self._name}.{next(_serial)}")
        names = [*(f"IP:{addr}" for addr in addrs), *([f"DNS:{name}"] if name else [])]
        validity = ["-not_before", period[0], "-not_after", period[1]] if period else ["-days", 2]
        cmd(["openssl", "req", *CURVE, "-keyout", made.key, "-out", "request", "-subj", subject])
        self._sign(names, validity, made.cert)
        os.chmod(made.key, 0o600)
        return made

    def renew(self, made, *addrs, subject):
        """Replaces a certificate by a new one for the same key. No reader sees a part of it."""
        cmd(["openssl", "req", "-new", "-key", made.key, "-out", "request", "-subj", subject])
        self._sign([f"IP:{addr}" for addr in addrs], ["-days", 2], f"{made.cert}.new")
        os.replace(f"{made.cert}.new", made.cert)

    def _sign(self, names, validity, cert):
        """Makes the certificate for the file `request`."""
        Path("extensions").write_text("subjectAltName=" + ",".join(names), "ascii")
        cmd(["openssl", "x509", "-req", "-in", "request", "-CA", self.cert, "-CAkey", self.key, *validity,
             "-extfile", "extensions", "-out", cert])


def configuration(trust, certificate, keyring):
    """Writes a configuration of tlshd, which trusts one authority at most. Returns its path."""
    folder = Path.cwd()
    lines = ["[debug]", "loglevel=1", "tls=0", "nl=0", "[authenticate]"]
    lines += [f"keyrings={keyring}"] if keyring else []
    for side in ("client", "server"):
        lines += [f"[authenticate.{side}]"]
        lines += [f"x509.truststore={folder / trust.cert}"] if trust else []
        if certificate:
            lines += [f"x509.certificate={folder / certificate.cert}",
                      f"x509.private_key={folder / certificate.key}"]
    path = folder / f"tlshd.{next(_serial)}.conf"
    path.write_text("\n".join(lines) + "\n", "ascii")
    return path


SYS_PIDFD_GETFD = 438
SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS = 270, 9
_libc = ctypes.CDLL(None, use_errno=True)


def _sockets(pid):
    """Yields duplicates of the netlink sockets of a process."""
    pidfd = os.pidfd_open(pid)
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            if (duplicate := _libc.syscall(SYS_PIDFD_GETFD, pidfd, int(number), 0)) < 0:
                # It may have been closed, and the process may have ended.
                if (error := ctypes.get_errno()) in (errno.EBADF, errno.ESRCH):
                    continue
                raise OSError(error, f"pidfd_getfd: {os.strerror(error)}")
            if not stat.S_ISSOCK(os.fstat(duplicate).st_mode):
                os.close(duplicate)
                continue
            with socket.socket(fileno=duplicate) as sock:
                if sock.family == socket.AF_NETLINK:
                    yield sock
    finally:
        os.close(pidfd)


def _takes_requests(daemon):
    """Whether a tlshd has joined the group to which the kernel sends its requests for handshakes."""
    return any(any(sock.getsockopt(SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, 64)) for sock in _sockets(daemon.pid))


@contextmanager
def tlshd(node, trust=None, certificate=None, secrets="", keyring=""):
    """Runs tlshd in the namespace of a node. Without a certificate, it has none to present. `secrets`: a file to which
    GnuTLS writes the secrets of its sessions. `keyring`: the name of a keyring with pre-shared keys."""
    environment = [f"SSLKEYLOGFILE={Path.cwd() / secrets}"] if secrets else []
    config = configuration(trust, certificate, keyring)
    with bkg(["env", *environment, "tlshd", "-s", "-c", config], host=node) as daemon:
        wait_until(lambda: not daemon.running or _takes_requests(daemon), 20, f"tlshd takes requests: {daemon.output}")
        # It has been read. In hours of soak, such files take as much memory as a leak.
        config.unlink()
        yield daemon


@contextmanager
def stopped(daemon):
    """Stops a tlshd meanwhile."""
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


REQUIRED = {"tls": "required", "connect_timeout": 30000, "startup_timeout": 30000}
"""Settings of a device that requires TLS. Connections have the longest time: a handshake takes seconds on a busy
machine."""


def required(*nodes):
    """Has devices require TLS meanwhile."""
    return lab.settings(*nodes, **REQUIRED)


def require(dev):
    """Has a device require TLS from now on."""
    for name, value in REQUIRED.items():
        lab.setting(dev, name, value)


@contextmanager
def serving(server):
    """A program listens meanwhile. Yields its port. When it ends, so do connections that are not established: their
    device may not have found out yet why they fail."""
    port = lab.new_port()
    with bkg(["cm_peer", "serve", server.addr, port], host=server) as program:
        program.says("listening", 20)
        yield port


def connect(client, server, port, timeout=30):
    """Tries to connect. Returns the client's output."""
    with bkg(["cm_peer", "connect", server.addr, port], host=client) as connecting:
        connecting.wait(timeout)
    return connecting.output


def connection(client, server, timeout=30):
    """Tries to connect to a program that ends then. Returns the client's output."""
    with serving(server) as port:
        return connect(client, server, port, timeout)


@contextmanager
def connected(client, server):
    """A connection meanwhile. Yields the details of the queue pairs of both."""
    with serving(server) as port, bkg(["cm_peer", "connect", server.addr, port, "stay"], host=client) as connecting:
        connecting.says("ESTABLISHED", 20)
        yield tuple(details.of(details.one("qp", node.dev)) for node in (client, server))


@contextmanager
def counted(node, rule):
    """A connection fails meanwhile for a reason of TLS: the device of the node counts it, and its log has the rule."""
    may_write(node.dev)
    log, moves = Log(node.dev), counters.Moves(node)
    yield
    try:
        wait_until(lambda: moves.now().get("startup_errors_tls"), 10, "it is counted")
    except KsftFailEx as reason:
        raise KsftFailEx(f"{reason}; {moves.now()}; {log.lines()}") from None
    with suppress(KsftFailEx):
        wait_until(lambda: any(rule in line for line in log.lines()), 5, rule)
    ksft_in(rule, "\n".join(log.lines()), "the device's lines in the log")


class TlsTarget(Target):
    """As a `Target`, reached by TLS: OpenSSL's, in this process."""

    def __init__(self, node, raw_netns, trust, certificate, *options):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.load_verify_locations(trust.cert)
        self.context.load_cert_chain(certificate.cert, certificate.key)
        super().__init__(node, raw_netns, *options)

    def connect(self):
        plain = super().connect()
        return Peer(self.context.wrap_socket(plain.sock, server_hostname=self.node.addr))


class PskTarget(TlsTarget):
    """As a `TlsTarget`, with a pre-shared key in place of certificates."""

    def __init__(self, node, raw_netns, identity, secret):  # pylint: disable=super-init-not-called
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.context.set_psk_client_callback(lambda hint: (identity, secret.encode()))
        Target.__init__(self, node, raw_netns)


class PskListener(Listener):
    """As a `Listener`, with TLS: OpenSSL's, in this process, and a pre-shared key."""

    def __init__(self, address, netns, identity, secret):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.num_tickets = 0
        self.context.set_psk_server_callback(lambda name: secret.encode() if name == identity else b"")
        super().__init__(address, netns)

    def connected(self, sock):
        """Makes the handshake."""
        sock.settimeout(Peer.patience * PACE)
        return Peer(self.context.wrap_socket(sock, server_side=True))


class Intermediate(Authority):
    """An authority with a certificate of another one, which goes with each certificate that it issues."""

    def __init__(self, root):  # pylint: disable=super-init-not-called
        self._name = f"ca{next(_serial)}"
        Certificate.__init__(self, self._name)
        Path("extensions").write_text("basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n", "ascii")
        cmd(["openssl", "req", *CURVE, "-keyout", self.key, "-out", "request", "-subj", f"/CN={self._name}"])
        cmd(["openssl", "x509", "-req", "-in", "request", "-CA", root.cert, "-CAkey", root.key, "-days", 2,
             "-extfile", "extensions", "-out", self.cert])

    def issue(self, *addrs, **options):
        made = super().issue(*addrs, **options)
        with open(made.cert, "a", encoding="ascii") as chain:
            chain.write(Path(self.cert).read_text("ascii"))
        return made
