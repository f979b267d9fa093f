// SPDX-License-Identifier: GPL-2.0

//! Receiving: from the socket's buffers straight to memory, an FPDU at a time.
//!
//! An FPDU stays in the socket until it is complete and its CRC is right. The socket has room for the
//! largest one ([`RX_ROOM`]), and calls back when the FPDU is complete. Sometimes TCP cannot keep it all
//! (a small `tcp_rmem`, no memory, very small segments). Then a worker gives the stream a buffer for
//! this one FPDU ([`Stream::hold`]).
//!
//! A run is bounded ([`RunBudget`]). When it has spent its budget, a worker receives the rest, one run after the
//! other, and callbacks of TCP leave it to the worker.
//!
//! Over SCTP a worker passes one chunk after the other ([`Stream::receive_chunk`]).

use crate::{
    counters::Counter,
    link::{Readable, SegmentChunk},
    queue::{receive::NextTurn, wr::WcStatus},
    stream::{
        budget::RunBudget,
        deliver::Unreported,
        framing::RxFraming,
        octets::RxOctets,
        place::{Placer, RxStep},
        rx::{Incomplete, Rx},
        tally::Tally,
        Stream, StreamError,
    },
};
use core::num::NonZeroUsize;
use iwarp::{
    mpa::fpdu::{FPDU_HEAD_MAX, FPDU_MAX},
    Error, Local, Quote, Rdmap, Terminated,
};
use kernel::{prelude::*, sync::atomic::ordering, time::Jiffies};
use kernel_ext::sync::BhSpinLockGuard;
use net::{Finished, RecvBuf};

/// Unread bytes that a socket must have room for. They are several FPDUs, so that the window stays
/// open while one of them is incomplete.
// CAST: A small constant.
pub(crate) const RX_ROOM: u32 = 4 * FPDU_MAX as u32;

/// Why [`Stream::receive`] is called.
#[derive(Clone, Copy)]
pub(crate) enum RxCause {
    /// TCP has called back for octets.
    Octets,
    /// TCP has called back for a change of its state: there need be no new octets. It also calls back while
    /// a worker unlocks the socket, for its backlog.
    State,
    /// A worker looks: there need be no new octets.
    Worker,
}

impl RxCause {
    /// Whether a worker looks.
    fn is_look(&self) -> bool {
        matches!(self, Self::Worker)
    }
}

/// Why nothing more is received.
pub(crate) enum RxEnd {
    /// The peer broke a rule, or this side failed.
    Error(StreamError),
    /// The peer sent a Terminate.
    Terminated(Terminated),
}

/// How a receive has ended.
#[derive(Default)]
pub(crate) enum RxPause {
    /// Nothing is to be done: an event follows.
    #[default]
    Idle,
    /// The socket has no room for the FPDU: a worker must call [`Stream::hold`].
    NoRoom,
    /// The budget is spent: a worker must receive the rest.
    Spent,
    /// The message at the front waits for a receive WR, since now (`begins`) or before: see
    /// [`Stream::while_waiting`]. Over SCTP its chunk has to be passed once more.
    NoReceive { begins: bool },
    /// Nothing more is received.
    End(RxEnd),
}

impl RxPause {
    /// The end of a stream, for an error that no segment of the peer has.
    fn local(error: impl Into<Error>) -> Self {
        Self::End(RxEnd::Error(StreamError {
            error: error.into(),
            quote: Quote::NONE,
        }))
    }

    /// The end of a stream for an error in the segment that `receiver` has yielded.
    fn error(error: Error, receiver: &RxFraming) -> Self {
        Self::End(RxEnd::Error(StreamError {
            error,
            quote: receiver.quote(),
        }))
    }
}

/// The outcome of [`Stream::receive`]. The caller acts on it when no lock is held.
#[must_use]
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) unreported: Unreported,
    /// The peer's first FPDU has come.
    pub(crate) first: bool,
    /// The transmitter has new work.
    pub(crate) kick: bool,
    pub(crate) next: NextTurn,
    pub(crate) pause: RxPause,
}

impl Stream {
    /// Takes octets that the socket has, whose lock is held, as many as the budget of a run allows. Softirq
    /// or process context; never sleeps. If nothing more may be placed, discards them, so that TCP sees a FIN
    /// behind them.
    pub(crate) fn receive(&self, data: &mut Readable<'_, '_>, cause: RxCause) -> Received {
        let mut rx = self.rx.lock();
        let Rx {
            receiver: Some(receiver),
            filling,
            written,
            incomplete,
            left,
            rest,
            wait,
            ..
        } = &mut *rx
        else {
            drop(rx);
            data.discard();
            return Received::default();
        };
        if *rest && !cause.is_look() {
            return Received::default();
        }
        let had_started = receiver.started();
        let waited = wait.is_some();
        let mut placer = Placer::new(self, filling, wait, written);

        let pause = match receive_fpdus(data, receiver, incomplete, &mut placer) {
            Ok(run) => {
                // If TCP had to drop octets, it calls back although it has no new ones. So it may after a wait for
                // a receive WR, in which nothing was taken; that says nothing. Nor does a look.
                let dropped = match cause {
                    RxCause::Octets => !waited,
                    RxCause::State | RxCause::Worker => incomplete.buffer_size().is_some(),
                } && run.had == *left;
                let finished = data.finish(run.taken, run.wanted());
                let lacks_room =
                    incomplete.set_room(run.lacks_room(&finished, dropped), cause.is_look());

                *left = run.left;
                *rest = matches!(run.pause, Pause::Spent);
                match run.pause {
                    Pause::Spent => RxPause::Spent,
                    // RDMAP has no urgent data, and nothing behind it can be read.
                    _ if finished.has_urgent => RxPause::local(Rdmap::CatastrophicStream),
                    Pause::NoReceive { begins } => RxPause::NoReceive { begins },
                    Pause::Incomplete { .. } if lacks_room => RxPause::NoRoom,
                    Pause::Incomplete { .. } => RxPause::Idle,
                }
            }
            Err(error) => RxPause::error(error, receiver),
        };
        let began = !had_started && receiver.started();
        let placed = placer.end(pause);
        let received = self.settle(&mut rx, placed, began);

        if let RxPause::End(_) = received.pause {
            data.discard();
        }
        received
    }

    /// Takes a chunk of SCTP. Process context; may sleep. If nothing more may be placed, discards it.
    pub(crate) fn receive_chunk(&self, chunk: SegmentChunk<'_>) -> Received {
        let mut rx = self.rx.lock();
        let Rx {
            receiver: Some(receiver),
            filling,
            written,
            left,
            wait,
            ..
        } = &mut *rx
        else {
            return Received::default();
        };
        let had_started = receiver.started();
        let mut placer = Placer::new(self, filling, wait, written);

        placer.placed = chunk.is_placed();
        *left = 0;
        let pause = match placer.receive(receiver, &RxOctets(chunk.unread())) {
            Ok(RxStep::Taken(_)) => RxPause::Idle,
            Ok(RxStep::Waits { begins }) => {
                *left = chunk.len;
                RxPause::NoReceive { begins }
            }
            // A chunk is a frame.
            Ok(RxStep::Incomplete { .. }) => RxPause::local(Local::LowerLayer),
            Err(error) => RxPause::error(error, receiver),
        };
        let began = !had_started && receiver.started();
        let placed = placer.end(pause);

        self.settle(&mut rx, placed, began)
    }

    /// Notes the results of a receive. `began`: it took the first frame of the peer. Ends the receiving side
    /// if the stream ends.
    fn settle(
        &self,
        rx: &mut BhSpinLockGuard<'_, Rx>,
        (mut received, placed): (Received, Tally),
        began: bool,
    ) -> Received {
        if began {
            received.first = true;
            self.may_send.store(true, ordering::Relaxed);
        }
        self.answered.store(true, ordering::Relaxed);
        placed.count_received(|counts| rx.counters.add_several_locked(rx, counts));
        match received.pause {
            RxPause::NoReceive { begins: true } => rx.counters.inc(Counter::RxWaits),
            RxPause::End(_) => received.next = rx.end(&self.rq).or(received.next),
            _ => {}
        }
        received
    }

    /// Gives the incomplete FPDU a buffer, if it needs one. Process context; may sleep. Without memory, fails
    /// with the number of failures for this FPDU.
    ///
    /// Returns whether it has one now. Then the caller calls [`Self::receive`].
    pub(crate) fn hold(&self) -> Result<bool, u32> {
        // The FPDU may have become complete since the worker was scheduled, and also during the allocation.
        let Some(size) = self.rx.lock().incomplete.buffer_size() else {
            return Ok(false);
        };
        let buffer = RecvBuf::new(size, &self.memcg);
        let mut rx = self.rx.lock();

        match (&mut rx.incomplete, buffer) {
            (Incomplete::NoRoom { size: needed, .. }, Ok(buffer)) if *needed == size => {
                rx.incomplete = Incomplete::InBuffer(buffer);
                Ok(true)
            }
            (
                Incomplete::NoRoom {
                    size: needed,
                    failures,
                },
                Err(_),
            ) if *needed == size => {
                *failures = failures.saturating_add(1);
                Err(*failures)
            }
            // Whoever has found another FPDU without room has requested its buffer, too.
            _ => Ok(false),
        }
    }

    /// Calls `arm` with the time to the next look, if the stream waits for a receive WR. It does not
    /// begin or end to wait meanwhile. Process context or softirq; `arm` must not sleep.
    pub(crate) fn while_waiting(&self, arm: impl FnOnce(Jiffies)) {
        if let Some(wait) = &mut self.rx.lock().wait {
            arm(wait.next_look(self.rq.is_first_in_line()));
        }
    }

    /// Whether FPDUs that were received before the end of the connection must be consumed first, and will
    /// be: by a worker, or, if the peer has closed its half only (`graceful`), when there is a receive WR.
    /// Process context or softirq.
    pub(crate) fn defers_end(&self, graceful: bool) -> bool {
        let rx = self.rx.lock();

        rx.rest || (graceful && rx.wait.is_some())
    }

    /// Completes the read or atomic operation that the peer's Terminate refuses, if it names one.
    /// Softirq or process context; no lock is held.
    ///
    /// Only these can be refused and incomplete: Sends and Writes complete when they are sent.
    pub(crate) fn refused(&self, terminated: &Terminated) {
        let status = match (terminated.code.layer, terminated.code.etype) {
            // RDMAP's remote protection errors, DDP's tagged buffer errors.
            (0, 1) | (1, 1) => WcStatus::RemoteAccess,
            _ => WcStatus::RemoteInvalid,
        };
        let Some(msn) = terminated.quote.request_msn() else {
            return;
        };
        // Under the lock: a flush that finds nothing awaited completes the WR.
        let mut reads = self.reads.lock();
        let Some((number, awaited)) = reads.refused(msn) else {
            return;
        };

        self.give_up_sink(awaited);
        drop(reads);
        self.fail_read(number, status);
    }
}

/// Why a run takes no more FPDUs.
enum Pause {
    /// The next FPDU is incomplete. The socket must have so many bytes before this can go on.
    Incomplete { needed: usize },
    /// The next message waits for a receive WR, since now (`begins`) or before.
    NoReceive { begins: bool },
    /// The budget is spent.
    Spent,
}

/// The outcome of [`receive_fpdus`].
struct FpduRun {
    pause: Pause,
    /// Bytes in the socket before.
    had: usize,
    /// Bytes in the socket now, but for those to be taken.
    left: usize,
    /// Bytes to be taken from the socket.
    taken: usize,
}

impl FpduRun {
    /// Returns the bytes that the socket must have before this can go on, if an FPDU is incomplete.
    fn wanted(&self) -> Option<u32> {
        match self.pause {
            // CAST: At most `FPDU_MAX`.
            Pause::Incomplete { needed } => Some(needed as u32),
            Pause::NoReceive { .. } | Pause::Spent => None,
        }
    }

    /// Returns the size of the buffer that an incomplete FPDU needs, if the socket has no room for it.
    /// `dropped`: TCP had to drop a part of it.
    fn lacks_room(&self, finished: &Finished, dropped: bool) -> Option<NonZeroUsize> {
        let Pause::Incomplete { needed } = self.pause else {
            return None;
        };
        let has_room = self.left == 0 || finished.waits && !dropped;
        // The length of the FPDU may be unknown yet.
        let size = if needed > FPDU_HEAD_MAX {
            needed
        } else {
            FPDU_MAX
        };

        NonZeroUsize::new(size).filter(|_| !has_room)
    }
}

/// Receives the complete FPDUs, until there are no more, a message waits for a receive WR, or the budget of a
/// run is spent.
fn receive_fpdus(
    data: &mut Readable<'_, '_>,
    receiver: &mut RxFraming,
    incomplete: &mut Incomplete,
    placer: &mut Placer<'_>,
) -> Result<FpduRun, Error> {
    let (paused, moved) = receive_buffer(data, receiver, incomplete, placer)?;
    let mut octets = RxOctets(data.unread());
    let before = octets.0.len();
    let had = before.saturating_add(moved);

    if let Some(pause) = paused {
        return Ok(FpduRun {
            pause,
            had,
            left: before,
            taken: 0,
        });
    }
    let mut budget = RunBudget::new();
    let pause = loop {
        if octets.0.is_empty() {
            break Pause::Incomplete { needed: 1 };
        }
        if budget.is_spent() {
            break Pause::Spent;
        }
        match placer.receive(receiver, &octets)? {
            RxStep::Taken(count) => {
                octets.0.advance(count);
                budget.take(count);
            }
            RxStep::Incomplete { needed } => break Pause::Incomplete { needed },
            RxStep::Waits { begins } => break Pause::NoReceive { begins },
        }
    };
    let left = octets.0.len();

    Ok(FpduRun {
        pause,
        had,
        left,
        taken: before.saturating_sub(left),
    })
}

/// Receives the FPDU that has a buffer, if there is one, after it has taken the rest of it from the socket.
/// Returns why no more FPDUs are received, if so, and the octets that the buffer has taken.
fn receive_buffer(
    data: &mut Readable<'_, '_>,
    receiver: &mut RxFraming,
    incomplete: &mut Incomplete,
    placer: &mut Placer<'_>,
) -> Result<(Option<Pause>, usize), Error> {
    let mut moved = 0usize;

    while let Incomplete::InBuffer(buffer) = incomplete {
        match placer.receive(receiver, &RxOctets(buffer.bytes().into()))? {
            // The buffer holds one FPDU.
            RxStep::Taken(_) => *incomplete = Incomplete::InSocket,
            RxStep::Waits { begins } => return Ok((Some(Pause::NoReceive { begins }), moved)),
            RxStep::Incomplete { needed } => {
                let unread = data.unread();
                let count = needed.saturating_sub(buffer.len()).min(unread.len());

                if count == 0 {
                    return Ok((Some(Pause::Incomplete { needed: 1 }), moved));
                }
                buffer
                    .append(&unread, count)
                    .map_err(|_| Local::LowerLayer)?;
                data.finish(count, None);
                moved = moved.saturating_add(count);
            }
        }
    }
    Ok((None, moved))
}
