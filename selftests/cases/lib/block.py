# SPDX-License-Identifier: GPL-2.0
"""Traffic on block devices whose data is compared."""

import os
import re
import signal

from ksft import PACE, KsftFailEx, ksft_eq, ksft_in
from utils import bkg, cmd, tail, wait_until

SIZE = 64 << 20
"""Bytes of a device."""


def fio(device, *options, engine="libaio", host=None, timeout=100):
    """Runs a job of fio on a device, which has to end without an error. It verifies what it
    writes."""
    said = cmd(["fio", "--name=job", f"--filename={device}", f"--ioengine={engine}", "--direct=1",
                "--group_reporting", "--verify=crc32c", "--verify_fatal=1", *options], host=host,
               timeout=timeout * PACE).stdout
    ksft_in("err= 0", said)


def compare(device, *options, first=0, length=SIZE, host=None, timeout=100):
    """Runs block_load to its end: all that it reads is what it wrote."""
    done = cmd(["block_load", *options, device, first, length], host=host, timeout=timeout * PACE)
    ksft_in("verified", done.stdout)


def copy(source, target, size, *options):
    """Copies `size` bytes. `options` are those of dd, at least its block size."""
    cmd(["dd", f"if={source}", f"of={target}", "iflag=count_bytes", f"count={size}", "status=none",
         *options], timeout=100 * PACE)


def exchange(device, backing, writing, reading, size=4 << 20):
    """Writes random data to a device in blocks of `writing` bytes, and reads it in blocks of `reading`
    bytes. The file that backs it at the target has to have the same data. All in this machine."""
    copy("/dev/urandom", "written", size, "bs=1M")
    copy("written", device, size, f"bs={writing}", "oflag=direct")
    copy(device, "read", size, f"bs={reading}", "iflag=count_bytes,direct")
    for copied, whose in (backing, "the target's data"), ("read", "what is read"):
        done = cmd(["cmp", "-n", size, "written", copied], fail=False, timeout=60 * PACE)
        ksft_eq(done.ret, 0, f"{whose}: {done.stdout}{done.stderr}")


class Load:
    """block_load without an end, in this machine. Leaving the block kills it."""

    def __init__(self, device, *options, first=0, length=8 << 20):
        self._process = bkg(["block_load", *options, device, first, length])

    def __enter__(self):
        self.advances()
        return self

    def __exit__(self, *_):
        self._process.kill()

    @property
    def completed(self):
        """Returns the number of completed requests."""
        numbers = re.findall(r"^(\d+) requests$", self._process.output, re.MULTILINE)
        return int(numbers[-1]) if numbers else 0

    def advances(self, requests=200, timeout=60):
        """Waits until more requests are completed, many more than can be in flight."""
        def more():
            if not self._process.running:
                raise KsftFailEx(f"it has ended\n{tail(self._process.output)}")
            return self.completed >= target

        target = self.completed + requests
        wait_until(more, timeout * PACE, f"{requests} more requests are completed")

    def finish(self, timeout=60):
        """Ends it. All blocks have to have their last contents."""
        os.kill(self._process.pid, signal.SIGTERM)
        ksft_in("verified", self._process.succeed(timeout * PACE))

    def fails(self, timeout=60):
        """Waits until it ends by itself, because a request failed."""
        ksft_eq(self._process.wait(timeout * PACE), 1, "status")
        ksft_in("failed: ", self._process.output)
