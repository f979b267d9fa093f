# SPDX-License-Identifier: GPL-2.0
"""The cost of connections, in the machine: the time to open one, and the kernel's memory for an
idle one."""
import contextlib
import subprocess

from ksft import KsftFailEx
from memory import Memory
from utils import bkg, cmd, wait_until

# CONNECTIONS: open at a time in one process; siw has room for no more. per_second() opens them
# CYCLES times, kib_per_qp() in PROCESSES processes. These give hundreds of connections, which
# outweigh everything else that is measured.
CONNECTIONS, CYCLES, PROCESSES = 30, 10, 10
# Memory has settled when READINGS readings in a row, INTERVAL seconds apart, are not lower than the
# earlier ones by LITTLE bytes.
READINGS, INTERVAL, LITTLE = 5, 0.25, 64 << 10


def per_second(server, client, limit):
    """Returns connections per second, opened one after another."""
    return float(cmd(f"bench_connections {CONNECTIONS} {CYCLES} {client.side} {server.side}",
                     timeout=limit).stdout)


def settled(limit):
    """Waits until the kernel's memory no longer falls: closed objects are freed with a delay.
    Returns the lowest reading, because reading allocates memory, too."""
    readings = []

    def falls_no_more():
        readings.append(Memory.now().kernel)
        before, last = readings[:-READINGS], readings[-READINGS:]
        return before and min(last) > min(before) - LITTLE

    wait_until(falls_no_more, limit, "the kernel's memory settles", INTERVAL)
    return min(readings)


def kib_per_qp(server, client, limit):
    """Returns the KiB of kernel memory per QP. Each step may take `limit` seconds.

    All memory that the kernel allocates for a QP counts: the rings that the process maps, the
    endpoint and its socket, the objects of uverbs and the CM. Memory of the processes does not
    count, nor the kernel's memory for each process: when memory is first read, each process runs
    and has a connection.
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
