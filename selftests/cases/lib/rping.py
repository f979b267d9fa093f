# SPDX-License-Identifier: GPL-2.0
"""rping between two nodes: a server that takes one client."""

import lab


def ping(server, client, family=4, count=10, size=1024, timeout=30):
    """Pings `count` times with data checked at both ends. Raises `Failed` if either end fails."""
    port = lab.new_port()
    common = ["-a", server.address(family), "-p", port, "-C", count, "-S", size, "-V"]
    with server.start("rping", "-s", *common) as serving:
        server.wait_listening(port, serving)
        with client.start("rping", "-c", *common) as pinging:
            pinging.succeed(timeout)
        serving.succeed(timeout)
