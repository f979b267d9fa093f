# SPDX-License-Identifier: GPL-2.0
"""Fault injection: allocations that fail, and copies from and to the memory of processes, on a debug kernel."""

import random
from contextlib import contextmanager
from pathlib import Path

import lab
from ksft import include_points, ksft_pr, point
from utils import cmd, wait_until

SLAB = Path("/sys/kernel/debug/failslab")
PAGES = Path("/sys/kernel/debug/fail_page_alloc")
COPIES = Path("/sys/kernel/debug/fail_usercopy")
# More than the number of failures.
TIMES = 1 << 30


def configure(faults, **settings):
    """Sets which faults of this kind there are, and how often."""
    for name, value in settings.items():
        (faults / name.replace("_", "-")).write_text(str(value), encoding="ascii")


def reset(faults):
    """Lets nothing fail but for fail-nth, and sets the other settings to those that the cases expect."""
    configure(faults, verbose=0, probability=0, interval=1, times=TIMES, task_filter="N", require_start=0,
              require_end=(1 << 64) - 1)
    if faults != COPIES:
        configure(faults, ignore_gfp_wait="N")
    if faults == PAGES:
        configure(faults, min_order=0, ignore_gfp_highmem="N")


def exclude(faults):
    """Excludes faults of this kind, also from those that fail-nth counts: they would have to come from code at
    address 1."""
    configure(faults, verbose=0, probability=0, stacktrace_depth=0, require_start=1, require_end=1)


def riw_code():
    """Returns the address range of riw's functions."""
    functions = [int(line.split()[0], 16)
                 for line in Path("/proc/kallsyms").read_text(encoding="ascii").splitlines()
                 if line.endswith(f"[{lab.DRIVER}]") and line.split()[1] in "tT"]
    return {"require_start": min(functions), "require_end": max(functions)}


def each_in_turn(*operations, options=(), copies=False):
    """Fails each allocation of these operations of the program fail_nth in turn, or of all; with `copies`, each copy
    from and to the memory of the process."""
    address = "10.79.0.1"
    seed = random.randrange(1 << 32)
    ksft_pr(f"seed {seed}")
    if copies:
        exclude(SLAB)
        exclude(PAGES)
        reset(COPIES)
    else:
        exclude(COPIES)
        reset(SLAB)
    with lab.netdev("dummy0", "type", "dummy", addr=f"{address}/24"):
        include_points(["fail_nth", *(["-c"] if copies else []), *options, "-r", seed, address, "dummy0", lab.DRIVER,
                        *operations], timeout=500)
        nothing_left(address)


def nothing_left(address):
    """Writes the points about what an address may have left."""
    with point("nothing is left in rdma resource"):
        wait_until(lambda: not lab.left_over(), 20, "empty resource lists")
    with point("no socket is left"):
        wait_until(lambda: not cmd(f"ss -Htan exclude time-wait src {address}").stdout.strip(), 20,
                   "no socket")
        wait_until(lambda: address not in cmd("cat /proc/net/sctp/assocs", fail=False).stdout, 20,
                   "no association")


def times_left(faults):
    """Returns the number of allocations still to fail."""
    return int((faults / "times").read_text(encoding="ascii"))


@contextmanager
def all_of_riw(faults):
    """Fails all allocations that riw makes, and those that others make for it."""
    reset(faults)
    configure(faults, stacktrace_depth=32, **riw_code(), probability=100)
    try:
        yield
    finally:
        configure(faults, probability=0)
