# SPDX-License-Identifier: GPL-2.0
"""Doorbells, mappings and commands that no library makes: see `hostile`."""

import mmap
import os
import struct


from hostile import PROMPT
from ksft import ksft_eq, ksft_true, point
from rawverbs import (CREATE_CQ, CREATE_QP, CREATE_SRQ, DESTROY_CQ, DESTROY_QP, MASK, POST_RECV, POST_SEND,
                      POST_SRQ_RECV, REG_MR, Context, Memory, refusal)
from utils import wait_until

PAGE = mmap.PAGESIZE
RW = mmap.PROT_READ | mmap.PROT_WRITE
ENTRY = {POST_SEND: 56, POST_RECV: 16, POST_SRQ_RECV: 16}
"""Octets of uverbs' struct of a WR, by command."""
DESTROY = {CREATE_CQ: DESTROY_CQ, CREATE_QP: DESTROY_QP, CREATE_SRQ: 35}


def bell(ctx, command, handle, wrs=0, sges=0, size=None, more=b"", room=4):
    """Rings a doorbell. Returns the name of the errno."""
    body = struct.pack("=4I", handle, wrs, sges, ENTRY[command] if size is None else size)
    return refusal(ctx.command, command, body + more, room)


def doorbells(stage):
    def row(name, expected, ring, **kwargs):
        with stage.point(f"doorbell: {name}", **kwargs) as victim:
            ksft_eq(ring(victim), expected, "errno")
            victim.working()

    for name, command in (("send", POST_SEND), ("receive", POST_RECV)):
        def handle(victim):
            return victim.active.handle
        row(f"{name}, with a WR", "EOPNOTSUPP",
            lambda v, c=command: bell(v.ctx, c, handle(v), 1, more=bytes(ENTRY[c])))
        row(f"{name}, with a WR that the command has no room for", "ENOSPC",
            lambda v, c=command: bell(v.ctx, c, handle(v), 1))
        row(f"{name}, with 2^32 - 1 WRs", "ENOSPC", lambda v, c=command: bell(v.ctx, c, handle(v), MASK))
        row(f"{name}, with SGEs and no WR", "ENOSPC", lambda v, c=command: bell(v.ctx, c, handle(v), 0, 5))
        row(f"{name}, whose WRs have no size", "EINVAL",
            lambda v, c=command: bell(v.ctx, c, handle(v), size=0))
        row(f"{name}, whose WRs have 4 GiB", "ENOMEM",
            lambda v, c=command: bell(v.ctx, c, handle(v), size=MASK - 3))
        row(f"{name}, without room for the answer", "ENOSPC",
            lambda v, c=command: bell(v.ctx, c, handle(v), room=0))
        row(f"{name}, of nothing", "ENOENT", lambda v, c=command: bell(v.ctx, c, MASK))
        row(f"{name}, of a CQ", "EINVAL", lambda v, c=command: bell(v.ctx, c, v.cqs[0].handle))
        row(f"{name}, a thousand without need", set(),
            lambda v, c=command: {bell(v.ctx, c, handle(v)) for _ in range(1000)} - {""})
    row("receive, of a queue pair with an SRQ", "EINVAL",
        lambda v: bell(v.ctx, POST_RECV, v.passive.handle), srq=4)
    row("SRQ, of a queue pair", "EINVAL", lambda v: bell(v.ctx, POST_SRQ_RECV, v.active.handle))
    row("SRQ, a thousand without need", set(),
        lambda v: {bell(v.ctx, POST_SRQ_RECV, v.srq.handle) for _ in range(1000)} - {""}, srq=4)
    with stage.point("doorbell: of a queue pair that is not connected") as victim:
        qp = victim.ctx.create_qp(victim.pd, victim.cqs[0])
        for count in (0, 1, 16, 17, MASK):
            qp.sq.words[0] = qp.rq.words[0] = count
            ksft_eq(bell(victim.ctx, POST_SEND, qp.handle), "ENOTCONN", f"send, at count {count}")
            ksft_eq(bell(victim.ctx, POST_RECV, qp.handle), "", f"receive, at count {count}")
        ksft_eq(victim.cqs[0].poll(), None, "a completion")
    with stage.point("doorbell: of a queue pair that is destroyed") as victim:
        qp = victim.ctx.create_qp(victim.pd, victim.cqs[0])
        victim.ctx.command(DESTROY_QP, struct.pack("=II", qp.handle, 0), 4)
        for command in (POST_SEND, POST_RECV):
            ksft_eq(bell(victim.ctx, command, qp.handle), "ENOENT", f"command {command}")
        # The ring is this process's until it unmaps it.
        for at in range(len(qp.sq.words)):
            qp.sq.words[at] = (1 << 64) - 1


# --- mappings

def mapped(ctx, length, offset, flags=mmap.MAP_SHARED, prot=RW):
    """Maps a part of the context's file, and unmaps it. Returns the name of the errno."""
    def attempt():
        mmap.mmap(ctx.fd, length, flags, prot, offset=offset).close()
    return refusal(attempt)


def mappings(stage):
    with stage.point("mmap: offsets and lengths that are no ring's", srq=4) as victim:
        rings = victim.ctx.rings
        known = {ring.offset for ring in rings}
        for ring in rings:
            ksft_eq(mapped(victim.ctx, ring.length, ring.offset), "", "the ring")
            for length in {PAGE, ring.length + PAGE, ring.length - PAGE, 2 * ring.length, 1 << 30} - \
                    {ring.length, 0}:
                ksft_eq(mapped(victim.ctx, length, ring.offset), "EINVAL", f"{length} octets")
            for offset in (ring.offset + PAGE, ring.offset - PAGE, ring.offset + ring.length):
                if offset not in known:
                    ksft_eq(mapped(victim.ctx, ring.length, offset), "EINVAL", f"at {offset:#x}")
        for offset in (0, max(known) + (1 << 20), 1 << 31, 1 << 32, 1 << 43, (1 << 63) - PAGE):
            if offset not in known:
                ksft_true(mapped(victim.ctx, PAGE, offset) in ("EINVAL", "EOVERFLOW"), f"at {offset:#x}")
    with stage.point("mmap: a private copy") as victim:
        for ring in victim.ctx.rings:
            ksft_eq(mapped(victim.ctx, ring.length, ring.offset, mmap.MAP_PRIVATE), "EINVAL", "errno")
    with stage.point("mmap: twice, and read-only: the same ring") as victim:
        for ring in victim.ctx.rings:
            again = mmap.mmap(victim.ctx.fd, ring.length, mmap.MAP_SHARED, RW, offset=ring.offset)
            again[ring.length - 8:] = b"the same"
            ksft_eq(ring.map[ring.length - 8:], b"the same", "the ring by the other mapping")
            again.close()
        victim.working()
    with stage.point("mmap: another context's rings") as victim, Context(stage.node.dev) as other:
        for ring in victim.ctx.rings:
            ksft_eq(mapped(other, ring.length, ring.offset), "EINVAL", "errno")
    with stage.point("mmap: a ring of a queue pair that is destroyed") as victim:
        qp = victim.ctx.create_qp(victim.pd, victim.cqs[0])
        victim.ctx.command(DESTROY_QP, struct.pack("=II", qp.handle, 0), 4)
        for ring in (qp.sq, qp.rq):
            # A work item may hold the queue pair for a moment.
            wait_until(lambda ring=ring: mapped(victim.ctx, ring.length, ring.offset) == "EINVAL", PROMPT,
                       "it cannot be mapped")


# --- creation

def lengths(ctx, command, body, room, driver_room):
    """Creates objects with requests and responses of all lengths: those that are long enough succeed, as
    their tail is zero."""
    body += struct.pack("=Q", 0)
    wrong = []
    for length in range(4, len(body) + 20, 4):
        for space in range(0, room + driver_room + 20, 4):
            given = (body + bytes(16))[:length]
            whole = length >= len(body) and space >= room + driver_room
            answer = []
            errno = refusal(lambda given=given, space=space:
                            answer.append(ctx.command(command, given, space)[0]))
            if (errno == "") != whole:
                wrong.append((length, space, errno))
            if not errno:
                destroy(ctx, command, struct.unpack_from("=I", answer[0])[0])
    ksft_eq(wrong, [], "octets of request and response, errno")


def destroy(ctx, command, handle):
    """Destroys an object that a command has created."""
    if command == REG_MR:
        # DEREG_MR, which has no response.
        os.write(ctx.fd, struct.pack("=IHHI", 13, 3, 0, handle))
    else:
        ctx.command(DESTROY[command], struct.pack("=II", handle, 0), 8)


def sizes(stage):
    ctx, huge = stage.ctx, (1 << 20, 1 << 30, 1 << 31, MASK)
    pd = ctx.alloc_pd()
    with point("create: CQs of impossible sizes"):
        for size in (0, *huge[1:]):
            ksft_eq(refusal(ctx.create_cq, size), "EINVAL", f"{size} entries")
    with point("create: SRQs of impossible sizes"):
        for size, sge in ((0, 1), (MASK, 1), (1 << 30, 1), (16, 17), (16, 1 << 16), (16, MASK)):
            ksft_eq(refusal(ctx.create_srq, pd, size, sge), "EINVAL", f"{size} entries of {sge} SGEs")
    with point("create: queue pairs of impossible sizes"):
        cq = ctx.create_cq(1)
        for place, values in ((0, huge), (1, huge), (2, (17, 1 << 16, MASK)), (3, (17, 1 << 16, MASK)),
                              (4, (257, 1 << 16, MASK))):
            for value in values:
                wanted = [16, 16, 4, 4, 64]
                wanted[place] = value
                ksft_eq(refusal(ctx.create_qp, pd, cq, tuple(wanted)), "EINVAL", f"{wanted}")


def creations(stage):
    ctx = stage.ctx
    pd, cq = ctx.alloc_pd(), ctx.create_cq(1)
    memory = Memory(PAGE)
    for name, command, body, room, driver_room in (
            ("a CQ", CREATE_CQ, struct.pack("=QIIiI", 0, 16, 0, -1, 0), 8, 32),
            ("an SRQ", CREATE_SRQ, struct.pack("=QIIII", 0, pd, 16, 1, 0), 16, 32),
            ("a queue pair", CREATE_QP, struct.pack("=QIIIIIIIIIBBBx", 0, pd, cq.handle, cq.handle, 0, 16, 16,
                                                    4, 4, 64, 0, 2, 0), 32, 56),
            ("a region", REG_MR, struct.pack("=QQQII", memory.addr, PAGE, memory.addr, pd, 1), 12, 8)):
        with point(f"create: {name}, with requests and responses of all lengths"):
            lengths(ctx, command, body, room, driver_room)
            stage.works()
    with point("create: nothing in a response that cannot be written"):
        before = os.listdir("/proc/self/fd")
        for _ in range(50):
            ksft_eq(unwritable(ctx, pd, cq), "EFAULT", "errno")
        ksft_eq(os.listdir("/proc/self/fd"), before, "files")
        stage.works()


def unwritable(ctx, pd, cq):
    """Creates a queue pair whose response is at an address that is not mapped. Returns the errno."""
    body = struct.pack("=QQIIIIIIIIIBBBx", PAGE, 0, pd, cq.handle, cq.handle, 0, 16, 16, 4, 4, 64, 0, 2, 0)
    data = body + struct.pack("=Q", 0)
    return refusal(os.write, ctx.fd, struct.pack("=IHH", CREATE_QP, (8 + len(data)) // 4, (32 + 56) // 4) + data)


def commands(stage):
    doorbells(stage)
    mappings(stage)
    sizes(stage)
    creations(stage)
