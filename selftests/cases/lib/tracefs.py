# SPDX-License-Identifier: GPL-2.0
"""Trace events, in a tracefs instance of their own: other tracers do not interfere.

    with Trace() as trace:
        trace.enable("riw/qp_state")
        ...
        for event in trace.events():
            print(event.name, event.text)
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from utils import cmd

TRACEFS = Path("/sys/kernel/tracing")

_LINE = re.compile(r"^\s*(?P<task>.*)-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\] \S+\s+(?P<time>[\d.]+): "
                   r"(?P<name>\w+): (?P<text>.*)$")


@dataclass
class Event:
    """An event: its name, and its fields as the kernel prints them."""

    name: str
    text: str


class Trace:
    """A buffer of trace events."""

    def __init__(self, kib_per_cpu=4096):
        if not os.path.ismount(TRACEFS):
            cmd(f"mount -t tracefs tracefs {TRACEFS}")
        self.path = TRACEFS / "instances" / "riw-test"
        self.path.mkdir()
        self.write("buffer_size_kb", kib_per_cpu)
        self.write("trace_clock", "global")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.enable("riw", 0)
        self.path.rmdir()

    def write(self, name, value):
        """Writes a file of the instance."""
        (self.path / name).write_text(f"{value}\n", encoding="ascii")

    def enable(self, event, on=1):
        """Enables or disables an event, `SYSTEM/NAME`, or a system."""
        path = self.path / "events" / event / "enable"
        if on or path.exists():
            path.write_text(f"{on}\n", encoding="ascii")

    def clear(self):
        """Drops the events so far."""
        self.write("trace", "")

    def events(self):
        """Returns the events so far, in order."""
        text = (self.path / "trace").read_text(encoding="utf-8", errors="replace")
        return [Event(match["name"], match["text"]) for match in map(_LINE.match, text.splitlines())
                if match]
