# SPDX-License-Identifier: GPL-2.0
"""Checks and results. The names of the kernel's library (tools/testing/selftests/net/lib/py) mean the
same here.

    from ksft import ksft_eq, ksft_exit, point

    with point("a write without the right is refused"):
        ksft_eq(status, "REM_ACCESS_ERR", "status")

    ksft_exit()

A `point` is a named claim, and one line of TAP. A failed check fails the point, which continues: its
other checks may tell more. `KsftFailEx` ends it. `ksft_exit` writes the plan; without it, the case has
failed.
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


class KsftFailEx(Exception):
    """Ends the point, which has failed. The text has the reason."""


class _Scope:
    """The case, or a point of it: whether a check has failed, and the pending `defer` objects."""

    def __init__(self):
        self.failed = False
        self.deferred = []

    def flush(self):
        """Calls what is deferred, the latest first. An exception of a call fails the scope."""
        while self.deferred:
            try:
                self.deferred[-1].exec()
            except Exception as reason:  # the other calls clean up all the same
                self.failed = True
                _report(reason)


_scopes = [_Scope()]
"""The case, then the points that are open: a point may have points within."""

_made = _failed = 0
"""The points that have been written, and those of them that have failed."""


def ksft_pr(*objs):
    """Writes diagnostic lines. They belong to the next point in the output, the innermost open one."""
    for line in " ".join(map(str, objs)).splitlines():
        print("#", line, flush=True)


def _report(reason):
    """Writes an exception, with a traceback unless it is a `KsftFailEx`."""
    if isinstance(reason, KsftFailEx):
        ksft_pr(reason)
    else:
        ksft_pr("".join(traceback.format_exception(reason)))


def _fail(what, comment=""):
    """Fails the innermost open point. Outside of a point, ends the case."""
    caller = sys._getframe(2)  # of the check
    place = f"{os.path.basename(caller.f_code.co_filename)}:{caller.f_lineno}"
    text = f"{place}: {what}: {comment}" if comment else f"{place}: {what}"
    if len(_scopes) == 1:
        raise KsftFailEx(text)
    _scopes[-1].failed = True
    ksft_pr(text)


def _text(value):
    """Returns a value as it is shown: a text of several lines as it is."""
    return value if isinstance(value, str) and "\n" in value else repr(value)


def ksft_eq(a, b, comment=""):
    """Fails the point unless a == b."""
    if a != b:
        _fail(f"{_text(a)} != {_text(b)}", comment)


def ksft_ne(a, b, comment=""):
    """Fails the point unless a != b."""
    if a == b:
        _fail(f"{_text(a)} == {_text(b)}", comment)


def ksft_true(a, comment=""):
    """Fails the point unless `a` is true."""
    if not a:
        _fail(f"{_text(a)} is not true", comment)


def ksft_in(a, b, comment=""):
    """Fails the point unless `a` is in `b`."""
    if a not in b:
        _fail(f"{_text(a)} not in {_text(b)}", comment)


def ksft_not_in(a, b, comment=""):
    """Fails the point if `a` is in `b`."""
    if a in b:
        _fail(f"{_text(a)} in {_text(b)}", comment)


def ksft_ge(a, b, comment=""):
    """Fails the point unless a >= b."""
    if a < b:
        _fail(f"{a} < {b}", comment)


def ksft_gt(a, b, comment=""):
    """Fails the point unless a > b."""
    if a <= b:
        _fail(f"{a} <= {b}", comment)


def ksft_lt(a, b, comment=""):
    """Fails the point unless a < b."""
    if a >= b:
        _fail(f"{a} >= {b}", comment)


class ksft_raises:
    """Fails the point unless the block raises an exception of exactly this type, which ends there."""

    def __init__(self, expected_type):
        self.expected_type = expected_type
        self.exception = None

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.exception = exc_val
        if exc_type is None:
            _fail(f"{self.expected_type.__name__} is not raised")
        return exc_type is self.expected_type


class defer:
    """Calls a function at the end of the innermost open point, or of the case if none is open; the
    latest `defer` first. As a context manager, at the end of the block."""

    def __init__(self, func, *args, **kwargs):
        self.func, self.args, self.kwargs = func, args, kwargs
        self._queue = _scopes[-1].deferred
        self._queue.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.exec()

    def cancel(self):
        """Forgets the call."""
        self._queue.remove(self)

    def exec(self):
        """Makes the call now, and not at the end."""
        self.cancel()
        self.func(*self.args, **self.kwargs)


def ktap_result(ok, name):
    """Writes one point."""
    global _made, _failed
    _made += 1
    _failed += not ok
    print("ok" if ok else "not ok", _made, "-", name, flush=True)


@contextmanager
def point(name):
    """One point: passes if no check in the block fails, and the block ends without an exception.
    Reports a long duration."""
    begin = time.monotonic()
    scope = _Scope()
    _scopes.append(scope)
    try:
        yield
    except Exception as reason:  # the case continues with its other points
        scope.failed = True
        _report(reason)
    finally:
        scope.flush()
        _scopes.remove(scope)
    took = time.monotonic() - begin
    if took > LONG:
        ksft_pr(f"{took:.1f} s")
    ktap_result(not scope.failed, name)


def include_points(argv, timeout, prefix=""):
    """Runs a program that writes TAP, and forwards its points as the case's own.

    Adds one failed point if the output as a whole is wrong (see `ktap.Parser.finish`), or if the
    program takes more than `timeout` seconds (longer on a slower kernel).
    """
    argv = [str(word) for word in argv]
    name = prefix.strip(": ") or argv[0]
    parser = ktap.Parser()
    try:
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
            timer = _kill_after(program, timeout * PACE)
            for line in program.stdout:
                if made := parser.feed(line):
                    ksft_pr(made.details)
                    ktap_result(made.passed, prefix + made.title)
            program.wait()
            timer.cancel()
    except OSError as reason:
        ksft_pr(reason)
        ktap_result(False, f"{name} runs")
        return
    if wrong := parser.finish(program.returncode):
        ksft_pr("\n".join(wrong))
        ktap_result(False, f"{name} runs to its end")


def _kill_after(program, timeout):
    timer = threading.Timer(timeout, program.kill)
    timer.daemon = True
    timer.start()
    return timer


def ksft_run(cases, args=()):
    """Runs each function as a point, named after the function."""
    for case in cases:
        with point(case.__name__.replace("_", " ")):
            case(*args)


def ksft_exit():
    """Ends the program. Calls what is deferred, and writes the plan. The exit status is 1 if a point
    has failed."""
    scope, = _scopes
    scope.flush()
    if scope.failed:
        ktap_result(False, "what is deferred to the end")
    print(f"1..{_made}", flush=True)
    sys.exit(1 if _failed else 0)
