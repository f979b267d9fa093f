// SPDX-License-Identifier: GPL-2.0

//! Tests of the rings, against the kernel's side as `riw_abi` describes it.

use super::*;
use core::sync::atomic::{fence, Ordering};
use riw_abi::cqe::{self, Cqe};
use riw_abi::ring::{ARM, ARM_NEXT, ARM_SOLICITED, CONSUMER, PRODUCER, WAKE_AT, WAKE_NEVER};
use riw_abi::udata::{RingMap, FEATURE_ATOMICS, FEATURE_MEMORY_WINDOWS, FEATURE_WRITE_WITH_IMM};
use riw_abi::wr::{flags, opcode, Rqe, Sge, Sqe};
use std::iter::empty;
use std::sync::mpsc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The memory of a ring, as both sides have it.
#[derive(Clone)]
struct Memory(Arc<[AtomicU64]>);

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Memory {
    fn new(map: &RingMap) -> Self {
        let words = ring::len(map.entries, map.stride).unwrap() / 8;
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        self.0.get(offset / 8).unwrap()
    }

    fn words<const N: usize>(&self, offset: usize) -> [u64; N] {
        core::array::from_fn(|index| self.word(offset + 8 * index).load(Ordering::Relaxed))
    }
}

fn map(entries: u32, stride: usize) -> RingMap {
    RingMap {
        entries,
        stride: stride.try_into().unwrap(),
        ..RingMap::default()
    }
}

const FEATURES: u64 = FEATURE_WRITE_WITH_IMM | FEATURE_ATOMICS;

fn send_queue(entries: u32) -> (Memory, RingMap, SendQueue<Memory>) {
    let map = map(entries, Sqe::stride(4, 64));
    let memory = Memory::new(&map);
    let queue = SendQueue::new(memory.clone(), &map, FEATURES, false).unwrap();

    (memory, map, queue)
}

/// The kernel's copy of an entry: its head and its data.
fn taken(memory: &Memory, map: &RingMap, number: u32) -> (Sqe, [Sge; 2]) {
    let at = ring::offset(number, map.entries, map.stride);
    let sge = |index: usize| Sge::from_words(memory.words(at + Sqe::DATA + index * 16));

    (Sqe::from_words(memory.words(at)), [sge(0), sge(1)])
}

fn head(opcode: u8, wr_id: u64) -> Sqe {
    Sqe {
        opcode,
        wr_id,
        ..Sqe::default()
    }
}

fn sge(addr: u64) -> Sge {
    Sge {
        addr,
        length: 100,
        lkey: 7,
    }
}

fn no_sges() -> Payload<'static, impl ExactSizeIterator<Item = Sge>> {
    Payload::Sges(empty())
}

fn inline(bytes: &[u8]) -> Payload<'_, core::iter::Empty<Sge>> {
    Payload::Inline(bytes)
}

#[test]
fn the_kernel_finds_what_was_posted() {
    let (memory, map, mut queue) = send_queue(4);
    let wr = Sqe {
        wr_id: 0x0123_4567_89ab_cdef,
        opcode: opcode::WRITE_WITH_IMM,
        flags: flags::SOLICITED | flags::FENCE,
        rkey: 0x1111_2222,
        invalidate_or_imm: 0x3333_4444,
        remote_addr: 0x5555_6666_7777_8888,
        ..Sqe::default()
    };

    queue
        .post(wr, Payload::Sges([sge(1), sge(2)].into_iter()))
        .unwrap();
    assert_eq!(memory.words(PRODUCER), [0], "before publish()");
    assert!(queue.publish(), "an idle kernel has to be woken");
    assert_eq!(memory.words(PRODUCER), [1]);
    let want = Sqe { sge_count: 2, ..wr };
    assert_eq!(taken(&memory, &map, 0), (want, [sge(1), sge(2)]));
}

#[test]
fn inline_data_is_in_the_entry() {
    let (memory, map, mut queue) = send_queue(4);
    let data: Vec<u8> = (0..=255).collect();

    for len in [0, 1, 7, 8, 9, 63, 64] {
        let number = queue.posts.added;
        let bytes = data.get(..len).unwrap();

        queue.post(head(opcode::SEND, 1), inline(bytes)).unwrap();
        queue.publish();
        let (head, _) = taken(&memory, &map, number);
        let at = ring::offset(number, map.entries, map.stride) + Sqe::DATA;
        let there: Vec<u8> = memory
            .words::<8>(at)
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .take(len)
            .collect();

        assert_eq!(head.flags, flags::INLINE);
        assert_eq!((head.inline_len as usize, head.sge_count), (len, 0));
        assert_eq!(there, bytes);
        memory
            .word(CONSUMER)
            .store(u64::from(number) + 1, Ordering::Relaxed);
    }
    let most = queue.max_inline();
    assert_eq!(most, 64);
    assert_eq!(
        queue.post(head(opcode::SEND, 1), inline(data.get(..=most).unwrap())),
        Err(Refused::Invalid)
    );
}

#[test]
fn a_full_queue_refuses_until_the_kernel_has_taken_an_entry() {
    let (memory, _, mut queue) = send_queue(4);

    for _ in 0..4 {
        queue.post(head(opcode::SEND, 1), no_sges()).unwrap();
    }
    assert_eq!(
        queue.post(head(opcode::SEND, 1), no_sges()),
        Err(Refused::Full)
    );
    queue.publish();
    assert_eq!(
        queue.post(head(opcode::SEND, 1), no_sges()),
        Err(Refused::Full)
    );
    memory.word(CONSUMER).store(1, Ordering::Release);
    queue.post(head(opcode::SEND, 1), no_sges()).unwrap();
    assert_eq!(
        queue.post(head(opcode::SEND, 1), no_sges()),
        Err(Refused::Full)
    );
}

#[test]
fn a_count_that_cannot_be_makes_no_room() {
    let (memory, _, mut queue) = send_queue(4);

    for _ in 0..4 {
        queue.post(head(opcode::SEND, 1), no_sges()).unwrap();
    }
    for count in [5, 100, u64::from(u32::MAX), u64::MAX] {
        memory.word(CONSUMER).store(count, Ordering::Release);
        let posted = queue.post(head(opcode::SEND, 1), no_sges());

        assert_eq!(posted, Err(Refused::Full), "count {count}");
    }
}

#[test]
fn counts_wrap() {
    let (memory, map, mut queue) = send_queue(4);
    let first = u32::MAX - 1;

    queue.posts.published = first;
    queue.posts.added = first;
    queue.posts.taken = first;
    memory.word(WAKE_AT).store(0, Ordering::Relaxed);
    memory.word(CONSUMER).store(first.into(), Ordering::Relaxed);
    for wr_id in 0..4 {
        queue.post(head(opcode::SEND, wr_id), no_sges()).unwrap();
    }
    assert_eq!(
        queue.post(head(opcode::SEND, 9), no_sges()),
        Err(Refused::Full)
    );
    assert!(queue.publish(), "entry 0 is among those posted");
    assert_eq!(memory.words(PRODUCER), [2]);
    for wr_id in 0..4u32 {
        let (head, _) = taken(&memory, &map, first.wrapping_add(wr_id));

        assert_eq!(head.wr_id, wr_id.into());
    }
}

#[test]
fn rules_of_operations() {
    let (memory, map, mut queue) = send_queue(16);
    let sges = |count| {
        Payload::Sges(
            [sge(1), sge(2), sge(3), sge(4), sge(5)]
                .into_iter()
                .take(count),
        )
    };
    let invalid = Err(Refused::Invalid);
    let unsupported = Err(Refused::Unsupported);

    for op in [opcode::SEND, opcode::SEND_WITH_INVALIDATE, opcode::WRITE] {
        assert_eq!(queue.post(head(op, 1), sges(4)), Ok(()));
        assert_eq!(queue.post(head(op, 1), sges(5)), invalid);
    }
    assert_eq!(queue.post(head(opcode::READ, 1), sges(0)), Ok(()));
    assert_eq!(queue.post(head(opcode::READ, 1), sges(1)), Ok(()));
    assert_eq!(queue.post(head(opcode::READ, 1), sges(2)), invalid);
    assert_eq!(queue.post(head(opcode::READ, 1), inline(&[1])), invalid);
    for op in [opcode::COMPARE_SWAP, opcode::FETCH_ADD] {
        assert_eq!(queue.post(head(op, 1), sges(0)), invalid);
        assert_eq!(queue.post(head(op, 1), sges(1)), Ok(()));
        assert_eq!(queue.post(head(op, 1), sges(2)), invalid);
        assert_eq!(queue.post(head(op, 1), inline(&[1])), invalid);
    }
    // 3 is Send with immediate data, which iWARP lacks.
    for op in [
        3,
        opcode::LOCAL_INVALIDATE,
        opcode::BIND_MW,
        10,
        31,
        32,
        255,
    ] {
        assert_eq!(queue.post(head(op, 1), sges(1)), unsupported, "opcode {op}");
    }
    queue.publish();
    // Nothing is left of what was refused.
    assert_eq!(memory.words(PRODUCER), [7]);
    for number in 0..7 {
        assert!(taken(&memory, &map, number).0.sge_count <= 4);
    }

    let mut old = SendQueue::new(memory, &map, 0, false).unwrap();
    for op in [
        opcode::WRITE_WITH_IMM,
        opcode::COMPARE_SWAP,
        opcode::FETCH_ADD,
    ] {
        assert_eq!(old.post(head(op, 1), sges(1)), unsupported, "an old kernel");
    }
}

#[test]
fn flags_are_those_of_the_program_and_of_the_queue() {
    let map = map(4, Sqe::stride(1, 0));
    let memory = Memory::new(&map);
    let mut queue = SendQueue::new(memory.clone(), &map, FEATURES, true).unwrap();
    let wr = Sqe {
        flags: flags::SOLICITED | flags::INLINE | 0xff00,
        sge_count: 200,
        inline_len: 5,
        ..head(opcode::SEND, 1)
    };

    queue.post(wr, no_sges()).unwrap();
    let (head, _) = taken(&memory, &map, 0);
    assert_eq!(head.flags, flags::SOLICITED | flags::SIGNALED);
    assert_eq!((head.sge_count, head.inline_len), (0, 0));
}

#[test]
fn withdrawn_wrs_are_not_published() {
    let (memory, _, mut queue) = send_queue(4);

    queue.begin(head(opcode::SEND, 1)).unwrap();
    queue.set_payload(inline(&[1, 2, 3])).unwrap();
    queue.withdraw();
    assert!(!queue.publish());
    assert_eq!(memory.words(PRODUCER), [0]);
    for _ in 0..4 {
        queue.post(head(opcode::SEND, 1), no_sges()).unwrap();
    }
}

#[test]
fn a_refused_wr_does_not_stay_open() {
    let (_, _, mut queue) = send_queue(4);

    // It has no old value, for which an atomic operation needs a place.
    assert_eq!(
        queue.post(head(opcode::FETCH_ADD, 1), inline(&[1])),
        Err(Refused::Invalid)
    );
    assert_eq!(queue.end(), Ok(()), "the next batch begins");
}

#[test]
fn binds_and_invalidations_have_no_payload() {
    let map = map(4, Sqe::stride(4, 64));
    let memory = Memory::new(&map);
    let mut queue = SendQueue::new(memory.clone(), &map, FEATURE_MEMORY_WINDOWS, false).unwrap();

    for (number, opcode) in [(0, opcode::BIND_MW), (1, opcode::LOCAL_INVALIDATE)] {
        assert_eq!(
            queue.post(head(opcode, 1), no_sges()),
            Err(Refused::Invalid)
        );
        assert_eq!(
            queue.post(head(opcode, 1), inline(&[])),
            Err(Refused::Invalid)
        );
        let wr = Sqe {
            compare: 7,
            ..head(opcode, 2)
        };
        assert_eq!(queue.post_head(wr), Ok(()));
        assert!(queue.publish() == (number == 0));
        let (seen, _) = taken(&memory, &map, number);
        assert_eq!((seen.opcode, seen.wr_id, seen.compare), (opcode, 2, 7));
        assert_eq!((seen.sge_count, seen.inline_len), (0, 0));
    }
    let (_, _, mut old) = send_queue(4);
    assert_eq!(
        old.post_head(head(opcode::BIND_MW, 1)),
        Err(Refused::Unsupported)
    );
}

#[test]
fn a_payload_needs_a_wr() {
    let (_, _, mut queue) = send_queue(4);

    assert_eq!(queue.set_payload(inline(&[1])), Err(Refused::Invalid));
}

#[test]
fn the_doorbell_rings_only_if_the_kernel_waits() {
    let (memory, _, mut queue) = send_queue(16);
    let mut post = || {
        queue.post(head(opcode::SEND, 1), no_sges()).unwrap();
        queue.publish()
    };

    assert!(post());
    // The kernel runs: WAKE_AT stays behind.
    assert!(!post());
    assert!(!post());
    // It idles at the next one.
    memory.word(WAKE_AT).store(3, Ordering::Relaxed);
    assert!(post());
    assert!(!post());
    assert!(!queue.publish(), "nothing was posted");
}

#[test]
fn receives_ring_only_on_request() {
    let map = map(4, Rqe::stride(2));
    let memory = Memory::new(&map);
    memory
        .word(WAKE_AT)
        .store(WAKE_NEVER.into(), Ordering::Relaxed);
    let mut queue = ReceiveQueue::new(memory.clone(), &map).unwrap();

    queue.post(5, [sge(1), sge(2)].into_iter()).unwrap();
    assert!(!queue.publish());
    let at = ring::offset(0, map.entries, map.stride);
    let want = Rqe {
        wr_id: 5,
        sge_count: 2,
        reserved: 0,
    };
    assert_eq!(Rqe::from_words(memory.words(at)), want);
    assert_eq!(Sge::from_words(memory.words(at + Rqe::DATA + 16)), sge(2));

    memory.word(WAKE_AT).store(1, Ordering::Relaxed);
    queue.post(6, empty()).unwrap();
    assert!(queue.publish());
    // A stride of lines may have room for one more than was asked for.
    let most = Rqe::max_sge(map.stride as usize);
    let too_many = (0..=most).map(|_| sge(1)).collect::<Vec<_>>();
    assert_eq!(queue.post(7, too_many.into_iter()), Err(Refused::Invalid));
}

/// The kernel adds a completion.
fn complete(memory: &Memory, map: &RingMap, number: u32, mut cqe: Cqe) {
    let at = ring::offset(number, map.entries, map.stride);

    cqe.flags |= Cqe::phase(number, map.entries);
    let words = cqe.to_words();
    for (index, word) in words.iter().enumerate() {
        if index != Cqe::CONTROL {
            memory.word(at + 8 * index).store(*word, Ordering::Relaxed);
        }
    }
    let [_, control, ..] = words;
    memory
        .word(at + 8 * Cqe::CONTROL)
        .store(control, Ordering::Release);
}

fn completion(wr_id: u64) -> Cqe {
    Cqe {
        wr_id,
        opcode: cqe::opcode::RECEIVE,
        flags: cqe::flags::WITH_IMM,
        byte_len: 12,
        qp_num: 3,
        imm: 4,
        timestamp: 5,
        ..Cqe::default()
    }
}

#[test]
fn completions_come_in_order_over_laps() {
    let map = map(4, Cqe::STRIDE);
    let memory = Memory::new(&map);
    let mut queue = Completions::new(memory.clone(), &map).unwrap();
    let mut added = 0;

    assert_eq!(queue.next(), None);
    for burst in [1, 4, 3, 4, 2, 4] {
        let first = added;

        for _ in 0..burst {
            complete(&memory, &map, added, completion(added.into()));
            added += 1;
        }
        for number in first..added {
            let got = queue.next().unwrap();

            assert_eq!(got.wr_id, number.into());
            assert_eq!(
                Cqe {
                    flags: got.flags & !cqe::flags::PHASE,
                    ..got
                },
                completion(number.into())
            );
        }
        assert_eq!(queue.next(), None);
        assert_eq!(memory.words(CONSUMER), [first.into()], "before release()");
        queue.release();
        assert_eq!(memory.words(CONSUMER), [added.into()]);
    }
}

#[test]
fn completions_wrap() {
    let map = map(4, Cqe::STRIDE);
    let memory = Memory::new(&map);
    let mut queue = Completions::new(memory.clone(), &map).unwrap();

    // The lap before the last has been written: entries of phase 0.
    queue.taken = u32::MAX - 3;
    queue.released = queue.taken;
    for number in 0..4 {
        complete(&memory, &map, u32::MAX - 7 + number, completion(0));
    }
    assert_eq!(queue.next(), None);
    for number in 0..6u32 {
        let at = (u32::MAX - 3).wrapping_add(number);

        complete(&memory, &map, at, completion(number.into()));
        assert_eq!(queue.next().unwrap().wr_id, number.into());
        assert_eq!(queue.next(), None);
    }
    queue.release();
    assert_eq!(memory.words(CONSUMER), [2]);
}

#[test]
fn arming_sets_a_bit() {
    let map = map(4, Cqe::STRIDE);
    let memory = Memory::new(&map);
    let queue = Arming::new(memory.clone(), &map).unwrap();

    queue.arm(true);
    assert_eq!(memory.words(ARM), [ARM_SOLICITED]);
    queue.arm(false);
    assert_eq!(memory.words(ARM), [ARM_SOLICITED | ARM_NEXT]);
}

#[test]
fn memory_that_breaks_the_rules_is_refused() {
    let good = map(4, 128);
    let memory = Memory::new(&good);
    let ok = |map: &RingMap| {
        assert_eq!(
            Completions::new(memory.clone(), map).is_some(),
            ReceiveQueue::new(memory.clone(), map).is_some()
        );
        SendQueue::new(memory.clone(), map, 0, false).is_some()
    };

    assert!(ok(&good));
    for (entries, stride) in [
        (0, 128),
        (3, 128),
        (8, 128),
        (4, 192),
        (4, 0),
        (4, 100),
        (u32::MAX, u32::MAX as usize),
        (1 << 31, 1 << 31),
    ] {
        assert!(!ok(&map(entries, stride)), "{entries} entries of {stride}");
    }
    assert!(SendQueue::new(Memory(Arc::new([])), &good, 0, false).is_none());
}

/// The kernel as the table in `riw_abi::ring` describes it: takes entries until it finds none, and then
/// waits for the doorbell.
#[test]
fn no_entry_is_left_behind_while_the_kernel_waits() {
    const TOTAL: u64 = if cfg!(miri) { 300 } else { 10_000 };
    let (memory, map, mut queue) = send_queue(16);
    let (doorbell, rings) = mpsc::channel();
    let kernel = thread::spawn({
        let memory = memory.clone();
        move || {
            let mut consumer = 0u32;
            let mut idle = 0u64;
            let posted = |consumer: u32| {
                let producer = ring::count(memory.word(PRODUCER).load(Ordering::Acquire));
                ring::posted(producer, consumer, map.entries) != 0
            };

            while u64::from(consumer) < TOTAL {
                if posted(consumer) {
                    assert_eq!(taken(&memory, &map, consumer).0.wr_id, consumer.into());
                    consumer += 1;
                    memory
                        .word(CONSUMER)
                        .store(consumer.into(), Ordering::Release);
                    continue;
                }
                memory
                    .word(WAKE_AT)
                    .store(consumer.into(), Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if !posted(consumer) {
                    idle += 1;
                    rings
                        .recv_timeout(Duration::from_secs(60))
                        .expect("the doorbell rings");
                }
            }
            idle
        }
    });

    for wr_id in 0..TOTAL {
        while queue.post(head(opcode::SEND, wr_id), no_sges()).is_err() {
            thread::yield_now();
        }
        if wr_id % 3 != 1 && queue.publish() {
            doorbell.send(()).unwrap();
        }
    }
    if queue.publish() {
        doorbell.send(()).unwrap();
    }
    // It must have waited at least for the first one.
    assert!(kernel.join().unwrap() > 0);
}

#[test]
fn completions_are_whole_while_the_kernel_adds() {
    const TOTAL: u32 = if cfg!(miri) { 300 } else { 10_000 };
    let map = map(16, Cqe::STRIDE);
    let memory = Memory::new(&map);
    let mut queue = Completions::new(memory.clone(), &map).unwrap();
    let kernel = thread::spawn({
        let memory = memory.clone();
        move || {
            for number in 0..TOTAL {
                while ring::room(
                    number,
                    ring::count(memory.word(CONSUMER).load(Ordering::Acquire)),
                    map.entries,
                ) == 0
                {
                    thread::yield_now();
                }
                let cqe = Cqe {
                    byte_len: number,
                    imm: number,
                    timestamp: number.into(),
                    ..completion(number.into())
                };
                complete(&memory, &map, number, cqe);
            }
        }
    });

    let mut number = 0;
    while number < TOTAL {
        let Some(got) = queue.next() else {
            queue.release();
            thread::yield_now();
            continue;
        };

        assert_eq!(got.wr_id, number.into());
        assert_eq!((got.byte_len, got.imm), (number, number));
        assert_eq!(got.timestamp, number.into());
        number += 1;
        if number % 5 == 0 {
            queue.release();
        }
    }
    kernel.join().unwrap();
}
