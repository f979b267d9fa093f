// SPDX-License-Identifier: GPL-2.0

//! Send queues: requests in the order of posting, and their completions in the same order.

use crate::{
    abi::{self, Cqe, Opcode, Sqe, Status},
    queue::{
        completion::{CqObject, News},
        fifo::Fifo,
        ring::Ring,
    },
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

/// Entries that are looked at or flushed under the lock in one go: bottom halves are off meanwhile.
const CHUNK: u32 = 64;

/// The send queue of a queue pair.
///
/// A request leaves the ring when it is begun, so that the process can tell whether the doorbell
/// must be rung for the next one; that is the ABI. From then on it is in `begun`, until it and all
/// that were begun before it are done, for completions come in the order of posting.
#[pin_data]
pub(crate) struct SendQueue {
    ring: Ring<{ abi::SQE_WORDS }>,
    cq: ARef<CqObject>,
    /// The number of the queue pair.
    qp: u32,
    /// Every request gives a completion.
    signal_all: bool,
    /// Counts the requests taken from the ring; the next one's place. Changes under `state`, by
    /// who transmits or has kept others from it.
    next: Atomic<u32>,
    /// Whether there is a [`State::end`]. Changes under `state`, and may be looked at without it.
    ended: Atomic<bool>,
    #[pin]
    state: BhSpinLock<State>,
}

struct State {
    begun: Fifo<Begun>,
    /// Requests from this place on are not begun any more, only flushed: the stream is closing.
    end: Option<u32>,
    /// The queue pair is being destroyed: there are no completions any more.
    dead: bool,
}

struct Begun {
    id: u64,
    opcode: Opcode,
    bytes: u32,
    signalled: bool,
    /// How it ended, if it has.
    status: Option<Status>,
}

impl Begun {
    fn new(sqe: &Sqe, opcode: Opcode, bytes: u32, signal_all: bool) -> Self {
        Self {
            id: sqe.id,
            opcode,
            bytes,
            signalled: signal_all || sqe.flags & abi::SIGNALLED != 0,
            status: None,
        }
    }
}

impl State {
    /// Whether place `next` is not before the end. It can be behind: a request that was looked at
    /// before there was an end is begun nevertheless.
    fn is_past_end(&self, next: u32) -> bool {
        self.end
            .is_some_and(|end| next.wrapping_sub(end) <= u32::MAX / 2)
    }
}

impl SendQueue {
    /// A queue of the entries of `ring`. May sleep.
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
                State { begun, end: None, dead: false },
                "riw::SendQueue::state"
            ),
        }))
    }

    /// The next request, which stays in the ring. For who transmits.
    pub(crate) fn peek(&self) -> Option<Sqe> {
        // The process stores a request and then looks whether the one before it was taken; `begin`
        // stored that, and this is the look for the request. One of the two sees the other's.
        barrier::smp_mb(ordering::Full);
        let sqe = self.ring.copy(self.next()).map(Sqe::from)?;

        if self.ended.load(ordering::Relaxed) && self.state.lock().is_past_end(self.next()) {
            return None;
        }
        Some(sqe)
    }

    /// Takes the request that was peeked at out of the ring, as begun. Returns its number; `None`
    /// when there is no room: it can be begun when an earlier one has been completed.
    pub(crate) fn begin(&self, sqe: &Sqe, opcode: Opcode, bytes: u32) -> Option<u32> {
        let begun = Begun::new(sqe, opcode, bytes, self.signal_all);
        let mut state = self.state.lock();
        let number = state.begun.push(begun).ok()?;

        self.release_next();
        Some(number)
    }

    fn next(&self) -> u32 {
        self.next.load(ordering::Relaxed)
    }

    /// Gives the next entry back to the process. The caller holds `state`.
    fn release_next(&self) {
        let next = self.next();

        self.ring.release(next);
        self.next.store(next.wrapping_add(1), ordering::Relaxed);
    }

    /// Request `number` is done. Process context or softirq.
    pub(crate) fn finish(&self, number: u32, status: Status) -> News {
        let mut state = self.state.lock();

        if let Some(begun) = state.begun.get(number) {
            begun.status = Some(status);
        }
        self.complete(&mut state)
    }

    /// Gives completions for what is done, as far as nothing before it is not.
    fn complete(&self, state: &mut State) -> News {
        let mut news = News::default();

        while let Some(status) = state.begun.front().and_then(|begun| begun.status) {
            let Some(begun) = state.begun.pop() else {
                break;
            };
            news = news.and(self.add(state, &begun, status));
        }
        news
    }

    /// Gives the completion of a request, if there is to be one.
    fn add(&self, state: &State, request: &Begun, status: Status) -> News {
        if state.dead || (status == Status::Success && !request.signalled) {
            return News::default();
        }
        self.cq.add(
            &Cqe {
                id: request.id,
                opcode: request.opcode,
                status,
                bytes: request.bytes,
                invalidated: None,
                qp: self.qp,
            },
            false,
        )
    }

    /// Ends the queue behind the requests that are posted now: what is posted later is not begun any
    /// more. One that is posted meanwhile may be begun still. Looks at each entry of the ring once at
    /// most, so a process that goes on posting does not put the end off. Process context.
    pub(crate) fn end(&self) {
        let first = self.next();
        let mut end = first;

        loop {
            let mut state = self.state.lock();

            // What has been taken meanwhile was posted.
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

    /// Ends the queue at once: nothing is begun any more. Process context or softirq.
    pub(crate) fn end_now(&self) {
        self.set_end(&mut self.state.lock(), self.next());
    }

    fn set_end(&self, state: &mut State, end: u32) {
        state.end = Some(end);
        self.ended.store(true, ordering::Relaxed);
    }

    /// Takes the end away. Process context or softirq.
    pub(crate) fn reopen(&self) {
        let mut state = self.state.lock();

        state.end = None;
        self.ended.store(false, ordering::Relaxed);
    }

    /// Completes all that is begun and all that waits as flushed. `discard` leaves out the
    /// completions. Returns whether more has come than the ring has room for: the process goes on
    /// posting, and the rest is for another time. Process context.
    pub(crate) fn flush(&self, discard: bool) -> (News, bool) {
        let mut news = News::default();

        for _ in self.chunks() {
            let (some, more) = self.flush_some(discard);

            news = news.and(some);
            if !more {
                return (news, false);
            }
        }
        (news, true)
    }

    /// As many rounds of [`Self::flush_some`] as it takes to flush what is begun and a full ring.
    pub(crate) fn chunks(&self) -> core::ops::RangeInclusive<u32> {
        0..=self.ring.len().saturating_mul(2) / CHUNK
    }

    /// Completes some requests as [`Self::flush`] does, the oldest first. Returns whether there may
    /// be more. Process context or softirq.
    pub(crate) fn flush_some(&self, discard: bool) -> (News, bool) {
        let mut state = self.state.lock();
        let mut news = News::default();

        for _ in 0..CHUNK {
            let request = match state.begun.pop() {
                Some(begun) => begun,
                None => {
                    // As in `peek`.
                    barrier::smp_mb(ordering::Full);
                    let Some(sqe) = self.ring.copy(self.next()).map(Sqe::from) else {
                        return (news, false);
                    };
                    let opcode = Opcode::of_send(sqe.opcode).unwrap_or(Opcode::Send);

                    self.release_next();
                    Begun::new(&sqe, opcode, 0, self.signal_all)
                }
            };
            if !discard {
                let status = request.status.unwrap_or(Status::Flushed);
                news = news.and(self.add(&state, &request, status));
            }
        }
        (news, true)
    }

    /// Whether no request is begun, and none is still to be. Process context or softirq.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        let next = self.next();

        state.begun.is_empty() && (state.is_past_end(next) || !self.ring.is_valid(next))
    }

    /// No completion is given any more. Process context or softirq.
    pub(crate) fn kill(&self) {
        self.state.lock().dead = true;
    }

    /// Tells the consumer. Any context, under no lock.
    pub(crate) fn tell(&self, news: News) {
        news.tell(&self.cq);
    }
}
