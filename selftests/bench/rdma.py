# SPDX-License-Identifier: GPL-2.0
"""What perftest measures of a row, in the machine."""
import perftest
from proc import Failed


def figure(row, server, client, messages, timeout):
    """The figure for so many messages of each QP, and the seconds that they took."""
    program, options = row.perftest(messages)
    got, = perftest.run(program, server, client, *options, timeout=timeout)
    if row.kind == "latency":
        return got.latency, row.seconds(got.average, messages)
    # Million messages per second, in thousands.
    value = got.values[2] * 1000 if row.kind == "rate" else got.bandwidth
    if not value:
        raise Failed(f"{program} says 0")
    return value, row.seconds(value, messages)
