// SPDX-License-Identifier: GPL-2.0

//! Rings of completions, in the encoding of each ABI.

use super::{
    completion::{Arm, Completion},
    counted::CountedRing,
    ring::Ring,
    wr::{WcOpcode, WcStatus},
};
use crate::abi::siw;
use kernel::sync::atomic::{ordering, Atomic};
use riw_abi::{
    cqe::{self, Cqe},
    ring::{self, ARM, ARM_NEXT, ARM_SOLICITED},
};

/// A ring of siw's completions.
pub(super) type SiwCqRing = Ring<{ siw::CQE_WORDS }>;

/// The completions that a process polls. The producer counts them.
pub(super) enum CqRing {
    /// The control word follows the last entry.
    Siw(SiwCqRing),
    Own(CountedRing),
}

impl CqRing {
    /// Returns the size in entries. Any context.
    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Siw(ring) => ring.len(),
            Self::Own(ring) => ring.len(),
        }
    }

    /// Whether there is no room for completion `put`. `taken` is the producer's, and 0 at first:
    /// the process's count as it was seen last. Process context or softirq.
    pub(super) fn is_full(&self, put: u32, taken: &mut u32) -> bool {
        match self {
            Self::Siw(ring) => ring.is_valid(put),
            Self::Own(ring) => {
                if ring::room(put, *taken, ring.len()) != 0 {
                    return false;
                }
                // A count that cannot be leaves no room.
                *taken = ring.consumer();
                ring::room(put, *taken, ring.len()) == 0
            }
        }
    }

    /// Writes completion `put`, which was added at `timestamp` (in nanoseconds; siw's ABI has
    /// none). Process context or softirq.
    pub(super) fn publish(&self, put: u32, completion: &Completion, timestamp: u64) {
        match self {
            Self::Siw(ring) => ring.publish(put, &siw::Cqe::from(completion).words()),
            Self::Own(ring) => {
                let cqe = Cqe {
                    timestamp,
                    ..own_cqe(completion, Cqe::phase(put, ring.len()))
                };
                let words = cqe.to_words();
                let entry = ring.entry(put);

                // The stores cannot fail: the entry has this size. Ordering:
                // selftests/litmus/cq_arm.litmus.
                if let [first, control, rest @ ..] = words.as_slice() {
                    let _ = entry.store(0, &[*first]);
                    let _ = entry.store(size_of_words(2), rest);
                    let _ = entry.store_release(Cqe::CONTROL, *control);
                }
            }
        }
    }

    /// Copies completion `number` to another ring, as completion `at`. Only riw's own ABI has rings
    /// of another size. Process context or softirq.
    pub(super) fn copy_to(&self, number: u32, to: &Self, at: u32) {
        let (Self::Own(from), Self::Own(to)) = (self, to) else {
            return;
        };
        let mut words = [0; Cqe::WORDS];

        // The accesses cannot fail: entries have this size.
        let _ = from.entry(number).load(0, &mut words);
        let mut cqe = Cqe::from_words(words);

        cqe.flags = cqe.flags & !cqe::flags::PHASE | Cqe::phase(at, to.len());
        let _ = to.entry(at).store(0, &cqe.to_words());
    }

    /// Returns how many completions the process has not polled; `put` is the number of the next
    /// one. Process context or softirq.
    pub(super) fn used(&self, put: u32) -> u32 {
        match self {
            // From the next entry on, the free entries come first, and then the oldest completion.
            Self::Siw(ring) => ring.len().saturating_sub(ring.run(put, false)),
            Self::Own(ring) => {
                ring.len()
                    .saturating_sub(ring::room(put, ring.consumer(), ring.len()))
            }
        }
    }

    /// Returns the word by which the process arms the queue. Any context.
    pub(super) fn control(&self) -> Option<&Atomic<u64>> {
        match self {
            Self::Siw(ring) => ring.extra(0),
            Self::Own(ring) => ring.header(ARM),
        }
    }

    /// Arms the queue, as the process does. Process context or softirq.
    pub(super) fn arm(&self, arm: Arm) {
        let Some(control) = self.control() else {
            return;
        };

        match self {
            Self::Siw(_) => {
                let flags = match arm {
                    Arm::Solicited => siw::NOTIFY_SOLICITED,
                    Arm::Next => siw::NOTIFY_SOLICITED | siw::NOTIFY_NEXT,
                };

                control.store(siw_control(flags), ordering::Relaxed);
            }
            Self::Own(_) => match arm {
                // Another thread may arm it meanwhile, and wait for more than this.
                Arm::Solicited => {
                    let _ = control.cmpxchg(0, ARM_SOLICITED, ordering::Relaxed);
                }
                Arm::Next => control.store(ARM_NEXT, ordering::Relaxed),
            },
        }
    }

    /// Returns how the queue is armed. Any context.
    pub(super) fn arm_state(&self) -> Option<Arm> {
        self.armed(self.control()?.load(ordering::Relaxed))
    }

    /// Returns how a control word arms the queue. Any context.
    pub(super) fn armed(&self, word: u64) -> Option<Arm> {
        let (next, solicited) = match self {
            Self::Siw(_) => {
                // Its first four bytes have the flags.
                let [a, b, c, d, ..] = word.to_ne_bytes();
                let flags = u32::from_ne_bytes([a, b, c, d]);

                (
                    flags & siw::NOTIFY_NEXT != 0,
                    flags & siw::NOTIFY_SOLICITED != 0,
                )
            }
            Self::Own(_) => (word & ARM_NEXT != 0, word & ARM_SOLICITED != 0),
        };

        match (next, solicited) {
            (true, _) => Some(Arm::Next),
            (false, true) => Some(Arm::Solicited),
            (false, false) => None,
        }
    }

    /// Whether the completion before `put` is there and not polled. Process context or softirq.
    pub(super) fn has_last(&self, put: u32) -> bool {
        match self {
            Self::Siw(ring) => ring.is_valid(put.wrapping_sub(1)),
            Self::Own(_) => self.used(put) != 0,
        }
    }
}

/// Octets of so many words.
const fn size_of_words(words: usize) -> usize {
    words.wrapping_mul(size_of::<u64>())
}

/// Returns siw's control word with `flags`.
pub(super) fn siw_control(flags: u32) -> u64 {
    let [a, b, c, d] = flags.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}

impl From<&Completion> for siw::Cqe {
    fn from(completion: &Completion) -> Self {
        Self {
            id: completion.id.number(),
            opcode: siw::wc_opcode(completion.opcode),
            status: siw::wc_status(completion.status),
            bytes: completion.process_bytes(),
            invalidated: completion.invalidated.as_ref().map(|ended| ended.stag().0),
            qp: completion.qp,
        }
    }
}

/// Returns an entry of riw's own ABI.
fn own_cqe(completion: &Completion, phase: u16) -> Cqe {
    let invalidate = match completion.invalidated {
        Some(_) => cqe::flags::WITH_INVALIDATE,
        None => 0,
    };
    let (with_imm, imm) = match &completion.immediate {
        // The word has the octets in their order.
        Some(immediate) => (cqe::flags::WITH_IMM, u32::from_ne_bytes(immediate.data.0)),
        None => (0, 0),
    };

    Cqe {
        wr_id: completion.id.number(),
        opcode: own_opcode(completion.opcode),
        status: own_status(completion.status),
        flags: phase | invalidate | with_imm,
        byte_len: completion.process_bytes(),
        qp_num: completion.qp,
        imm,
        invalidated: (completion.invalidated.as_ref()).map_or(0, |ended| ended.stag().0),
        ..Cqe::default()
    }
}

/// Returns the opcode of a completion in riw's own ABI.
fn own_opcode(opcode: WcOpcode) -> u8 {
    match opcode {
        WcOpcode::Send | WcOpcode::SendInvalidate => cqe::opcode::SEND,
        WcOpcode::Write => cqe::opcode::WRITE,
        WcOpcode::Read => cqe::opcode::READ,
        WcOpcode::FetchAdd | WcOpcode::MaskedFetchAdd => cqe::opcode::FETCH_ADD,
        WcOpcode::CmpSwap | WcOpcode::MaskedCmpSwap => cqe::opcode::COMPARE_SWAP,
        // A process cannot register by a WR.
        WcOpcode::LocalInvalidate | WcOpcode::Register => cqe::opcode::LOCAL_INVALIDATE,
        WcOpcode::BindWindow => cqe::opcode::BIND_MW,
        WcOpcode::Receive => cqe::opcode::RECEIVE,
        WcOpcode::ReceiveImmediate => cqe::opcode::RECEIVE_WRITE_WITH_IMM,
    }
}

/// Returns the status of a completion in riw's own ABI.
fn own_status(status: WcStatus) -> u8 {
    match status {
        WcStatus::Success => cqe::status::SUCCESS,
        WcStatus::LocalLength => cqe::status::LOCAL_LENGTH,
        WcStatus::LocalProtection => cqe::status::LOCAL_PROTECTION,
        WcStatus::LocalOperation => cqe::status::LOCAL_OPERATION,
        WcStatus::Flushed => cqe::status::FLUSHED,
        WcStatus::Bind => cqe::status::BIND,
        WcStatus::LocalAccess => cqe::status::LOCAL_ACCESS,
        WcStatus::RemoteAccess => cqe::status::REMOTE_ACCESS,
        WcStatus::RemoteInvalid => cqe::status::REMOTE_INVALID,
    }
}
