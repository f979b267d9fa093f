# SPDX-License-Identifier: GPL-2.0
"""Network namespaces for the case's own process."""

import os
from contextlib import contextmanager


@contextmanager
def inside(netns):
    """Runs the block in that namespace, or in the current one if it has no name."""
    if not netns:
        yield
        return
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{netns}") as there:
        os.setns(there.fileno(), os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(home.fileno(), os.CLONE_NEWNET)
