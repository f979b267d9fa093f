# SPDX-License-Identifier: GPL-2.0
"""A kernel user of verbs, cases/modules/kernel_user.c, and raw TCP peers that it connects to."""

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iwarp import mpa, rdmap
from iwarp.peer import Listener
from ksft import ksft_eq
from netns import NetNSEnter
from utils import cmd, wait_until

FILE = Path("/sys/kernel/debug/kernel_user")
MODULE = Path(os.environ["RIW_KO"]).parent / "test-modules" / "kernel_user.ko"

PAGE = os.sysconf("SC_PAGE_SIZE")

# enum ib_wr_opcode
WRITE, WRITE_WITH_IMM, SEND, SEND_WITH_IMM, READ, CMP_SWAP, FETCH_ADD = range(7)
LOCAL_INV, SEND_WITH_INV, READ_WITH_INV, MASKED_CMP_SWAP, MASKED_FETCH_ADD = 7, 9, 11, 12, 13
# enum ib_send_flags
FENCE, SOLICITED, INLINE = 1, 4, 8
# Of the module: OFFSET is that in the registered memory, not in all.
REGISTERED = 0x100
# enum ib_wc_opcode
WC_SEND, WC_WRITE, WC_READ, WC_CMP_SWAP, WC_FETCH_ADD = range(5)
WC_MASKED_CMP_SWAP, WC_MASKED_FETCH_ADD = 11, 12
WC_RECV, WC_RECV_WITH_IMM = 128, 129
# enum ib_wc_status
SUCCESS, LOCAL_PROTECTION, FLUSHED, REMOTE_INVALID, REMOTE_ACCESS = 0, 4, 5, 9, 10
# enum ib_wc_flags
WITH_IMM = 2
# enum ib_cq_notify_flags
SOLICITED_COMPLETIONS, NEXT_COMPLETION, REPORT_MISSED = 1, 2, 4
# enum ib_access_flags
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC = 1, 2, 4, 8


@dataclass
class Completion:
    """A completion. `imm` is 0 without WITH_IMM."""

    wr_id: int
    status: int
    opcode: int
    length: int
    flags: int
    imm: int


class KernelUser:
    """The kernel user. The commands of the module are its methods; a command that fails raises
    `OSError`."""

    def __init__(self, node):
        self.node = node
        self.completions = []
        self.posted = 0

    def command(self, *words):
        """Writes a command, and returns the words of its result."""
        # The module connects in the namespace of its caller.
        with open(FILE, "r+b", buffering=0) as file, NetNSEnter(self.node.netns):
            file.write(" ".join(map(str, words)).encode())
            return os.pread(file.fileno(), 8192, 0).decode().splitlines()

    @contextmanager
    def on_second(self):
        """Within the block, commands are for the second queue pair: see `second`."""
        self.command("swap")
        try:
            yield
        finally:
            self.command("swap")

    def reserves(self):
        """Returns the number of sockets of the kernel that may use the memory reserves."""
        return int(self.command("reserves")[0])

    def caps(self):
        return tuple(map(int, self.command("caps")[0].split()))

    def store(self, offset, value):
        self.command("store", offset, f"{value:x}")

    def load(self, offset):
        return int(self.command("load", offset)[0], 16)

    def register(self, access, iova, offset, length):
        """Registers part of the memory: (rkey, first address)."""
        answer, = self.command("register", f"{access:x}", f"{iova:x}", offset, length)
        self.posted += 1
        ksft_eq(self.completion(self.posted).status, SUCCESS, "status of the registration")
        return tuple(int(word, 16) for word in answer.split())

    def recv(self, offset=2048, length=256):
        """Posts a receive, and returns its number."""
        self.command("recv", offset, length)
        self.posted += 1
        return self.posted

    def numbers(self, *words, base=10):
        """Writes a command, and returns the numbers of the first line of its result."""
        return [int(word, base) for word in self.command(*words)[0].split()]

    def places(self):
        """Returns the ranges of addresses of the kernel that it uses: its memory, and what the ids point to if
        it drains."""
        return [range(*(int(word, 16) for word in line.split())) for line in self.command("places")]

    def invalidate(self, key):
        """Posts a LOCAL_INV, and returns its number."""
        self.posted += 1
        self.command("invalidate", f"{key:x}")
        return self.posted

    def register_big(self, pages, access):
        """Registers so many pages of their own: (rkey, first address)."""
        rkey, addr = self.numbers("big", pages, f"{access:x}", base=16)
        self.posted += 1
        ksft_eq(self.completion(self.posted).status, SUCCESS, "status of the registration")
        return rkey, addr

    def srq_recv(self, offset=2048, length=256):
        """Posts a receive to the shared receive queue, which is made if there is none. Returns its number, and
        that of the queue."""
        queue, = self.command("srecv", offset, length)
        self.posted += 1
        return self.posted, int(queue)

    def post(self, opcode, rkey=0, addr=0, offset=0, length=8, flags=0, imm=0, compare_add=0, swap=0,
             compare_add_mask=0, swap_mask=0):
        """Posts a send WR, and returns its number."""
        # The module counts what fails, too.
        self.posted += 1
        self.command("post", f"{opcode:x}", f"{rkey:x}", f"{addr:x}", offset, length, f"{flags:x}",
                     f"{imm:x}", f"{compare_add:x}", f"{swap:x}", f"{compare_add_mask:x}",
                     f"{swap_mask:x}")
        return self.posted

    def poll(self):
        """Collects completions. Returns all since the start of the connection."""
        self.completions += [
            Completion(*map(int, words[:5]), int(words[5], 16))
            for words in map(str.split, self.command("poll"))]
        return self.completions

    def arm(self, flags):
        """Arms the queue of completions. Returns whether it reports that it has missed some."""
        return self.numbers("arm", f"{flags:x}")[0]

    def events(self):
        """Returns how often the module has been notified of completions."""
        return self.numbers("events")[0]

    def last_receives(self):
        """Returns how often the queue pair has reported that it takes no more receives."""
        return self.numbers("events")[1]

    def completion(self, number):
        """Waits for the completion of a WR, and returns it."""
        def find():
            return [one for one in self.poll() if one.wr_id == number]
        return wait_until(find, 10, f"completion of WR {number}")[0]


@contextmanager
def _peer(user, raw, addr, command, *options):
    """Lets a command connect a queue pair to a raw peer, and returns the peer."""
    with Listener(addr, raw) as server:
        thread = threading.Thread(target=user.command, args=(command, addr, server.port, *options))
        thread.start()
        with server.accept() as peer:
            peer.send(mpa.reply(ird=4, ord_=4))
            ksft_eq(peer.segment().opcode, rdmap.WRITE, "opcode of the RTR frame")
            thread.join()
            yield peer


@contextmanager
def connected(node, raw, addr, *options):
    """Connects the kernel user on `node` to a raw peer in the namespace `raw`: (user, peer). Options: as
    in the module."""
    user = KernelUser(node)
    # ib_core can miss that the neighbour has become known, and then looks again much later.
    cmd(["ping", "-c", 1, "-W", 10, addr], host=node)
    with _peer(user, raw, addr, "connect", *options) as peer:
        try:
            yield user, peer
        finally:
            user.command("close")


def second(user, raw, addr):
    """Connects a second queue pair, of the same protection domain, to another raw peer, which the block
    has."""
    return _peer(user, raw, addr, "second")


@contextmanager
def unconnected(node, addr, *options):
    """Makes the queues of the kernel user, to connect to `addr`, and does not connect them."""
    user = KernelUser(node)
    cmd(["ping", "-c", 1, "-W", 10, addr], host=node)
    user.command("open", addr, 7000, *options)
    try:
        yield user
    finally:
        user.command("close")


@contextmanager
def module():
    """Loads the module."""
    cmd(["insmod", MODULE])
    try:
        yield
    finally:
        cmd("rmmod kernel_user")
