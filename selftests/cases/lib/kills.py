# SPDX-License-Identifier: GPL-2.0
"""kill -9 under load."""

from contextlib import ExitStack
from pathlib import Path

import lab
from cgroups import charged_as, group, run_in
from ksft import include_points, ksft_pr, point
from memory import Memory
from netns import sysctl
from utils import wait_until

KINDS = "slab_unreclaimable", "vmalloc", "percpu"
"""The kernel memory of objects, as memory.stat names it."""
LEAST = 1024
"""Bytes of the smallest object of which a killed process may leave one: a queue pair has twice as many."""


def shrink_caches():
    """Lets the kernel free objects that kfree_rcu() has taken: each CPU keeps some of each cache, still charged."""
    for file in Path("/sys/kernel/slab").glob("*/shrink"):
        file.write_text("1", encoding="ascii")


def kills(left, right, rounds):
    """Kills either end of busy connections between two nodes, at random moments. Nothing may leak."""
    with ExitStack() as stack:
        for node in (left, right):
            # Sockets in TIME_WAIT are charged as well, for a minute.
            stack.enter_context(sysctl("tcp_max_tw_buckets", "0", node.netns))
        # Permanent allocations of the first connections (caches, tables) are no leak.
        include_points(["kill_load", "-n", "30", "-r", "7", left.side, right.side], timeout=200,
                       prefix="to warm up: ")
        before = Memory.now()
        path = stack.enter_context(group("killed"))
        include_points([*run_in(path), "kill_load", "-n", str(rounds), left.side, right.side], timeout=600)
        with point("nothing is left in rdma resource"):
            wait_until(lambda: not lab.left_over(), 10, "empty resource lists")
        with point("no kernel memory is charged to the killed processes"):
            shrink_caches()
            try:
                wait_until(lambda: charged_as(path, *KINDS) < rounds * LEAST, 30, "all is freed")
            finally:
                ksft_pr(f"charged: { {kind: charged_as(path, kind) for kind in KINDS} }")
        with point("memory is back"):
            loss = before.loss_until_below(16 << 20, timeout=20)
            ksft_pr(f"bytes lost: {loss}")
