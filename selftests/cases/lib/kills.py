# SPDX-License-Identifier: GPL-2.0
"""kill -9 under load."""

import lab
from ksft import include_points, ksft_pr, point
from memory import Memory
from utils import wait_until


def kills(left, right, rounds):
    """Kills either end of busy connections between two nodes, at random moments. Nothing may leak."""
    # Permanent allocations of the first connections (caches, tables) are no leak.
    include_points(["kill_load", "-n", "30", "-r", "7", left.side, right.side], timeout=200,
                   prefix="to warm up: ")
    before = Memory.now()
    include_points(["kill_load", "-n", rounds, left.side, right.side], timeout=600)
    with point("nothing is left in rdma resource"):
        wait_until(lambda: not lab.left_over(), 10, "empty resource lists")
    with point("memory is back"):
        loss = before.loss_until_below(16 << 20, timeout=20)
        ksft_pr(f"bytes lost: {loss}")
