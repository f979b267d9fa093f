# SPDX-License-Identifier: GPL-2.0
"""Cgroups, and the memory that the kernel charges to them."""

from contextlib import contextmanager
from pathlib import Path

from utils import wait_until

ROOT = Path("/sys/fs/cgroup")


@contextmanager
def group(name, **limits):
    """Creates a cgroup with memory accounting. `limits`: the values of its files memory.NAME. Yields its
    folder. All its processes must have ended in the end."""
    (ROOT / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
    path = ROOT / name
    path.mkdir()
    try:
        for what, value in limits.items():
            (path / f"memory.{what}").write_text(str(value), encoding="ascii")
        yield path
    finally:
        wait_until(lambda: not (path / "cgroup.procs").read_text(encoding="ascii"), 30,
                   "an empty group")
        path.rmdir()


def run_in(path):
    """Returns the first words of a command that runs in a cgroup. A namespace is entered after it: `ip netns
    exec` mounts a new /sys without the cgroups."""
    return "sh", "-c", f'echo $$ >{path}/cgroup.procs && exec "$@"', "sh"


def charged(path, what="current"):
    """Returns the bytes charged to a cgroup: now, or with "peak" at most so far."""
    return int((path / f"memory.{what}").read_text(encoding="ascii"))


def charged_as(path, *kinds):
    """Returns the bytes of some kinds, as memory.stat names them, that are charged to a cgroup."""
    stat = dict(line.split() for line in (path / "memory.stat").read_text("ascii").splitlines())
    return sum(int(stat[kind]) for kind in kinds)
