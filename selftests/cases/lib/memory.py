# SPDX-License-Identifier: GPL-2.0
"""The kernel's memory, to see what a test has lost."""

import glob
import os
import re
import time
from dataclasses import dataclass

from proc import Failed

FIELDS = ("Slab", "Percpu", "VmallocUsed", "Unevictable", "KernelStack")


@dataclass
class Memory:
    """Bytes in use, by kind. `used` is everything that is not available."""

    used: int
    kinds: dict

    @classmethod
    def now(cls):
        """What is in use now, caches dropped."""
        # Slabs that are kept in reserve count as used, and KASAN keeps what was freed for long.
        slabs = {os.path.realpath(path) for path in glob.glob("/sys/kernel/slab/*/shrink")}
        for path, value in [("/proc/sys/vm/drop_caches", "3"), *((slab, "1") for slab in slabs)]:
            with open(path, "w", encoding="ascii") as file:
                file.write(value)
        with open("/proc/meminfo", encoding="ascii") as file:
            info = {m[1]: int(m[2]) << 10 for m in re.finditer(r"(\S+):\s+(\d+) kB", file.read())}
        return cls(info["MemTotal"] - info["MemFree"] - info["Cached"],
                   {name: info.get(name, 0) for name in FIELDS})

    def growth(self, later):
        """The bytes by which `later` uses more than this, overall and by kind."""
        grown = {"used": later.used - self.used}
        grown.update({name: later.kinds[name] - self.kinds[name] for name in self.kinds})
        return grown

    def loss_until_below(self, bound, timeout, kinds=("used", *FIELDS)):
        """Waits until none of `kinds` has grown by more than `bound` bytes since this was taken.

        Memory is freed after grace periods, so it may take a moment. Returns the growth.
        """
        end = time.monotonic() + timeout
        while True:
            grown = self.growth(Memory.now())
            if max(grown[kind] for kind in kinds) <= bound:
                return grown
            if time.monotonic() > end:
                raise Failed(f"memory has grown by more than {bound} bytes: {grown}")
            time.sleep(0.5)
