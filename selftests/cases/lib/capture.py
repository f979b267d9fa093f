# SPDX-License-Identifier: GPL-2.0
"""Packet captures with tcpdump."""

import os
import re
import signal
from contextlib import contextmanager

from ksft import ksft_eq
from utils import bkg, wait_until

COUNTS = re.compile(r"(\d+) packets? captured\D+(\d+) packets? received by filter\D+"
                    r"(\d+) packets? dropped by kernel")


@contextmanager
def captured(node, path):
    """Captures all TCP of the interface of `node` during the block, without a gap."""
    with bkg(f"tcpdump -i {node.netdev} -w {path} -s 0 -B 65536 tcp", host=node) as dump:
        def caught_up():
            os.kill(dump.pid, signal.SIGUSR1)
            counts = COUNTS.findall(dump.output)
            return counts and counts[-1][0] == counts[-1][1]

        dump.says("listening on", 20)
        yield
        # On exit, tcpdump drops packets that it has not read yet. Poll rarely: each poll interrupts
        # it.
        wait_until(caught_up, 60, "tcpdump has written all", interval=1)
        dump.kill(signal.SIGINT)
        ksft_eq(COUNTS.findall(dump.output)[-1][2], "0", "packets dropped")
