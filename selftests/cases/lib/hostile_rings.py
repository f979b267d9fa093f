# SPDX-License-Identifier: GPL-2.0
"""Counts, completion queues, and rings that change while riw reads them: see `hostile`."""

import functools
import os
import random
import select
import signal
import struct
import time

import lab
from hostile import BYTES, PROMPT, Victim, meddler
from ksft import ksft_eq, ksft_true, point
from rawverbs import (ARM, CONSUMER, CQ_OVERFLOW, ENTRIES, ERROR, FETCH_ADD, INLINE, LOCAL_LENGTH,
                      LOCAL_OPERATION, LOCAL_PROTECTION, MASK, PRODUCER, READ, REMOTE_ACCESS,
                      REMOTE_INVALID, RTS, SEND, SIGNALED, SUCCESS, WAKE_AT, WC_RECV, WRITE, Cm, Context)
from utils import becomes, wait_until

WORD = struct.Struct("=Q")


# --- counts

def send_counts(stage):
    """Of the send queue of 16 entries."""
    for name, count in (("one more than the ring has", 17), ("two laps ahead", 32), ("half of all", 1 << 31),
                        ("one behind", MASK), ("a lap behind", -16 & MASK)):
        with stage.point(f"count of sends: {name}: none is taken, until it is right") as victim:
            sq = victim.active.sq
            for _ in range(3):
                sq.words[PRODUCER // 8] = (sq.next + count) & MASK
                victim.active.ring_send()
                ksft_eq(sq.count(CONSUMER), sq.next, "entries taken")
                victim.idle()
                victim.working()
    with stage.point("count of sends: the upper half of its word is ignored") as victim:
        victim.active.post_send(1, WRITE, bell=False, **victim.remote(0))
        victim.active.sq.words[PRODUCER // 8] = MASK << 32 | 1
        victim.active.ring_send()
        ksft_eq(victim.cqs[0].wait()[:3:2], (1, SUCCESS), "wr_id and status")
        victim.working()
    with stage.point("count of sends: entries that were never written are taken as they are") as victim:
        sq = victim.active.sq
        # All zero: RDMA Writes without payload that ask for no completion.
        sq.next = sq.words[PRODUCER // 8] = sq.entries
        victim.active.ring_send()
        wait_until(lambda: sq.count(CONSUMER) == sq.entries, PROMPT, "all are taken")
        victim.idle()
        victim.working()
    for name, offset in (("riw's own count", CONSUMER), ("the word that wakes", WAKE_AT)):
        with stage.point(f"count of sends: riw does not read {name}") as victim:
            sq = victim.active.sq
            sq.careful = False
            for value in (1, 16, 1 << 31, MASK, MASK << 32):
                sq.words[offset // 8] = value
                victim.active.ring_send()
                victim.idle()
                sq.words[offset // 8] = value
                # Whatever the word says, the doorbell rings.
                victim.active.post_send(1, WRITE, bell=False, **victim.remote(0))
                victim.active.ring_send()
                ksft_eq(victim.cqs[0].wait()[:3:2], (1, SUCCESS), "wr_id and status")
                wait_until(lambda sq=sq: sq.count(CONSUMER) == sq.count(WAKE_AT) == sq.next, PROMPT,
                           "riw has written them")
    with stage.point("count of sends: also in ERROR") as victim:
        victim.active.fail()
        sq = victim.active.sq
        sq.words[PRODUCER // 8] = 17
        victim.active.ring_send()
        ksft_eq((victim.cqs[0].poll(), sq.count(CONSUMER)), (None, 0), "completion and entries taken")
        victim.in_error()


def receive_counts(stage, shared):
    kind = "SRQ" if shared else "receives"
    for name, count in (("more than the ring has", 17), ("half of all", 1 << 31), ("one behind", MASK)):
        with stage.point(f"count of {kind}: {name}: a message waits until it is right",
                         srq=4 if shared else 0) as victim:
            rq = (victim.srq or victim.passive).rq
            rq.words[PRODUCER // 8] = (rq.next + count) & MASK
            (victim.srq or victim.passive).ring_recv()
            victim.active.post_send(1, SEND, victim.sge(0, 0, 100))
            wait_until(lambda: rq.count(WAKE_AT) == rq.next, PROMPT, "the message waits")
            (victim.srq or victim.passive).ring_recv()
            time.sleep(0.1)
            ksft_eq((victim.cqs[1].poll(), rq.count(CONSUMER)), (None, 0), "completion and entries taken")
            ksft_true((victim.srq or victim.passive).post_recv(2, victim.sge(1, 0, 100)), "the doorbell rings")
            ksft_eq(victim.cqs[1].wait()[:3], (2, WC_RECV, SUCCESS), "the receive")
            ksft_eq(victim.until(0, 1)[2], SUCCESS, "status of the SEND")
            victim.working()
    with stage.point(f"count of {kind}: entries that were never written have no buffer",
                     srq=4 if shared else 0) as victim:
        rq = (victim.srq or victim.passive).rq
        rq.words[PRODUCER // 8] = rq.entries
        victim.active.post_send(1, SEND, victim.sge(0, 0, 100))
        ksft_eq(victim.cqs[1].wait()[:3], (0, WC_RECV, LOCAL_LENGTH), "the receive")
        victim.in_error()
        victim.unchanged()
    with stage.point(f"count of {kind}: riw does not read what it has written itself",
                     srq=4 if shared else 0) as victim:
        rq = (victim.srq or victim.passive).rq
        rq.careful = False
        for value in (1, 16, 1 << 31, MASK, MASK << 32):
            rq.words[CONSUMER // 8] = rq.words[WAKE_AT // 8] = value
            victim.working()
            ksft_eq(rq.count(CONSUMER), rq.next, "entries taken")


def counts(stage):
    send_counts(stage)
    receive_counts(stage, shared=False)
    receive_counts(stage, shared=True)


# --- completion queues

def events(victim):
    """Returns the asynchronous events of a victim's context."""
    return list(iter(victim.ctx.event, None))


def write(victim, count):
    """Executes so many RDMA Writes, whose completions are not polled."""
    for number in range(count):
        victim.active.post_send(number, WRITE, **victim.remote(0))
        victim.active.ring_send()


def completions(stage):
    for name, count in (("it says nothing", 0), ("it says one more than there are", 65),
                        ("it says far more", 1 << 31), ("it says less than before", MASK)):
        with stage.point(f"a CQ that is full, of which {name}, has overflowed") as victim:
            cq = victim.cqs[0]
            write(victim, cq.entries)
            ksft_eq((events(victim), victim.active.state()), ([], RTS), "events and state when it is full")
            cq.words[CONSUMER // 8] = count
            write(victim, 2)
            wait_until(lambda: victim.active.state() == ERROR, PROMPT, "the queue pair is in ERROR")
            ksft_eq(events(victim).count(CQ_OVERFLOW), 1, "overflows reported")
            ksft_eq([cq.poll()[0] for _ in range(cq.entries)], list(range(cq.entries)), "those before")
            ksft_eq(cq.poll(), None, "one more")
            # Nothing is added later, either.
            victim.active.ring_send()
            ksft_eq((cq.poll(), CQ_OVERFLOW in events(victim)), (None, False), "later completion and event")
    with stage.point("a CQ whose process says that it has polled what it has not") as victim:
        cq = victim.cqs[0]
        write(victim, cq.entries)
        cq.words[CONSUMER // 8] = MASK << 32 | cq.entries
        write(victim, cq.entries)
        # The second lap is where the first one was.
        cq.next = cq.entries
        ksft_eq([cq.wait()[0] for _ in range(cq.entries)], list(range(cq.entries)), "the second lap")
        ksft_eq(events(victim), [], "events")
        victim.working()
    with stage.point("a CQ whose process writes to its entries and to the words of the kernel") as victim:
        cq = victim.cqs[0]
        for lap in range(3):
            for word in (PRODUCER // 8, *range(ENTRIES // 8, cq.length // 8)):
                cq.words[word] = (1 << 64) - 1 - lap
            at = cq.at(cq.next)
            victim.active.post_send(lap, WRITE, **victim.remote(0))
            victim.active.ring_send()
            wanted = (lap, 1, SUCCESS, 1, 0, victim.active.number, 0, 0, 0, 0, 0, 0, 0)
            # The process has overwritten what shows that there is a completion.
            becomes(functools.partial(entry, cq, at), wanted, PROMPT, "the entry")
            cq.next += 1
            cq.words[CONSUMER // 8] = cq.next
    arming(stage)


def entry(cq, at):
    """Returns the fields of the entry at a word."""
    data = b"".join(cq.words[at + i].to_bytes(8, "little") for i in range(8))
    return struct.unpack("=QBBHIIIIIQQQQ", data)


def arming(stage):
    def told(victim):
        return bool(select.select([victim.channel], [], [], 0)[0]) and len(os.read(victim.channel, 8))

    for name, value, heard in (("no bit", 0, False), ("unknown bits", (1 << 64) - 4, False),
                               ("only solicited ones", 1, False), ("all bits", (1 << 64) - 1, True)):
        with stage.point(f"a CQ that is armed with {name}") as victim:
            # Behind the pair's own, which has no channel.
            victim.channel = victim.ctx.create_channel()
            victim.cqs[0] = victim.ctx.create_cq(64, victim.channel)
            victim.qps = [victim.ctx.create_qp(victim.pd, cq) for cq in victim.cqs]
            victim.active, victim.passive = victim.qps
            victim.ids = victim.cm.connect(victim.addr, lab.new_port(), *victim.qps)
            cq = victim.cqs[0]
            cq.words[ARM // 8] = value
            for _ in range(2):
                write(victim, 1)
                ksft_eq(cq.wait()[2], SUCCESS, "status")
                if heard:
                    wait_until(lambda victim=victim: told(victim), PROMPT, "an event")
                else:
                    ksft_true(not told(victim), "an event")
                # It is armed no longer, or as before.
                ksft_eq(cq.words[ARM // 8], 0 if heard else value, "the word")
                heard = False if value & 2 else heard
                value = 0 if value & 2 else value
            os.close(victim.channel)


# --- changes while riw reads

ATTEMPTS = 16


def rewrite(ring, word, values):
    """Returns a function that writes these values to a word of each entry."""
    places = [ring.at(number) + word for number in range(ring.entries)]

    def change():
        for value in values:
            for place in places:
                ring.words[place] = value
    return change


def race(stage, name, of_receives, word, values, status, opcode=SEND, length=64):
    """A word of the entries changes between a right value and another one, whose WR ends with `status`.
    Each WR is taken with one of them. `length` of the data is at most 64."""
    seen = set()
    with stage.point(f"race: {name}") as first:
        for attempt in range(ATTEMPTS):
            victim = first if attempt == 0 else first.again()
            ring = victim.passive.rq if of_receives else victim.active.sq
            side = 1 if of_receives else 0
            last = attempt == ATTEMPTS - 1
            # On a busy host, all WRs may be taken with the same value. At last, the other one does not change.
            change = rewrite(ring, word, [value for value, outcome in zip(values(victim), (SUCCESS, status))
                                          if not last or outcome not in seen])
            with meddler(change):
                for number in range(8):
                    victim.passive.post_recv(number, victim.sge(1, 64 * number, 64))
                    victim.active.post_send(number, opcode, victim.sge(0, 64 * number, length),
                                            bell=False, **victim.remote(64 * number))
                    if attempt % 2:
                        # On a busy host, the other process hardly runs at the same time.
                        time.sleep(0.002)
                    if last:
                        change()
                    victim.active.ring_send()
                    found = victim.cqs[side].wait()
                    seen.add(found[2])
                    if found[2] != SUCCESS:
                        break
                    ksft_eq((found[0], found[4]), (number, length), "number and length")
            # Of the memory of the two sides, only that of the messages.
            for memory, value in zip(victim.memory, (1, 2)):
                ksft_eq(memory.bytes[512:], bytes([value]) * (BYTES - 512), "memory behind the messages")
            victim.unchanged(0, 1)
            if found[2] != SUCCESS:
                wait_until(lambda v=victim: ERROR in [qp.state() for qp in v.qps], PROMPT, "ERROR")
            if seen == {SUCCESS, status}:
                break
        ksft_eq(seen, {SUCCESS, status}, "statuses")


def head(sge_count=1, flags=SIGNALED, opcode=SEND, inline_len=0):
    """Returns the second word of a send queue entry."""
    return WORD.unpack(struct.pack("=BBHI", opcode, sge_count, flags, inline_len))[0]


def pair_of(first, second):
    """Returns a word of two numbers."""
    return WORD.unpack(struct.pack("=II", first, second))[0]


def changes(stage):
    for name, bad, status in (
            ("the opcode of a SEND", head(opcode=255), LOCAL_OPERATION),
            ("the number of its SGEs", head(sge_count=255), LOCAL_OPERATION),
            ("inline or not, with a length that does not fit", head(flags=SIGNALED | INLINE, inline_len=MASK),
             LOCAL_LENGTH)):
        race(stage, name, False, 1, lambda v, bad=bad: (head(), bad), status)
    race(stage, "the length and STag of its SGE: another PD's", False, 9,
         lambda v: (pair_of(64, v.keys[0]), pair_of(64, v.foreign_key)), LOCAL_PROTECTION)
    race(stage, "the length of its SGE: beyond the region", False, 9,
         lambda v: (pair_of(64, v.keys[0]), pair_of(BYTES + 1, v.keys[0])), LOCAL_PROTECTION)
    race(stage, "the address of its SGE: beyond the region", False, 8,
         lambda v: (v.memory[0].addr, v.memory[0].addr + BYTES), LOCAL_PROTECTION)
    race(stage, "the STag of an RDMA Read at the peer", False, 2,
         lambda v: (pair_of(v.keys[1], 0), pair_of(v.foreign_key, 0)), REMOTE_ACCESS, READ)
    race(stage, "the STag of its sink: another PD's", False, 9,
         lambda v: (pair_of(64, v.keys[0]), pair_of(64, v.foreign_key)), LOCAL_PROTECTION, READ)
    race(stage, "the length of its sink: beyond the region", False, 9,
         lambda v: (pair_of(64, v.keys[0]), pair_of(BYTES + 1, v.keys[0])), LOCAL_PROTECTION, READ)
    race(stage, "the STag of an atomic operation at the peer", False, 2,
         lambda v: (pair_of(v.keys[1], 0), pair_of(v.foreign_key, 0)), REMOTE_ACCESS, FETCH_ADD, 8)
    race(stage, "its address there: not aligned", False, 3,
         lambda v: (v.memory[1].addr, v.memory[1].addr + 4), REMOTE_INVALID, FETCH_ADD, 8)
    race(stage, "the length of its sink: too long", False, 9,
         lambda v: (pair_of(8, v.keys[0]), pair_of(9, v.keys[0])), LOCAL_OPERATION, FETCH_ADD, 8)
    race(stage, "the number of SGEs of a receive", True, 1,
         lambda v: (pair_of(1, 0), pair_of(MASK, 0)), LOCAL_OPERATION)
    race(stage, "the STag of its SGE: another PD's", True, 3,
         lambda v: (pair_of(64, v.keys[1]), pair_of(64, v.foreign_key)), LOCAL_PROTECTION)
    race(stage, "the length of its SGE: too short", True, 3,
         lambda v: (pair_of(64, v.keys[1]), pair_of(63, v.keys[1])), LOCAL_LENGTH)
    race(stage, "the address of its SGE: beyond the region", True, 2,
         lambda v: (v.memory[1].addr, v.memory[1].addr + BYTES), LOCAL_PROTECTION)


def junk(victim, kind, rng):
    """Returns a function that writes a word to one of the rings."""
    rings = [ring for qp in victim.qps for ring in (qp.sq, qp.rq) if ring] + victim.cqs
    keys = (*victim.keys, victim.readable_key, victim.foreign_key)
    places = [memory.addr for memory in victim.everything()]

    def word():
        return rng.choice((rng.getrandbits(64), rng.randrange(1 << 33), rng.randrange(32), MASK - rng.randrange(32),
                           rng.choice(places) + rng.randrange(-16, BYTES + 16),
                           pair_of(rng.choice((8, BYTES, BYTES + 1, MASK)), rng.choice(keys)),
                           pair_of(rng.choice(keys), rng.choice(keys)),
                           head(rng.randrange(6), rng.randrange(16), rng.randrange(16), rng.randrange(80))))

    def change():
        ring = rng.choice(rings)
        at = rng.randrange(ENTRIES, ring.length, 8)
        if kind == "counts":
            at = rng.choice((PRODUCER, CONSUMER, WAKE_AT))
        elif kind == "both" and rng.random() < 0.3:
            at = rng.choice((PRODUCER, CONSUMER, WAKE_AT))
        ring.words[at // 8] = word() if at >= ENTRIES else rng.choice((rng.getrandbits(64), rng.randrange(64)))
    return change


def use(victim, rng):
    """Uses the queue pairs of a victim once."""
    qp = rng.choice(victim.qps)
    if not rng.randrange(40):
        qp.fail()
    elif rng.randrange(2):
        qp.ring_send()
    elif qp.rq:
        qp.ring_recv()


def noise(stage):
    for kind in ("entries", "counts", "both"):
        for shared in (False, True):
            rng = random.Random(f"{kind} {shared}")
            with stage.point(f"noise in {kind}{', with an SRQ' if shared else ''}",
                             srq=4 if shared else 0) as first:
                for number in range(6):
                    victim = first if number == 0 else first.again()
                    with meddler(junk(victim, kind, rng)):
                        for _ in range(150):
                            if kind == "entries":
                                for queue in (victim.active.sq, victim.passive.sq):
                                    queue.next = (queue.next + 3) & MASK
                                    queue.words[PRODUCER // 8] = queue.next
                            use(victim, rng)
                    ksft_true(victim.foreign.bytes[:] == b"\4" * BYTES, "memory of another PD is as it was")
                    ksft_true(victim.readable.bytes[:] == b"\3" * BYTES,
                              "memory that is only to be read is as it was")
                    stage.others.working()


def use_until_killed(node, rng, begun):
    """Uses rings while junk is written to them. Writes to the pipe `begun` after the first use."""
    with Context(node.dev) as ctx, Cm() as cm:
        victim = Victim(ctx, cm, node.addr)
        with meddler(junk(victim, "both", rng)):
            use(victim, rng)
            os.write(begun, b"b")
            while True:
                use(victim, rng)


def killed(stage):
    """A process that is killed while it writes to rings in use."""
    with point("killed 20 times while it does so"):
        for number in range(20):
            begun, begins = os.pipe()
            pid = os.fork()
            if not pid:
                try:
                    use_until_killed(stage.node, random.Random(number), begins)
                finally:
                    os._exit(1)
            os.close(begins)
            ksft_true(select.select([begun], [], [], PROMPT)[0] and os.read(begun, 1),
                      "the process has not begun, or has failed")
            time.sleep(0.02 + number % 5 * 0.02)
            os.kill(pid, signal.SIGKILL)
            ksft_eq(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGKILL, "status")
            os.close(begun)
            stage.works()


def races(stage):
    changes(stage)
    noise(stage)
    killed(stage)
