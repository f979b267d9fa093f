# SPDX-License-Identifier: GPL-2.0
"""What a case itself does in a network namespace."""

import os
from contextlib import contextmanager


@contextmanager
def inside(netns):
    """Sockets and devices made here are in that namespace; in our own if it has no name."""
    if not netns:
        yield
        return
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{netns}") as there:
        os.setns(there.fileno(), os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(home.fileno(), os.CLONE_NEWNET)
