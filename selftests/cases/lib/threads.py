# SPDX-License-Identifier: GPL-2.0
"""Threads beside the case's own, whose failures are the case's."""

import threading
from contextlib import contextmanager

from ksft import KsftFailEx


class _Worker(threading.Thread):
    """Runs a generator to its end. Counts its steps, and keeps its exception."""

    def __init__(self, steps):
        super().__init__()
        self.name, self._steps = steps.__name__, steps
        self.done, self.reason = 0, None

    def run(self):
        try:
            for _ in self._steps:
                self.done += 1
        except Exception as reason:  # for `meanwhile`
            self.reason = reason


@contextmanager
def meanwhile(*functions):
    """Runs functions in threads of their own during the block. Each gets a `threading.Event` that is
    set at the end of the block, and is a generator: it yields after each step, and ends after the event.

    Raises the first exception of a function, and `KsftFailEx` if one of them has done no step."""
    over = threading.Event()
    workers = [_Worker(function(over)) for function in functions]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        over.set()
        for worker in workers:
            worker.join()
    for worker in workers:
        if worker.reason:
            raise worker.reason
        if not worker.done:
            raise KsftFailEx(f"the thread {worker.name} has done nothing")
