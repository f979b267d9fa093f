# SPDX-License-Identifier: GPL-2.0
"""TAP for cases: a point is a named claim that holds or does not.

    import tap

    with tap.point("a write without the right is refused"):
        tap.check(status == "REM_ACCESS_ERR", f"status was {status}")

    tap.done()

A point passes if its block ends without an exception. `done` prints the plan; without it, the
runner counts a failure.
"""

import os
import re
import subprocess
import sys
import time
import traceback
from contextlib import contextmanager

LONG = 2
"""A point that takes longer, in seconds, reports its duration."""

PACE = int(os.environ.get("RIW_PACE", "1"))
"""Time factor of this kernel against the stock kernel."""

_count = 0


class CheckFailed(Exception):
    """A point failed; the text has the reason."""


def check(condition, why):
    """Fails the current point unless `condition` is true."""
    if not condition:
        raise CheckFailed(why)


def equal(got, wanted, what):
    """Fails the current point unless `got == wanted`."""
    check(got == wanted, f"{what}: {got!r}, wanted {wanted!r}")


def note(*lines):
    """Writes diagnostic lines, shown with the previous point."""
    for line in lines:
        for part in str(line).splitlines():
            print("#", part, flush=True)


def emit(holds, name, *why):
    """Writes one point."""
    global _count
    _count += 1
    print("ok" if holds else "not ok", _count, "-", name, flush=True)
    if not holds:
        note(*why)


@contextmanager
def point(name):
    """One point: passes if the block ends without an exception. Reports a long duration."""
    begin = time.monotonic()
    try:
        yield
    except CheckFailed as reason:
        emit(False, name, reason)
    except Exception as reason:  # the case continues with its other points
        emit(False, name, f"{type(reason).__name__}: {reason}")
        traceback.print_exc(file=sys.stderr)
    else:
        emit(True, name)
    took = time.monotonic() - begin
    if took > LONG:
        note(f"{took:.1f} s")


_POINT = re.compile(r"(not )?ok\b\s*\d*\s*-?\s*(.*)")
_PLAN = re.compile(r"1\.\.(\d+)")


def include(argv, timeout, prefix=""):
    """Runs a program that writes TAP, and forwards its points as the case's own.

    Adds one failed point if the program does not meet its plan, exits with a status other than 0,
    or takes more than `timeout` seconds (longer on a slower kernel).
    """
    timeout *= PACE
    name = prefix.strip(": ") or argv[0]
    try:
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
            timer = _kill_after(program, timeout)
            seen, planned = 0, None
            for line in program.stdout:
                line = line.rstrip("\n")
                if match := _POINT.match(line):
                    seen += 1
                    emit(not match[1], prefix + match[2])
                elif match := _PLAN.match(line):
                    planned = int(match[1])
                elif line.startswith("#"):
                    print(line, flush=True)
            program.wait()
            timer.cancel()
    except OSError as reason:
        emit(False, f"{name} runs", reason)
        return
    if program.returncode or planned != seen or not seen:
        emit(False, f"{name} runs to its end", f"status {program.returncode}, "
             f"{seen} points of a plan of {planned}")


def _kill_after(program, timeout):
    import threading
    timer = threading.Timer(timeout, program.kill)
    timer.daemon = True
    timer.start()
    return timer


def done():
    """Prints the plan: the case is complete."""
    print(f"1..{_count}", flush=True)
