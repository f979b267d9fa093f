# SPDX-License-Identifier: GPL-2.0
"""Measures a row over plain TCP or SCTP, or over TLS, with iperf3 or qperf, in the machine."""
import json
import os
import re

import lab
from ksft import KsftFailEx
from utils import bkg, cmd

import rows

# Command prefix of a program for which the kernel shall encrypt its connections: see ktls.c.
BY_TLS = "env", f"LD_PRELOAD={os.environ['RIW_SRC']}/build/lab/progs/ktls.so"


def figures(row, server, client, messages, limit):
    """Returns the figure of one stream of iperf3, or of qperf's ping-pong (one way, mean); the
    seconds that the messages took; and 1 for one try. Both programs run for a fixed time: a short
    stream is mostly start and end of iperf3. A row of CPU time has a fixed number of messages
    instead, once it is known."""
    port = lab.new_port()
    by = BY_TLS if row.encryption == "TLS" else ()
    sctp, size = [], row.size
    if row.transport:
        sctp, size = ["--sctp"], min(row.size, rows.IPERF3_SCTP_MOST)
    if row.kind == "latency":
        test = "sctp_lat" if row.transport else "tcp_lat"
        with bkg([*by, "qperf", "-lp", port], host=server) as serving:
            lab.wait_port_listen(port, host=server, server=serving)
            said = cmd([*by, "qperf", server.addr, "-lp", port, "-t", 1, "-m", row.size, "--unify_units",
                        test], host=client, timeout=limit).stdout
        latency = re.search(r"latency\s*=\s*([\d.,]+) ns", said)
        if not latency:
            raise KsftFailEx(f"qperf prints no latency: {said}")
        return {row: float(latency[1].replace(",", "")) / 1000}, 1, 1
    with bkg([*by, "iperf3", "-s", "-1", "-B", server.addr, "-p", port], host=server) as serving:
        lab.wait_port_listen(port, host=server, server=serving)
        much = ["-n", messages * row.size] if row.kind in ("cpu", "kernel") and messages else ["-t", 1]
        said = cmd([*by, "iperf3", "-c", server.addr, "-p", port, *sctp, *much, "-l", size, "-J"],
                   host=client, timeout=limit).stdout
    value = json.loads(said)["end"]["sum_received"]["bits_per_second"] / 8 / rows.MIB
    if not value:
        raise KsftFailEx("iperf3 failed to receive any data")
    return {row: value}, row.seconds(value, messages or row.first_look), 1
