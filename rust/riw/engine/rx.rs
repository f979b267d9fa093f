// SPDX-License-Identifier: GPL-2.0

//! Receiving: from the socket's buffers straight to where the data belongs.

use crate::{
    abi::{Rqe, SgList, Status},
    cq::News,
    engine::{crc, reads::Inbound},
    mr::{self, Target},
    qp::{Qp, Receives},
};
use iwarp::{
    startup::Parameters, Access, DdpUntagged, Denied, Error, Placement, Quote, Rdmap, ReadRequest,
    Receiver, RxConfig, Segment, Stag, Terminated,
};
use kernel::{
    prelude::*,
    sync::{atomic::ordering, Arc},
};

/// The receiving side of a queue pair.
pub(crate) struct Rx {
    /// None before the stream has begun, and when nothing shall be placed any more.
    receiver: Option<Receiver<crc::Kernel>>,
    /// The receive request that a message is being placed in.
    request: Option<Request>,
    /// The endpoint knows that the peer has spoken.
    started: bool,
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
    }

    /// Nothing is placed any more; what still comes is discarded.
    pub(crate) fn end(&mut self) {
        self.receiver = None;
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
        self.receiver
            .as_ref()
            .is_none_or(|receiver| receiver.at_boundary())
    }
}

impl Qp {
    /// Takes what the socket has. Its lock is held; must not sleep.
    pub(crate) fn rx_ready(self: &Arc<Self>, sk: &mut net::LockedSock<'_>) {
        let mut rx = self.rx.lock();
        let Rx {
            receiver,
            request,
            started,
        } = &mut *rx;
        let Some(receiver) = receiver else {
            drop(rx);
            // So that a FIN behind it is seen, if it can be read; the stream is ending anyway.
            let _ = sk.read(|data| data.len());
            return;
        };

        let live = self.live.load(ordering::Relaxed);
        let mut placer = Placer {
            qp: self,
            request,
            target: None,
            after: After::default(),
        };
        let mut error = None;

        let read = sk.read(|data| {
            if live {
                if let Err(e) = receiver.consume(data, &mut placer) {
                    error = Some(e);
                }
            }
            data.len()
        });

        if read.is_err() && live {
            // What cannot be read now never can.
            error.get_or_insert(Error::LocalCatastrophic);
        }
        let after = placer.after;
        let first = receiver.started() && !core::mem::replace(started, receiver.started());
        let error = error.map(|error| (error, receiver.quote()));
        if error.is_some() || after.terminated.is_some() {
            rx.end();
        }
        drop(rx);

        self.conclude(after, first, error);
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

/// Places what the receiver finds.
struct Placer<'a> {
    qp: &'a Arc<Qp>,
    request: &'a mut Option<Request>,
    /// Where the tagged segment at hand goes. It holds a region, so it must not wait for the peer:
    /// it is found again when the rest of the segment comes.
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
    fn scatter(&mut self, mut at: u32, mut data: &[u8]) -> Result<(), Error> {
        let Some(Request {
            rqe: Rqe { sgl: Some(sgl), .. },
            ..
        }) = *self.request
        else {
            return Err(Error::LocalCatastrophic);
        };

        for sge in sgl.iter() {
            if data.is_empty() {
                break;
            }
            if at >= sge.len {
                at = at.wrapping_sub(sge.len);
                continue;
            }
            let room = sge.len.wrapping_sub(at);
            let n = u32::try_from(data.len()).unwrap_or(u32::MAX).min(room);
            // CAST: A 32-bit number fits; it is not more than there is.
            let (now, rest) = data.split_at_checked(n as usize).unwrap_or((data, &[]));

            let denied = match sge.addr.checked_add(at.into()) {
                Some(addr) => self
                    .find(Stag(sge.lkey), Access::LOCAL_WRITE, addr, n)
                    .and_then(|target| target.write(0, now))
                    .err(),
                None => Some(Denied::Wrap),
            };
            if let Some(denied) = denied {
                return Err(self.refuse(Status::LocalProtection, denied.local()));
            }
            data = rest;
            at = 0;
        }
        if data.is_empty() {
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

    fn place(&mut self, segment: &Segment, offset: u32, data: &[u8]) -> Result<(), Error> {
        if let Segment::Send { mo, .. } = *segment {
            return self.scatter(mo.saturating_add(offset), data);
        }
        if self.target.is_none() {
            self.find_tagged(segment)?;
        }
        let Some(target) = &self.target else {
            return Err(Error::LocalCatastrophic);
        };
        let placed = target.write(offset, data);
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
