// SPDX-License-Identifier: GPL-2.0

//! Send queues: WRs in the order of posting, and their completions in the same order.

mod flush;

use crate::{
    abi::siw,
    driver::Riw,
    queue::{
        completion::{add_completion, Completion, CqObject, PendingNotify},
        fifo::Fifo,
        kernel_wr::PostedSend,
        posted::PostedWrs,
        send_state::{invalidate, BegunWr, Generation, SendDepth, SendState, WrProgress},
        wr::{SendData, SendWr, WcStatus, WrId, WrPlace, WrReport},
        QpObject,
    },
};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
    },
};
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};
use rdma::Device;

pub(crate) use flush::Flush;

/// Maximum entries to check, complete or flush in one critical section: it runs with bottom halves
/// off.
const CHUNK: u32 = 64;

/// The send queue of a queue pair.
///
/// A WR leaves the ring when riw begins it. With siw's ABI the process sees that, and by it knows
/// whether the next WR needs a doorbell; so while a worker looks for WRs by itself, the WR stays
/// there until the next one begins. The WR is then in `begun` until it and all WRs before it
/// are done, as completions come in the order of posting. A WR that is done at once begins when it
/// is done: if no other is begun, it needs no place in `begun`.
#[pin_data]
pub(crate) struct SendQueue {
    wrs: PostedWrs<SendWr, { siw::SQE_WORDS }>,
    cq: ARef<CqObject>,
    /// The number of the queue pair.
    qp: u32,
    /// Every WR gives a completion.
    signal_all: bool,
    /// Counts WRs taken: the number of the next one. Changes under `state`; only the
    /// holder of the right to transmit takes WRs, or a flush that excludes it.
    next: Atomic<u32>,
    /// Whether [`SendState::end`] is set. Changes under `state`, and may be read without it.
    ended: Atomic<bool>,
    /// Whether the holder of the right to transmit looks for WRs by itself. Changes under `state`;
    /// only the holder changes it.
    polled: Atomic<bool>,
    /// The number of WRs in [`SendState::begun`], and of its places. Changes under `state`, and may
    /// be read without it. Only the holder of the right to transmit adds WRs.
    begun: Atomic<u32>,
    places: u32,
    /// Whether the oldest WRs in [`SendState::begun`] may be done and not completed. Changes under
    /// `state`, and may be read without it.
    has_rest: Atomic<bool>,
    #[pin]
    state: BhSpinLock<SendState>,
}

impl SendQueue {
    /// Creates a queue of `wrs` for queue pair `qp`, in which `max_wr` may be begun. Process
    /// context; may sleep. Fails with `ENOMEM` without memory.
    pub(crate) fn new(
        wrs: PostedWrs<SendWr, { siw::SQE_WORDS }>,
        max_wr: u32,
        cq: ARef<CqObject>,
        qp: u32,
        signal_all: bool,
    ) -> Result<impl PinInit<Self>> {
        let queue = Fifo::new(max_wr.max(1))?;
        let places = queue.size();

        Ok(pin_init!(Self {
            wrs,
            cq,
            qp,
            signal_all,
            next: Atomic::new(0),
            ended: Atomic::new(false),
            polled: Atomic::new(false),
            begun: Atomic::new(0),
            places,
            has_rest: Atomic::new(false),
            state <- new_bh_spinlock!(
                SendState::new(queue),
                "riw::SendQueue::state"
            ),
        }))
    }

    /// Whether every WR gives a completion. Any context.
    pub(crate) fn signals_all(&self) -> bool {
        self.signal_all
    }

    /// Posts a WR of a kernel user. Any context. Fails as [`PostedWrs::post`] does.
    pub(crate) fn post(&self, wr: PostedSend) -> Result {
        self.wrs.post(wr)
    }

    /// Returns the next WR, which keeps its place until [`Self::begin`], and stores its data in
    /// `data`. For the transmitter: process context.
    pub(crate) fn peek(&self, data: &mut SendData) -> Option<SendWr> {
        let mut wr = match self.polled.load(ordering::Relaxed) {
            true => self.wrs.peek(self.next(), data),
            false => self.wrs.peek_or_idle(self.next(), data),
        };

        // Behind the peek: the WR may have been posted after the end was set.
        if self.ended.load(ordering::Relaxed) && self.state.lock().is_past_end(self.next()) {
            self.put_back(wr.take(), data);
        }
        wr
    }

    /// Notes whether the transmitter looks for WRs by itself. Then the process rings no doorbell.
    /// Later, it does so again for the WRs behind the one for which the transmitter looks next. For
    /// the transmitter: process context.
    pub(crate) fn set_polled(&self, polled: bool) {
        let mut state = self.state.lock();

        self.polled.store(polled, ordering::Relaxed);
        self.release_kept(&mut state);
    }

    /// Returns the place of the WR before the next one, if it has been kept.
    fn release_kept(&self, state: &mut SendState) {
        if core::mem::take(&mut state.keeps_last) {
            self.wrs.release(self.next().wrapping_sub(1));
        }
    }

    /// Whether the next WR is posted. For the transmitter: process context.
    pub(crate) fn is_posted(&self) -> bool {
        let next = self.next();

        self.wrs.is_posted(next, next)
    }

    /// Takes the WR that [`Self::peek`] returned back: it cannot begin yet. For the transmitter:
    /// process context.
    pub(crate) fn put_back(&self, wr: Option<SendWr>, data: &mut SendData) {
        if let Some(wr) = wr {
            self.wrs.put_back(wr, data);
        }
    }

    /// Whether a WR may begin: not too many are begun. Otherwise there is room when an earlier one
    /// has completed. For the transmitter: process context.
    pub(crate) fn has_room(&self) -> bool {
        self.begun.load(ordering::Relaxed) < self.places
    }

    /// Returns what the WR that [`Self::peek`] returned will report, a message of `bytes`. It
    /// begins, now or when it is done. For the transmitter: process context.
    pub(crate) fn report(&self, wr: &SendWr, data: &SendData, bytes: u32) -> WrReport {
        trace::wr_begin(self, || trace::Begun {
            wr_id: wr.number(data),
            opcode: wr.trace_opcode(),
            bytes,
            flags: wr.flags(data),
        });
        self.silent_report(wr, bytes)
    }

    /// As [`Self::report`], without a trace event.
    fn silent_report(&self, wr: &SendWr, bytes: u32) -> WrReport {
        WrReport {
            opcode: wr.opcode,
            bytes,
            signaled: self.signal_all || wr.signaled,
        }
    }

    /// Begins the WR that [`Self::peek`] returned. `waits`: its id, if it waits for a response of
    /// the peer: that may arrive before the send returns. Process context. Returns its number;
    /// `None` without [room](Self::has_room).
    pub(crate) fn begin(&self, report: WrReport, waits: Option<WrId>) -> Option<u32> {
        let mut state = self.state.lock();
        let progress = match waits {
            Some(id) => WrProgress::Waiting(id),
            None => WrProgress::Sending,
        };
        let number = state.begun.push(BegunWr { report, progress }).ok()?;

        self.note_begun(&state);
        self.release_next(&mut state);
        Some(number)
    }

    /// Notes how many WRs are begun. The caller holds `state`.
    fn note_begun(&self, state: &SendState) {
        self.begun.store(state.begun.len(), ordering::Relaxed);
    }

    /// Returns the number of the next WR. Any context.
    pub(crate) fn next(&self) -> u32 {
        self.next.load(ordering::Relaxed)
    }

    /// Returns the place of the next WR to its poster. The caller holds `state`.
    fn release_next(&self, state: &mut SendState) {
        let next = self.next();

        match self.polled.load(ordering::Relaxed) {
            true => state.keeps_last = self.wrs.release_late(next, state.keeps_last),
            false => self.wrs.release(next),
        }
        self.next.store(next.wrapping_add(1), ordering::Relaxed);
    }

    /// Finishes the WR that the transmitter has, whose `id` it returns: completes it, or notes its
    /// status until all WRs before it are done. Process context.
    pub(crate) fn finish(&self, place: WrPlace, id: WrId, status: WcStatus) -> PendingNotify {
        let mut state = self.state.lock();
        let progress = WrProgress::Done(id, status);

        match place {
            WrPlace::Next(report) => {
                let wr = BegunWr { report, progress };

                self.release_next(&mut state);
                if state.begun.is_empty() {
                    return self.add(&state, wr);
                }
                // The transmitter has found room. It waits for the WRs before it.
                let _ = state.begun.push(wr);
                self.note_begun(&state);
                PendingNotify::default()
            }
            WrPlace::Begun(number) => {
                if let Some(begun) = state.begun.get(number) {
                    begun.progress = progress;
                }
                let pending = self.complete(&mut state);

                drop(state);
                pending.and(self.complete_rest())
            }
        }
    }

    /// Gives WR `number` its id, as memory was lent for it. Process context or softirq.
    pub(crate) fn return_id(&self, number: u32, id: WrId) {
        self.state.lock().return_id(number, id);
    }

    /// Finishes WR `number`, which waits for a response, as [`Self::finish`] does. `lent`: its id,
    /// if memory was lent for it. Process context or softirq. Many WRs may wait for this one: the
    /// transmitter completes those that [`Self::has_rest`] tells of.
    pub(crate) fn finish_waiting(
        &self,
        number: u32,
        lent: Option<WrId>,
        status: WcStatus,
    ) -> PendingNotify {
        let mut state = self.state.lock();

        state.finish_waiting(number, lent, status);
        self.complete(&mut state)
    }

    /// Whether WRs may be left to [`Self::complete_rest`]. Any context.
    pub(crate) fn has_rest(&self) -> bool {
        self.has_rest.load(ordering::Relaxed)
    }

    /// Completes the oldest WRs, up to the first one that is not done. For the transmitter: process
    /// context.
    pub(crate) fn complete_rest(&self) -> PendingNotify {
        let mut pending = PendingNotify::default();

        while self.has_rest() {
            pending = pending.and(self.complete(&mut self.state.lock()));
        }
        pending
    }

    /// Completes the oldest WRs, up to the first one that is not done, a limited number.
    fn complete(&self, state: &mut SendState) -> PendingNotify {
        let mut pending = PendingNotify::default();

        for _ in 0..CHUNK {
            match state.begun.front() {
                Some(begun) if matches!(begun.progress, WrProgress::Done(..)) => {}
                _ => {
                    self.note_completed(state, false);
                    return pending;
                }
            }
            if let Some(begun) = state.begun.pop() {
                pending = pending.and(self.add(state, begun));
            }
        }
        self.note_completed(state, true);
        pending
    }

    /// Notes how many WRs are begun after some were completed, and whether more of them may be
    /// done. The caller holds `state`.
    fn note_completed(&self, state: &SendState, has_rest: bool) {
        self.note_begun(state);
        self.has_rest.store(has_rest, ordering::Relaxed);
    }

    /// Adds the completion of a WR, if there is to be one. A WR that is not done is flushed.
    fn add(&self, state: &SendState, wr: BegunWr) -> PendingNotify {
        let (mut id, status) = match wr.progress {
            WrProgress::Done(id, status) => (id, status),
            WrProgress::Waiting(id) => (id, WcStatus::Flushed),
            // The transmitter gives no id back any more.
            WrProgress::Sending => return PendingNotify::default(),
        };
        let Some(object) = &state.object else {
            return PendingNotify::default();
        };

        invalidate(&mut id, object);
        // A kernel user that gives a WR no id needs no completion of its flush, and its completion
        // queue may have no room for one.
        let silent = match status {
            WcStatus::Success => true,
            WcStatus::Flushed => id.is_anonymous(),
            _ => false,
        };
        if silent && !wr.report.signaled {
            return PendingNotify::default();
        }
        let completion = Completion {
            id,
            opcode: wr.report.opcode,
            status,
            bytes: wr.report.bytes,
            invalidated: None,
            immediate: None,
            qp: self.qp,
        };
        add_completion(&self.cq, completion, object, false)
    }

    /// Ends the queue behind the WRs that are posted now: later ones are not begun. A WR that is
    /// posted during the call may go either way. Checks each place at most once, so a consumer that
    /// keeps posting cannot delay the end. Does nothing if the queue has been opened again since
    /// `generation`. Process context.
    pub(crate) fn end(&self, generation: Generation) {
        let first = self.next();
        let mut end = first;

        loop {
            let mut state = self.state.lock();

            if state.generation != generation {
                return;
            }
            // WRs that were taken meanwhile had been posted.
            if self.next().wrapping_sub(first) > end.wrapping_sub(first) {
                end = self.next();
            }
            for _ in 0..CHUNK {
                // The place of the WR before `first` may still have it.
                let places = self.wrs.len().saturating_sub(state.keeps_last.into());
                let full = end.wrapping_sub(first) >= places;

                if full || !self.wrs.is_posted(end, self.next()) {
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

    /// Sets the end, unless the queue has an earlier one.
    fn set_end(&self, state: &mut SendState, end: u32) {
        if !state.is_past_end(end) {
            state.end = Some(end);
        }
        self.ended.store(true, ordering::Relaxed);
    }

    /// Removes the end, for a new connection. Process context or softirq.
    pub(crate) fn reopen(&self) {
        let mut state = self.state.lock();

        state.end = None;
        state.generation = Generation(state.generation.0.wrapping_add(1));
        self.ended.store(false, ordering::Relaxed);
    }

    /// Returns the present generation. Process context or softirq.
    pub(crate) fn generation(&self) -> Generation {
        self.state.lock().generation
    }

    /// Whether no WR is begun and none is to be. Process context or softirq.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();

        state.begun.is_empty() && self.begins_none(&state)
    }

    /// As [`Self::is_idle`], and true also if all WRs that are begun are done and not completed.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut state = self.state.lock();

        state.all_done() && self.begins_none(&state)
    }

    /// Whether no other WR is to begin.
    fn begins_none(&self, state: &SendState) -> bool {
        let next = self.next();

        state.is_past_end(next) || !self.wrs.is_posted(next, next)
    }

    /// Returns how full the queue is. Process context or softirq.
    pub(crate) fn depth(&self) -> SendDepth {
        let (next, begun, kept) = {
            let state = self.state.lock();

            (self.next(), state.begun.len(), state.keeps_last)
        };
        let places = self.wrs.len().saturating_sub(kept.into());

        SendDepth {
            posted: match self.wrs.is_posted(next, next) {
                true => self.wrs.posted(next).min(places),
                false => 0,
            },
            begun,
        }
    }

    /// Gives completions, for queue pair `object`. Process context.
    pub(crate) fn publish(&self, object: &QpObject) {
        self.state.lock().object = Some(object.into());
    }

    /// Gives no more completions, and takes back those that a kernel user has not polled. Process
    /// context.
    pub(crate) fn kill(&self) {
        let object = self.state.lock().object.take();

        if let Some(object) = object {
            self.cq.forget(&object);
        }
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
