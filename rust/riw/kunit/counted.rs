// SPDX-License-Identifier: GPL-2.0

//! Rings of riw's own ABI, and the WRs in them, whose other side is a process on another CPU: an
//! honest process, and a hostile one that writes any word at any time.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::CountedRing;
use crate::queue::wr::{Buffers, RecvWr, SendData, SendRequest, SendWr};
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        barrier, Arc,
    },
};
use kernel_ext::kunit::{wait_until, Workers};
use rdma::wc::{WcOpcode, WcStatus};
use riw_abi::{
    ring::{self, CONSUMER, PRODUCER, WAKE_AT},
    wr::{flags, opcode, Rqe, Sge, Sqe},
};

fn count(ring: &CountedRing, offset: usize) -> u32 {
    ring.header(offset)
        .map_or(0, |word| ring::count(word.load(ordering::Acquire)))
}

fn set(ring: &CountedRing, offset: usize, word: u64) {
    if let Some(to) = ring.header(offset) {
        to.store(word, ordering::Release);
    }
}

/// Acts as the process: posts entry `number`, with `number` in each word. Returns whether it must
/// ring the doorbell.
fn post(ring: &CountedRing, number: u32) -> bool {
    let entry = ring.entry(number);

    for at in 0..entry.octets() / 8 {
        let _ = entry.store(at * 8, &[number.into()]);
    }
    set(ring, PRODUCER, ring::word(number + 1));
    barrier::smp_mb(ordering::Full);
    ring::must_ring(number, number + 1, count(ring, WAKE_AT))
}

/// Writes a WR as the only entry of a ring, and decodes it, its data into `to`.
fn decode_send(sqe: Sqe, data: &[u64], to: &mut SendData) -> Result<SendWr> {
    let ring = CountedRing::new(1, Sqe::stride(4, 64))?;
    let entry = ring.entry(0);

    entry.store(0, &sqe.to_words()).ok_or(EINVAL)?;
    entry.store(Sqe::DATA, data).ok_or(EINVAL)?;
    Ok(SendWr::of_own(&entry, to))
}

fn decode_recv(sge_count: u32, to: &mut Buffers) -> Result<RecvWr> {
    let ring = CountedRing::new(1, Rqe::stride(3))?;
    let entry = ring.entry(0);
    let rqe = Rqe {
        wr_id: 7,
        sge_count,
        reserved: 0,
    };

    entry.store(0, &rqe.to_words()).ok_or(EINVAL)?;
    Ok(RecvWr::of_own(&entry, to))
}

#[kunit_tests(riw_counted)]
mod tests {
    use super::*;

    /// Small, so that slots are reused at once.
    const LEN: u32 = 4;
    const ENTRIES: u32 = 100_000;

    /// A process posts and rings the doorbell as the ABI says; the kernel sleeps whenever there is
    /// no entry. It gets each entry once, and whole.
    #[test]
    fn no_entry_is_left_behind() -> Result {
        let ring = Arc::new(CountedRing::new(LEN, 128)?, GFP_KERNEL)?;
        let bells = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let workers = Workers::new(1)?;
        let (mut next, mut torn, mut slept) = (0u32, 0u32, 0u32);

        let (process, bell) = (ring.clone(), bells.clone());
        workers.add(move || {
            for number in 0..ENTRIES {
                if !wait_until(|| ring::room(number, count(&process, CONSUMER), LEN) != 0) {
                    return;
                }
                if post(&process, number) {
                    bell.fetch_add(1, ordering::Full);
                }
            }
        })?;
        let mut heard = 0;
        while next < ENTRIES {
            if let Some(entry) = ring.posted_entry(next) {
                let mut words = [0; 16];

                entry.load(0, &mut words).ok_or(EINVAL)?;
                torn += u32::from(words.iter().any(|word| *word != next.into()));
                ring.release(next);
                next += 1;
            } else if !ring.wake_at(next) {
                slept += 1;
                if !wait_until(|| bells.load(ordering::Acquire) != heard) {
                    break;
                }
                heard = bells.load(ordering::Acquire);
            }
        }
        drop(workers);
        assert_eq!(next, ENTRIES);
        assert_eq!(torn, 0);
        // Otherwise the test has tested nothing.
        assert!(slept > 0);
        Ok(())
    }

    /// A count of the process that cannot be gives no entry; one that can be gives no more than
    /// there are.
    #[test]
    fn a_count_gives_at_most_the_ring() -> Result {
        let ring = CountedRing::new(LEN, 64)?;

        for next in [0, 3, u32::MAX - 1] {
            for word in [0, 1, 5, 9, u64::MAX, u64::from(u32::MAX) << 32, 1 << 31] {
                set(&ring, PRODUCER, word);

                let ahead = ring::count(word).wrapping_sub(next);
                assert_eq!(ring.posted(next), if ahead <= LEN { ahead } else { 0 });
                assert_eq!(ring.posted_entry(next).is_some(), ring.posted(next) != 0);
            }
        }
        Ok(())
    }

    /// Every entry number maps into the ring, behind the header, to the slot of the number modulo
    /// the entries, and no access exceeds its entry.
    #[test]
    fn entries_stay_within_the_ring() -> Result {
        let ring = CountedRing::new(5, 192)?;
        assert_eq!(ring.len(), 8);
        for number in [0, 7, 8, u32::MAX] {
            let entry = ring.entry(number);
            let (stored, mut loaded) = ([u64::from(number) + 1; 24], [0; 24]);

            assert_eq!(entry.octets(), 192);
            assert!(entry.store(0, &stored).is_some());
            assert!(ring.entry(number % 8).load(0, &mut loaded).is_some());
            assert_eq!(loaded, stored);
            assert!(entry.store(8, &stored).is_none());
            assert!(entry.load(192, &mut [0]).is_none());
            assert!(entry.load(usize::MAX, &mut [0]).is_none());
        }
        assert_eq!(count(&ring, PRODUCER), 0);
        assert_eq!(count(&ring, CONSUMER), 0);
        assert!(ring.header(ring::HEADER).is_none());
        assert!(CountedRing::new(u32::MAX, 64).is_err());
        Ok(())
    }

    /// The doorbell of receives does not ring before the kernel requests it, and then once.
    #[test]
    fn a_receive_rings_if_it_is_wanted() -> Result {
        let ring = CountedRing::for_receives(LEN, 64)?;

        assert!(!post(&ring, 0));
        assert!(ring.wake_at(0));
        ring.release(0);
        assert!(!ring.wake_at(1));
        assert!(post(&ring, 1));
        assert!(!post(&ring, 2));
        Ok(())
    }

    /// The words of a WR become the request that they name.
    #[test]
    fn a_send_is_decoded() -> Result {
        let sqe = Sqe {
            wr_id: 7,
            opcode: opcode::SEND_WITH_INVALIDATE,
            sge_count: 2,
            flags: flags::SIGNALED | flags::SOLICITED | flags::FENCE,
            invalidate_or_imm: 0x1234,
            ..Sqe::default()
        };
        let sge = |addr, length| {
            Sge {
                addr,
                length,
                lkey: 5,
            }
            .to_words()
        };
        let ([a, b], [c, d]) = (sge(0x1000, 3), sge(0x2000, 4));
        let mut data = SendData::none();
        let wr = decode_send(sqe, &[a, b, c, d], &mut data)?;

        assert_eq!(wr.id.number(), 7);
        assert!(wr.signaled && wr.fence);
        assert_eq!(wr.opcode, WcOpcode::SendInvalidate);
        let Ok((
            SendRequest::Send {
                solicited,
                invalidate,
            },
            len,
        )) = wr.request
        else {
            return Err(EINVAL);
        };
        assert_eq!(len, 7);
        assert!(solicited);
        assert_eq!(invalidate.map(|stag| stag.0), Some(0x1234));
        let SendData::Buffers(buffers) = data else {
            return Err(EINVAL);
        };
        assert!(buffers.iter().map(|sge| sge.addr).eq([0x1000, 0x2000]));
        Ok(())
    }

    /// Inline data is copied from the entry, up to its length.
    #[test]
    fn inline_data_is_decoded() -> Result {
        let sqe = Sqe {
            opcode: opcode::WRITE,
            flags: flags::INLINE,
            inline_len: 11,
            sge_count: u8::MAX,
            ..Sqe::default()
        };
        let data = *b"0123456789abcdef";
        let [low, high] = [0, 8].map(|at| {
            let mut word = [0; 8];

            word.copy_from_slice(data.get(at..at + 8).unwrap_or_default());
            u64::from_ne_bytes(word)
        });
        let mut to = SendData::none();
        let wr = decode_send(sqe, &[low, high], &mut to)?;

        assert!(matches!(wr.request, Ok((SendRequest::Write { .. }, 11))));
        let SendData::Inline(inline) = to else {
            return Err(EINVAL);
        };
        assert_eq!(inline.get(0, 11), data.get(..11));
        assert!(inline.get(0, 12).is_none());
        Ok(())
    }

    /// The place of the data serves WR after WR: each has its own data there, and none of an
    /// earlier one.
    #[test]
    fn a_request_has_only_its_own_data() -> Result {
        let sge = |addr| {
            Sge {
                addr,
                length: 1,
                lkey: 5,
            }
            .to_words()
        };
        let ([a, b], [c, d]) = (sge(0x1000), sge(0x2000));
        let sqe = |sge_count, flags, inline_len| Sqe {
            opcode: opcode::SEND,
            sge_count,
            flags,
            inline_len,
            ..Sqe::default()
        };
        let mut to = SendData::none();

        for (count, words) in [
            (2, &[a, b, c, d][..]),
            (1, &[c, d]),
            (0, &[]),
            (2, &[c, d, a, b]),
        ] {
            // Between two WRs with buffers, one with inline data.
            for inline_len in [16, 3, 0] {
                let wr = decode_send(sqe(0, flags::INLINE, inline_len), &[a, b], &mut to)?;
                let SendData::Inline(inline) = &to else {
                    return Err(EINVAL);
                };
                // CAST: A small number.
                let len = inline_len as usize;

                assert!(wr.request.is_ok());
                assert!(inline.get(0, len).is_some());
                assert!(inline.get(0, len + 1).is_none());
            }
            let wr = decode_send(sqe(count, 0, 0), words, &mut to)?;
            let SendData::Buffers(buffers) = &to else {
                return Err(EINVAL);
            };

            assert!(wr.request.is_ok());
            assert_eq!(buffers.len(), Some(count.into()));
            assert!(buffers
                .iter()
                .map(|sge| sge.addr)
                .eq(words.iter().step_by(2).copied()));
        }
        Ok(())
    }

    /// The place of the buffers serves one receive after the other, too.
    #[test]
    fn a_receive_has_only_its_own_buffers() -> Result {
        let mut buffers = Buffers::none();

        for count in [3, 1, 0, 2] {
            assert!(decode_recv(count, &mut buffers)?.valid.is_ok());
            // CAST: A small number.
            assert_eq!(buffers.iter().count(), count as usize);
        }
        assert!(decode_recv(4, &mut buffers)?.valid.is_err());
        assert!(buffers.give_up().is_none());
        assert_eq!(buffers.iter().count(), 0);
        Ok(())
    }

    /// A WR that cannot be fails, and fails as the ABI says.
    #[test]
    fn invalid_requests_fail() -> Result {
        let status = |sqe: Sqe, words: &[u64]| -> Result<Option<WcStatus>> {
            Ok(decode_send(sqe, words, &mut SendData::none())?
                .request
                .err())
        };
        let sqe = |opcode, sge_count, flags, inline_len| Sqe {
            opcode,
            sge_count,
            flags,
            inline_len,
            ..Sqe::default()
        };
        let long = [0, u64::MAX, 0, u64::MAX];

        for unknown in [3, 10, 14, 128, u8::MAX] {
            let failed = status(sqe(unknown, 0, 0, 0), &[])?;
            assert_eq!(failed, Some(WcStatus::LocalOperation));
        }
        // The entry has room for 4 SGEs, or 64 octets.
        assert_eq!(status(sqe(opcode::SEND, 4, 0, 0), &[])?, None);
        let failed = status(sqe(opcode::SEND, 5, 0, 0), &[])?;
        assert_eq!(failed, Some(WcStatus::LocalOperation));
        assert_eq!(status(sqe(opcode::SEND, 0, flags::INLINE, 64), &[])?, None);
        for len in [65, 256, 257, u32::MAX] {
            let failed = status(sqe(opcode::SEND, 0, flags::INLINE, len), &[])?;
            assert_eq!(failed, Some(WcStatus::LocalLength));
        }
        let failed = status(sqe(opcode::READ, 1, flags::INLINE, 0), &[])?;
        assert_eq!(failed, Some(WcStatus::LocalOperation));
        let failed = status(sqe(opcode::READ, 2, 0, 0), &[])?;
        assert_eq!(failed, Some(WcStatus::LocalOperation));
        // An atomic operation has one buffer of 8 octets.
        let sge = Sge {
            length: 8,
            ..Sge::default()
        }
        .to_words();
        for atomic in [opcode::FETCH_ADD, opcode::MASKED_COMPARE_SWAP] {
            assert_eq!(status(sqe(atomic, 1, 0, 0), &sge)?, None);
            let failed = status(sqe(atomic, 0, 0, 0), &sge)?;
            assert_eq!(failed, Some(WcStatus::LocalOperation));
            let failed = status(sqe(atomic, 1, 0, 0), &[0, 0])?;
            assert_eq!(failed, Some(WcStatus::LocalOperation));
        }
        let failed = status(sqe(opcode::WRITE, 2, 0, 0), &long)?;
        assert_eq!(failed, Some(WcStatus::LocalLength));
        Ok(())
    }

    /// A receive has no more SGEs than its entry has room for.
    #[test]
    fn a_receive_with_too_many_sges_fails() -> Result {
        for fits in 0..=3 {
            let mut buffers = Buffers::none();
            assert!(decode_recv(fits, &mut buffers)?.valid.is_ok());
            assert!(matches!(buffers, Buffers::Process(_)));
            // CAST: A small number.
            assert_eq!(buffers.iter().count(), fits as usize);
        }
        for many in [4, 16, 17, u32::MAX] {
            let failed = decode_recv(many, &mut Buffers::none())?.valid.err();
            assert_eq!(failed, Some(WcStatus::LocalOperation));
        }
        Ok(())
    }
}
