# SPDX-License-Identifier: GPL-2.0
"""Many idle connections: opened process by process, used at random, and closed."""
import contextlib
import subprocess
from dataclasses import dataclass

from ksft import KsftFailEx
from memory import Memory
from utils import bkg, tail

# Messages that are sent after each step, by all processes together.
MESSAGES = 1000
# Time limits in seconds: for each connection or message, and for everything else.
EACH, LIMIT = 0.5, 60


@dataclass
class Step:
    """What connections cost, when a process has opened its own. Times are means in seconds."""

    connections: int
    """Connections of all processes so far, without the first of each, which allocates what all share."""
    opening: float
    """To open a connection of the process."""
    connecting: float
    """The part of it in which both ends only connect."""
    message: float
    """A message on a connection chosen at random, of all processes so far."""
    memory: int
    """Bytes by which the kernel's memory has grown in this step."""
    closing: float = 0.0
    """To close a connection of the process, in the end."""


class Process:
    """A process with connections."""

    def __init__(self, stack, client, server, most):
        self.count = self._commands = 0
        self._process = stack.enter_context(
            bkg(f"scale_connections {most} {client.side} {server.side}", stdin=subprocess.PIPE))
        self._process.says("(?m)^ready$", LIMIT)

    def _run(self, command, limit):
        """Gives a command. Returns the two times that the process prints, in seconds."""
        self._commands += 1
        try:
            self._process.stdin.write(f"{command}\n".encode())
        except BrokenPipeError:
            raise KsftFailEx(f"ended: {self._process}\n{tail(self._process.output)}") from None
        done = self._process.says(rf"(?m)^{self._commands} (\d+) (\d+)$", limit)
        return int(done[1]) / 1e6, int(done[2]) / 1e6

    def open(self, count):
        """Opens connections. Returns the seconds, and those in which both ends only connected."""
        self.count += count
        return self._run(f"open {count}", LIMIT + count * EACH)

    def use(self, count):
        """Sends messages, each on a connection chosen at random. Returns the seconds."""
        return self._run(f"use {count}", LIMIT + count * EACH)[0]

    def close(self):
        """Closes the connections. Returns the seconds."""
        return self._run("close", LIMIT + self.count * EACH)[0]

    def end(self):
        """Waits for the end of the process."""
        self._process.stdin.close()
        self._process.succeed(LIMIT)


def open_and_close(client, server, processes, each):
    """Opens `each` connections in each of some processes, at least 2. Then closes all. Returns a list of
    `Step`, one for each process."""
    steps = []
    with contextlib.ExitStack() as stack:
        running = [Process(stack, client, server, each) for _ in range(processes)]
        for process in running:
            process.open(1)
        memory = Memory.settled_kernel(LIMIT)
        for number, process in enumerate(running, 1):
            opening, connecting = (time / (each - 1) for time in process.open(each - 1))
            share = -(-MESSAGES // number)
            message = sum(one.use(share) for one in running[:number]) / share / number
            before, memory = memory, Memory.settled_kernel(LIMIT)
            steps.append(Step(number * (each - 1), opening, connecting, message, memory - before))
        for process, step in zip(running, steps):
            step.closing = process.close() / each
        for process in running:
            process.end()
    return steps
