# SPDX-License-Identifier: GPL-2.0
"""kill -9 under load."""

import lab
from cgroups import charged_as, group, run_in
from ksft import include_points, ksft_pr, point
from memory import Memory
from utils import wait_until

KINDS = "slab_unreclaimable", "vmalloc", "percpu"
"""The kernel memory of objects, as memory.stat names it."""
LEAST = 1024
"""Bytes of the smallest object of which a killed process may leave one: a queue pair has twice as many."""
TIME_WAIT = 90
"""Seconds until the sockets of all connections are gone, which are charged as well: 60 in TIME_WAIT, and some more."""


def kills(left, right, rounds):
    """Kills either end of busy connections between two nodes, at random moments. Nothing may leak."""
    # Permanent allocations of the first connections (caches, tables) are no leak.
    include_points(["kill_load", "-n", "30", "-r", "7", left.side, right.side], timeout=200,
                   prefix="to warm up: ")
    before = Memory.now()
    with group("killed") as path:
        include_points([*run_in(path), "kill_load", "-n", str(rounds), left.side, right.side], timeout=600)
        with point("nothing is left in rdma resource"):
            wait_until(lambda: not lab.left_over(), 10, "empty resource lists")
        with point("no kernel memory is charged to the killed processes"):
            try:
                wait_until(lambda: charged_as(path, *KINDS) < rounds * LEAST, TIME_WAIT, "all is freed")
            finally:
                ksft_pr(f"charged: { {kind: charged_as(path, kind) for kind in KINDS} }")
    with point("memory is back"):
        loss = before.loss_until_below(16 << 20, timeout=20)
        ksft_pr(f"bytes lost: {loss}")
