# SPDX-License-Identifier: GPL-2.0
"""Networks of the soak with TLS: the processes that make handshakes (tlshd), what strikes these, and what riw may
report then."""

import random
import re
import time
from contextlib import ExitStack
from pathlib import Path

import counters
import lab
import tls
from device_log import Log
from ksft import KsftFailEx
from netns import NetNSEnter
from utils import wait_until

STRIKES = ("stop", "agent", "certificate")
"""What strikes only a network with TLS: a process for handshakes stops for a while, or is killed and started again; a
host gets a new certificate."""
HARMLESS = (None, "CPU", "stop", "certificate")
"""Strikes that no connection notices."""

LONGEST_STOP = 3
"""Seconds that a process for handshakes stops or is missing, at most: less than the limits of a connect."""

ADDRS = r"[0-9.]+:\d+ - [0-9.]+:\d+"
NO_AGENT = "no tlshd runs in this network namespace"
PEER_ENDED = ("a certificate was not accepted in the TLS handshake, or the peer has ended it",
              "the TLS handshake took too long, or the peer has ended it",
              "the TLS handshake failed: tlshd may have logged the reason")
"""What riw reports of a handshake whose other side goes away."""
TIME_UP = "the time is up"
"""What it reports if a process is killed that connects to itself: nobody accepts, and iw_cm waits for the result before
it closes the listener."""
STREAM_ENDED = ("the peer closed inside a message, or with work outstanding",
                "a work request of this side names memory that it may not use")
"""What riw reports of a stream one of whose processes is killed. The memory of such a process may go first."""


class TlsHosts:
    """The certificates of both hosts of a network. They last for all networks, as the addresses do."""

    def __init__(self, ends):
        self.authority = tls.Authority()
        self._count = 0
        self.certificates = {end.addr: self.authority.issue(end.addr, subject="/CN=first") for end in ends}

    def renew(self, end):
        """Gives a host a new certificate for its key. Returns the name of its subject."""
        self._count += 1
        name = f"renewed-{self._count}"
        self.authority.renew(self.certificates[end.addr], end.addr, subject=f"/CN={name}")
        return f"CN={name}"


class TlsNetwork:
    """TLS at both ends of a network, during the block."""

    def __init__(self, ends, hosts, seed):
        self.ends, self._hosts, self._random = ends, hosts, random.Random(seed)
        self._stacks = {}
        # The last strike, and the host that it has struck.
        self._strike = self._struck = None
        # The subject of the new certificate, as `tls_peer` has it.
        self._name = ""

    def __enter__(self):
        for end in self.ends:
            tls.require(end.dev)
            self._start(end)
        self._sockets = [sockets(end) for end in self.ends]
        self._logs = [Log(end.dev) for end in self.ends]
        self._moves = [counters.Moves(end) for end in self.ends]
        return self

    def __exit__(self, *_):
        for end in self.ends:
            self._stop(end)

    def _start(self, end):
        stack = ExitStack()
        daemon = stack.enter_context(tls.tlshd(end, self._hosts.authority, self._hosts.certificates[end.addr]))
        self._stacks[end.dev] = stack, daemon

    def _stop(self, end):
        """Kills the process for handshakes."""
        if end.dev in self._stacks:
            self._stacks.pop(end.dev)[0].close()

    def strikes(self, what):
        """Notes what strikes the network, whoever strikes."""
        self._strike = what

    # --- strikes of its own, which return the processes that they must not affect

    def stop(self, processes, _start):
        """Stops a process for handshakes: what connects waits for it."""
        _, daemon = self._stacks[self._random.choice(self.ends).dev]
        with tls.stopped(daemon):
            time.sleep(self._random.random() * LONGEST_STOP)
        return processes

    def certificate(self, processes, _start):
        """Gives a host a new certificate, which each later handshake uses."""
        self._struck = self._random.choice(self.ends)
        self._name = self._hosts.renew(self._struck)
        return processes

    def agent(self, processes, start):
        """Kills a process for handshakes, and starts it again. Connections do not need it. What connects meanwhile
        fails, and ends before the new process, to which it would leave its requests."""
        self._struck = self._random.choice(self.ends)
        connected = [process for process in processes if is_connected(process)]
        self._stop(self._struck)
        time.sleep(self._random.random() * LONGEST_STOP)
        for process in processes:
            if process not in connected:
                process.kill()
        pids = {process.pid for process in processes if process not in connected}
        wait_until(lambda: not any(row.get("pid") in pids for kind in lab.KINDS for row in lab.resources(kind)), 60,
                   "the objects of killed processes are gone")
        self._start(self._struck)
        return [*connected, start()]

    # --- checks

    def check(self, programs):
        """Checks what riw has reported, and that it holds nothing. `programs` have run, and all have ended."""
        # They are gone with the device.
        if self._strike in HARMLESS and "kill_load" not in programs:
            self._no_errors()
        if self._name:
            self._is_used(self._name)
        for end, log in zip(self.ends, self._logs):
            self._expected(end, log, programs)
        for end, before in zip(self.ends, self._sockets):
            if self._strike != "namespace" or Path(f"/run/netns/{end.netns}").exists():
                wait_until(lambda end=end, before=before: sockets(end) == before, 60,
                           f"{end.side} has as few sockets as before its programs: {before}, not {sockets(end)}")

    def _no_errors(self):
        """No connection has failed."""
        for end, moves in zip(self.ends, self._moves):
            wrong = {name: value for name, value in moves.now().items()
                     if name.startswith(("startup_", "stream_errors_", "connections_"))
                     and name not in ("connections_opened", "connections_accepted")}
            if wrong:
                raise KsftFailEx(f"{end.side}, with TLS, struck by {self._strike}: {wrong}")

    def _is_used(self, name):
        """A new connection has the new certificate."""
        lab.nothing_held(*(end.dev for end in self.ends))
        with tls.connected(*self.ends) as found:
            other = self.ends[self._struck == self.ends[0]].dev
            names = {end.dev: of.get("tls_peer") for end, of in zip(self.ends, found)}
            if names[other] != name:
                raise KsftFailEx(f"{other} should see the certificate of {name}: {names}")

    def _expected(self, end, log, programs):
        """The log has no other lines about a device than those of what has struck."""
        startup, stream = (), ()
        # kill_load kills its own processes.
        if self._strike not in HARMLESS or "kill_load" in programs:
            startup, stream = PEER_ENDED, STREAM_ENDED
        if self._strike not in HARMLESS:
            startup = (*startup, TIME_UP)
        if self._strike == "agent" and end == self._struck:
            startup = (*startup, NO_AGENT)
        lines = [*(rf"connection {ADDRS} not established: {re.escape(rule)}" for rule in startup),
                 *(rf"queue pair \d+, {ADDRS}: {re.escape(rule)}" for rule in stream),
                 *([r"\d+ lines left out"] if startup else [])]
        expected = re.compile("|".join(lines) or "(?!)")
        wrong = [line for line in log.lines() if not expected.fullmatch(line)]
        if wrong:
            raise KsftFailEx(f"{end.side}, with TLS, struck by {self._strike}, reports:\n" + "\n".join(wrong))


def sockets(end):
    """Returns the number of sockets in the namespace of an end. Those of TLS count: they keep it."""
    with NetNSEnter(end.netns):
        return int(re.search(r"^sockets: used (\d+)$", Path("/proc/thread-self/net/sockstat").read_text("ascii"),
                             re.MULTILINE)[1])


def is_connected(process):
    """Whether all queue pairs of a process run, so that it makes no further connection."""
    if process.argv[0] != "verbs_integrity":
        return False
    wanted = 2 * int(process.argv[process.argv.index("-q") + 1])
    return sum(row.get("pid") == process.pid and row["state"] == "RTS" for row in lab.resources("qp")) == wanted
