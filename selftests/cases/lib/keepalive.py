# SPDX-License-Identifier: GPL-2.0
"""An idle connection detects the loss of its peer, at either end, by the transport of the devices."""

import time

import lab
from ksft import ksft_not_in, point
from utils import bkg, within


def set_time(seconds, *nodes):
    """Sets `keepalive` of the devices."""
    for node in nodes:
        lab.setting(node.dev, "keepalive", seconds)


def idle(left, right, *options, meanwhile=lambda server: None):
    """Connects `left` to `right`, whose server has these options. Returns both processes."""
    port = lab.new_port()
    server = bkg(["cm_peer", "serve", right.addr, port, *options], host=right)
    server.says("listening", 20)
    client = bkg(f"cm_peer connect {right.addr} {port} stay", host=left)
    meanwhile(server)
    for process in (client, server):
        process.says("ESTABLISHED status=0", 10)
    return client, server


def check():
    """The setting `keepalive`."""
    with lab.veth_pair() as (left, right):
        set_time(1, left, right)
        client, server = idle(left, right)
        with client, server:
            with point("a peer that is there, and silent, stays connected"):
                time.sleep(10)
                for process in (client, server):
                    ksft_not_in("DISCONNECTED", process.output)
            with lab.impaired(left, right, how=("loss", "100%")):
                with point("a peer that vanishes is noticed by the initiator"):
                    with within(15):
                        client.says("DISCONNECTED", 15)
                    client.wait(5)
                with point("and by the responder"):
                    with within(5):
                        server.says("(?s)DISCONNECTED.*destroyed", 5)
        def change(server):
            server.says("deaf", 10)
            set_time(1, left, right)

        for before in (300, 0):
            set_time(before, left, right)
            # The server accepts after a second.
            client, server = idle(left, right, "deaf", meanwhile=change)
            with client, server, point(f"a change from {before} to 1 while a connection is set up "
                                       "does not end it"):
                # Longer than a silent peer has with the new value, over SCTP.
                time.sleep(8)
                for process in (client, server):
                    ksft_not_in("DISCONNECTED", process.output)
        set_time(0, left, right)
        client, server = idle(left, right)
        with client, server, lab.impaired(left, right, how=("loss", "100%"), must_lose=False):
            with point("unless the setting is 0"):
                time.sleep(10)
                for process in (client, server):
                    ksft_not_in("DISCONNECTED", process.output)
