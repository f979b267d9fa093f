# SPDX-License-Identifier: GPL-2.0
"""qperf between two nodes, connected by the RDMA CM as iWARP needs it."""

import lab
from ksft import ksft_pr, ksft_true
from utils import bkg, cmd

ATTEMPTS = 6
# Races of qperf itself. Each end stops by its own clock and disconnects, which flushes the other
# end's requests if that has not stopped yet. The server of 0.4.11 publishes its port before it
# listens ("Fix rdmacm race", 2018, is later).
RACES = ("WR flush failure", "Event rejected")


def run(server, client, test):
    """Runs a test for a second; retries after one of its races. It disconnects with up to 1024
    READs posted, one of which is in progress at a time."""
    for attempt in range(1, ATTEMPTS + 1):
        port = lab.new_port()
        with bkg(f"qperf -lp {port}", host=server) as serving:
            lab.wait_port_listen(port, host=server, server=serving)
            done = cmd(f"qperf -lp {port} -cm 1 -t 1 {server.addr} {test}", fail=False, host=client,
                       timeout=40)
        lost = [race for race in RACES if race in done.stdout + done.stderr]
        if not lost or attempt == ATTEMPTS:
            break
        ksft_pr(f"once more: {lost[0]}")
    ksft_true(done.ret == 0 and "=" in done.stdout,
              f"{done.stdout}{done.stderr}server:\n{serving.output}")
