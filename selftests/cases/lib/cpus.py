# SPDX-License-Identifier: GPL-2.0
"""A CPU that goes offline and comes online again."""

import os
from contextlib import contextmanager
from pathlib import Path

NUMBER = 1
"""The CPU: CPU 0 of x86 stays."""

ONLINE = Path(f"/sys/devices/system/cpu/cpu{NUMBER}/online")

CAN_GO = ONLINE.exists()
"""Whether it can go: User-Mode Linux has no hotplug of CPUs."""

LONGEST = 0.5
"""Seconds that it stays in a state, at most."""


@contextmanager
def offline():
    """Takes the CPU offline during the block."""
    ONLINE.write_text("0", encoding="ascii")
    try:
        yield
    finally:
        ONLINE.write_text("1", encoding="ascii")


@contextmanager
def on_it():
    """Runs this process, and those that it starts, on the CPU during the block."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {NUMBER})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def comes_and_goes(pick, over):
    """For `threads.meanwhile`: takes the CPU offline and online again, at times that `pick` draws."""
    while True:
        with offline():
            over.wait(pick.random() * LONGEST)
        yield
        if over.wait(pick.random() * LONGEST):
            return
