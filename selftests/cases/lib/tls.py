# SPDX-License-Identifier: GPL-2.0
"""TLS below MPA: certificates, the process that makes the kernel's handshakes (tlshd), and a peer that is not riw."""

import itertools
import os
import re
import signal
import ssl
import time
from contextlib import contextmanager
from pathlib import Path

import lab
from iwarp.peer import Peer
from ksft import PACE
from netns import NetNSEnter
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
        Path("extensions").write_text("subjectAltName=" + ",".join(names), "ascii")
        validity = ["-not_before", period[0], "-not_after", period[1]] if period else ["-days", 2]
        cmd(["openssl", "req", *CURVE, "-keyout", made.key, "-out", "request", "-subj", subject])
        cmd(["openssl", "x509", "-req", "-in", "request", "-CA", self.cert, "-CAkey", self.key, *validity,
             "-extfile", "extensions", "-out", made.cert])
        os.chmod(made.key, 0o600)
        return made


def configuration(trust, certificate):
    """Writes a configuration of tlshd, which trusts one authority. Returns its path."""
    folder = Path.cwd()
    lines = ["[debug]", "loglevel=1", "tls=0", "nl=0", "[authenticate]"]
    for side in ("client", "server"):
        lines += [f"[authenticate.{side}]", f"x509.truststore={folder / trust.cert}"]
        if certificate:
            lines += [f"x509.certificate={folder / certificate.cert}",
                      f"x509.private_key={folder / certificate.key}"]
    path = folder / f"tlshd.{next(_serial)}.conf"
    path.write_text("\n".join(lines) + "\n", "ascii")
    return path


def _listens(node):
    """Whether a process of the namespace of a node has a socket of generic netlink."""
    with NetNSEnter(node.netns):
        text = Path("/proc/thread-self/net/netlink").read_text("ascii")
    return re.search(r"^\S+ +16 +[1-9]", text, re.MULTILINE)


@contextmanager
def tlshd(node, trust, certificate, secrets=""):
    """Runs tlshd in the namespace of a node. Without a certificate, it has none to present. `secrets`: a file to which
    GnuTLS writes the secrets of its sessions."""
    environment = [f"SSLKEYLOGFILE={Path.cwd() / secrets}"] if secrets else []
    with bkg(["env", *environment, "tlshd", "-s", "-c", configuration(trust, certificate)], host=node) as daemon:
        wait_until(lambda: _listens(node) or not daemon.running, 20, f"tlshd listens: {daemon.output}")
        # It joins the group a moment later, which no file shows: the group's number is above 32.
        time.sleep(0.5 * PACE)
        yield daemon


@contextmanager
def stopped(daemon):
    """Stops a tlshd meanwhile."""
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


def required(*nodes):
    """Sets `tls` to `required` meanwhile."""
    return lab.settings(*nodes, tls="required")


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
