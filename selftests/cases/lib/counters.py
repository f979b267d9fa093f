# SPDX-License-Identifier: GPL-2.0
"""The counters of a device, as users see them, and traffic that moves them by known numbers."""

import subprocess
from pathlib import Path

import lab
from ksft import KsftFailEx, ksft_eq, ksft_ge, ksft_true
from utils import becomes, bkg, rdma, wait_until

OPERATIONS = ("send", "write", "read")
KINDS = ("tx_", "rx_", "cq_", "stream_", "connections_", "startup_")
"""The first words of the counters' names."""
PROGRESS = 200
"""Messages that show that a process still sends."""


def read(node):
    """Returns the counters of a device from `rdma statistic`: a dict of numbers by name."""
    row, = rdma(f"statistic show link {node.dev}/1", json=True)
    return values(row)


def values(row):
    """Returns the counters of a row of `rdma statistic`."""
    return {name: value for name, value in row.items() if name.startswith(KINDS)}


def _numbers(node, folder):
    """Returns the numbers in the files of a folder of the port."""
    return {file.name: int(file.read_text(encoding="ascii"))
            for file in Path(f"/sys/class/infiniband/{node.dev}/ports/1/{folder}").iterdir()
            if file.name != "lifespan"}


def sysfs(node):
    """Returns the counters of a device from sysfs, like `read`. They may be 10 ms old."""
    return _numbers(node, "hw_counters")


def port(node):
    """Returns InfiniBand's counters of the port of a device."""
    return _numbers(node, "counters")


def keeps_sending(process, node):
    """Checks that a process that sends all the time by the device still does. Others must not send by
    the device meanwhile, or little: no more than their queues hold. siw does not count messages."""
    def sent():
        return int(path.read_text(encoding="ascii"))

    if lab.DRIVER == "riw":
        path = Path(f"/sys/class/infiniband/{node.dev}/ports/1/hw_counters/tx_sends")
        before = sent()
        wait_until(lambda: sent() > before + PROGRESS or not process.running, 5,
                   f"{PROGRESS} messages more: {process}\n{process.output}")
    ksft_true(process.running, process.output)


class Moves:
    """By how much the counters of a device have moved since this was created, or since `reset`."""

    def __init__(self, node):
        self._node = node
        self.reset()

    def reset(self):
        self._before = read(self._node)

    def now(self):
        """Returns all that have moved."""
        return {name: value - self._before[name] for name, value in read(self._node).items()
                if value != self._before[name]}

    def errors(self):
        """Returns the counters of errors that have moved."""
        return {name: value for name, value in self.now().items()
                if name.startswith("stream_errors_") or "_terminates_" in name}


class Carried:
    """The payload that devices have sent since this was created: shows that programs which could use
    TCP or shared memory have used the devices. siw does not count it."""

    KINDS = ("send", "write", "read_response")

    def __init__(self, *nodes):
        self._nodes = nodes
        self._before = {kind: self._sent(kind) for kind in self.KINDS}

    def _sent(self, kind):
        if lab.DRIVER != "riw":
            return 0
        return sum(read(node)[f"tx_{kind}_bytes"] for node in self._nodes)

    def expect(self, payload, *kinds):
        """Checks that the devices have sent at least `payload` bytes in messages of these kinds
        (default: all). Messages that have just been sent are counted a moment later."""
        def sent():
            return sum(self._sent(kind) - self._before[kind] for kind in kinds or self.KINDS)

        if lab.DRIVER != "riw":
            return
        try:
            wait_until(lambda: sent() >= payload, 5, "")
        except KsftFailEx:
            ksft_ge(sent(), payload, "bytes that the devices have sent")

    def expect_none(self, kind):
        """Checks that the devices have sent nothing in messages of this kind. To be called after
        `expect` for messages that have been sent later."""
        ksft_eq(self._sent(kind) - self._before[kind], 0, f"bytes sent by {kind}")


def total(sent):
    """Adds up what several ends have sent."""
    sent = list(sent)
    return {name: sum(one[name] for one in sent) for name in sent[0]} if sent else {}


def expected(own, other):
    """Returns by how much the counters of messages move at an end that has sent `own` to `other`."""
    moved = {}
    for direction, sender, reader in (("tx", own, other), ("rx", other, own)):
        for name in ("send", "write"):
            moved[f"{direction}_{name}s"] = sender[f"{name}s"]
            moved[f"{direction}_{name}_bytes"] = sender[f"{name}_bytes"]
        moved[f"{direction}_read_requests"] = sender["reads"]
        moved[f"{direction}_read_responses"] = reader["reads"]
        moved[f"{direction}_read_response_bytes"] = reader["read_bytes"]
        moved[f"{direction}_copied_bytes"] = (sender["send_bytes"] + sender["write_bytes"] +
                                              reader["read_bytes"])
    return moved


def messages(moved):
    """Returns the counters that `expected` has."""
    return {name: value for name, value in moved.items()
            if name.startswith(("tx_", "rx_")) and name[3:] != "fpdus"
            and not name.endswith("_runs")}


def expect(moves, own, other):
    """Checks that an end has counted its messages in both directions, and nothing else. Messages
    that have just arrived are counted a moment later."""
    wanted = {name: value for name, value in expected(own, other).items() if value}
    becomes(lambda: messages(moves()), wanted, 5, "counters, traffic")


def exchanged(here, there):
    """Returns what each end has received, with what the other has sent."""
    return [({name[3:]: value for name, value in receiver.items() if name.startswith("rx_")},
             {name[3:]: value for name, value in sender.items()
              if name.startswith("tx_") and not name.endswith("_runs")})
            for sender, receiver in ((here, there), (there, here))]


def conserved(here, there):
    """Checks that each end has received what the other has sent."""
    for received, sent in exchanged(here, there):
        ksft_eq(received, sent, "received, sent")


class Traffic:
    """The program `verbs_counts` between two nodes, in a `with` block. `pairs` has the numbers of the
    queue pairs at both ends."""

    def __init__(self, left, right, qps=1):
        self._process = bkg(["verbs_counts", "-q", qps, left.side, right.side],
                            stdin=subprocess.PIPE)
        self.pairs, self._answers = [], 0
        self.pid = self._process.pid

    def __enter__(self):
        self._process.__enter__()
        text = self._process.says(r"(?s)^(.*)ready\n", 30)[1]
        self.pairs = [tuple(map(int, line.split()[1:])) for line in text.splitlines()]
        return self

    def __exit__(self, *reason):
        self._process.__exit__(*reason)

    def start(self, command):
        """Starts a command of the program."""
        self._process.stdin.write(f"{command}\n".encode())

    def idle(self):
        """Whether the last command has ended."""
        return self._process.output.count("done\n") > self._answers

    def finish(self, timeout=60):
        """Waits for the end of the command. Returns what each end of each queue pair has sent: a
        dict by the number of its queue pair."""
        def answers():
            found = self._process.output.split("done\n")
            if len(found) - 1 <= self._answers and not self._process.running:
                raise KsftFailEx(f"ended: {self._process}\n{self._process.output}")
            return found[:-1] if len(found) - 1 > self._answers else None
        answer = wait_until(answers, timeout, f"an answer of {self._process}")[self._answers]
        self._answers += 1
        rows = [line.split()[1:] for line in answer.splitlines() if line.startswith("sent")]
        return {int(qpn): dict(zip(names(), map(int, counts))) for qpn, *counts in rows}

    def do(self, command):
        """Runs a command. Returns what `finish` does."""
        self.start(command)
        return self.finish()

    def ends(self, sent, places=None):
        """Adds up what the active and the passive ends have sent, of the queue pairs at `places`."""
        chosen = self.pairs if places is None else [self.pairs[place] for place in places]
        return tuple(total(sent[pair[side]] for pair in chosen if pair[side] in sent)
                     for side in (0, 1))

    def quit(self):
        """Ends the program, which disconnects and destroys all it has."""
        self._process.stdin.close()
        self._process.succeed(30)


def names():
    """Returns the names of what an end has sent, in the order of the program's answer."""
    return [f"{operation}{what}" for operation in OPERATIONS for what in ("s", "_bytes")]
