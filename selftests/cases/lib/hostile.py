# SPDX-License-Identifier: GPL-2.0
"""A process that breaks the rules of the rings that it shares with riw, and what must stay whole."""

import os
import signal
from contextlib import contextmanager

from counters import keeps_sending
from ksft import KsftFailEx, ksft_eq, ksft_true, point
from rawverbs import ERROR, FLUSHED, RTS, SEND, SUCCESS, WC_RECV, Cm, Context, Memory, Pair
from utils import wait_until

BYTES = 1 << 16
"""Of a region."""
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ = 1, 2, 4
"""Access flags."""
PROMPT = 10
"""s for what must happen."""

BAD_SGES = ("no region's STag", "an STag with another last octet", "STag 0", "an STag of another PD",
            "an octet behind the region", "an octet before the region", "an address that wraps around")
"""Memory that no queue pair may use: see `Victim.bad_sge`."""


class Victim(Pair):
    """Two connected queue pairs whose rings a process writes to as it likes, and memory that it must not
    reach by them: `readable`, which is only to be read, and `foreign`, of another PD."""

    def __init__(self, ctx, cm, addr, srq=None, **kwargs):
        super().__init__(ctx, cm, addr, BYTES, srq=srq, **kwargs)
        self.cm, self.addr, self.srq = cm, addr, srq
        self.readable, self.foreign = Memory(BYTES), Memory(BYTES)
        self.readable_key = ctx.reg_mr(self.pd, self.readable, REMOTE_READ)
        self.foreign_key = ctx.reg_mr(ctx.alloc_pd(), self.foreign)
        for number, memory in enumerate(self.everything()):
            memory.bytes[:] = bytes([number + 1]) * BYTES

    def again(self):
        """Returns another one, with the same SRQ."""
        return Victim(self.ctx, self.cm, self.addr, self.srq)

    def everything(self):
        return (*self.memory, self.readable, self.foreign)

    def unchanged(self, *but):
        """Checks that no memory has changed, except that of these sides."""
        for number, memory in enumerate(self.everything()):
            if number not in but:
                ksft_true(memory.bytes[:] == bytes([number + 1]) * BYTES, f"memory {number} is as it was")

    def bad_sge(self, name, length=100, side=0):
        """Returns an SGE, one of `BAD_SGES`, whose memory would be that of a side."""
        key, addr = self.keys[side], self.memory[side].addr
        return dict(zip(BAD_SGES, (
            (addr, length, key ^ 0x5500), (addr, length, key ^ 1), (addr, length, 0),
            (self.foreign.addr, length, self.foreign_key), (addr + BYTES - length + 1, length, key),
            (addr - 1, length, key), ((1 << 64) - length // 2, length, key))))[name]

    def in_error(self):
        """Checks that both queue pairs are in ERROR, and that a WR posted now is flushed."""
        for name, qp in (("active", self.active), ("passive", self.passive)):
            wait_until(lambda qp=qp: qp.state() == ERROR, PROMPT, f"the {name} queue pair is in ERROR")
        self.active.post_send(99, SEND)
        ksft_eq(self.until(0, 99)[2], FLUSHED, "status of a later WR")

    def until(self, side, wr_id):
        """Polls a side's completions up to that of a WR. Returns it."""
        while (found := self.cqs[side].wait())[0] != wr_id:
            pass
        return found

    def working(self):
        """Checks that a message of 16 octets gets through."""
        self.fill(0, 0, os.urandom(16))
        (self.srq or self.passive).post_recv(70, self.sge(1, 0, 16))
        self.active.post_send(71, SEND, self.sge(0, 0, 16))
        ksft_eq(self.until(0, 71)[2], SUCCESS, "status of a later SEND")
        ksft_eq(self.until(1, 70)[1:5], (WC_RECV, SUCCESS, 0, 16), "its receive")
        ksft_eq(self.memory[1].read(0, 16), self.memory[0].read(0, 16), "its data")
        ksft_eq([qp.state() for qp in self.qps], [RTS, RTS], "states")

    def idle(self):
        """Checks that nothing has completed, and that the queue pairs are not in error."""
        ksft_eq([cq.poll() for cq in self.cqs], [None, None], "completions")
        ksft_eq([qp.state() for qp in self.qps], [RTS, RTS], "states")


class Stage:
    """A device, and on it queue pairs of others, which must not notice what happens."""

    def __init__(self, node, bystander):
        self.node, self.bystander = node, bystander
        self.ctx, self.cm = Context(node.dev), Cm()
        self.others = Victim(self.ctx, self.cm, node.addr)

    def close(self):
        self.cm.__exit__()
        self.ctx.__exit__()

    def works(self):
        """Checks that others have not noticed: in this process, and in another one."""
        self.others.working()
        ksft_eq(self.ctx.event(), None, "an asynchronous event")
        keeps_sending(self.bystander, self.node)

    @contextmanager
    def point(self, name, srq=None, **kwargs):
        """A point with a `Victim`, made with `kwargs`. With `srq`, the SGEs of its
        WRs, the passive side has an SRQ."""
        with point(name):
            with Context(self.node.dev) as ctx, Cm() as cm:
                if srq:
                    kwargs["srq"] = ctx.create_srq(ctx.alloc_pd(), 16, srq)
                yield Victim(ctx, cm, self.node.addr, **kwargs)
                self.works()


@contextmanager
def meddler(change):
    """Calls `change` again and again, in another process that shares the rings."""
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        try:
            while os.getppid() == parent:
                for _ in range(100):
                    change()
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if not os.WIFSIGNALED(status):
            raise KsftFailEx("the process that writes to the rings has failed")
