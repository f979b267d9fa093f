# SPDX-License-Identifier: GPL-2.0
"""Measures a row with perftest, in the machine."""
import perftest
from ksft import KsftFailEx


def figures(row, server, client, messages, timeout):
    """Sends `messages` messages on each QP. Returns the figures, for each row that this measurement
    gives; the seconds that the messages took; and the number of tries."""
    program, options = row.perftest(messages)
    again = []
    got, = perftest.run(program, server, client, *options, timeout=timeout, again=again.append)
    if row.kind == "latency":
        values = got.average, got.latency
    elif row.kind == "rate":
        # perftest prints million messages per second; the unit of the row is thousand.
        values = got.values[2] * 1000,
    else:
        values = got.bandwidth,
    if not all(values):
        raise KsftFailEx(f"{program} says 0")
    return dict(zip(row.given, values)), row.seconds(values[0], messages), 1 + len(again)
