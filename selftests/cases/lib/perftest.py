# SPDX-License-Identifier: GPL-2.0
"""perftest between two nodes, connected by the RDMA CM as iWARP needs it."""

import os
import re
from dataclasses import dataclass

import lab
from ksft import KsftFailEx, ksft_pr
from utils import bkg

ATTEMPTS = 5
# Reported by an event, or by rdma_connect() itself with siw.
REJECTED = re.compile("RDMA_CM_EVENT_REJECTED|Connection refused")
# Fails in the last exchange: 2 is IBV_WC_LOC_QP_OP_ERR.
LAST_SEND = re.compile("Bad wc status 2\n.*\nFailed to close connection")
NO_CLOCK = "Correlation coefficient"
# Command prefix of perftest: on User-Mode Linux it unifies perftest's two clocks.
BY = ()
if lab.UML:
    BY = "env", f"LD_PRELOAD={os.environ['RIW_SRC']}/build/lab/progs/tsc_clock.so"


class TooEarly(KsftFailEx):
    """The client was ahead of its server. perftest connects twice, and its server stops listening
    in between, on one port. A fast client is rejected then, and crashes when it retries.
    """


class NoClock(KsftFailEx):
    """perftest compares two clocks before it measures, which may fail on a busy machine. It
    continues anyway, and divides by zero at the end.
    """


class LastSend(KsftFailEx):
    """siw's last Send failed although it arrived: behind the last segment of a message, siw checks
    whether the connection is going down (`siw_qp_sq_proc_tx()`). A peer that answers and closes at
    once can be faster.
    """


@dataclass
class Row:
    """One line of perftest's table. Bandwidth in MiB/s, latency in microseconds."""

    size: int
    iterations: int
    values: list

    @property
    def bandwidth(self):
        """Average bandwidth of a `_bw` test, MiB/s."""
        return self.values[1]

    @property
    def latency(self):
        """Typical latency of a `_lat` test, microseconds."""
        return self.values[2]

    @property
    def average(self):
        """Mean latency of a `_lat` test, microseconds."""
        return self.values[3]


def run(test, server, client, *options, family=4, named=False, timeout=60, again=ksft_pr):
    """Runs `ib_write_bw` or another test with the same options at both ends. With `named`, the client names its
    own address.

    Returns the client's table, a list of `Row`. Raises `KsftFailEx` if either end fails or reports
    an error. `again` is called with the reason for each retry.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return _run(test, server, client, options, family, named, timeout)
        except (TooEarly, NoClock, LastSend) as reason:
            again(f"tried again: {reason}")
    return _run(test, server, client, options, family, named, timeout)


def _run(test, server, client, options, family, named, timeout):
    port = lab.new_port()
    common = ["-R", "-F", "-p", port, *options]
    if family == 6:
        common.append("--ipv6-addr")
    listen = []
    if lab.DRIVER == "siw" or server.dev.startswith("siw"):
        listen = ["--bind_source_ip", server.address(family)]
    connect = ["--bind_source_ip", client.address(family)] if named else []
    with bkg([*BY, test, "-d", server.dev, *common, *listen], host=server) as serving:
        lab.wait_port_listen(port, host=server, server=serving)
        with bkg([*BY, test, "-d", client.dev, *common, *connect, server.address(family)],
                 host=client) as pushing:
            try:
                output = pushing.succeed(timeout)
            except KsftFailEx as reason:
                if REJECTED.search(pushing.output) and serving.running:
                    raise TooEarly(str(reason)) from None
                if client.dev.startswith("siw") and LAST_SEND.search(pushing.output):
                    # The server has received everything.
                    serving.succeed(timeout)
                    raise LastSend(str(reason)) from None
                # Put the reason first, before all buffered output.
                raise KsftFailEx(f"{reason}\nall of it:\n{pushing.output}"
                                 f"{serving}\n{serving.output}") from None
        serving.succeed(timeout)
    if NO_CLOCK in output:
        raise NoClock(f"no clock: {test}")
    rows = table(output)
    if not rows:
        raise KsftFailEx(f"no table: {test}\n{output}")
    return rows


def table(output):
    """Returns the rows of numbers in a test's output."""
    rows = []
    for line in output.splitlines():
        if re.fullmatch(r"\s*\d+\s+\d+(\s+(?:[\d.]+|-?nan)){3,}\s*", line):
            size, iterations, *values = line.split()
            rows.append(Row(int(size), int(iterations), [float(v) for v in values]))
    return rows
