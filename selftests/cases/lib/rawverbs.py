# SPDX-License-Identifier: GPL-2.0
"""uverbs and rdma_ucm without a library, for riw's own ABI (rust/abi): what a library does, and what an
attacker can do instead.

    with Context("riw0") as ctx:
        cq = ctx.create_cq(64)

A failed command raises OSError.
"""

import ctypes
import errno
import mmap
import os
import select
import socket
import struct
from pathlib import Path

import lab
from ksft import PACE, KsftFailEx, ksft_eq
from netns import NetNSEnter
from nldev_fuzz import CLIENT, HEADER, NETLINK_RDMA, REQUEST
from utils import wait_until

DRIVER_ID = 0x00726977
"""riw's own ABI."""
DRIVER_SIW = 18

GET_CONTEXT, ALLOC_PD, REG_MR, ALLOC_MW, CREATE_CQ = 0, 3, 9, 14, 18
CREATE_QP, QUERY_QP, MODIFY_QP, DESTROY_QP = 24, 25, 26, 27
POST_SEND, POST_RECV, CREATE_SRQ, POST_SRQ_RECV = 28, 29, 32, 36
CREATE_COMP_CHANNEL, DESTROY_CQ = 17, 20
"""Commands (enum ib_uverbs_write_cmds)."""

PRODUCER, CONSUMER, WAKE_AT, ARM, ENTRIES = 0, 64, 128, 128, 256
"""Offsets in a ring."""

WRITE, WRITE_WITH_IMM, SEND, READ, COMPARE_SWAP, FETCH_ADD, SEND_WITH_INVALIDATE = 0, 1, 2, 4, 5, 6, 9
LOCAL_INVALIDATE, BIND_WINDOW = 7, 8
MASKED_COMPARE_SWAP, MASKED_FETCH_ADD = 12, 13
FENCE, SIGNALED, SOLICITED, INLINE = 1, 2, 4, 8
"""Opcodes and flags of WRs."""

WC_SEND, WC_WRITE, WC_READ, WC_COMPARE_SWAP, WC_FETCH_ADD, WC_RECV, WC_RECV_IMM = 0, 1, 2, 3, 4, 128, 129
"""Opcodes of completions."""
SUCCESS, LOCAL_LENGTH, LOCAL_OPERATION, LOCAL_PROTECTION, FLUSHED, BIND_ERROR = 0, 1, 2, 4, 5, 6
REMOTE_INVALID, REMOTE_ACCESS = 9, 10
"""Statuses of completions."""
PHASE, WITH_IMM, WITH_INVALIDATE = 1, 2, 4
"""Flags of completions."""

RTS, ERROR = 3, 6
"""States of queue pairs."""
CQ_OVERFLOW = 0
"""An asynchronous event (enum ib_event_type)."""

ALL_RIGHTS = 0xf | 1 << 4
"""Access flags: all, also that a peer may invalidate the region."""

CONNECT_REQUEST = 4
"""An event of rdma_cm."""
ENDED = (10, 15)
"""Events of rdma_cm: DISCONNECTED, TIMEWAIT_EXIT."""

MASK = 0xffffffff


def chardev(dev):
    """Returns what netlink says of a device's uverbs: (driver id, ABI version)."""
    kind = b"uverbs\0"
    body = struct.pack("=HHI", 8, 1, _index(dev))
    body += struct.pack("=HH", 4 + len(kind), 69) + kind + bytes(-len(kind) % 4)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA) as sock:
        sock.bind((0, 0))
        sock.settimeout(10)
        sock.send(HEADER.pack(HEADER.size + len(body), CLIENT | 15, REQUEST, 1, 0) + body)
        answer = sock.recv(1 << 16)
    found = dict(_attributes(answer[HEADER.size:]))
    return (struct.unpack("=I", found[73][:4])[0], struct.unpack("=Q", found[71][:8])[0])


def _index(dev):
    """Returns the index of a device in netlink."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA) as sock:
        sock.bind((0, 0))
        sock.settimeout(10)
        sock.send(HEADER.pack(HEADER.size, CLIENT | 1, REQUEST | 0x300, 1, 0))
        while True:
            answer = sock.recv(1 << 16)
            while answer:
                length, kind = struct.unpack_from("=IH", answer)
                if kind == 3:
                    raise KsftFailEx(f"netlink does not list {dev}")
                found = dict(_attributes(answer[HEADER.size:length]))
                if found.get(2, b"").rstrip(b"\0").decode() == dev:
                    return struct.unpack("=I", found[1][:4])[0]
                answer = answer[length + 3 & ~3:]


def _attributes(data):
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3fff, data[4:length]
        data = data[max(4, length + 3 & ~3):]


class Memory:
    """Memory at a fixed address."""

    def __init__(self, size):
        self.bytes = mmap.mmap(-1, size)
        self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))

    def read(self, at, length):
        return self.bytes[at:at + length]

    def word(self, at):
        return struct.unpack("=Q", self.read(at, 8))[0]


class Ring:
    """A ring of riw's own ABI, mapped."""

    def __init__(self, fd, described):
        self.offset, self.length, self.entries, self.stride = struct.unpack("=QQII", described)
        self.map = mmap.mmap(fd, self.length, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE,
                             offset=self.offset)
        self.words = memoryview(self.map).cast("Q")
        self.next = 0
        self.careful = True
        """It waits for room."""

    def unmap(self):
        """Unmaps it: until then it keeps the device open."""
        self.words.release()
        self.map.close()

    def count(self, at):
        return self.words[at // 8] & MASK

    def at(self, number):
        """Returns the first word of an entry."""
        return (ENTRIES + number % self.entries * self.stride) // 8

    def post(self, data):
        """Writes an entry. Returns whether the doorbell must ring."""
        if self.careful:
            # A worker may take the entries, which another CPU runs.
            wait_until(lambda: (self.next - self.count(CONSUMER)) & MASK < self.entries, 20, "room in the ring")
        at = self.at(self.next)
        for i, (word,) in enumerate(struct.iter_unpack("=Q", data + bytes(-len(data) % 8))):
            self.words[at + i] = word
        old, self.next = self.next, (self.next + 1) & MASK
        self.words[PRODUCER // 8] = self.next
        return self.count(WAKE_AT) == old

    def poll(self):
        """Takes a completion: (wr_id, opcode, status, flags, byte_len, qp_num, imm, invalidated), or
        None."""
        at = self.at(self.next)
        control = self.words[at + 1].to_bytes(8, "little")
        if control[2] & PHASE != (self.next & self.entries == 0):
            return None
        data = b"".join(word.to_bytes(8, "little") for word in self.words[at:at + 8])
        self.next = (self.next + 1) & MASK
        self.words[CONSUMER // 8] = self.next
        wr_id, opcode, status, flags, length, qp, _, imm, invalidated = \
            struct.unpack_from("=QBBHIIIII", data)
        return (wr_id, opcode, status, flags & ~PHASE, length, qp, imm, invalidated)

    def wait(self):
        """Waits for a completion."""
        found = []
        wait_until(lambda: found.append(self.poll()) or found[-1], 20, "a completion")
        return found[-1]


class Context:
    """An open device."""

    def __init__(self, dev, request=struct.pack("=Q", 0), room=24):
        nodes = [node for node in Path("/sys/class/infiniband_verbs").glob("uverbs*")
                 if (node / "ibdev").read_text("ascii").strip() == dev]
        self.fd = os.open(f"/dev/infiniband/{nodes[0].name}", os.O_RDWR | os.O_CLOEXEC)
        try:
            answer, self.offer = self.command(GET_CONTEXT, b"", 8, request, room)
        except OSError:
            os.close(self.fd)
            raise
        self.events = struct.unpack_from("=I", answer)[0]
        self.rings = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for ring in self.rings:
            ring.unmap()
        os.close(self.events)
        os.close(self.fd)

    def ring(self, described):
        """Maps a ring until the end."""
        self.rings.append(Ring(self.fd, described))
        return self.rings[-1]

    def command(self, number, body, length, request=b"", room=0):
        """Issues a command. Returns uverbs' response and the driver's."""
        response = ctypes.create_string_buffer(max(1, length + room))
        data = struct.pack("=Q", ctypes.addressof(response)) + body + request
        header = struct.pack("=IHH", number, (8 + len(data)) // 4, (length + room) // 4)
        os.write(self.fd, header + data)
        return response.raw[:length], response.raw[length:length + room]

    def alloc_pd(self):
        return struct.unpack("=I", self.command(ALLOC_PD, b"", 4)[0])[0]

    def reg_mr(self, pd, memory, access=ALL_RIGHTS, request=struct.pack("=Q", 0), room=8):
        """Registers memory. Returns its STag."""
        body = struct.pack("=QQQII", memory.addr, len(memory.bytes), memory.addr, pd, access)
        return struct.unpack("=III", self.command(REG_MR, body, 12, request, room)[0])[1]

    def alloc_mw(self, pd, kind=2):
        """Allocates a memory window of type 1 or 2. Returns its STag."""
        return struct.unpack("=II", self.command(ALLOC_MW, struct.pack("=IB3x", pd, kind), 8)[0])[1]

    def event(self):
        """Takes an asynchronous event. Returns its type, or None."""
        if not select.select([self.events], [], [], 0)[0]:
            return None
        return struct.unpack("=QII", os.read(self.events, 16))[1]

    def create_channel(self):
        """Returns the file of a completion channel."""
        return struct.unpack("=I", self.command(CREATE_COMP_CHANNEL, b"", 4)[0])[0]

    def create_cq(self, size, channel=-1, request=struct.pack("=Q", 0), room=32):
        body = struct.pack("=QIIiI", 0, size, 0, channel, 0)
        answer, ring = self.command(CREATE_CQ, body, 8, request, room)
        cq = Cq(self, struct.unpack("=II", answer)[0], ring)
        self.rings.append(cq)
        return cq

    def create_srq(self, pd, size, sge=1, request=struct.pack("=Q", 0), room=32):
        body = struct.pack("=QIIII", 0, pd, size, sge, 0)
        answer, ring = self.command(CREATE_SRQ, body, 16, request, room)
        return Srq(self, struct.unpack("=IIII", answer), ring)

    def create_qp(self, pd, cq, sizes=(16, 16, 4, 4, 64), srq=None, request=struct.pack("=Q", 0),
                  room=56):
        body = struct.pack("=QIIIIIIIIIBBBx", 0, pd, cq.handle, cq.handle, srq.handle if srq else 0,
                           *sizes, 0, 2, srq is not None)
        answer, rings = self.command(CREATE_QP, body, 32, request, room)
        return Qp(self, struct.unpack("=8I", answer), rings)


class Cq(Ring):
    def __init__(self, ctx, handle, described):
        super().__init__(ctx.fd, described[8:32])
        self.handle = handle


class _Receives:
    """A receive queue."""

    def post_recv(self, wr_id, *sges, bell=True, count=None, reserved=0):
        """Posts a receive. Returns whether the doorbell must ring, and rings it then."""
        data = struct.pack("=QII", wr_id, len(sges) if count is None else count, reserved)
        must = self.rq.post(data + b"".join(struct.pack("=QII", *sge) for sge in sges))
        if must and bell:
            self.ring_recv()
        return must


class Srq(_Receives):
    def __init__(self, ctx, answer, described):
        self.ctx = ctx
        self.handle, self.max_wr, self.max_sge, _ = answer
        self.rq = ctx.ring(described[8:32])

    def ring_recv(self):
        self.ctx.command(POST_SRQ_RECV, struct.pack("=4I", self.handle, 0, 0, 16), 4)


class Qp(_Receives):
    def __init__(self, ctx, answer, described):
        self.ctx = ctx
        self.handle, self.number, *sizes, _ = answer
        self.sizes = tuple(sizes)
        self.sq = ctx.ring(described[8:32])
        self.rq = ctx.ring(described[32:56]) if any(described[32:56]) else None

    def post_send(self, wr_id, opcode, *sges, flags=SIGNALED, inline=b"", rkey=0, key=0, addr=0,
                  operands=(0, 0, 0, 0), count=None, inline_len=None, bell=True):
        """Posts a send WR, and rings the doorbell if it must."""
        head = struct.pack("=QBBHIIIQ4Q", wr_id, opcode, len(sges) if count is None else count, flags,
                           len(inline) if inline_len is None else inline_len, rkey, key, addr, *operands)
        data = b"".join(struct.pack("=QII", *sge) for sge in sges) or inline
        must = self.sq.post(head + data)
        if must and bell:
            self.ring_send()
        return must

    def awaits_bell(self):
        """Whether the next send WR rings the doorbell."""
        return self.sq.count(WAKE_AT) == self.sq.next

    def ring_send(self):
        self.ctx.command(POST_SEND, struct.pack("=4I", self.handle, 0, 0, 56), 4)

    def ring_recv(self):
        self.ctx.command(POST_RECV, struct.pack("=4I", self.handle, 0, 0, 16), 4)

    def state(self):
        # struct ib_uverbs_query_qp_resp: two address vectors, eleven words, the state.
        answer, _ = self.ctx.command(QUERY_QP, struct.pack("=II", self.handle, 1), 128)
        return answer[108]

    def fail(self):
        """Moves the queue pair to ERROR."""
        # struct ib_uverbs_modify_qp: two address vectors, the handle, the mask, …, the state.
        body = bytes(64) + struct.pack("=II", self.handle, 1) + bytes(12) + bytes(8)
        body = bytearray(body + bytes(20))
        body[64 + 32] = 6
        os.write(self.ctx.fd, struct.pack("=IHH", MODIFY_QP, (8 + 112) // 4, 0) + bytes(body[:112]))


class Cm:
    """Connects queue pairs by rdma_ucm (include/uapi/rdma/rdma_user_cm.h)."""

    def __init__(self):
        self.fd = os.open("/dev/infiniband/rdma_cm", os.O_RDWR | os.O_CLOEXEC)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def command(self, number, body, length=0):
        """Issues a command. In `body`, eight bytes 0xaa stand for the address of its response."""
        response = ctypes.create_string_buffer(max(1, length))
        body = body.replace(b"\xaa" * 8, struct.pack("=Q", ctypes.addressof(response)))
        os.write(self.fd, struct.pack("=IHH", number, len(body), length) + body)
        return response.raw[:length]

    def create_id(self):
        # An id whose uid is 0 gets no events.
        body = struct.pack("=Q8sHB5x", 1, b"\xaa" * 8, 0x0106, 2)
        return struct.unpack("=I", self.command(0, body, 4))[0]

    def event(self, wanted):
        """Waits for an event, past those of connections that have ended. Returns its id."""
        while True:
            if not select.select([self.fd], [], [], 20 * PACE)[0]:
                raise KsftFailEx(f"no event of rdma_cm; wanted {wanted}")
            _, number, event, status = struct.unpack_from("=QIIi", self.command(12, b"\xaa" * 8, 336))
            if event == wanted:
                return number
            if event not in ENDED:
                raise KsftFailEx(f"event {event}, status {status}, of rdma_cm; wanted {wanted}")

    @staticmethod
    def address(addr, port):
        """Returns a sockaddr of the size of a struct sockaddr_in6."""
        return struct.pack("=H2s4s20x", socket.AF_INET, struct.pack("!H", port), socket.inet_aton(addr))

    @staticmethod
    def parameters(qp):
        return struct.pack("=II256xBBBBBBBB", qp.number, 0, 0, qp.rq is None, 8, 8, 0, 0, 0, 1)

    def connect(self, addr, port, active, passive, netns=("", "")):
        """Connects two queue pairs of this process, which are in these network namespaces."""
        with NetNSEnter(netns[1]):
            self.listen(addr, port)
        with NetNSEnter(netns[0]):
            client = self.start(addr, port, active)
        server = self.event(CONNECT_REQUEST)
        self.command(8, struct.pack("=Q", 1) + self.parameters(passive) + struct.pack("=II8x", server, 0))
        self.event(9)
        self.event(9)
        return client, server

    def listen(self, addr, port):
        """Listens in the namespace of the process."""
        listener = self.create_id()
        self.command(2, bytes(8) + self.address(addr, port) + struct.pack("=I", listener))
        self.command(7, struct.pack("=II", listener, 4))

    def readable(self):
        """Whether there is an event."""
        return bool(select.select([self.fd], [], [], 0)[0])

    def reject(self, number):
        """Rejects a connect request."""
        self.command(9, struct.pack("=I260x", number))

    def start(self, addr, port, qp):
        """Starts to connect a queue pair: event 9 follows. Returns the id."""
        client = self.create_id()
        self.command(3, bytes(28) + self.address(addr, port) + struct.pack("=II", client, 2000))
        self.event(0)
        self.command(4, struct.pack("=II", client, 2000))
        self.event(2)
        self.command(6, self.parameters(qp) + struct.pack("=II8x", client, 0))
        return client

    def disconnect(self, number):
        self.command(10, struct.pack("=I", number))


class Pair:
    """Two connected queue pairs of one process, with a region each. The passive one may be of another
    context, `other`."""

    def __init__(self, ctx, cm, addr, size=1 << 16, other=None, netns=("", ""), **kwargs):
        self.ctx = ctx
        self.pd = ctx.alloc_pd()
        sides = ((ctx, self.pd), (other, other.alloc_pd()) if other else (ctx, self.pd))
        self.memory = [Memory(size) for _ in sides]
        self.keys = [of.reg_mr(pd, memory) for (of, pd), memory in zip(sides, self.memory)]
        self.cqs = [of.create_cq(64) for of, _ in sides]
        self.qps = [of.create_qp(pd, cq, **kwargs) for (of, pd), cq in zip(sides, self.cqs)]
        self.ids = cm.connect(addr, lab.new_port(), *self.qps, netns=netns)
        self.active, self.passive = self.qps

    def settle(self):
        """Sends a message of a single octet, and waits until riw looks for no other one without a doorbell: it does
        when it has connected."""
        self.passive.post_recv(1, self.sge(1, 0, 1))
        self.active.post_send(1, SEND, self.sge(0, 0, 1))
        for cq in self.cqs:
            wr_id, _, status, *_ = cq.wait()
            ksft_eq((wr_id, status), (1, SUCCESS), "completion")
        wait_until(self.active.awaits_bell, 20, "riw waits for the doorbell")

    def sge(self, side, at, length):
        return (self.memory[side].addr + at, length, self.keys[side])

    def fill(self, side, at, data):
        self.memory[side].bytes[at:at + len(data)] = data

    def remote(self, at, side=1):
        """Returns the keywords that name a side's memory, by default the passive one's."""
        return {"rkey": self.keys[side], "addr": self.memory[side].addr + at}


def refusal(call, *args, **kwargs):
    """Returns the name of the errno that a call fails with; "" if it succeeds."""
    try:
        call(*args, **kwargs)
    except OSError as reason:
        # Python has the other name of this number.
        name = errno.errorcode[reason.errno]
        return "EOPNOTSUPP" if reason.errno == errno.EOPNOTSUPP else name
    return ""
