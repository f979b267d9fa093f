# SPDX-License-Identifier: GPL-2.0
"""Commands and processes with a deadline. The names of the kernel's library
(tools/testing/selftests/net/lib/py) mean the same here.

A `timeout` is in seconds of a fast machine: each function here multiplies it by PACE. `within` does not.

A command is a list, or a string that is split at its spaces; no shell is involved. `ns` is a network
namespace, `host` a `lab.Node`: where the command runs.
"""

import itertools
import json as _json
import re
import shlex
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from ksft import PACE, KsftFailEx, ksft_eq, ksft_lt

RETRIES = 5
"""Attempts to list RDMA objects."""

LIMIT = 60
"""Maximum seconds of a command that should end at once: an emulated machine on a busy host may stop for as long
as 20 s."""

NOBODY_UID = 65534
NOBODY = ("setpriv", f"--reuid={NOBODY_UID}", "--regid=65534", "--clear-groups", "--inh-caps=-all",
          "--bounding-set=-all")
"""The first words of a command that runs as the user nobody, and can get no capability."""

_serial = itertools.count()


class CmdExitFailure(KsftFailEx):
    """A command failed, or took too long."""

    def __init__(self, msg, cmd_obj):
        super().__init__(msg)
        self.cmd = cmd_obj


def tail(text, lines=12):
    """Returns the last lines of a text."""
    return "\n".join(text.splitlines()[-lines:])


def _split(comm):
    return shlex.split(comm) if isinstance(comm, str) else [str(word) for word in comm]


def _argv(comm, ns, host):
    """Returns the command line."""
    argv = _split(comm)
    if ns:
        argv = ["ip", "netns", "exec", str(ns), *argv]
    return host.argv(*argv) if host else argv


class cmd:
    """Runs a command and waits for its end. Has its `stdout`, `stderr` and exit status `ret`.

    Raises `CmdExitFailure` if the command takes more than `timeout` seconds, and if its exit status
    is not 0, unless `fail` is False.
    """

    def __init__(self, comm, fail=True, ns=None, host=None, timeout=LIMIT):
        self.argv = _argv(comm, ns, host)
        try:
            done = subprocess.run(self.argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  errors="replace", timeout=timeout * PACE, check=False)
        except subprocess.TimeoutExpired:
            raise CmdExitFailure(f"still running after {timeout * PACE} s: {self}", self) from None
        self.stdout, self.stderr, self.ret = done.stdout, done.stderr, done.returncode
        if fail and self.ret:
            raise CmdExitFailure(f"status {self.ret}: {self}\n{tail(self.stdout + self.stderr)}", self)

    def __str__(self):
        return " ".join(self.argv)


class bkg:
    """Runs a command in the background. Leaving its `with` block kills it, by its pid; its `output` so far
    remains. With stdin=subprocess.PIPE, its `stdin` is writable."""

    def __init__(self, comm, ns=None, host=None, stdin=subprocess.DEVNULL):
        self.argv = _argv(comm, ns, host)
        self._kept = None
        self._path = Path(f"process.{next(_serial)}.out")
        with open(self._path, "wb") as out:
            self._popen = subprocess.Popen(self.argv, bufsize=0, stdin=stdin,
                                           stdout=out, stderr=subprocess.STDOUT)
        self.pid = self._popen.pid
        self.stdin = self._popen.stdin

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        # A file on tmpfs takes kernel memory: in hours of soak, as much as a leak.
        self._kept = self.output
        self._path.unlink(missing_ok=True)

    def __str__(self):
        return " ".join(self.argv)

    @property
    def output(self):
        """Returns its output so far, stdout and stderr together."""
        return self._path.read_text(errors="replace") if self._kept is None else self._kept

    @property
    def running(self):
        return self._popen.poll() is None

    def wait(self, timeout):
        """Returns its exit status. Raises `CmdExitFailure` if it still runs after `timeout`
        seconds."""
        try:
            return self._popen.wait(timeout * PACE)
        except subprocess.TimeoutExpired:
            raise CmdExitFailure(f"still running after {timeout * PACE} s: {self}\n{tail(self.output)}",
                                 self) from None

    def succeed(self, timeout):
        """Waits for it and returns its output. Raises `CmdExitFailure` unless it exits with 0."""
        if status := self.wait(timeout):
            raise CmdExitFailure(f"status {status}: {self}\n{tail(self.output)}", self)
        return self.output

    def says(self, pattern, timeout):
        """Waits until its output matches `pattern`. Returns the match."""
        def found():
            if match := re.search(pattern, self.output):
                return match
            if not self.running and not re.search(pattern, self.output):
                raise CmdExitFailure(f"ended without saying {pattern!r}: {self}\n{tail(self.output)}",
                                     self)
            return None
        return wait_until(found, timeout, f"{self} says {pattern!r}")

    def kill(self, signum=signal.SIGKILL):
        """Kills it and waits until it is gone."""
        if self.running:
            self._popen.send_signal(signum)
            self.wait(60)


def wait_until(condition, timeout, what, interval=0.05):
    """Returns `condition()` once it is true. Raises `KsftFailEx` after `timeout` seconds."""
    end = time.monotonic() + timeout * PACE
    while True:
        if value := condition():
            return value
        if time.monotonic() > end:
            raise KsftFailEx(f"not within {timeout * PACE} s: {what}")
        time.sleep(interval)


def becomes(read, wanted, timeout, what):
    """Checks that `read()` is `wanted` within `timeout` seconds. A failure shows what it is instead."""
    try:
        wait_until(lambda: read() == wanted, timeout, what)
    except KsftFailEx:
        ksft_eq(read(), wanted, what)


@contextmanager
def within(seconds):
    """Checks that the block takes less than this. For what must be faster than a time-out of riw or of the kernel,
    which does not depend on the pace of the machine."""
    begin = time.monotonic()
    yield
    ksft_lt(time.monotonic() - begin, seconds, "seconds")


def delay_of(attempt, limit):
    """Returns the delay in seconds that `attempt()` causes and measures; of two attempts the shorter one, if
    the first one is not below the limit. A busy machine stalls at random, but a cause delays both."""
    delay = attempt()
    return delay if delay < limit else min(delay, attempt())


def tool(name, args, json=None, ns=None, host=None, fail=True, timeout=LIMIT):
    """Runs a tool. Returns a `cmd`, or with `json` what the tool lists."""
    done = cmd([name, *(["-j"] if json else []), *_split(args)], fail, ns, host, timeout)
    return _json.loads(done.stdout or "[]") if json else done


def ip(args, json=None, ns=None, host=None, fail=True, timeout=LIMIT):
    """Runs `ip`, for a network namespace if given."""
    return tool("ip", [*(["-n", ns] if ns else []), *_split(args)], json, host=host, fail=fail,
                timeout=timeout)


def rdma(args, json=None, ns=None, host=None, fail=True, timeout=LIMIT):
    """Runs `rdma`. Its lists come from one device after the other, and it stops at a device that is
    removed meanwhile: so they are retried."""
    for _ in range(RETRIES - 1 if json else 0):
        try:
            return tool("rdma", args, json, ns, host, fail, timeout)
        except CmdExitFailure:
            pass
    return tool("rdma", args, json, ns, host, fail, timeout)
