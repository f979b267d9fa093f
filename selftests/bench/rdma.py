# SPDX-License-Identifier: GPL-2.0
"""What perftest measures of a row, in the machine."""
import perftest
from ksft import KsftFailEx


def figures(row, server, client, messages, timeout):
    """The figures for so many messages of each QP, of all the rows that they give, the seconds
    that the messages took, and in how many tries."""
    program, options = row.perftest(messages)
    again = []
    got, = perftest.run(program, server, client, *options, timeout=timeout, again=again.append)
    if row.kind == "latency":
        values = got.average, got.latency
    elif row.kind == "rate":
        # Million messages per second, in thousands.
        values = got.values[2] * 1000,
    else:
        values = got.bandwidth,
    if not all(values):
        raise KsftFailEx(f"{program} says 0")
    return dict(zip(row.given, values)), row.seconds(values[0], messages), 1 + len(again)
