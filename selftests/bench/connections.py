# SPDX-License-Identifier: GPL-2.0
"""The cost of connections, in the machine: the time to open one, and the kernel's memory for an
idle one."""
import contextlib
import subprocess

from ksft import KsftFailEx
from memory import Memory
from utils import bkg, cmd

# CONNECTIONS: open at a time in one process; siw has room for no more. per_second() opens them
# CYCLES times, kib_per_qp() in PROCESSES processes. These give hundreds of connections, which
# outweigh everything else that is measured.
CONNECTIONS, CYCLES, PROCESSES = 30, 10, 10


def per_second(server, client, limit):
    """Returns connections per second, opened one after another."""
    return float(cmd(f"bench_connections {CONNECTIONS} {CYCLES} {client.side} {server.side}",
                     timeout=limit).stdout)


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
        before = Memory.settled_kernel(limit)
        for process in processes:
            process.stdin.write(b"\n")
            process.says("all open", limit)
        grown = Memory.settled_kernel(limit) - before
        for process in processes:
            process.stdin.close()
            process.succeed(limit)
    if grown <= 0:
        raise KsftFailEx("the kernel's memory does not grow")
    return grown / 1024 / 2 / CONNECTIONS / PROCESSES
