# SPDX-License-Identifier: GPL-2.0
"""Selects the program that measures a row, in the machine."""
import contextlib

import rdma
import storage
import tcp


@contextlib.contextmanager
def meter(row, contender, server, client, limit):
    """Sets up what the measurements of a row need. Yields a function that sends a number of messages on
    each QP (0: for a first, short measurement) within `limit` seconds. It returns the figures, for each
    row that this gives; the seconds that the messages took; and the number of tries."""
    if row.storage:
        with storage.opened(row, server, client) as opened:
            yield lambda messages: storage.figures(row, opened, messages or row.first_look, limit)
    elif contender == "tcp":
        yield lambda messages: tcp.figures(row, server, client, messages, limit)
    else:
        # Many QPs take more time to connect.
        yield lambda messages: rdma.figures(row, server, client, messages or row.first_look,
                                            limit + row.qps / 10)
