# SPDX-License-Identifier: GPL-2.0
"""Network namespaces. The names of the kernel's library (tools/testing/selftests/net/lib/py) mean the
same here."""

import os
from contextlib import contextmanager, suppress
from pathlib import Path

from utils import ip, rdma


when_deleted = []
"""What to call before a namespace is deleted, with its name."""


class NetNS:
    """Creates a network namespace with `lo` up. Leaving its `with` block deletes it."""

    def __init__(self, name):
        self.name = name
        ip(f"netns add {name}")
        ip("link set lo up", ns=name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()

    def __str__(self):
        return self.name

    def delete(self):
        """Deletes it, unless it is gone."""
        for call in when_deleted:
            call(self.name)
        # An orphaned TCP socket whose last FIN is not acknowledged would hold it for two minutes.
        with suppress(OSError), NetNSEnter(self.name):
            Path("/proc/sys/net/ipv4/tcp_orphan_retries").write_text("1", encoding="ascii")
        ip(f"netns delete {self.name}", fail=False)


class NetNSEnter:
    """Runs the block in a network namespace, or in the current one if there is no name."""

    def __init__(self, ns_name):
        self._name = str(ns_name or "")
        self._saved = None

    def __enter__(self):
        if self._name:
            self._saved = open("/proc/thread-self/ns/net", encoding="ascii")
            with open(f"/run/netns/{self._name}", encoding="ascii") as there:
                os.setns(there.fileno(), os.CLONE_NEWNET)
        return self

    def __exit__(self, *_):
        if self._saved:
            os.setns(self._saved.fileno(), os.CLONE_NEWNET)
            self._saved.close()


@contextmanager
def sysctl(name, value, netns="", of="ipv4"):
    """Changes a setting of IPv4, or of another part of the network, in a namespace during the block."""
    path = Path("/proc/sys/net") / of / name
    with NetNSEnter(netns):
        was = path.read_text(encoding="ascii")
        path.write_text(value, encoding="ascii")
    try:
        yield
    finally:
        with NetNSEnter(netns):
            path.write_text(was, encoding="ascii")


FIRST = "first"
"""The name that `named_first` gives."""


@contextmanager
def named_first():
    """Gives the first namespace a name: `rdma` moves devices only to namespaces that have one."""
    ip(f"netns attach {FIRST} 1")
    try:
        yield
    finally:
        ip(f"netns delete {FIRST}")


def move_device(dev, to, ns=""):
    """Moves an RDMA device from the namespace `ns` to another one, by name. Only in the exclusive mode of
    `rdma system`."""
    rdma(f"dev set {dev} netns {to}", ns=ns)
