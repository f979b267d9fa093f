// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Tests of completion queues.

use super::super::Arming;
use super::*;

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
