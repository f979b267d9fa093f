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


def seconds(pid):
    """Returns the CPU seconds of a process, of its descendants and of all children that these have
    reaped."""
    ticks = 0
    for one in tree(pid):
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICK
