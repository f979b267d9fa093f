# SPDX-License-Identifier: GPL-2.0
"""TAP for cases: a point is a named claim that holds or does not.

    import tap

    with tap.point("a write without the right is refused"):
        tap.check(status == "REM_ACCESS_ERR", f"status was {status}")

    tap.done()

A point holds if its block ends without an exception. `done` prints the plan; a
case that dies before that has no plan, which the runner counts as a failure.
"""

import os
import re
import subprocess
import sys
import time
import traceback
from contextlib import contextmanager

LONG = 2
"""After how many seconds a point says how long it took."""

PACE = int(os.environ.get("RIW_PACE", "1"))
"""How many times as long as on the stock kernel things may take."""

_count = 0


class CheckFailed(Exception):
    """Raised where a point fails; its text says why."""


def check(condition, why):
    """Fails the point in which it is called unless `condition` holds."""
    if not condition:
        raise CheckFailed(why)


def equal(got, wanted, what):
    """Fails the point in which it is called unless `got == wanted`."""
    check(got == wanted, f"{what}: {got!r}, wanted {wanted!r}")


def note(*lines):
    """Writes diagnostic lines, shown with the point before them."""
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
    """One point: holds if the block ends without an exception. One that took long says so."""
    begin = time.monotonic()
    try:
        yield
    except CheckFailed as reason:
        emit(False, name, reason)
    except Exception as reason:  # a case goes on with its other points
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
    """Runs a program that writes TAP and passes its points on as the case's own.

    A program that ends without having met its own plan, with a status other than
    0, or not within `timeout` seconds (more on a slower kernel) is one failed point more.
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
    """Prints the plan: the case has come to its end."""
    print(f"1..{_count}", flush=True)
