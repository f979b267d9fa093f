// SPDX-License-Identifier: GPL-2.0

//! What riw shares with user space: siw's ABI, version 1, so that rdma-core's libsiw serves riw.
//!
//! C header: `include/uapi/rdma/siw-abi.h`. The rings are arrays of entries that are multiples of
//! 64-bit words; the second word of each has the flags, of which [`VALID`] says whose it is.

use kernel::prelude::*;

/// The version of this ABI.
pub(crate) const VERSION: u32 = 1;

/// Scatter/gather elements of a request.
pub(crate) const MAX_SGE: usize = 6;
/// Bytes of inline data: the room of all elements but the first.
pub(crate) const MAX_INLINE: usize = 16 * (MAX_SGE - 1);
/// The offset that means to libsiw that there is no ring; it expects 0 or what can be mapped.
pub(crate) const INVALID_KEY: u64 = 0x09_0000;

/// Words of a send queue entry.
pub(crate) const SQE_WORDS: usize = 15;
/// Words of a receive queue entry.
pub(crate) const RQE_WORDS: usize = 14;
/// Words of a completion queue entry.
pub(crate) const CQE_WORDS: usize = 4;

/// The entry belongs to its consumer: the kernel for requests, the process for completions.
pub(crate) const VALID: u16 = 1;
/// The data is in the entry itself.
pub(crate) const INLINE: u16 = 1 << 1;
/// A completion is wanted.
pub(crate) const SIGNALLED: u16 = 1 << 2;
/// The peer shall have an event for this message.
pub(crate) const SOLICITED: u16 = 1 << 3;
/// Not to be started before all earlier reads are complete.
pub(crate) const READ_FENCE: u16 = 1 << 4;
/// In a completion: the message has invalidated an STag.
pub(crate) const REMOTE_INVALIDATED: u16 = 1 << 5;

/// In a completion queue's control word: an event is wanted for a solicited completion.
pub(crate) const NOTIFY_SOLICITED: u32 = 1;
/// In a completion queue's control word: an event is wanted for any completion.
pub(crate) const NOTIFY_NEXT: u32 = 1 << 1;

/// What a request asks for (`enum siw_opcode`), as far as user space can ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Opcode {
    /// RDMA Write.
    Write = 0,
    /// RDMA Read.
    Read = 1,
    /// Send.
    Send = 3,
    /// Send with Invalidate.
    SendInvalidate = 5,
    /// Receive.
    Receive = 8,
}

impl Opcode {
    /// The operation of a send queue entry; `None` for what is not one, or not offered.
    pub(crate) fn of_send(raw: u8) -> Option<Self> {
        Some(match raw {
            0 => Self::Write,
            1 => Self::Read,
            3 => Self::Send,
            5 => Self::SendInvalidate,
            _ => return None,
        })
    }
}

/// How a request ended (`enum siw_wc_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
#[expect(dead_code, reason = "the ABI has them all")]
pub(crate) enum Status {
    /// As asked.
    Success = 0,
    /// A message was longer than its receive request, or a request's own lengths are wrong.
    LocalLength = 1,
    /// A local buffer is not the process's to use like that.
    LocalProtection = 2,
    /// The request is none that the queue pair can do.
    LocalOperation = 3,
    /// Not done: the queue pair is in error.
    Flushed = 4,
    /// The peer's answer was not what it must be.
    BadResponse = 5,
    /// A local buffer that the peer was to write to may not be.
    LocalAccess = 6,
    /// The peer refused an access.
    RemoteAccess = 7,
    /// The peer refused the request as invalid.
    RemoteInvalid = 8,
    /// Something else.
    General = 9,
}

/// Response to the opening of a user context (`struct siw_uresp_alloc_ctx`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct UcontextResponse {
    pub(crate) dev_id: u32,
    pub(crate) pad: u32,
}

/// Response to the making of a completion queue (`struct siw_uresp_create_cq`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct CqResponse {
    pub(crate) cq_id: u32,
    pub(crate) num_cqe: u32,
    pub(crate) cq_key: u64,
}

/// Response to the making of a queue pair (`struct siw_uresp_create_qp`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct QpResponse {
    pub(crate) qp_id: u32,
    pub(crate) num_sqe: u32,
    pub(crate) num_rqe: u32,
    pub(crate) pad: u32,
    pub(crate) sq_key: u64,
    pub(crate) rq_key: u64,
}

/// Response to the making of a shared receive queue (`struct siw_uresp_create_srq`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct SrqResponse {
    pub(crate) num_rqe: u32,
    pub(crate) pad: u32,
    pub(crate) srq_key: u64,
}

/// Request to register memory (`struct siw_ureq_reg_mr`). The key that it proposes is not used:
/// riw makes its STags up as a whole, at random.
#[derive(FromBytes, IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct MrRequest {
    pub(crate) stag_key: u8,
    pub(crate) reserved: [u8; 3],
    pub(crate) pad: u32,
}

/// Response to the registration of memory (`struct siw_uresp_reg_mr`).
#[derive(IntoBytes, zerocopy_derive::Immutable)]
#[repr(C)]
pub(crate) struct MrResponse {
    pub(crate) stag: u32,
    pub(crate) pad: u32,
}

/// A local buffer of a request (`struct siw_sge`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sge {
    /// The address, in the region's terms.
    pub(crate) addr: u64,
    /// Bytes.
    pub(crate) len: u32,
    /// The STag of the region.
    pub(crate) lkey: u32,
}

/// The elements of a request, as copied from its entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SgList {
    words: [u64; 2 * MAX_SGE],
    count: u8,
}

impl SgList {
    /// `None` if there are more than [`MAX_SGE`].
    fn new(words: [u64; 2 * MAX_SGE], count: u8) -> Option<Self> {
        (usize::from(count) <= MAX_SGE).then_some(Self { words, count })
    }

    /// The elements in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Sge> + '_ {
        self.words
            .chunks_exact(2)
            .take(usize::from(self.count))
            .filter_map(|pair| {
                let [addr, rest] = *pair else { return None };
                let [a, b, c, d, e, f, g, h] = rest.to_ne_bytes();

                Some(Sge {
                    addr,
                    len: u32::from_ne_bytes([a, b, c, d]),
                    lkey: u32::from_ne_bytes([e, f, g, h]),
                })
            })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Bytes of all of them. `None` if that is more than a message can have.
    pub(crate) fn len(&self) -> Option<u32> {
        self.iter()
            .try_fold(0u32, |sum, sge| sum.checked_add(sge.len))
    }

    /// The data of an inline request: it takes the room of all elements but the first.
    pub(crate) fn inline_data(&self) -> [u8; MAX_INLINE] {
        let mut data = [0; MAX_INLINE];

        for (to, word) in data.chunks_exact_mut(8).zip(self.words.iter().skip(2)) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        data
    }
}

/// The flags of an entry, from its second word.
pub(crate) fn flags(word: u64) -> u16 {
    let [a, b, ..] = word.to_ne_bytes();
    u16::from_ne_bytes([a, b])
}

/// A send queue entry (`struct siw_sqe`), copied from the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sqe {
    /// The consumer's name for the request.
    pub(crate) id: u64,
    /// [`INLINE`], [`SIGNALLED`], [`SOLICITED`], [`READ_FENCE`].
    pub(crate) flags: u16,
    /// Any value: see [`Opcode::of_send`].
    pub(crate) opcode: u8,
    /// The peer's STag.
    pub(crate) rkey: u32,
    /// The address in the peer's region.
    pub(crate) raddr: u64,
    /// The local buffers; `None` if there are too many.
    pub(crate) sgl: Option<SgList>,
}

impl From<[u64; SQE_WORDS]> for Sqe {
    fn from([id, control, raddr, sgl @ ..]: [u64; SQE_WORDS]) -> Self {
        let [a, b, num_sge, opcode, e, f, g, h] = control.to_ne_bytes();

        Self {
            id,
            flags: u16::from_ne_bytes([a, b]),
            opcode,
            rkey: u32::from_ne_bytes([e, f, g, h]),
            raddr,
            sgl: SgList::new(sgl, num_sge),
        }
    }
}

/// A receive queue entry (`struct siw_rqe`), copied from the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rqe {
    /// The consumer's name for the request.
    pub(crate) id: u64,
    /// The local buffers; `None` if there are too many.
    pub(crate) sgl: Option<SgList>,
}

impl From<[u64; RQE_WORDS]> for Rqe {
    fn from([id, control, sgl @ ..]: [u64; RQE_WORDS]) -> Self {
        let [_, _, num_sge, ..] = control.to_ne_bytes();

        Self {
            id,
            sgl: SgList::new(sgl, num_sge),
        }
    }
}

/// A completion (`struct siw_cqe`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cqe {
    /// The consumer's name for the request.
    pub(crate) id: u64,
    /// What was asked for.
    pub(crate) opcode: Opcode,
    /// How it ended.
    pub(crate) status: Status,
    /// Bytes of the message.
    pub(crate) bytes: u32,
    /// The STag that a received message has invalidated.
    pub(crate) invalidated: Option<u32>,
    /// The number of the queue pair.
    pub(crate) qp: u32,
}

impl Cqe {
    /// The entry for the ring.
    pub(crate) fn words(&self) -> [u64; CQE_WORDS] {
        let flags = if self.invalidated.is_some() {
            VALID | REMOTE_INVALIDATED
        } else {
            VALID
        };
        // CAST: To the values of the ABI; the flags of a completion fit a byte.
        let [flags, _] = flags.to_le_bytes();
        let [s0, s1] = (self.status as u16).to_ne_bytes();
        let [b0, b1, b2, b3] = self.bytes.to_ne_bytes();
        let control = [flags, self.opcode as u8, s0, s1, b0, b1, b2, b3];
        let [i0, i1, i2, i3] = self.invalidated.unwrap_or(0).to_ne_bytes();

        [
            self.id,
            u64::from_ne_bytes(control),
            u64::from_ne_bytes([i0, i1, i2, i3, 0, 0, 0, 0]),
            u64::from(self.qp),
        ]
    }
}
