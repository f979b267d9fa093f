# SPDX-License-Identifier: GPL-2.0
"""Keys of the kernel, by keyctl. A key is its serial number."""

import re
from contextlib import contextmanager
from pathlib import Path

from utils import cmd, wait_until

USER = "@u"
"""The keyring of the user."""
SECRET = "0123456789abcdef0123456789ABCDEF"
"""As long as SHA-256 makes one."""
OPEN = "0x3f3f0000"
"""All permissions for the user: a daemon that does not have the keyring may link it."""


def keyctl(*argv):
    """Runs keyctl. Returns its output."""
    return cmd(["keyctl", *argv]).stdout.strip()


def add(kind, name, ring, secret=SECRET):
    """Adds a key to a keyring. Returns it."""
    return int(keyctl("add", kind, name, secret, ring))


@contextmanager
def keyring(name, parent=USER):
    """A keyring meanwhile. Yields it."""
    ring = int(keyctl("newring", name, parent))
    keyctl("setperm", ring, OPEN)
    try:
        yield ring
    finally:
        cmd(["keyctl", "clear", ring], fail=False)  # it may be revoked
        keyctl("unlink", ring, parent)


def expire(key):
    """Lets a key expire."""
    keyctl("timeout", key, 1)
    wait_until(lambda: "expired" in cmd(["keyctl", "describe", key], fail=False).stderr, 10, "the key has expired")


def references(key):
    """Returns how many references there are to a key that the user may see."""
    return int(re.search(rf"^{key:08x} +\S+ +(\d+) ", Path("/proc/keys").read_text("ascii"), re.MULTILINE)[1])
