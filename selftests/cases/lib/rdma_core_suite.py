# SPDX-License-Identifier: GPL-2.0
"""Runs rdma-core's test suite and reports the start and end of each test.

    python3 -m rdma_core_suite FOLDER REPORTS HARNESS [OPTION…] <NAMES

FOLDER has the suite as a package `tests`, REPORTS is the number of an open file, HARNESS the name of a
module (or empty) whose `install()` changes the suite and whose `order()` sorts its tests, OPTIONs are
options of the suite. stdin lists tests to skip, one per line. Each report is a line with a JSON list: the
name of a test that starts; or the name of a test that has ended, `passed`, `failed` or `skipped`, and the
reason.
"""

import gc
import importlib
import json
import os
import sys
import unittest


class Reports(unittest.TestResult):
    """Writes test events as lines of JSON."""

    def __init__(self, fd):
        super().__init__()
        self.fd = fd
        self.verdict = None

    def write(self, *line):
        os.write(self.fd, json.dumps(line).encode() + b"\n")

    def startTest(self, test):
        self.verdict = ("passed", "")
        self.write(test.id())

    def stopTest(self, test):
        self.write(test.id(), *self.verdict)

    def addSkip(self, test, reason):
        self.verdict = ("skipped", reason)

    def addError(self, test, err):
        self.verdict = ("failed", self._exc_info_to_string(err, test))
        if not isinstance(test, unittest.TestCase):
            self.write(test.id(), *self.verdict)  # setup or teardown of a class or module

    addFailure = addError


def flat(suite):
    """Yields the tests of nested suites."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def main():
    folder, fd, harness, *options = sys.argv[1:]
    sys.path[:0] = [folder, f"{folder}/tests"]
    sys.argv[1:] = options
    from args_parser import parser
    parser.parse_args()
    known = set(sys.stdin.read().split())
    import tests
    chosen = [test for test in flat(unittest.defaultTestLoader.loadTestsFromModule(tests))
              if test.id() not in known]
    # The collector destroys the objects of failed tests in any order, a context before its queues: pyverbs then
    # uses freed memory.
    gc.disable()
    if harness:
        module = importlib.import_module(harness)
        module.install()
        chosen.sort(key=module.order)
    unittest.TestSuite(chosen).run(Reports(int(fd)))
    # So does the interpreter's shutdown.
    sys.stdout.flush()
    os._exit(0)


main()
