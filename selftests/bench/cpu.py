# SPDX-License-Identifier: GPL-2.0
"""CPU time of a machine, by the host's accounting."""
import contextlib
import os
import pathlib

TICK = os.sysconf("SC_CLK_TCK")


def tree(pid):
    """Returns a process and its descendants. Leaves out those that end meanwhile. Raises OSError if
    the kernel lacks CONFIG_PROC_CHILDREN."""
    pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_bytes()
    found, pending = [], [pid]
    while pending:
        pid = pending.pop()
        found.append(pid)
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                pending += [int(child) for child in (task / "children").read_text().split()]
    return found


def stat(pid):
    """Returns the name of a process, and its CPU time in ticks: its own in user and kernel mode, and that of its
    children."""
    name, _, fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    return name.partition("(")[2], [int(field) for field in fields.split()[11:15]]


def seconds(pid):
    """Returns the CPU seconds of a process, of its descendants and of all children that these have
    reaped."""
    ticks = 0
    for one in tree(pid):
        with contextlib.suppress(OSError):
            ticks += sum(stat(one)[1])
    return ticks / TICK


def kernel_seconds(pid):
    """Returns the CPU seconds of the kernel of a User-Mode Linux whose program is a descendant of `pid`. Its processes
    are other processes of the host, and do not count. Raises OSError if there is none."""
    for one in tree(pid):
        with contextlib.suppress(OSError):
            name, ticks = stat(one)
            if name == "linux":
                return sum(ticks[:2]) / TICK
    raise OSError(f"no User-Mode Linux below process {pid}")
