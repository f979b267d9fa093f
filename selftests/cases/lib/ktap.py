# SPDX-License-Identifier: GPL-2.0
"""Reads TAP: the points of a program, and what is wrong with its output as a whole.

What a program prints before a point belongs to that point, as in KTAP
(Documentation/dev-tools/ktap.rst of the kernel). ksft.py writes such output.
"""

import fnmatch
import re
from dataclasses import dataclass

POINT = re.compile(r"(?P<failed>not )?ok\b *(?P<number>\d*) *(?:- *)?(?P<title>.*?) *"
                   r"(?P<directive># *(?:SKIP|TODO|XFAIL|TIMEOUT|ERROR)\b.*)?", re.IGNORECASE)


PLAN = re.compile(r"1\.\.(\d+)(?: *#.*)?")
VERSION = re.compile(r"K?TAP version \d+")
INDENT = 4
"""Spaces before each line of a nested test, for each level."""
SHOWN = 60
"""Maximum number of lines after the last point that are reported."""


def line_of(title):
    """Returns a regular expression for the line of a point whose title matches a glob."""
    return r"(?:not )?ok\b *\d* *(?:- *)?" + fnmatch.translate(title)


@dataclass
class Point:
    """One result. `details` has the lines since the previous point, without "# "."""

    passed: bool
    title: str
    details: str = ""


class Parser:
    """Reads the output of one program, line by line. `depth` selects the nested tests of that
    level; 0 is the top level."""

    def __init__(self, depth=0):
        self.points = []
        self._indent = " " * INDENT * depth
        self._pending = []
        self._planned = None
        self._wrong = []

    @property
    def failed(self):
        """Returns the points that did not pass."""
        return [point for point in self.points if not point.passed]

    def feed(self, line):
        """Takes one line. Returns the point that it completes, or None."""
        line = line.rstrip("\n")
        if not line.startswith(self._indent):
            return None
        line = line[len(self._indent):]
        if match := POINT.fullmatch(line):
            return self._add(match)
        if match := PLAN.fullmatch(line):
            if self._planned is not None:
                self._wrong.append(f"a second plan: {line}")
            self._planned = int(match[1])
        elif line.startswith("Bail out!"):
            self._wrong.append(line)
        elif not VERSION.fullmatch(line):
            self._pending.append(line.removeprefix("#").removeprefix(" "))
        return None

    def _add(self, match):
        number = len(self.points) + 1
        if match["number"] and int(match["number"]) != number:
            self._wrong.append(f"point {number} has the number {match['number']}")
        # A test with a directive has shown nothing: it was skipped, or its failure is accepted.
        if match["directive"]:
            self._pending.append(match["directive"].lstrip("# "))
        point = Point(not match["failed"] and not match["directive"], match["title"],
                      "\n".join(self._pending))
        self._pending = []
        self.points.append(point)
        return point

    def finish(self, status=0):
        """Takes the end of the output and the program's exit status. Returns what is wrong other
        than failed points: a list, which ends with the last lines after the last point."""
        wrong = list(self._wrong)
        if self._planned is None:
            wrong.append("no plan (1..N)")
        elif not self._planned:
            wrong.append("a plan of no points")
        elif self._planned != len(self.points):
            wrong.append(f"a plan of {self._planned} points, {len(self.points)} made")
        # 1 is how a program reports failed points.
        if status and (status != 1 or not self.failed):
            wrong.append(f"exit status {status}")
        return wrong and wrong + self._pending[-SHOWN:]


def parse(text, status=0, depth=0):
    """Reads a whole output. Returns its points, and what is wrong as `Parser.finish()` does."""
    parser = Parser(depth)
    for line in text.splitlines():
        parser.feed(line)
    return parser.points, parser.finish(status)
