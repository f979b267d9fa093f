// SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB

//! Completions: the entries of completion queues.

use crate::{halves, join, ring};

/// The opcodes of completions, with the values of `enum ib_uverbs_wc_opcode`
/// (`include/uapi/rdma/ib_user_verbs.h`), and of `enum ibv_wc_opcode` for receives.
pub mod opcode {
    /// A Send, with or without Invalidate.
    pub const SEND: u8 = 0;
    /// An RDMA Write, with or without immediate data.
    pub const WRITE: u8 = 1;
    /// An RDMA Read.
    pub const READ: u8 = 2;
    /// A compare and swap, masked or not.
    pub const COMPARE_SWAP: u8 = 3;
    /// A fetch and add, masked or not.
    pub const FETCH_ADD: u8 = 4;
    /// A memory window was bound.
    pub const BIND_MW: u8 = 5;
    /// An STag was invalidated locally.
    pub const LOCAL_INVALIDATE: u8 = 6;
    /// A receive: a message of the peer's Send.
    pub const RECEIVE: u8 = 128;
    /// A receive: immediate data of the peer's RDMA Write.
    pub const RECEIVE_WRITE_WITH_IMM: u8 = 129;
}

/// The statuses of completions, with the values of `enum ib_wc_status` (`include/rdma/ib_verbs.h`)
/// and `enum ibv_wc_status`.
pub mod status {
    /// The WR is done.
    pub const SUCCESS: u8 = 0;
    /// A message is longer than its buffers, or too long.
    pub const LOCAL_LENGTH: u8 = 1;
    /// The WR is invalid.
    pub const LOCAL_OPERATION: u8 = 2;
    /// An SGE names no region, or memory outside of it.
    pub const LOCAL_PROTECTION: u8 = 4;
    /// The queue pair was in error before the WR began or was done.
    pub const FLUSHED: u8 = 5;
    /// A memory window could not be bound.
    pub const BIND: u8 = 6;
    /// A region does not allow the access.
    pub const LOCAL_ACCESS: u8 = 8;
    /// The peer found the request invalid.
    pub const REMOTE_INVALID: u8 = 9;
    /// The peer's region does not allow the access.
    pub const REMOTE_ACCESS: u8 = 10;
    /// Reserved: riw does not report it.
    pub const REMOTE_OPERATION: u8 = 11;
    /// Another error.
    pub const GENERAL: u8 = 21;
}

/// The flags of completions.
pub mod flags {
    /// The lap of the ring in which the entry was written: set in the first, third, … lap.
    pub const PHASE: u16 = 1;
    /// [`Cqe::imm`](super::Cqe::imm) is valid.
    pub const WITH_IMM: u16 = 1 << 1;
    /// The message has invalidated [`Cqe::invalidated`](super::Cqe::invalidated).
    pub const WITH_INVALIDATE: u16 = 1 << 2;
}

/// An entry of a completion queue. The kernel stores the word [`Cqe::CONTROL`] last, release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Cqe {
    /// The WR's [`wr_id`](crate::wr::Sqe::wr_id).
    pub wr_id: u64,
    /// The kind of the completion: [`opcode`].
    pub opcode: u8,
    /// The outcome: [`status`].
    pub status: u8,
    /// [`flags`].
    pub flags: u16,
    /// The length of the message. Undefined unless the WR was successful.
    pub byte_len: u32,
    /// The number of the queue pair.
    pub qp_num: u32,
    /// Reserved for more about an error. 0.
    pub vendor_err: u32,
    /// The immediate data: four octets in the order of the wire, as in `ibv_wc::imm_data`.
    pub imm: u32,
    /// The STag that the message has invalidated.
    pub invalidated: u32,
    /// When the kernel added the completion: nanoseconds of `CLOCK_MONOTONIC`. 0 unless the queue
    /// was created with timestamps.
    pub timestamp: u64,
    /// 0.
    pub reserved: [u64; 3],
}

impl Cqe {
    /// Words of an entry.
    pub const WORDS: usize = size_of::<Self>() / 8;
    /// The stride of a completion queue.
    pub const STRIDE: usize = size_of::<Self>();
    /// The word that has opcode, status, flags and length: the kernel stores it last, release, and
    /// the process loads it first, acquire.
    pub const CONTROL: usize = 1;

    /// Returns the phase of entry `number`: [`flags::PHASE`] or 0.
    #[inline]
    pub const fn phase(number: u32, entries: u32) -> u16 {
        if number & entries == 0 {
            flags::PHASE
        } else {
            0
        }
    }

    /// Whether the word [`Self::CONTROL`] belongs to entry `number`, rather than to the one a lap
    /// before.
    #[inline]
    pub const fn is_new(control: u64, number: u32, entries: u32) -> bool {
        let (first, _) = halves(control);
        let [_, _, f0, f1] = first.to_ne_bytes();

        u16::from_ne_bytes([f0, f1]) & flags::PHASE == Self::phase(number, entries)
    }

    /// Returns the entry as it is in a ring.
    #[inline]
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        let [f0, f1] = self.flags.to_ne_bytes();
        let first = u32::from_ne_bytes([self.opcode, self.status, f0, f1]);
        let [a, b, c] = self.reserved;

        [
            self.wr_id,
            join(first, self.byte_len),
            join(self.qp_num, self.vendor_err),
            join(self.imm, self.invalidated),
            self.timestamp,
            a,
            b,
            c,
        ]
    }

    /// Returns the entry from its words in a ring.
    #[inline]
    pub const fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [wr_id, control, numbers, data, timestamp, a, b, c] = words;
        let (first, byte_len) = halves(control);
        let (qp_num, vendor_err) = halves(numbers);
        let (imm, invalidated) = halves(data);
        let [opcode, status, f0, f1] = first.to_ne_bytes();

        Self {
            wr_id,
            opcode,
            status,
            flags: u16::from_ne_bytes([f0, f1]),
            byte_len,
            qp_num,
            vendor_err,
            imm,
            invalidated,
            timestamp,
            reserved: [a, b, c],
        }
    }
}

const _: () = {
    assert!(size_of::<Cqe>() == 64);
    assert!(core::mem::offset_of!(Cqe, opcode) == 8 * Cqe::CONTROL);
    assert!(core::mem::offset_of!(Cqe, flags) == 10);
    assert!(core::mem::offset_of!(Cqe, qp_num) == 16);
    assert!(core::mem::offset_of!(Cqe, imm) == 24);
    assert!(core::mem::offset_of!(Cqe, timestamp) == 32);
    assert!(Cqe::STRIDE % ring::LINE == 0);
};
