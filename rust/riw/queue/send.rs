// SPDX-License-Identifier: GPL-2.0

//! Send queues: WRs in the order of posting, and their completions in the same order.

use crate::{
    abi,
    queue::{
        completion::{add_completion, Completion, CqObject, PendingNotify},
        fifo::Fifo,
        ring::Ring,
        wr::{SendWr, WcOpcode, WcStatus},
    },
    Riw,
};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
        barrier,
    },
};
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};
use rdma::Device;

/// Maximum entries to check or flush in one critical section: it runs with bottom halves off.
const CHUNK: u32 = 64;

/// The send queue of a queue pair.
///
/// A WR leaves the ring when riw begins it. The process sees that, and by it knows whether the next
/// WR needs a doorbell: that is the ABI. The WR is then in `begun` until it and all WRs before it
/// are done, as completions come in the order of posting.
#[pin_data]
pub(crate) struct SendQueue {
    ring: Ring<{ abi::SQE_WORDS }>,
    cq: ARef<CqObject>,
    /// The number of the queue pair.
    qp: u32,
    /// Every WR gives a completion.
    signal_all: bool,
    /// Counts WRs taken from the ring: the entry of the next one. Changes under `state`; only the
    /// holder of the right to transmit takes WRs, or a flush that excludes it.
    next: Atomic<u32>,
    /// Whether [`SendState::end`] is set. Changes under `state`, and may be read without it.
    ended: Atomic<bool>,
    #[pin]
    state: BhSpinLock<SendState>,
}

struct SendState {
    begun: Fifo<Begun>,
    /// The stream is closing: WRs from this entry on are flushed, not begun.
    end: Option<u32>,
    /// No more completions are given: the queue pair is being destroyed.
    killed: bool,
}

/// How full a send queue is.
pub(crate) struct SendDepth {
    /// WRs that the process has posted and riw has not begun.
    pub(crate) posted: u32,
    /// WRs that are begun and not completed.
    pub(crate) begun: u32,
}

/// A WR that has left the ring.
struct Begun {
    id: u64,
    opcode: WcOpcode,
    bytes: u32,
    signaled: bool,
    /// `None` until the WR is done.
    status: Option<WcStatus>,
}

impl Begun {
    fn new(wr: &SendWr, bytes: u32, signal_all: bool) -> Self {
        Self {
            id: wr.id,
            opcode: wr.opcode,
            bytes,
            signaled: signal_all || wr.signaled,
            status: None,
        }
    }
}

impl SendState {
    /// Whether entry `next` is at the end or behind it. It can be behind: the transmitter begins a
    /// WR that it peeked at before the end was set.
    fn is_past_end(&self, next: u32) -> bool {
        self.end
            .is_some_and(|end| next.wrapping_sub(end) <= u32::MAX / 2)
    }
}

impl SendQueue {
    /// Creates a queue on `ring` for queue pair `qp`. Process context; may sleep. Fails with `ENOMEM`
    /// without memory.
    pub(crate) fn new(
        ring: Ring<{ abi::SQE_WORDS }>,
        cq: ARef<CqObject>,
        qp: u32,
        signal_all: bool,
    ) -> Result<impl PinInit<Self>> {
        let begun = Fifo::new(ring.len())?;

        Ok(pin_init!(Self {
            ring,
            cq,
            qp,
            signal_all,
            next: Atomic::new(0),
            ended: Atomic::new(false),
            state <- new_bh_spinlock!(
                SendState { begun, end: None, killed: false },
                "riw::SendQueue::state"
            ),
        }))
    }

    /// Returns the next WR, which stays in the ring. For the transmitter: process context.
    pub(crate) fn peek(&self) -> Option<SendWr> {
        // The process stores a WR, and then checks whether riw took the WR before it. `begin` took
        // that one, and the load below checks for the new one. Full barriers on both sides: at
        // least one of the two sees the other's store.
        barrier::smp_mb(ordering::Full);
        let sqe = self.ring.copy(self.next()).map(abi::Sqe::from)?;

        if self.ended.load(ordering::Relaxed) && self.state.lock().is_past_end(self.next()) {
            return None;
        }
        Some(sqe.into())
    }

    /// Begins the WR that [`Self::peek`] returned, a message of `bytes`. Process context. Returns its
    /// number; `None` if too many WRs are begun: there is room when an earlier one has completed.
    pub(crate) fn begin(&self, wr: &SendWr, bytes: u32) -> Option<u32> {
        let begun = Begun::new(wr, bytes, self.signal_all);
        let mut state = self.state.lock();
        let number = state.begun.push(begun).ok()?;

        // CAST: The value is that of the ABI.
        trace::wr_begin(self, wr.id, wr.opcode as u8, bytes, || wr.flags());
        self.release_next();
        Some(number)
    }

    fn next(&self) -> u32 {
        self.next.load(ordering::Relaxed)
    }

    /// Returns the next ring entry to the process. The caller holds `state`.
    fn release_next(&self) {
        let next = self.next();

        self.ring.release(next);
        self.next.store(next.wrapping_add(1), ordering::Relaxed);
    }

    /// Finishes WR `number`: completes it, or notes its status until all WRs before it are done.
    /// Process context or softirq.
    pub(crate) fn finish(&self, number: u32, status: WcStatus) -> PendingNotify {
        let mut state = self.state.lock();

        if let Some(begun) = state.begun.get(number) {
            begun.status = Some(status);
        }
        self.complete(&mut state)
    }

    /// Completes the oldest WRs, up to the first one that is not done.
    fn complete(&self, state: &mut SendState) -> PendingNotify {
        let mut pending = PendingNotify::default();

        while let Some(status) = state.begun.front().and_then(|begun| begun.status) {
            let Some(begun) = state.begun.pop() else {
                break;
            };
            pending = pending.and(self.add(state, &begun, status));
        }
        pending
    }

    /// Adds the completion of a WR, if there is to be one.
    fn add(&self, state: &SendState, wr: &Begun, status: WcStatus) -> PendingNotify {
        if state.killed || (status == WcStatus::Success && !wr.signaled) {
            return PendingNotify::default();
        }
        add_completion(
            &self.cq,
            &Completion {
                id: wr.id,
                opcode: wr.opcode,
                status,
                bytes: wr.bytes,
                invalidated: None,
                qp: self.qp,
            },
            false,
        )
    }

    /// Ends the queue behind the WRs that are posted now: later ones are not begun. A WR that is
    /// posted during the call may go either way. Checks each ring entry at most once, so a process
    /// that keeps posting cannot delay the end. Process context.
    pub(crate) fn end(&self) {
        let first = self.next();
        let mut end = first;

        loop {
            let mut state = self.state.lock();

            // WRs that were taken meanwhile had been posted.
            if self.next().wrapping_sub(first) > end.wrapping_sub(first) {
                end = self.next();
            }
            for _ in 0..CHUNK {
                if end.wrapping_sub(first) >= self.ring.len() || !self.ring.is_valid(end) {
                    return self.set_end(&mut state, end);
                }
                end = end.wrapping_add(1);
            }
        }
    }

    /// Ends the queue at once: no more WRs are begun. Process context or softirq.
    pub(crate) fn end_now(&self) {
        self.set_end(&mut self.state.lock(), self.next());
    }

    fn set_end(&self, state: &mut SendState, end: u32) {
        state.end = Some(end);
        self.ended.store(true, ordering::Relaxed);
    }

    /// Removes the end, for a new connection. Process context or softirq.
    pub(crate) fn reopen(&self) {
        let mut state = self.state.lock();

        state.end = None;
        self.ended.store(false, ordering::Relaxed);
    }

    /// Completes every WR, begun or not, as flushed; with `discard`, without completions. Process
    /// context. Returns whether the process posted more than the ring has room for meanwhile: the
    /// caller then flushes again later.
    pub(crate) fn flush(&self, discard: bool) -> (PendingNotify, bool) {
        let mut pending = PendingNotify::default();

        for _ in self.chunks() {
            let (some, more) = self.flush_some(discard);

            pending = pending.and(some);
            if !more {
                return (pending, false);
            }
        }
        (pending, true)
    }

    /// Iterates as often as [`Self::flush_some`] must run to flush all begun WRs and a full ring.
    pub(crate) fn chunks(&self) -> core::ops::RangeInclusive<u32> {
        0..=self.ring.len().saturating_mul(2) / CHUNK
    }

    /// Completes the oldest WRs as [`Self::flush`] does, a limited number. Process context or
    /// softirq. Returns whether there may be more.
    pub(crate) fn flush_some(&self, discard: bool) -> (PendingNotify, bool) {
        let mut state = self.state.lock();
        let mut pending = PendingNotify::default();

        for _ in 0..CHUNK {
            let wr = match state.begun.pop() {
                Some(begun) => begun,
                None => {
                    // As in `peek`.
                    barrier::smp_mb(ordering::Full);
                    let Some(sqe) = self.ring.copy(self.next()).map(abi::Sqe::from) else {
                        return (pending, false);
                    };

                    self.release_next();
                    Begun::new(&sqe.into(), 0, self.signal_all)
                }
            };
            if !discard {
                let status = wr.status.unwrap_or(WcStatus::Flushed);
                pending = pending.and(self.add(&state, &wr, status));
            }
        }
        (pending, true)
    }

    /// Whether no WR is begun and none is to be. Process context or softirq.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        let next = self.next();

        state.begun.is_empty() && (state.is_past_end(next) || !self.ring.is_valid(next))
    }

    /// Returns how full the queue is. Process context or softirq.
    pub(crate) fn depth(&self) -> SendDepth {
        let (next, begun) = {
            let state = self.state.lock();

            (self.next(), state.begun.len())
        };

        SendDepth {
            posted: self.ring.run(next, true),
            begun,
        }
    }

    /// Gives no more completions. Process context or softirq.
    pub(crate) fn kill(&self) {
        self.state.lock().killed = true;
    }

    /// Notifies the consumer. Any context; no lock is held.
    pub(crate) fn notify_cq(&self, pending: PendingNotify) {
        pending.notify_cq(&self.cq);
    }
}

impl trace::Source for SendQueue {
    type Driver = Riw;

    fn device(&self) -> &Device<Riw> {
        self.cq.device()
    }

    fn number(&self) -> u32 {
        self.qp
    }
}
