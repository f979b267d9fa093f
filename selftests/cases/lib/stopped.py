# SPDX-License-Identifier: GPL-2.0
"""A target that is stopped, so that a message waits for a receive."""

import os
import signal

import target
from counters import Moves
from utils import wait_until

RECEIVES = 16
"""Of the target, which posts no more while it is stopped."""
ECHO = b"E"
"""The target sends it back."""
NO_ANSWER = b"-"
"""The target takes it, and does nothing."""


class Stopped:
    """A target that is stopped, and a peer for whose last message it has no receive."""

    def __init__(self, node, raw, message=ECHO, kind=target.Target):
        self.aim = kind(node, raw)
        self.peer, self.offer = self.aim.established()
        self.moves = Moves(node)
        os.kill(self.aim.process.pid, signal.SIGSTOP)
        for _ in range(RECEIVES + 1):
            self.peer.say(message)
        wait_until(lambda: self.moves.now().get("rx_waits"), 10, "the stream waits")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.peer.close()
        self.resume()
        self.aim.process.kill()

    def resume(self):
        os.kill(self.aim.process.pid, signal.SIGCONT)
