# SPDX-License-Identifier: GPL-2.0
"""Trees of files that are copied through a file system, and compared.

    tree = Tree(client, seed=1)
    tree.unpack("/mnt/tree")
    ksft_eq(tree.compare(server, "/srv/tree"), [], "differences")
"""

import random
import shlex
from pathlib import Path

from ksft import ksft_true
from utils import cmd

MIB = 1 << 20
SIZES = (0, 1, 2, 3, 4, 5, 1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, 65537,
         MIB - 1, MIB, MIB + 1, 3 * MIB + 5)
"""Around pages, XDR's unit, inline thresholds, and the largest READ and WRITE."""
SMALL = 300
"""Files of less than SMALL_SIZE bytes; all in one folder, so that listing it takes long replies."""
SMALL_SIZE = 20000
LONG_TARGET = 4000
"""Length of a symbolic link's target that does not fit into an inline message."""


def make(folder, seed, links=True):
    """Creates a folder of files, folders and, with `links`, symbolic links. The seed determines all of
    it."""
    choice = random.Random(seed)
    top = Path(folder)
    names = [f"{size}" for size in SIZES] + ["a" * 255, "two words", "Grüße"]
    for name, size in zip(names, [*SIZES, 100, 200, 300], strict=True):
        _make_file(top / "sizes" / name, choice, size)
    for number in range(SMALL):
        _make_file(top / "small" / f"file with a name of some length {number:04}", choice,
                   choice.randrange(SMALL_SIZE))
    _make_file(top.joinpath("deep", *map(str, range(20)), "file"), choice, 10000)
    (top / "empty").mkdir(mode=0o700)
    if links:
        (top / "short link").symlink_to("sizes/4096")
        (top / "long link").symlink_to("/".join(["x" * 99] * (LONG_TARGET // 100)))


def _make_file(path, choice, size):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(choice.randbytes(size))
    path.chmod(choice.choice((0o600, 0o644, 0o755, 0o400)))


def listing(host, folder):
    """Returns all that is in a folder at a host: types, modes, sizes, targets, hashes; sorted lines."""
    kinds = cmd(["env", "-C", folder, "find", ".", "-type", "d", "-printf", r"%y %m %P\n", "-o",
                 "-printf", r"%y %m %s %P %l\n"], host=host, timeout=60).stdout
    hashes = cmd(["env", "-C", folder, "find", ".", "-type", "f", "-exec", "sha256sum", "{}", "+"],
                 host=host, timeout=120).stdout
    return sorted(kinds.splitlines() + hashes.splitlines())


def differences(expected, found):
    """Returns the lines that only one of two results of `listing` has, some of them."""
    lost, more = set(expected) - set(found), set(found) - set(expected)
    return [f"{sign} {line:.200}" for sign, lines in (("-", lost), ("+", more))
            for line in sorted(lines)[:5]]


class Tree:
    """A tree of files at a host, to unpack on one of its mounts."""

    SOURCE = "/tmp/tree"

    def __init__(self, host, seed, links=True):
        self.host = host
        cmd(["python3", "-c", f"import trees; trees.make({self.SOURCE!r}, {seed}, {links})"], host=host,
            timeout=60)
        self.expected = listing(host, self.SOURCE)
        # An empty list would equal that of an empty mount.
        ksft_true(len(self.expected) > SMALL + len(SIZES), "the tree is too small")

    def unpack(self, folder, *options):
        """Unpacks the tree into a new folder, with these options of tar."""
        source, folder = shlex.quote(self.SOURCE), shlex.quote(folder)
        cmd(["sh", "-ec", f"mkdir {folder}; tar -C {source} -cf /tmp/tree.tar ."
             f'; tar -C {folder} -xpf /tmp/tree.tar "$@"; rm /tmp/tree.tar', "sh", *options],
            host=self.host, timeout=120)

    def compare(self, host, folder):
        """Returns the differences between the tree and a folder at a host."""
        return differences(self.expected, listing(host, folder))
