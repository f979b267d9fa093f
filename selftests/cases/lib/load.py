# SPDX-License-Identifier: GPL-2.0
"""Programs that write and compare data until they are ended."""

import os
import re
import signal

from ksft import KsftFailEx, ksft_in
from utils import bkg, tail, wait_until


class Load:
    """A program that works in this machine until SIGTERM, prints "N UNIT" as it goes, and compares all
    data at its end. Leaving the block kills it."""

    def __init__(self, argv, unit):
        self.unit = unit
        self.process = bkg(argv)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()

    @property
    def completed(self):
        """Returns the number of completed units."""
        numbers = re.findall(rf"^(\d+) {self.unit}$", self.process.output, re.MULTILINE)
        return int(numbers[-1]) if numbers else 0

    def advances(self, more, timeout):
        """Waits until it has completed this many more."""
        def advanced():
            if not self.process.running:
                raise KsftFailEx(f"it has ended\n{tail(self.process.output)}")
            return self.completed >= target

        target = self.completed + more
        wait_until(advanced, timeout, f"{more} more {self.unit} are completed")

    def verified(self, timeout):
        """Waits until it ends by itself. All data have to be what was written last."""
        ksft_in("verified", self.process.succeed(timeout))

    def finish(self, timeout):
        """Ends it. All data have to be what was written last."""
        os.kill(self.process.pid, signal.SIGTERM)
        self.verified(timeout)
