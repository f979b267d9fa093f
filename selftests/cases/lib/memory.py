# SPDX-License-Identifier: GPL-2.0
"""Kernel memory: what objects cost, and leaks."""

import errno
import glob
import os
import re
import time
from dataclasses import dataclass

from ksft import PACE, KsftFailEx
from utils import wait_until

FIELDS = ("Slab", "Percpu", "VmallocUsed", "Unevictable", "KernelStack")
PAGE = os.sysconf("SC_PAGE_SIZE")
# Memory has settled when READINGS readings in a row, INTERVAL seconds apart, are not lower than the
# earlier ones by LITTLE bytes.
READINGS, INTERVAL, LITTLE = 5, 0.25, 64 << 10


def _read(name):
    with open(f"/proc/{name}", encoding="ascii") as file:
        return file.read()


def _free_in_lists():
    """Bytes of the pages in the per-CPU lists."""
    return PAGE * sum(map(int, re.findall(r"^ +count: +(\d+)$", _read("zoneinfo"), re.MULTILINE)))


def _free_in_slabs():
    """Bytes of the free objects in partly used slabs. A kernel without SLUB_DEBUG does not tell: they count as used
    there."""
    free = 0
    try:
        lines = _read("slabinfo").splitlines()[2:]
    except FileNotFoundError:
        return 0
    for line in lines:
        active, total, _, per_slab, pages = map(int, line.split()[1:6])
        free += (total - active) * pages * PAGE // per_slab
    return free


def _stack_traces():
    """Bytes of the stack traces that KASAN keeps for its reports. It frees none of them."""
    try:
        with open("/sys/kernel/debug/stackdepot/stats", encoding="ascii") as file:
            return int(re.search(r"^persistent_bytes: (\d+)$", file.read(), re.MULTILINE)[1])
    except FileNotFoundError:
        return 0


def _drop_caches():
    """Frees caches and reserve slabs: they count as used, and KASAN delays frees for long."""
    slabs = {os.path.realpath(path) for path in glob.glob("/sys/kernel/slab/*/shrink")}
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")
    for path in slabs:
        try:
            with open(path, "w", encoding="ascii") as file:
                file.write("1")
        except OSError as gone:
            # A cache may go meanwhile: SMB Direct has some for each connection.
            if gone.errno not in (errno.ENOENT, errno.ENODEV):
                raise


@dataclass
class Memory:
    """Bytes in use, by type. `used` is all memory but free pages and the page cache. Free pages are also
    those in the per-CPU lists, tens of MB at times. `kernel` is the kernel's share of it, without
    anonymous memory, free slab objects and stack traces.
    """

    used: int
    kernel: int
    kinds: dict

    @classmethod
    def now(cls, drop=True):
        """Returns the memory in use now, after dropping caches. Without `drop` it is fast, and may be more
        than is really in use."""
        if drop:
            _drop_caches()
        info = {m[1]: int(m[2]) << 10 for m in re.finditer(r"(\S+):\s+(\d+) kB", _read("meminfo"))}
        used = info["MemTotal"] - info["MemFree"] - info["Cached"] - _free_in_lists()
        return cls(used, used - info["AnonPages"] - _free_in_slabs() - _stack_traces(),
                   {name: info.get(name, 0) for name in FIELDS})

    @classmethod
    def settled_kernel(cls, timeout):
        """Waits until the kernel's memory no longer falls: closed objects are freed with a delay. Returns
        its lowest reading in bytes, because reading allocates memory, too."""
        readings = []

        def falls_no_more():
            readings.append(cls.now().kernel)
            before, last = readings[:-READINGS], readings[-READINGS:]
            return before and min(last) > min(before) - LITTLE

        wait_until(falls_no_more, timeout, "the kernel's memory settles", INTERVAL)
        return min(readings)

    def growth(self, later):
        """Returns the growth of `later` over this in bytes, overall and by type."""
        grown = {"used": later.used - self.used, "kernel": later.kernel - self.kernel}
        grown.update({name: later.kinds[name] - self.kinds[name] for name in self.kinds})
        return grown

    def loss_until_below(self, bound, timeout, kinds=("kernel", *FIELDS)):
        """Waits until no type in `kinds` has grown by more than `bound` bytes since this snapshot.

        Memory is freed after grace periods, so this may take a moment. Returns the growth.
        """
        end = time.monotonic() + timeout * PACE
        while True:
            grown = self.growth(Memory.now())
            if max(grown[kind] for kind in kinds) <= bound:
                return grown
            if time.monotonic() > end:
                raise KsftFailEx(f"memory has grown by more than {bound} bytes: {grown}")
            time.sleep(0.5)
