# SPDX-License-Identifier: GPL-2.0
"""rping between two nodes: a server that takes one client."""

import lab
from utils import bkg


def ping(server, client, family=4, count=10, size=1024, timeout=30):
    """Pings `count` times with data checked at both ends.

    Raises `KsftFailEx` if either end fails.
    """
    port = lab.new_port()
    common = ["-a", server.address(family), "-p", port, "-C", count, "-S", size, "-V"]
    with bkg(["rping", "-s", *common], host=server) as serving:
        lab.wait_port_listen(port, host=server, server=serving)
        with bkg(["rping", "-c", *common], host=client) as pinging:
            pinging.succeed(timeout)
        serving.succeed(timeout)
