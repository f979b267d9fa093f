// SPDX-License-Identifier: GPL-2.0

//! Receiving: from the socket's buffers straight to where the data belongs, an FPDU at a time.
//!
//! An FPDU stays in the socket until it is there whole and found right. The socket has room for the
//! largest one ([`ROOM`]), and calls back when the FPDU at hand is complete. Where TCP cannot keep it
//! all (a small `tcp_rmem`, no memory, very small segments), a worker gives the stream a buffer for
//! this one FPDU ([`Qp::hold`]).

use crate::{
    abi::{Rqe, SgList, Status},
    cq::News,
    engine::{crc, reads::Inbound, stream::Stream},
    mr::{self, Target},
    qp::{Qp, Receives},
};
use core::ops::Range;
use iwarp::{
    mpa::fpdu::FPDU_MAX, startup::Parameters, Access, DdpUntagged, Denied, Error, Placement,
    Progress, Quote, Rdmap, ReadRequest, Receiver, RxConfig, Segment, Stag, Terminated,
};
use kernel::{
    prelude::*,
    sync::{atomic::ordering, Arc},
};
use net::{LockedSock, RecvBuf};

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

/// A receive request in use.
#[derive(Clone, Copy)]
struct Request {
    rqe: Rqe,
    /// Bytes that its buffers have room for.
    room: u32,
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
    pub(crate) fn rx_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
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

        let mut placer = Placer {
            qp: self,
            request,
            target: None,
            after: After::default(),
        };
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
        let after = placer.after;
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

/// What is to be done when the receiver's lock has been dropped.
#[derive(Default)]
struct After {
    received: News,
    sent: News,
    limit_reached: bool,
    kick: bool,
    terminated: Option<Terminated>,
}

/// Consumes the FPDUs that are there. Returns how many bytes the socket must have before there is more
/// to do.
fn consume(
    sk: &mut LockedSock<'_>,
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

/// Copies octets of the stream to a place in registered memory.
fn copy(
    target: &Target,
    at: u32,
    stream: &Stream<'_>,
    from: Range<usize>,
) -> Result<Result<(), Denied>, Error> {
    let mut at = at;
    let mut copied = Ok(());

    stream
        .each(from, |fragment| {
            if copied.is_ok() {
                copied = target.write(at, fragment);
                // CAST: A piece of an FPDU.
                at = at.saturating_add(fragment.len() as u32);
            }
        })
        .map_err(|_| Error::LocalCatastrophic)?;
    Ok(copied)
}

/// Places what the receiver finds.
struct Placer<'a> {
    qp: &'a Arc<Qp>,
    request: &'a mut Option<Request>,
    /// Where the tagged segment at hand goes.
    target: Option<Target>,
    after: After,
}

impl Placer<'_> {
    fn find(&self, stag: Stag, want: Access, addr: u64, len: u32) -> Result<Target, Denied> {
        Target::find(&self.qp.mrs, stag, self.qp.pd, want, addr, len)
    }

    /// Finds where a tagged segment goes.
    fn find_tagged(&mut self, segment: &Segment) -> Result<(), Error> {
        let found = match *segment {
            Segment::Write { stag, to, len, .. } => self
                .find(stag, Access::REMOTE_WRITE, to, len)
                .map_err(Denied::tagged)?,
            Segment::ReadResponse { stag, to, len, .. } => self
                .find(stag, Access::LOCAL_WRITE, to, len)
                .map_err(|denied| self.refuse_sink(denied))?,
            Segment::Send { .. } => return Ok(()),
        };

        self.target = Some(found);
        Ok(())
    }

    /// The sink of the oldest read is not there, or not to be written to.
    fn refuse_sink(&mut self, denied: Denied) -> Error {
        self.finish_read(Status::LocalProtection);
        denied.local()
    }

    /// The oldest read is done.
    fn finish_read(&mut self, status: Status) {
        let mut reads = self.qp.reads.lock();

        // Both under the lock: for who transmits a read that is out of the way is complete.
        if let Some(number) = reads.outbound.pop().and_then(|outbound| outbound.number) {
            let news = self.qp.sq.finish(number, status);
            self.after.sent = self.after.sent.and(news);
        }
        self.after.kick |= core::mem::take(&mut reads.awaited);
    }

    /// Takes a receive request for a message that begins.
    fn take_request(&mut self) -> Result<(), Error> {
        let taken = match &self.qp.receives {
            Receives::Own(queue) => queue.take(),
            Receives::Shared(queue) => queue.take(),
        };
        let taken = taken.ok_or(DdpUntagged::NoBuffer)?;
        let room = taken.rqe.sgl.as_ref().map(SgList::len);

        self.after.limit_reached |= taken.limit_reached;
        *self.request = Some(Request {
            rqe: taken.rqe,
            room: room.flatten().unwrap_or(0),
        });
        match room {
            // More buffer than a message can fill is not wrong.
            Some(None) => {
                if let Some(request) = self.request.as_mut() {
                    request.room = u32::MAX;
                }
                Ok(())
            }
            Some(Some(_)) => Ok(()),
            None => Err(self.refuse(Status::LocalOperation, Error::LocalCatastrophic)),
        }
    }

    /// Completes the request in use with an error, and passes `error` on.
    fn refuse(&mut self, status: Status, error: Error) -> Error {
        if let Some(request) = self.request.take() {
            let news = self
                .qp
                .complete_receive(request.rqe.id, 0, None, status, true);
            self.after.received = self.after.received.and(news);
        }
        error
    }

    /// Copies to the buffers of the request in use, from `at` in the message on.
    fn scatter(
        &mut self,
        mut at: u32,
        stream: &Stream<'_>,
        mut from: Range<usize>,
    ) -> Result<(), Error> {
        let Some(Request {
            rqe: Rqe { sgl: Some(sgl), .. },
            ..
        }) = *self.request
        else {
            return Err(Error::LocalCatastrophic);
        };

        for sge in sgl.iter() {
            if from.is_empty() {
                break;
            }
            if at >= sge.len {
                at = at.wrapping_sub(sge.len);
                continue;
            }
            let room = sge.len.wrapping_sub(at);
            let n = u32::try_from(from.len()).unwrap_or(u32::MAX).min(room);
            // CAST: A 32-bit number fits; it is not more than there is.
            let middle = from.start.saturating_add(n as usize);
            let found = match sge.addr.checked_add(at.into()) {
                Some(addr) => self.find(Stag(sge.lkey), Access::LOCAL_WRITE, addr, n),
                None => Err(Denied::Wrap),
            };
            let copied = match found {
                Ok(target) => copy(&target, 0, stream, from.start..middle)?,
                Err(denied) => Err(denied),
            };

            if let Err(denied) = copied {
                return Err(self.refuse(Status::LocalProtection, denied.local()));
            }
            from.start = middle;
            at = 0;
        }
        if from.is_empty() {
            Ok(())
        } else {
            Err(self.refuse(Status::LocalLength, DdpUntagged::TooLong.into()))
        }
    }

    /// A message is complete: delivers it.
    fn deliver(
        &mut self,
        bytes: u32,
        solicited: bool,
        invalidate: Option<Stag>,
    ) -> Result<(), Error> {
        if let Some(stag) = invalidate {
            mr::invalidate(&self.qp.mrs, stag, self.qp.pd)
                .map_err(|denied| self.refuse(Status::LocalAccess, denied.invalidate()))?;
        }
        if let Some(request) = self.request.take() {
            let news = self.qp.complete_receive(
                request.rqe.id,
                bytes,
                invalidate.map(|stag| stag.0),
                Status::Success,
                solicited,
            );
            self.after.received = self.after.received.and(news);
        }
        Ok(())
    }
}

impl Placement for Placer<'_> {
    type Stream<'s> = Stream<'s>;

    fn begin(&mut self, segment: &Segment) -> Result<(), Error> {
        match *segment {
            Segment::Send { mo, len, .. } => {
                if mo == 0 && self.request.is_none() {
                    self.take_request()?;
                }
                let room = self.request.as_ref().map_or(0, |request| request.room);
                if mo.checked_add(len).is_none_or(|end| end > room) {
                    return Err(self.refuse(Status::LocalLength, DdpUntagged::TooLong.into()));
                }
                Ok(())
            }
            // Nothing may be checked of a Write without payload (RFC 5041 §5.2).
            Segment::Write { len: 0, .. } => Ok(()),
            Segment::Write { .. } => self.find_tagged(segment),
            Segment::ReadResponse {
                stag,
                to,
                len,
                last,
            } => {
                self.qp
                    .reads
                    .lock()
                    .outbound
                    .front()
                    .ok_or(Rdmap::UnexpectedOpcode)?
                    .progress
                    .accept(stag, to, len, last)?;
                if len == 0 {
                    return Ok(());
                }
                self.find_tagged(segment)
            }
        }
    }

    fn place(
        &mut self,
        segment: &Segment,
        offset: u32,
        stream: &Stream<'_>,
        from: Range<usize>,
    ) -> Result<(), Error> {
        if let Segment::Send { mo, .. } = *segment {
            return self.scatter(mo.saturating_add(offset), stream, from);
        }
        let Some(target) = &self.target else {
            return Err(Error::LocalCatastrophic);
        };
        let placed = copy(target, offset, stream, from)?;
        placed.map_err(|denied| match segment {
            Segment::ReadResponse { .. } => self.refuse_sink(denied),
            _ => denied.tagged(),
        })
    }

    fn end(&mut self, segment: &Segment) -> Result<(), Error> {
        self.target = None;
        match *segment {
            Segment::Send {
                mo,
                len,
                last: true,
                solicited,
                invalidate,
                ..
            } => self.deliver(mo.saturating_add(len), solicited, invalidate),
            Segment::ReadResponse { last: true, .. } => {
                self.finish_read(Status::Success);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error> {
        // Nothing may be checked of a read of nothing (RFC 5040 §5.2.1).
        if request.len != 0 {
            self.find(
                request.src_stag,
                Access::REMOTE_READ,
                request.src_to,
                request.len,
            )
            .map_err(Denied::read_source)?;
        }

        let mut reads = self.qp.reads.lock();
        if !reads.may_be_asked() {
            return Err(DdpUntagged::NoBuffer.into());
        }
        let inbound = Inbound {
            request: *request,
            msn,
        };
        if reads.inbound.push(inbound).is_err() {
            return Err(DdpUntagged::NoBuffer.into());
        }
        self.qp.asked.store(true, ordering::Relaxed);
        self.after.kick = true;
        Ok(())
    }

    fn terminated(&mut self, terminated: &Terminated) {
        self.after.terminated = Some(*terminated);
    }
}
