// SPDX-License-Identifier: GPL-2.0

//! Receiving: from the socket's buffers straight to where the data belongs, an FPDU at a time.
//!
//! An FPDU stays in the socket until it is there whole and found right. The socket has room for the
//! largest one ([`ROOM`]), and calls back when the FPDU at hand is complete. Where TCP cannot keep it
//! all (a small `tcp_rmem`, no memory, very small segments), a worker gives the stream a buffer for
//! this one FPDU ([`Qp::hold`]).

use crate::{
    abi::Status,
    link::Readable,
    qp::{Qp, Receives},
    stream::{
        crc,
        octets::Stream,
        place::{After, Placer, Request},
    },
};
use iwarp::{
    mpa::fpdu::FPDU_MAX, startup::Parameters, Error, Progress, Quote, Rdmap, Receiver, RxConfig,
    Terminated,
};
use kernel::{
    prelude::*,
    sync::{atomic::ordering, Arc},
};
use net::RecvBuf;

/// Unread bytes that a socket is to have room for: some FPDUs, so that the window stays open while one
/// of them waits for its end.
// CAST: A small constant.
pub(crate) const ROOM: u32 = 4 * FPDU_MAX as u32;

/// The receiving side of a queue pair.
pub(crate) struct Rx {
    /// None before the stream has begun, and when nothing shall be placed any more.
    receiver: Option<Receiver<crc::Kernel>>,
    /// The receive request that a message is being placed in.
    request: Option<Request>,
    /// The endpoint knows that the peer has spoken.
    started: bool,
    /// The FPDU at hand as far as it has come, if the socket has no room for it.
    held: Option<RecvBuf>,
    /// Bytes of the FPDU at hand that are in the socket.
    left: usize,
}

impl Rx {
    /// Not connected.
    pub(crate) fn new() -> Self {
        Self {
            receiver: None,
            request: None,
            started: false,
            held: None,
            left: 0,
        }
    }

    /// The stream begins.
    pub(crate) fn start(&mut self, parameters: &Parameters) {
        self.receiver = Some(Receiver::new(RxConfig {
            crc: parameters.crc,
            markers: parameters.rx_markers,
        }));
        self.request = None;
        self.started = false;
        self.held = None;
        self.left = 0;
    }

    /// Nothing is placed any more; what still comes is discarded.
    pub(crate) fn end(&mut self) {
        self.receiver = None;
        self.held = None;
    }

    /// As [`Self::end`], and nobody asks for the request.
    pub(crate) fn stop(&mut self) {
        self.end();
        self.request = None;
    }

    /// The consumer's name of the request in use, which is in use no more.
    pub(crate) fn take_request(&mut self) -> Option<u64> {
        self.request.take().map(|request| request.rqe.id)
    }

    /// Whether the stream is between messages.
    pub(crate) fn at_boundary(&self) -> bool {
        let held = self.held.as_ref().map_or(0, RecvBuf::len);

        self.receiver
            .as_ref()
            .is_none_or(|receiver| receiver.at_boundary(held.saturating_add(self.left)))
    }
}

impl Qp {
    /// Takes what the socket has. Its lock is held; must not sleep.
    pub(crate) fn rx_ready(self: &Arc<Self>, sk: &mut Readable<'_, '_>) {
        let mut rx = self.rx.lock();
        let Rx {
            receiver: Some(receiver),
            request,
            started,
            held,
            left,
        } = &mut *rx
        else {
            drop(rx);
            // So that a FIN behind it is seen; the stream is ending anyway.
            return sk.discard();
        };
        if !self.live.load(ordering::Relaxed) {
            drop(rx);
            return sk.discard();
        }

        let mut placer = Placer::new(self, request);
        let mut error = None;
        let mut hold = false;
        // TCP calls for nothing new when it had to drop something.
        let dropped = sk.unread().len() == *left;

        match consume(sk, receiver, held, &mut placer) {
            Ok(needed) => {
                *left = sk.unread().len();
                // CAST: At most `FPDU_MAX`.
                let waits = sk.wait_for(needed as u32);

                hold = held.is_none() && *left != 0 && (dropped || !waits);
                if sk.has_urgent() {
                    // The stream has none, and nothing behind them can be read.
                    error = Some((Rdmap::CatastrophicStream.into(), Quote::NONE));
                }
            }
            Err(e) => error = Some((e, receiver.quote())),
        }
        let after = placer.into_after();
        let first = receiver.started() && !core::mem::replace(started, receiver.started());
        if error.is_some() || after.terminated.is_some() {
            rx.end();
            sk.discard();
            hold = false;
        }
        drop(rx);

        if hold {
            self.schedule_hold();
        }
        self.conclude(after, first, error);
    }

    /// Gives the FPDU at hand a buffer, for the socket has no room for it. Process context, may
    /// sleep.
    pub(crate) fn hold(self: &Arc<Self>) {
        let buffer = match RecvBuf::new(FPDU_MAX, &self.memcg) {
            Ok(buffer) => buffer,
            Err(_) => return self.fail(Error::LocalCatastrophic, Quote::NONE),
        };
        {
            let mut rx = self.rx.lock();
            // It may have come whole in between.
            if rx.receiver.is_some() && rx.held.is_none() && rx.left != 0 {
                rx.held = Some(buffer);
            }
        }
        let endpoint = self.status.lock().endpoint.clone();
        if let Some(endpoint) = endpoint {
            endpoint.catch_up();
        }
    }

    /// Does what had to wait until the lock was dropped.
    fn conclude(self: &Arc<Self>, after: After, first: bool, error: Option<(Error, Quote)>) {
        if first {
            let endpoint = {
                let mut status = self.status.lock();
                status.silent = false;
                status.endpoint.clone()
            };
            if let Some(endpoint) = endpoint {
                endpoint.first_fpdu();
            }
        }
        after.received.tell(&self.recv_cq);
        self.sq.tell(after.sent);
        if let (true, Receives::Shared(srq)) = (after.limit_reached, &self.receives) {
            srq.limit_reached();
        }
        if let Some((error, quote)) = error {
            self.fail(error, quote);
        } else if after.received.lost || after.sent.lost {
            // A completion was lost, and with it the track of what is done.
            self.fail(Error::LocalCatastrophic, Quote::NONE);
        } else if let Some(terminated) = after.terminated {
            self.refused(&terminated);
        } else if after.kick || first {
            self.kick();
        }
    }

    /// The peer has ended the stream with an error.
    fn refused(self: &Arc<Self>, terminated: &Terminated) {
        let status = match (terminated.code.layer, terminated.code.etype) {
            // RDMAP's remote protection errors, DDP's tagged buffer errors.
            (0, 1) | (1, 1) => Status::RemoteAccess,
            _ => Status::RemoteInvalid,
        };
        // Only a read can be refused and not complete yet: Sends and Writes complete when they are
        // sent. Without a Read Request in the quote, the event is all there is to report.
        let number = terminated
            .quote
            .read_msn()
            .and_then(|msn| self.reads.lock().refused(msn));

        if let Some(number) = number {
            let news = self.sq.finish(number, status);
            self.sq.tell(news);
        }
        self.terminated();
    }
}

/// Consumes the FPDUs that are there. Returns how many bytes the socket must have before there is more
/// to do.
fn consume(
    sk: &mut Readable<'_, '_>,
    receiver: &mut Receiver<crc::Kernel>,
    held: &mut Option<RecvBuf>,
    placer: &mut Placer<'_>,
) -> Result<usize, Error> {
    while let Some(buffer) = held {
        match receiver.consume(&Stream::Buffer(buffer), placer)? {
            // It has no more than that.
            Progress::Consumed(_) => *held = None,
            Progress::Incomplete { needed } => {
                let unread = sk.unread();
                let count = needed.saturating_sub(buffer.len()).min(unread.len());

                if count == 0 {
                    return Ok(1);
                }
                buffer
                    .append(&unread, count)
                    .map_err(|_| Error::LocalCatastrophic)?;
                sk.take(count);
            }
        }
    }

    let mut unread = sk.unread();
    let before = unread.len();
    let outcome = loop {
        if unread.is_empty() {
            break Ok(1);
        }
        match receiver.consume(&Stream::Socket(unread), placer) {
            Ok(Progress::Consumed(octets)) => unread.advance(octets),
            Ok(Progress::Incomplete { needed }) => break Ok(needed),
            Err(e) => break Err(e),
        }
    };
    let taken = before.saturating_sub(unread.len());
    sk.take(taken);
    outcome
}
