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
import subprocess
import sys
import threading
import time
import traceback
from contextlib import contextmanager

import ktap

LONG = 2
"""A point that takes longer, in seconds, reports its duration."""

PACE = int(os.environ.get("RIW_PACE", "1"))
"""Time factor of this kernel against the stock kernel."""

_count = 0
_failed = False


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
    """Writes diagnostic lines, which belong to the next point."""
    for line in lines:
        for part in str(line).splitlines():
            print("#", part, flush=True)


def emit(holds, name, *why):
    """Writes one point, behind the reasons for its failure."""
    global _count, _failed
    if not holds:
        _failed = True
        note(*why)
    _count += 1
    print("ok" if holds else "not ok", _count, "-", name, flush=True)


@contextmanager
def point(name):
    """One point: passes if the block ends without an exception. Reports a long duration."""
    begin = time.monotonic()
    reasons = []
    try:
        yield
    except CheckFailed as reason:
        reasons = [reason]
    except Exception as reason:  # the case continues with its other points
        reasons = [f"{type(reason).__name__}: {reason}"]
        traceback.print_exc(file=sys.stderr)
    took = time.monotonic() - begin
    if took > LONG:
        note(f"{took:.1f} s")
    emit(not reasons, name, *reasons)


def include(argv, timeout, prefix=""):
    """Runs a program that writes TAP, and forwards its points as the case's own.

    Adds one failed point if the output as a whole is wrong (see `ktap.Parser.finish`), or if the
    program takes more than `timeout` seconds (longer on a slower kernel).
    """
    timeout *= PACE
    name = prefix.strip(": ") or argv[0]
    parser = ktap.Parser()
    try:
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
            timer = _kill_after(program, timeout)
            for line in program.stdout:
                if done := parser.feed(line):
                    note(done.details)
                    emit(done.passed, prefix + done.title)
            program.wait()
            timer.cancel()
    except OSError as reason:
        emit(False, f"{name} runs", reason)
        return
    if wrong := parser.finish(program.returncode):
        emit(False, f"{name} runs to its end", *wrong)


def _kill_after(program, timeout):
    timer = threading.Timer(timeout, program.kill)
    timer.daemon = True
    timer.start()
    return timer


def done():
    """Prints the plan and ends the program: the case is complete. The exit status is 1 if a point
    has failed."""
    print(f"1..{_count}", flush=True)
    sys.exit(1 if _failed else 0)
