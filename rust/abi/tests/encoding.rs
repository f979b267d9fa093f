// SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB

//! Layouts in memory, sizes of rings, and the arithmetic of counts.

use riw_abi::cqe::{self, Cqe};
use riw_abi::doorbell::{self, Doorbell};
use riw_abi::ring;
use riw_abi::wr::{self, Rqe, Sge, Sqe};

/// The octets of words as they are in memory.
fn octets(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The words of a struct are its memory, so that a library may write either.
#[test]
fn an_sqe_has_its_fields_at_their_offsets() {
    let sqe = Sqe {
        wr_id: 0x0102_0304_0506_0708,
        opcode: wr::opcode::COMPARE_SWAP,
        sge_count: 3,
        flags: wr::flags::SIGNALED,
        inline_len: 0x1112_1314,
        rkey: 0x2122_2324,
        invalidate_or_imm: 0x3132_3334,
        remote_addr: 0x4142_4344_4546_4748,
        add_or_swap: 5,
        compare: 6,
        add_or_swap_mask: 7,
        compare_mask: 8,
    };
    let octets = octets(&sqe.to_words());

    assert_eq!(Sqe::from_words(sqe.to_words()), sqe);
    assert_eq!(octets[..8], sqe.wr_id.to_ne_bytes());
    assert_eq!(octets[8..10], [sqe.opcode, sqe.sge_count]);
    assert_eq!(octets[10..12], sqe.flags.to_ne_bytes());
    assert_eq!(octets[12..16], sqe.inline_len.to_ne_bytes());
    assert_eq!(octets[16..20], sqe.rkey.to_ne_bytes());
    assert_eq!(octets[20..24], sqe.invalidate_or_imm.to_ne_bytes());
    assert_eq!(octets[24..32], sqe.remote_addr.to_ne_bytes());
    assert_eq!(octets[56..], sqe.compare_mask.to_ne_bytes());
}

#[test]
fn an_rqe_and_an_sge_have_their_fields_at_their_offsets() {
    let rqe = Rqe {
        wr_id: 1,
        sge_count: 0x1112_1314,
        reserved: 0,
    };
    let sge = Sge {
        addr: 2,
        length: 0x2122_2324,
        lkey: 0x3132_3334,
    };

    assert_eq!(Rqe::from_words(rqe.to_words()), rqe);
    assert_eq!(octets(&rqe.to_words())[8..12], rqe.sge_count.to_ne_bytes());
    assert_eq!(Sge::from_words(sge.to_words()), sge);
    assert_eq!(octets(&sge.to_words())[8..12], sge.length.to_ne_bytes());
    assert_eq!(octets(&sge.to_words())[12..], sge.lkey.to_ne_bytes());
}

#[test]
fn a_cqe_has_its_fields_at_their_offsets() {
    let cqe = Cqe {
        wr_id: 1,
        opcode: cqe::opcode::RECEIVE_WRITE_WITH_IMM,
        status: cqe::status::FLUSHED,
        flags: cqe::flags::WITH_IMM,
        byte_len: 0x1112_1314,
        qp_num: 0x2122_2324,
        vendor_err: 0x3132_3334,
        imm: 0x4142_4344,
        invalidated: 0x5152_5354,
        timestamp: 6,
        reserved: [7, 8, 9],
    };
    let octets = octets(&cqe.to_words());

    assert_eq!(Cqe::from_words(cqe.to_words()), cqe);
    assert_eq!(octets[8..10], [cqe.opcode, cqe.status]);
    assert_eq!(octets[10..12], cqe.flags.to_ne_bytes());
    assert_eq!(octets[12..16], cqe.byte_len.to_ne_bytes());
    assert_eq!(octets[16..20], cqe.qp_num.to_ne_bytes());
    assert_eq!(octets[20..24], cqe.vendor_err.to_ne_bytes());
    assert_eq!(octets[24..28], cqe.imm.to_ne_bytes());
    assert_eq!(octets[28..32], cqe.invalidated.to_ne_bytes());
    assert_eq!(octets[56..], 9u64.to_ne_bytes());
}

#[test]
fn a_doorbell_has_the_layout_of_uverbs() {
    let bytes = Doorbell::send(0x0102_0304, 0x1112_1314_1516_1718).to_bytes();

    assert_eq!(bytes[..4], doorbell::POST_SEND.to_ne_bytes());
    assert_eq!(bytes[4..6], 8u16.to_ne_bytes());
    assert_eq!(bytes[6..8], 1u16.to_ne_bytes());
    assert_eq!(bytes[8..16], 0x1112_1314_1516_1718u64.to_ne_bytes());
    assert_eq!(bytes[16..20], 0x0102_0304u32.to_ne_bytes());
    assert_eq!(bytes[20..28], [0; 8]);
    assert_eq!(bytes[28..], 56u32.to_ne_bytes());
    assert_eq!(
        Doorbell::srq_recv(0, 0).to_bytes()[28..],
        16u32.to_ne_bytes()
    );
    assert_eq!(Doorbell::recv(0, 0).to_bytes()[..4], 29u32.to_ne_bytes());
}

/// Entries have room for the requested sizes, and for the granted sizes.
#[test]
fn entries_have_room_for_the_sizes_of_their_stride() {
    for max_sge in 0..=riw_abi::MAX_SGE {
        for max_inline in 0..=riw_abi::MAX_INLINE {
            let stride = Sqe::stride(max_sge, max_inline);

            assert_eq!(stride % ring::LINE, 0);
            assert!(stride <= Sqe::MAX_STRIDE);
            assert!(Sqe::max_sge(stride) >= max_sge.max(1));
            assert!(Sqe::max_inline(stride) >= max_inline);
            assert!(Sqe::DATA + 16 * Sqe::max_sge(stride) <= stride);
            assert!(Sqe::DATA + Sqe::max_inline(stride) <= stride);
        }
        let stride = Rqe::stride(max_sge);

        assert_eq!(stride % ring::LINE, 0);
        assert!(Rqe::max_sge(stride) >= max_sge.max(1));
        assert!(Rqe::DATA + 16 * Rqe::max_sge(stride) <= stride);
    }
}

/// Entries neither overlap nor exceed the ring, around the end of the numbers, too.
#[test]
fn entries_are_side_by_side() {
    let len = ring::len(8, 128).unwrap();

    for number in (0..16).chain(u32::MAX - 16..=u32::MAX) {
        let offset = ring::offset(number, 8, 128);

        assert!(offset >= ring::HEADER && offset + 128 <= len);
        assert_eq!(offset, ring::HEADER + 128 * (number % 8) as usize);
    }
    assert_eq!(ring::offset(u32::MAX, 8, 128) + 128, len);
}

#[test]
fn counts_wrap() {
    for consumer in [0, 5, u32::MAX - 3, u32::MAX] {
        for posted in 0..=8 {
            let producer = consumer.wrapping_add(posted);

            assert_eq!(ring::posted(producer, consumer, 8), posted);
            assert_eq!(ring::room(producer, consumer, 8), 8 - posted);
        }
    }
    assert_eq!(ring::count(ring::word(u32::MAX)), u32::MAX);
    assert_eq!(ring::word(u32::MAX), u64::from(u32::MAX));
}

/// A count that cannot be gives no entries to the kernel, and no room to the process.
#[test]
fn impossible_counts_give_nothing() {
    for (producer, consumer) in [(9, 0), (0, 1), (u32::MAX, 0), (0x8000_0000, 0)] {
        assert_eq!(ring::posted(producer, consumer, 8), 0);
        assert_eq!(ring::room(producer, consumer, 8), 0);
    }
    assert_eq!(ring::count(u64::MAX), u32::MAX);
}

#[test]
fn posting_rings_when_it_passes_the_entry() {
    for old in [0u32, 7, u32::MAX - 1, u32::MAX] {
        for posts in 1..5u32 {
            let new = old.wrapping_add(posts);

            for at in 0..posts {
                assert!(ring::must_ring(old, new, old.wrapping_add(at)));
            }
            assert!(!ring::must_ring(old, new, new));
            assert!(!ring::must_ring(old, new, old.wrapping_sub(1)));
        }
        assert!(!ring::must_ring(old, old, old));
    }
    assert!(!ring::must_ring(0, 8, ring::WAKE_NEVER));
}

/// A process that polls a ring sees each entry once, and never one of the lap before.
#[test]
fn the_phase_tells_new_entries() {
    let control = |number| {
        let flags = Cqe::phase(number, 4);
        Cqe {
            flags,
            ..Cqe::default()
        }
        .to_words()[Cqe::CONTROL]
    };

    for start in [0u32, u32::MAX - 9] {
        for number in (0..20).map(|n| start.wrapping_add(n)) {
            assert!(Cqe::is_new(control(number), number, 4));
            assert!(!Cqe::is_new(control(number), number.wrapping_add(4), 4));
        }
    }
    // A ring begins with zeros.
    assert!(!Cqe::is_new(0, 0, 4));
}

#[test]
fn arming_selects_completions() {
    assert!(!ring::meets(0, true));
    assert!(ring::meets(ring::ARM_SOLICITED, true));
    assert!(!ring::meets(ring::ARM_SOLICITED, false));
    assert!(ring::meets(ring::ARM_NEXT, false));
    assert!(ring::meets(ring::ARM_NEXT | ring::ARM_SOLICITED, false));
    assert!(!ring::meets(!(ring::ARM_NEXT | ring::ARM_SOLICITED), true));
}
