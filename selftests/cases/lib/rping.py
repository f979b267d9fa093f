# SPDX-License-Identifier: GPL-2.0
"""rping between two nodes: a server that takes one client."""

import re

import lab
from utils import bkg

LATE = re.compile(r"(client|server) DISCONNECT EVENT\.\.\.\nrdma_get_cm_event: Bad file descriptor\n")
"""All that rping says if it closes the channel of its events before the thread reads it that waits for them: that
happens after the disconnect. The thread then ends rping with status 255, whatever the pings were, but it has said
nothing about a failure of these."""


def ended(rping, timeout):
    """Waits for the end of rping. Raises `CmdExitFailure` unless all pings have succeeded."""
    if rping.wait(timeout) != 255 or not LATE.fullmatch(rping.output):
        rping.succeed(timeout)


def ping(server, client, family=4, count=10, size=1024, timeout=30):
    """Pings `count` times with data checked at both ends.

    Raises `KsftFailEx` if either end fails.
    """
    port = lab.new_port()
    common = ["-a", server.address(family), "-p", port, "-C", count, "-S", size, "-V"]
    with bkg(["rping", "-s", *common], host=server) as serving:
        lab.wait_port_listen(port, host=server, server=serving)
        with bkg(["rping", "-c", *common], host=client) as pinging:
            ended(pinging, timeout)
        ended(serving, timeout)
