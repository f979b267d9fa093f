# SPDX-License-Identifier: GPL-2.0
"""What connections take, in the machine: time to be opened, and the kernel's memory while they
are idle."""
import contextlib
import subprocess

from ksft import KsftFailEx
from memory import Memory
from utils import bkg, cmd, wait_until

# As many at a time as siw has room for in one process; opened so many times, and by so many
# processes: hundreds, for all else to be little beside them.
CONNECTIONS, CYCLES, PROCESSES = 30, 10, 10
# Memory has settled when so many readings in a row, so far apart (s), are not lower than the ones
# before them by so many bytes.
READINGS, INTERVAL, LITTLE = 5, 0.25, 64 << 10


def per_second(server, client, limit):
    """Connections per second, one after another."""
    return float(cmd(f"bench_connections {CONNECTIONS} {CYCLES} {client.side} {server.side}",
                     timeout=limit).stdout)


def settled(limit):
    """The kernel's memory when it falls no more: what was closed is freed after a while. The
    least of what was read, as reading it takes some as well."""
    readings = []

    def falls_no_more():
        readings.append(Memory.now().kernel)
        before, last = readings[:-READINGS], readings[-READINGS:]
        return before and min(last) > min(before) - LITTLE

    wait_until(falls_no_more, limit, "the kernel's memory settles", INTERVAL)
    return min(readings)


def kib_per_qp(server, client, limit):
    """KiB by which the kernel's memory grows for each QP; each step may take `limit` seconds.

    Whatever the kernel allocates for it counts: the rings that the process maps, the endpoint and
    its socket, the objects of uverbs and the CM. Memory of the processes does not, nor what the
    kernel needs for each of them: they run, with a connection, when memory is read first.
    """
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(bkg(f"bench_idle {CONNECTIONS} {client.side} {server.side}",
                                             stdin=subprocess.PIPE))
                     for _ in range(PROCESSES)]
        for process in processes:
            process.says("first open", limit)
        before = settled(limit)
        for process in processes:
            process.stdin.write(b"\n")
            process.says("all open", limit)
        grown = settled(limit) - before
        for process in processes:
            process.stdin.close()
            process.succeed(limit)
    if grown <= 0:
        raise KsftFailEx("the kernel's memory does not grow")
    return grown / 1024 / 2 / CONNECTIONS / PROCESSES
