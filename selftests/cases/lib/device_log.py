# SPDX-License-Identifier: GPL-2.0
"""The lines of a device in the kernel's log."""

import re
import time

from utils import becomes, cmd, wait_until

BURST, INTERVAL = 10, 5
"""The kernel's default rate limit: a device writes at most so many lines of a kind in so many seconds, and leaves out
the others."""


def may_write(dev):
    """Waits until a device has not written so many lines that it may leave out the next one."""
    def full():
        times = re.findall(rf"^<\d+>\[ *([\d.]+)\] infiniband {dev}: ", cmd("dmesg --raw").stdout, re.M)
        return len([at for at in times if float(at) > time.monotonic() - INTERVAL]) >= BURST
    wait_until(lambda: not full(), 2 * INTERVAL, "the device may write lines")


class Log:
    """The lines about a device, since it was created."""

    def __init__(self, dev):
        self._dev, self._mark = dev, f"device_log: {dev} {time.monotonic()}"
        with open("/dev/kmsg", "w", encoding="ascii") as log:
            log.write(f"<7>{self._mark}\n")

    def lines(self, level=4):
        """Returns the lines of a level: 4 is warning, 7 debug."""
        later = cmd("dmesg --raw").stdout.rpartition(self._mark)[2]
        return re.findall(rf"^<{level}>.*infiniband {self._dev}: (.*)", later, re.M)

    def has(self, wanted, level=4):
        """Waits for these lines, and checks that there are no others."""
        becomes(lambda: self.lines(level), wanted, 5, "lines")
