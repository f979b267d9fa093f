// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Send queues: the rules for WRs, and their entries.

use super::post::{Full, Posts};
use core::sync::atomic::AtomicU64;
use riw_abi::udata::{RingMap, FEATURE_ATOMICS, FEATURE_MEMORY_WINDOWS, FEATURE_WRITE_WITH_IMM};
use riw_abi::wr::{flags, opcode, Sge, Sqe};

/// Why a WR is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The queue is full.
    Full,
    /// The WR breaks a rule.
    Invalid,
    /// There is no such operation.
    Unsupported,
}

impl From<Full> for Refused {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

/// Where the payload is, or goes to.
pub(crate) enum Payload<'a, S> {
    /// In these buffers.
    Sges(S),
    /// Here, to be copied.
    Inline(&'a [u8]),
}

/// Flags that a WR passes on.
const PASSED: u16 = flags::FENCE | flags::SIGNALED | flags::SOLICITED;

/// A send queue. Threads that post exclude each other.
pub(crate) struct SendQueue<M> {
    pub(super) posts: Posts<M>,
    /// The opcodes, a bit each.
    opcodes: u32,
    /// Each WR gives a completion.
    signal_all: bool,
    max_sge: usize,
    max_inline: usize,
    /// The WR that [`SendQueue::begin`] has begun.
    open: Option<Sqe>,
}

/// Returns the opcodes of a kernel with these features, a bit each.
fn opcodes(features: u64) -> u32 {
    let bit = |opcode: u8| 1u32.checked_shl(opcode.into()).unwrap_or(0);
    let mut opcodes = bit(opcode::SEND)
        | bit(opcode::SEND_WITH_INVALIDATE)
        | bit(opcode::WRITE)
        | bit(opcode::READ);

    if features & FEATURE_WRITE_WITH_IMM != 0 {
        opcodes |= bit(opcode::WRITE_WITH_IMM);
    }
    if features & FEATURE_MEMORY_WINDOWS != 0 {
        opcodes |= bit(opcode::LOCAL_INVALIDATE) | bit(opcode::BIND_MW);
    }
    if features & FEATURE_ATOMICS != 0 {
        opcodes |= bit(opcode::COMPARE_SWAP) | bit(opcode::FETCH_ADD);
    }
    opcodes
}

impl<M: AsRef<[AtomicU64]>> SendQueue<M> {
    /// Returns `None` if the memory does not have the layout that the kernel has reported.
    pub(crate) fn new(memory: M, map: &RingMap, features: u64, signal_all: bool) -> Option<Self> {
        let posts = Posts::new(memory, map)?;
        let stride = posts.stride();

        Some(Self {
            posts,
            opcodes: opcodes(features),
            signal_all,
            max_sge: Sqe::max_sge(stride),
            max_inline: Sqe::max_inline(stride),
            open: None,
        })
    }

    /// The most octets of inline data that a WR may have.
    pub(crate) fn max_inline(&self) -> usize {
        self.max_inline
    }

    /// Whether the device has an operation.
    pub(crate) fn supports(&self, opcode: u8) -> bool {
        self.opcodes.checked_shr(opcode.into()).unwrap_or(0) & 1 != 0
    }

    /// Begins a WR without payload. Sets the fields of `head` that depend on the payload.
    #[inline]
    pub(crate) fn begin(&mut self, mut head: Sqe) -> Result<(), Refused> {
        if !self.supports(head.opcode) {
            return Err(Refused::Unsupported);
        }
        self.posts.begin()?;
        head.flags &= PASSED;
        if self.signal_all {
            head.flags |= flags::SIGNALED;
        }
        head.sge_count = 0;
        head.inline_len = 0;
        self.posts.write(0, head.to_words());
        self.open = Some(head);
        Ok(())
    }

    /// Sets the payload of the WR that has begun last.
    #[inline]
    pub(crate) fn set_payload<S>(&mut self, payload: Payload<'_, S>) -> Result<(), Refused>
    where
        S: ExactSizeIterator<Item = Sge>,
    {
        let mut head = self.open.ok_or(Refused::Invalid)?;
        if matches!(head.opcode, opcode::LOCAL_INVALIDATE | opcode::BIND_MW) {
            return Err(Refused::Invalid);
        }
        let one_sge = matches!(
            head.opcode,
            opcode::READ | opcode::COMPARE_SWAP | opcode::FETCH_ADD
        );

        match payload {
            Payload::Sges(sges) => {
                let most = if one_sge { 1 } else { self.max_sge };
                let count = Some(sges.len()).filter(|count| *count <= most);

                head.flags &= !flags::INLINE;
                head.inline_len = 0;
                head.sge_count = count
                    .and_then(|count| u8::try_from(count).ok())
                    .ok_or(Refused::Invalid)?;
                self.posts.write(Sqe::DATA, sges.flat_map(Sge::to_words));
            }
            Payload::Inline(bytes) => {
                let len = Some(bytes.len()).filter(|len| *len <= self.max_inline && !one_sge);

                head.flags |= flags::INLINE;
                head.sge_count = 0;
                head.inline_len = len
                    .and_then(|len| u32::try_from(len).ok())
                    .ok_or(Refused::Invalid)?;
                self.posts.write(Sqe::DATA, words(bytes));
            }
        }
        self.posts.write(0, head.to_words());
        self.open = Some(head);
        Ok(())
    }

    /// Adds a WR. The queue is as before if it is refused.
    #[inline]
    pub(crate) fn post<S>(&mut self, head: Sqe, payload: Payload<'_, S>) -> Result<(), Refused>
    where
        S: ExactSizeIterator<Item = Sge>,
    {
        self.begin(head)?;
        let done = self.set_payload(payload).and_then(|()| self.end());

        if done.is_err() {
            self.open = None;
            self.posts.withdraw_last();
        }
        done
    }

    /// Adds a WR without payload. The queue is as before if it is refused.
    #[inline]
    pub(crate) fn post_head(&mut self, head: Sqe) -> Result<(), Refused> {
        self.begin(head)?;
        self.end()
    }

    /// Checks the WR that has begun last, and ends it.
    #[inline]
    pub(crate) fn end(&mut self) -> Result<(), Refused> {
        match self.open.take() {
            // The old value needs a place.
            Some(Sqe {
                opcode: opcode::COMPARE_SWAP | opcode::FETCH_ADD,
                sge_count: 0,
                ..
            }) => Err(Refused::Invalid),
            _ => Ok(()),
        }
    }

    /// Gives all added WRs to the kernel. Returns whether the doorbell must ring.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        self.posts.publish()
    }

    /// Withdraws the WRs that were added since the last [`SendQueue::publish`].
    pub(crate) fn withdraw(&mut self) {
        self.open = None;
        self.posts.withdraw();
    }
}

/// Returns the words that have these octets in memory. The last one is filled up with zeros.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];

        for (to, byte) in word.iter_mut().zip(chunk) {
            *to = *byte;
        }
        u64::from_ne_bytes(word)
    })
}
