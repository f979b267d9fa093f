# SPDX-License-Identifier: GPL-2.0
"""Trace events, in a tracefs instance of their own: other tracers do not interfere.

    with Trace() as trace:
        trace.enable("riw/qp_state")
        ...
        for event in trace.events():
            print(event.name, event.text)
"""

import re
from dataclasses import dataclass
from pathlib import Path

TRACEFS = Path("/sys/kernel/tracing")

_LINE = re.compile(r"^\s*(?P<task>.*)-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\] \S+\s+(?P<time>[\d.]+): "
                   r"(?P<name>\w+): (?P<text>.*)$")


@dataclass
class Event:
    """An event: its name, its fields as the kernel prints them, its CPU and task."""

    name: str
    text: str
    cpu: int = 0
    pid: int = 0

    def __str__(self):
        return f"{self.name} {self.text}"

    def field(self, name):
        """Returns the value of the field that is printed as `NAME=VALUE`, or None."""
        match = re.search(rf"\b{name}=(\S+)", self.text)
        return match and match[1]


def formats(system):
    """Returns the formats of the events of a system: a dict by name."""
    return {path.parent.name: path.read_text(encoding="ascii")
            for path in (TRACEFS / "events" / system).glob("*/format")}


class Trace:
    """A buffer of trace events."""

    def __init__(self, kib_per_cpu=4096):
        self.path = TRACEFS / "instances" / "riw-test"
        self.path.mkdir()
        self.write("buffer_size_kb", kib_per_cpu)
        # Other clocks do not order the events of several CPUs, or not if they tick slowly.
        self.write("trace_clock", "counter")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.path.rmdir()

    def write(self, name, value):
        """Writes a file of the instance."""
        (self.path / name).write_text(f"{value}\n", encoding="ascii")

    def enable(self, event, on=1):
        """Enables or disables an event, `SYSTEM/NAME`, or all of a system."""
        self.write(f"events/{event}/enable", on)

    def clear(self):
        """Drops the events so far."""
        self.write("trace", "")

    def events(self):
        """Returns the events so far, in order."""
        text = (self.path / "trace").read_text(encoding="utf-8", errors="replace")
        return [Event(match["name"], match["text"], int(match["cpu"]), int(match["pid"]))
                for match in map(_LINE.match, text.splitlines()) if match]

    def count(self):
        """Returns the number of events so far, with those that the buffer has no room for any more."""
        return sum(map(int, re.findall(r"^(?:entries|overrun): (\d+)$", self._stats(), re.M)))

    def lost(self):
        """Returns the number of events that the buffer had no room for."""
        return sum(map(int, re.findall(r"^(?:overrun|commit overrun|dropped events): (\d+)$",
                                       self._stats(), re.M)))

    def _stats(self):
        return "".join(path.read_text(encoding="ascii") for path in self.path.glob("per_cpu/cpu*/stats"))
