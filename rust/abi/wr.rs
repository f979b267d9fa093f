// SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB

//! Work requests: the entries of send and receive queues.

use crate::{halves, join, ring, MAX_INLINE, MAX_SGE};

/// The opcodes of send WRs, with the values of `enum ib_uverbs_wr_opcode`
/// (`include/uapi/rdma/ib_user_verbs.h`). Any other one completes with
/// [`LOCAL_OPERATION`](crate::cqe::status::LOCAL_OPERATION).
pub mod opcode {
    /// RDMA Write.
    pub const WRITE: u8 = 0;
    /// RDMA Write and Immediate Data
    /// ([`FEATURE_WRITE_WITH_IMM`](crate::udata::FEATURE_WRITE_WITH_IMM)).
    pub const WRITE_WITH_IMM: u8 = 1;
    /// Send.
    pub const SEND: u8 = 2;
    /// RDMA Read, to at most one SGE.
    pub const READ: u8 = 4;
    /// Compare and swap, 64 bits ([`FEATURE_ATOMICS`](crate::udata::FEATURE_ATOMICS)). The only SGE
    /// gets the old value, in the byte order of the host.
    pub const COMPARE_SWAP: u8 = 5;
    /// Fetch and add, 64 bits ([`FEATURE_ATOMICS`](crate::udata::FEATURE_ATOMICS)). The only SGE
    /// gets the old value, in the byte order of the host.
    pub const FETCH_ADD: u8 = 6;
    /// Invalidates an STag of the process
    /// ([`FEATURE_MEMORY_WINDOWS`](crate::udata::FEATURE_MEMORY_WINDOWS)).
    pub const LOCAL_INVALIDATE: u8 = 7;
    /// Binds a memory window ([`FEATURE_MEMORY_WINDOWS`](crate::udata::FEATURE_MEMORY_WINDOWS)).
    pub const BIND_MW: u8 = 8;
    /// Send with Invalidate.
    pub const SEND_WITH_INVALIDATE: u8 = 9;
    /// [`COMPARE_SWAP`] of the bits in two masks
    /// ([`FEATURE_MASKED_ATOMICS`](crate::udata::FEATURE_MASKED_ATOMICS)).
    pub const MASKED_COMPARE_SWAP: u8 = 12;
    /// [`FETCH_ADD`] of several fields
    /// ([`FEATURE_MASKED_ATOMICS`](crate::udata::FEATURE_MASKED_ATOMICS)).
    pub const MASKED_FETCH_ADD: u8 = 13;
}

/// The flags of send WRs, with the values of `enum ibv_send_flags`. Other flags are ignored.
pub mod flags {
    /// The WR waits for all earlier RDMA Reads and atomic operations.
    pub const FENCE: u16 = 1;
    /// The WR gives a completion even if it succeeds.
    pub const SIGNALED: u16 = 1 << 1;
    /// The message triggers an event at a peer that has armed its queue for solicited completions.
    pub const SOLICITED: u16 = 1 << 2;
    /// The entry has the payload, instead of SGEs. Only for Send, with or without Invalidate, and
    /// Write, with or without immediate data.
    pub const INLINE: u16 = 1 << 3;
}

/// A buffer in a memory region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sge {
    /// The address of the first octet, as the region was registered.
    pub addr: u64,
    /// The length.
    pub length: u32,
    /// The STag of the region.
    pub lkey: u32,
}

impl Sge {
    /// Words of an SGE.
    pub const WORDS: usize = size_of::<Self>() / 8;

    /// Returns the SGE as it is in a ring.
    #[inline]
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        [self.addr, join(self.length, self.lkey)]
    }

    /// Returns the SGE from its words in a ring. All values are possible.
    #[inline]
    pub const fn from_words([addr, rest]: [u64; Self::WORDS]) -> Self {
        let (length, lkey) = halves(rest);

        Self { addr, length, lkey }
    }
}

/// The head of a send queue entry. At [`Sqe::DATA`] follow [`Sqe::sge_count`] [`Sge`]s, or
/// [`Sqe::inline_len`] octets of payload if [`Sqe::flags`] has [`flags::INLINE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sqe {
    /// The process's name for the WR, which its completion has.
    pub wr_id: u64,
    /// The operation: [`opcode`].
    pub opcode: u8,
    /// The number of SGEs.
    pub sge_count: u8,
    /// [`flags`].
    pub flags: u16,
    /// The length of the payload, if it is inline.
    pub inline_len: u32,
    /// The STag of the peer's region: for Write, Read and atomic operations. For
    /// [`opcode::LOCAL_INVALIDATE`] the STag to invalidate. For [`opcode::BIND_MW`] the new STag of
    /// the window.
    pub rkey: u32,
    /// For [`opcode::SEND_WITH_INVALIDATE`] the STag that the peer invalidates. For
    /// [`opcode::WRITE_WITH_IMM`] the immediate data: four octets in the order of the wire, as in
    /// `ibv_send_wr::imm_data`. For [`opcode::BIND_MW`] the STag of the region.
    pub invalidate_or_imm: u32,
    /// The address in the peer's region. For [`opcode::BIND_MW`] the first address of the window.
    pub remote_addr: u64,
    /// The number to add, or to swap in. For [`opcode::BIND_MW`] the length of the window.
    pub add_or_swap: u64,
    /// The number to compare with. For [`opcode::BIND_MW`] the access flags (`enum
    /// ibv_access_flags`).
    pub compare: u64,
    /// For [`opcode::MASKED_COMPARE_SWAP`] the bits to swap. For [`opcode::MASKED_FETCH_ADD`] the
    /// highest bit of each field.
    pub add_or_swap_mask: u64,
    /// For [`opcode::MASKED_COMPARE_SWAP`] the bits to compare.
    pub compare_mask: u64,
}

impl Sqe {
    /// Words of the head.
    pub const WORDS: usize = size_of::<Self>() / 8;
    /// The offset of the SGEs, or of inline data.
    pub const DATA: usize = size_of::<Self>();
    /// The greatest stride of a send queue.
    pub const MAX_STRIDE: usize = Self::stride(MAX_SGE, MAX_INLINE);

    /// Returns the stride of a send queue for WRs of that many SGEs or octets of inline data.
    pub const fn stride(max_sge: usize, max_inline: usize) -> usize {
        let sges = max_sge.saturating_mul(size_of::<Sge>());
        let data = if sges > max_inline { sges } else { max_inline };
        // A WR may always have one SGE.
        let data = if data == 0 { size_of::<Sge>() } else { data };

        ring::lines(data.saturating_add(Self::DATA))
    }

    /// Returns how many octets of inline data a WR may have in a queue of this stride.
    pub const fn max_inline(stride: usize) -> usize {
        let room = stride.saturating_sub(Self::DATA);

        if room > MAX_INLINE {
            MAX_INLINE
        } else {
            room
        }
    }

    /// Returns how many SGEs a WR may have in a queue of this stride.
    pub const fn max_sge(stride: usize) -> usize {
        sges(stride.saturating_sub(Self::DATA))
    }

    /// Returns the head as it is in a ring.
    #[inline]
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        let [f0, f1] = self.flags.to_ne_bytes();
        let first = u32::from_ne_bytes([self.opcode, self.sge_count, f0, f1]);

        [
            self.wr_id,
            join(first, self.inline_len),
            join(self.rkey, self.invalidate_or_imm),
            self.remote_addr,
            self.add_or_swap,
            self.compare,
            self.add_or_swap_mask,
            self.compare_mask,
        ]
    }

    /// Returns the head from its words in a ring. All values are possible.
    #[inline]
    pub const fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [wr_id, control, keys, remote_addr, add_or_swap, compare, masks @ ..] = words;
        let [add_or_swap_mask, compare_mask] = masks;
        let (first, inline_len) = halves(control);
        let (rkey, invalidate_or_imm) = halves(keys);
        let [opcode, sge_count, f0, f1] = first.to_ne_bytes();

        Self {
            wr_id,
            opcode,
            sge_count,
            flags: u16::from_ne_bytes([f0, f1]),
            inline_len,
            rkey,
            invalidate_or_imm,
            remote_addr,
            add_or_swap,
            compare,
            add_or_swap_mask,
            compare_mask,
        }
    }
}

/// The head of an entry of a receive queue or SRQ. At [`Rqe::DATA`] follow [`Rqe::sge_count`]
/// [`Sge`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Rqe {
    /// The process's name for the WR, which its completion has.
    pub wr_id: u64,
    /// The number of SGEs.
    pub sge_count: u32,
    /// 0.
    pub reserved: u32,
}

impl Rqe {
    /// Words of the head.
    pub const WORDS: usize = size_of::<Self>() / 8;
    /// The offset of the SGEs.
    pub const DATA: usize = size_of::<Self>();
    /// The greatest stride of a receive queue.
    pub const MAX_STRIDE: usize = Self::stride(MAX_SGE);

    /// Returns the stride of a receive queue for WRs of that many SGEs.
    pub const fn stride(max_sge: usize) -> usize {
        let sges = max_sge.saturating_mul(size_of::<Sge>());

        ring::lines(sges.saturating_add(Self::DATA))
    }

    /// Returns how many SGEs a WR may have in a queue of this stride.
    pub const fn max_sge(stride: usize) -> usize {
        sges(stride.saturating_sub(Self::DATA))
    }

    /// Returns the head as it is in a ring.
    #[inline]
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        [self.wr_id, join(self.sge_count, self.reserved)]
    }

    /// Returns the head from its words in a ring. All values are possible.
    #[inline]
    pub const fn from_words([wr_id, rest]: [u64; Self::WORDS]) -> Self {
        let (sge_count, reserved) = halves(rest);

        Self {
            wr_id,
            sge_count,
            reserved,
        }
    }
}

/// Returns how many SGEs fit into that many octets.
const fn sges(octets: usize) -> usize {
    match octets.checked_div(size_of::<Sge>()) {
        Some(fit) if fit < MAX_SGE => fit,
        _ => MAX_SGE,
    }
}

const _: () = {
    assert!(size_of::<Sge>() == 16);
    assert!(size_of::<Sqe>() == 64);
    assert!(size_of::<Rqe>() == 16);
    assert!(core::mem::offset_of!(Sqe, opcode) == 8);
    assert!(core::mem::offset_of!(Sqe, flags) == 10);
    assert!(core::mem::offset_of!(Sqe, inline_len) == 12);
    assert!(core::mem::offset_of!(Sqe, rkey) == 16);
    assert!(core::mem::offset_of!(Sqe, remote_addr) == 24);
    assert!(core::mem::offset_of!(Sqe, compare_mask) == 56);
    assert!(core::mem::offset_of!(Rqe, sge_count) == 8);
    assert!(Sqe::MAX_STRIDE == 320);
    assert!(Rqe::MAX_STRIDE == 320);
};
