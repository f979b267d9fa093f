# SPDX-License-Identifier: GPL-2.0
"""Traffic on block devices whose data is compared."""

import load
from ksft import ksft_eq, ksft_in
from utils import cmd

SIZE = 64 << 20
"""Bytes of a device."""


def fio(device, *options, engine="libaio", host=None, timeout=100):
    """Runs a job of fio on a device, which has to end without an error. It verifies what it
    writes."""
    said = cmd(["fio", "--name=job", f"--filename={device}", f"--ioengine={engine}", "--direct=1",
                "--group_reporting", "--verify=crc32c", "--verify_fatal=1", *options], host=host,
               timeout=timeout).stdout
    ksft_in("err= 0", said)


def compare(device, *options, first=0, length=SIZE, host=None, timeout=100):
    """Runs block_load to its end: all that it reads is what it wrote."""
    done = cmd(["block_load", *options, device, first, length], host=host, timeout=timeout)
    ksft_in("verified", done.stdout)


def copy(source, target, size, *options):
    """Copies `size` bytes. `options` are those of dd, at least its block size."""
    cmd(["dd", f"if={source}", f"of={target}", "iflag=count_bytes", f"count={size}", "status=none",
         *options], timeout=100)


def exchange(device, backing, writing, reading, size=4 << 20):
    """Writes random data to a device in blocks of `writing` bytes, and reads it in blocks of `reading`
    bytes. The file that backs it at the target has to have the same data. All in this machine."""
    copy("/dev/urandom", "written", size, "bs=1M")
    copy("written", device, size, f"bs={writing}", "oflag=direct")
    copy(device, "read", size, f"bs={reading}", "iflag=count_bytes,direct")
    for copied, whose in (backing, "the target's data"), ("read", "what is read"):
        done = cmd(["cmp", "-n", size, "written", copied], fail=False, timeout=60)
        ksft_eq(done.ret, 0, f"{whose}: {done.stdout}{done.stderr}")


class Load(load.Load):
    """block_load without an end. It runs when the block begins."""

    def __init__(self, device, *options, first=0, length=8 << 20):
        super().__init__(["block_load", *options, device, first, length], "requests")

    def __enter__(self):
        self.advances()
        return self

    def advances(self, more=200, timeout=60):
        """As `load.Load.advances`: many more requests than can be in flight."""
        super().advances(more, timeout)

    def finish(self, timeout=60):
        super().finish(timeout)

    def fails(self, timeout=60):
        """Waits until it ends by itself, because a request failed."""
        ksft_eq(self.process.wait(timeout), 1, "status")
        ksft_in("failed: ", self.process.output)
