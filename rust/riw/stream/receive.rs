// SPDX-License-Identifier: GPL-2.0

//! Receiving: from the socket's buffers straight to memory, an FPDU at a time.
//!
//! An FPDU stays in the socket until it is complete and its CRC is right. The socket has room for the
//! largest one ([`RX_ROOM`]), and calls back when the FPDU is complete. Sometimes TCP cannot keep it all
//! (a small `tcp_rmem`, no memory, very small segments). Then a worker gives the stream a buffer for
//! this one FPDU ([`Stream::hold`]).

use crate::{
    counters::Counters,
    link::Readable,
    queue::wr::{WcStatus, WrId},
    stream::{
        crc,
        deliver::Unreported,
        octets::RxOctets,
        place::{Filling, Placer},
        Stream, StreamError,
    },
};
use iwarp::{
    mpa::{fpdu::FPDU_MAX, Deframer},
    startup::Parameters,
    Error, Local, Progress, Quote, Rdmap, Receiver, RxConfig, Terminated,
};
use kernel::{
    prelude::*,
    sync::{atomic::ordering, Arc},
};
use net::RecvBuf;

/// Unread bytes that a socket must have room for. They are several FPDUs, so that the window stays
/// open while one of them is incomplete.
// CAST: A small constant.
pub(crate) const RX_ROOM: u32 = 4 * FPDU_MAX as u32;

/// The receiving side of a stream.
pub(super) struct Rx {
    /// `None` before the stream has started, and when nothing more may be placed.
    receiver: Option<Receiver<Deframer<crc::Kernel>>>,
    /// The receive WR that a message is being placed into.
    filling: Option<Filling>,
    /// The incomplete FPDU, if the socket has no room for it.
    held: Option<RecvBuf>,
    /// Bytes of the incomplete FPDU in the socket.
    left: usize,
    /// Where the stream counts what it receives.
    pub(super) counters: Arc<Counters>,
}

impl Rx {
    /// Creates the receiving side of a stream that is not connected. Any context.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self {
            receiver: None,
            filling: None,
            held: None,
            left: 0,
            counters,
        }
    }

    pub(super) fn start(&mut self, parameters: &Parameters) {
        *self = Self {
            receiver: Some(Receiver::new(Deframer::new(RxConfig {
                crc: parameters.crc,
                markers: parameters.rx_markers,
            }))),
            ..Self::new(self.counters.clone())
        };
    }

    /// Places nothing more. The receive WR stays, to be flushed.
    pub(super) fn end(&mut self) {
        self.receiver = None;
        self.held = None;
    }

    /// Places nothing more, and drops the receive WR.
    pub(super) fn stop(&mut self) {
        self.end();
        self.filling = None;
    }

    /// Takes the receive WR that was being filled. Returns its id.
    pub(super) fn take_filling(&mut self) -> Option<WrId> {
        let filling = self.filling.take()?;

        Some(filling.wr.id)
    }

    /// Whether the stream is between messages.
    pub(super) fn at_boundary(&self) -> bool {
        let held = self.held.as_ref().map_or(0, RecvBuf::len);

        self.receiver
            .as_ref()
            .is_none_or(|receiver| receiver.at_boundary(held.saturating_add(self.left)))
    }
}

/// Why nothing more is received.
pub(crate) enum RxEnd {
    /// The peer broke a rule, or this side failed.
    Error(StreamError),
    /// The peer sent a Terminate.
    Terminated(Terminated),
}

/// The outcome of [`Stream::receive`]. The caller acts on it when no lock is held.
#[must_use]
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) unreported: Unreported,
    /// The peer's first FPDU has come.
    pub(crate) first: bool,
    /// The socket has no room for the FPDU: a worker must call [`Stream::hold`].
    pub(crate) hold: bool,
    /// The transmitter has new work.
    pub(crate) kick: bool,
    pub(crate) end: Option<RxEnd>,
}

impl Stream {
    /// Takes the octets that the socket has, whose lock is held. Softirq or process context; never
    /// sleeps. If nothing more may be placed, discards them, so that TCP sees a FIN behind them.
    pub(crate) fn receive(&self, data: &mut Readable<'_, '_>) -> Received {
        let mut rx = self.rx.lock();
        let Rx {
            receiver: Some(receiver),
            filling,
            held,
            left,
            ..
        } = &mut *rx
        else {
            drop(rx);
            data.discard();
            return Received::default();
        };
        let had_started = receiver.started();
        // TCP does not call back for new octets if it had to drop some.
        let dropped = data.unread().len() == *left;
        let mut placer = Placer::new(self, filling);
        let mut received = Received::default();

        match consume(data, receiver, held, &mut placer) {
            Ok(needed) => {
                *left = data.unread().len();
                // CAST: At most `FPDU_MAX`.
                let waits = data.wait_for(needed as u32);

                received.hold = held.is_none() && *left != 0 && (dropped || !waits);
                if data.has_urgent() {
                    // RDMAP has no urgent data, and nothing behind it can be read.
                    received.end = Some(RxEnd::Error(StreamError {
                        error: Rdmap::CatastrophicStream.into(),
                        quote: Quote::NONE,
                    }));
                }
            }
            Err(error) => {
                received.end = Some(RxEnd::Error(StreamError {
                    error,
                    quote: receiver.quote(),
                }));
            }
        }
        received.unreported = placer.unreported;
        received.kick = placer.kick;
        if let (None, Some(terminated)) = (&received.end, placer.terminated) {
            received.end = Some(RxEnd::Terminated(terminated));
        }
        if !had_started && receiver.started() {
            received.first = true;
            self.may_send.store(true, ordering::Relaxed);
        }
        let tally = placer.tally;
        tally.count_received(&rx);
        if received.end.is_some() {
            rx.end();
            data.discard();
            received.hold = false;
        }
        received
    }

    /// Gives the incomplete FPDU a buffer. The caller then calls [`Self::receive`]. Process context;
    /// may sleep. Fails with `ENOMEM` without memory.
    pub(crate) fn hold(&self) -> Result {
        let buffer = RecvBuf::new(FPDU_MAX, &self.memcg)?;
        let mut rx = self.rx.lock();

        // The FPDU may have become complete since the worker was scheduled.
        if rx.receiver.is_some() && rx.held.is_none() && rx.left != 0 {
            rx.held = Some(buffer);
        }
        Ok(())
    }

    /// Completes the read that the peer's Terminate refuses, if it names one. Softirq or process
    /// context; no lock is held.
    ///
    /// Only a read can be refused and incomplete: Sends and Writes complete when they are sent.
    pub(crate) fn refused(&self, terminated: &Terminated) {
        let status = match (terminated.code.layer, terminated.code.etype) {
            // RDMAP's remote protection errors, DDP's tagged buffer errors.
            (0, 1) | (1, 1) => WcStatus::RemoteAccess,
            _ => WcStatus::RemoteInvalid,
        };
        let number = terminated
            .quote
            .read_msn()
            .and_then(|msn| self.reads.lock().refused(msn));

        if let Some(number) = number {
            self.fail_read(number, status);
        }
    }
}

/// Consumes the complete FPDUs. Returns how many bytes the socket must have before this can go on.
fn consume(
    data: &mut Readable<'_, '_>,
    receiver: &mut Receiver<Deframer<crc::Kernel>>,
    held: &mut Option<RecvBuf>,
    placer: &mut Placer<'_>,
) -> Result<usize, Error> {
    while let Some(buffer) = held {
        match receiver.consume(&RxOctets::Buffer(buffer), placer)? {
            // The buffer holds one FPDU.
            Progress::Consumed(_) => *held = None,
            Progress::Incomplete { needed } => {
                let unread = data.unread();
                let count = needed.saturating_sub(buffer.len()).min(unread.len());

                if count == 0 {
                    return Ok(1);
                }
                buffer
                    .append(&unread, count)
                    .map_err(|_| Local::LowerLayer)?;
                data.take(count);
            }
        }
    }

    let mut unread = data.unread();
    let before = unread.len();
    let outcome = loop {
        if unread.is_empty() {
            break Ok(1);
        }
        match receiver.consume(&RxOctets::Socket(unread), placer) {
            Ok(Progress::Consumed(octets)) => unread.advance(octets),
            Ok(Progress::Incomplete { needed }) => break Ok(needed),
            Err(e) => break Err(e),
        }
    };
    let taken = before.saturating_sub(unread.len());
    data.take(taken);
    outcome
}
