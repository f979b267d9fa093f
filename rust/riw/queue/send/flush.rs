// SPDX-License-Identifier: GPL-2.0

//! The end of the WRs of a send queue whose stream is over.

use super::{SendQueue, CHUNK};
use crate::queue::{
    completion::PendingNotify,
    send_state::{BegunWr, WrProgress},
    wr::{SendData, WcStatus},
};

/// How WRs are flushed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Flush {
    /// They are completed.
    Complete,
    /// They are dropped, without completions.
    Discard,
}

impl SendQueue {
    /// Flushes every WR, begun or not. The transmitter must have returned the id of the WR that it
    /// was sending. Process context. Returns whether the consumer posted more than there are places
    /// meanwhile: the caller then flushes again later.
    pub(crate) fn flush(&self, flush: Flush) -> (PendingNotify, bool) {
        let mut pending = PendingNotify::default();

        for _ in self.chunks() {
            let (some, more) = self.flush_some(flush);

            pending = pending.and(some);
            if !more {
                return (pending, false);
            }
        }
        (pending, true)
    }

    /// Iterates as often as [`Self::flush_some`] must run to flush all begun WRs and a full ring.
    pub(crate) fn chunks(&self) -> core::ops::RangeInclusive<u32> {
        0..=self.wrs.len().saturating_mul(2) / CHUNK
    }

    /// Flushes the oldest WRs as [`Self::flush`] does, a limited number. Process context or
    /// softirq. Returns whether there may be more.
    #[cold]
    pub(crate) fn flush_some(&self, flush: Flush) -> (PendingNotify, bool) {
        let mut state = self.state.lock();
        let mut pending = PendingNotify::default();
        let mut data = SendData::none();

        for _ in 0..CHUNK {
            let wr = match state.begun.pop() {
                Some(begun) => begun,
                None => {
                    self.note_begun(&state);
                    // A worker that has not left yet does not look for what is posted behind this:
                    // the process has to ring the doorbell.
                    self.release_kept(&mut state);
                    let Some(mut wr) = self.wrs.peek_or_idle(self.next(), &mut data) else {
                        return (pending, false);
                    };

                    self.release_next(&mut state);
                    BegunWr {
                        report: self.silent_report(&wr, 0),
                        progress: WrProgress::Done(wr.give_up(&mut data), WcStatus::Flushed),
                    }
                }
            };
            if flush == Flush::Complete {
                pending = pending.and(self.add(&state, wr));
            }
        }
        self.note_begun(&state);
        (pending, true)
    }
}
