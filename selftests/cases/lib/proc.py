# SPDX-License-Identifier: GPL-2.0
"""Processes with a deadline. Their output is kept, and they end with the case."""

import itertools
import re
import signal
import subprocess
import time
from pathlib import Path

from tap import CheckFailed

_serial = itertools.count()


class Failed(CheckFailed):
    """A command failed."""


def wait_until(condition, timeout, what, interval=0.05):
    """Returns `condition()` once it is true. Raises `Failed` after `timeout` seconds."""
    end = time.monotonic() + timeout
    while True:
        if value := condition():
            return value
        if time.monotonic() > end:
            raise Failed(f"not within {timeout} s: {what}")
        time.sleep(interval)


def tail(text, lines=12):
    """Returns the last lines of a text."""
    return "\n".join(text.splitlines()[-lines:])


class Process:
    """A running command. Leaving its `with` block kills it, by its pid. With stdin=subprocess.PIPE,
    its `stdin` is writable."""

    def __init__(self, argv, env=None, stdin=subprocess.DEVNULL):
        self.argv = [str(a) for a in argv]
        self.path = Path(f"process.{next(_serial)}.out")
        with open(self.path, "wb") as out:
            self._popen = subprocess.Popen(self.argv, bufsize=0, stdin=stdin,
                                           stdout=out, stderr=subprocess.STDOUT, env=env)
        self.pid = self._popen.pid
        self.stdin = self._popen.stdin

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def __str__(self):
        return " ".join(self.argv)

    @property
    def output(self):
        """Returns its output so far, stdout and stderr together."""
        return self.path.read_text(errors="replace")

    @property
    def running(self):
        return self._popen.poll() is None

    def wait(self, timeout):
        """Returns its exit status. Raises `Failed` if it still runs after `timeout` seconds."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"still running after {timeout} s: {self}\n{tail(self.output)}") from None

    def succeed(self, timeout):
        """Waits for it and returns its output. Raises `Failed` unless it exits with 0."""
        if status := self.wait(timeout):
            raise Failed(f"status {status}: {self}\n{tail(self.output)}")
        return self.output

    def says(self, pattern, timeout):
        """Waits until its output matches `pattern`. Returns the match."""
        def found():
            if match := re.search(pattern, self.output):
                return match
            if not self.running and not re.search(pattern, self.output):
                raise Failed(f"ended without saying {pattern!r}: {self}\n{tail(self.output)}")
            return None
        return wait_until(found, timeout, f"{self} says {pattern!r}")

    def kill(self, signum=signal.SIGKILL):
        """Kills it and waits until it is gone."""
        if self.running:
            self._popen.send_signal(signum)
            self.wait(60)


def run(*argv, timeout=20):
    """Runs a command, which must exit with 0 in time. Returns its stdout."""
    result = attempt(*argv, timeout=timeout)
    if result.returncode:
        raise Failed(f"status {result.returncode}: {' '.join(map(str, argv))}\n"
                     f"{tail(result.stdout + result.stderr)}")
    return result.stdout


def attempt(*argv, timeout=20):
    """Runs a command. Returns its `returncode`, `stdout` and `stderr`, also on failure."""
    argv = [str(a) for a in argv]
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"still running after {timeout} s: {' '.join(argv)}") from None
