# SPDX-License-Identifier: GPL-2.0
"""An idle connection detects the loss of its peer, at either end, by the transport of the devices."""

import time

import lab
from ksft import ksft_not_in, point
from utils import bkg


def idle(left, right):
    """Connects `left` to `right`. Returns both processes."""
    port = lab.new_port()
    server = bkg(f"cm_peer serve {right.addr} {port}", host=right)
    server.says("listening", 20)
    client = bkg(f"cm_peer connect {right.addr} {port} stay", host=left)
    for process in (client, server):
        process.says("ESTABLISHED status=0", 10)
    return client, server


def check():
    """The setting `keepalive`."""
    with lab.veth_pair() as (left, right):
        for node in (left, right):
            lab.setting(node.dev, "keepalive", 1)
        client, server = idle(left, right)
        with client, server:
            with point("a peer that is there, and silent, stays connected"):
                time.sleep(10)
                for process in (client, server):
                    ksft_not_in("DISCONNECTED", process.output)
            with lab.impaired(left, right, how=("loss", "100%")):
                with point("a peer that vanishes is noticed by the initiator"):
                    client.says("DISCONNECTED", 15)
                    client.wait(5)
                with point("and by the responder"):
                    server.says("(?s)DISCONNECTED.*destroyed", 5)
        for node in (left, right):
            lab.setting(node.dev, "keepalive", 0)
        client, server = idle(left, right)
        with client, server, lab.impaired(left, right, how=("loss", "100%")):
            with point("unless the setting is 0"):
                time.sleep(10)
                for process in (client, server):
                    ksft_not_in("DISCONNECTED", process.output)
