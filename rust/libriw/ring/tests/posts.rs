// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Tests of send and receive queues.

use super::*;

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
    // Nothing is left of the refused WRs.
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
    // A stride is a multiple of cache lines, so it may have room for more SGEs than requested.
    let most = Rqe::max_sge(map.stride as usize);
    let too_many = (0..=most).map(|_| sge(1)).collect::<Vec<_>>();
    assert_eq!(queue.post(7, too_many.into_iter()), Err(Refused::Invalid));
}

/// The kernel as the table in `riw_abi::ring` describes it: takes entries until it finds none, and
/// then waits for the doorbell.
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
