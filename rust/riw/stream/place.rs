// SPDX-License-Identifier: GPL-2.0

//! Placing: what the receiver finds in an FPDU goes to registered memory, or to a queue.

use crate::{
    abi::{Rqe, SgList, Status},
    mr::{self, Target},
    qp::{Qp, Receives},
    queue::completion::News,
    stream::{octets::Stream, reads::Inbound},
};
use core::ops::Range;
use iwarp::{
    Access, DdpUntagged, Denied, Error, Placement, Rdmap, ReadRequest, Segment, Stag, Terminated,
};
use kernel::{
    prelude::*,
    sync::{atomic::ordering, Arc},
};

/// A receive request in use.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) rqe: Rqe,
    /// Bytes that its buffers have room for.
    room: u32,
}

/// What is to be done when the receiver's lock has been dropped.
#[derive(Default)]
pub(super) struct After {
    pub(super) received: News,
    pub(super) sent: News,
    pub(super) limit_reached: bool,
    pub(super) kick: bool,
    pub(super) terminated: Option<Terminated>,
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
pub(super) struct Placer<'a> {
    qp: &'a Arc<Qp>,
    request: &'a mut Option<Request>,
    /// Where the tagged segment at hand goes.
    target: Option<Target>,
    after: After,
}

impl<'a> Placer<'a> {
    /// For what comes next; `request` is the one that a message is being placed in.
    pub(super) fn new(qp: &'a Arc<Qp>, request: &'a mut Option<Request>) -> Self {
        Self {
            qp,
            request,
            target: None,
            after: After::default(),
        }
    }

    /// Nothing more is placed. Returns what is to be done about what was.
    pub(super) fn into_after(self) -> After {
        self.after
    }

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
