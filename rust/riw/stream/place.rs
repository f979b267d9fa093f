// SPDX-License-Identifier: GPL-2.0

//! Placing: moves the payload of a received segment to registered memory, or a message to a queue.

use crate::{
    mr::{Sink, Target},
    queue::wr::{RecvWr, WcStatus},
    stream::{
        deliver::Unreported,
        octets::RxOctets,
        reads::Inbound,
        tally::{Kind, Tally},
        Stream,
    },
};
use core::ops::Range;
use iwarp::{
    ddp::Header, Access, DdpUntagged, Denied, Error, Local, Placement, Rdmap, ReadRequest, Segment,
    Stag, Terminated,
};
use kernel::{prelude::*, sync::atomic::ordering};

/// A receive WR that a message is being placed into.
pub(super) struct Filling {
    pub(super) wr: RecvWr,
    /// Size of its buffers, in bytes.
    room: u32,
}

/// Places the segments that a receiver finds.
pub(super) struct Placer<'a> {
    stream: &'a Stream,
    filling: &'a mut Option<Filling>,
    /// Where the tagged segment goes.
    target: Option<Sink<'static>>,
    pub(super) tally: Tally,
    pub(super) unreported: Unreported,
    /// The transmitter has new work.
    pub(super) kick: bool,
    /// The peer's Terminate.
    pub(super) terminated: Option<Terminated>,
}

impl<'a> Placer<'a> {
    /// Places the next segments of `stream`; `filling` is the WR of the message that is incomplete.
    pub(super) fn new(stream: &'a Stream, filling: &'a mut Option<Filling>) -> Self {
        Self {
            stream,
            filling,
            target: None,
            tally: Tally::default(),
            unreported: Unreported::default(),
            kick: false,
            terminated: None,
        }
    }

    fn find(&self, stag: Stag, want: Access, addr: u64, len: u32) -> Result<Target, Denied> {
        self.stream.regions.find(stag, want, addr, len)
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

        self.target = Some(Sink::Region(found));
        Ok(())
    }

    /// Fails the oldest read: its sink may not be written to.
    fn refuse_sink(&mut self, denied: Denied) -> Error {
        self.finish_read(WcStatus::LocalProtection);
        denied.local()
    }

    fn finish_read(&mut self, status: WcStatus) {
        self.kick |= self.stream.finish_read(status, &mut self.unreported);
    }

    /// Takes a receive WR for a message that begins.
    fn take_wr(&mut self) -> Result<(), Error> {
        let taken = self.stream.rq.take().ok_or(DdpUntagged::NoBuffer)?;

        self.unreported.srq_limit |= taken.limit_reached;
        match &taken.wr.buffers {
            Ok(buffers) => {
                // More buffer than a message can fill is not wrong.
                let room = buffers.len().unwrap_or(u32::MAX);

                *self.filling = Some(Filling { wr: taken.wr, room });
                Ok(())
            }
            Err(status) => {
                let status = *status;

                self.stream
                    .fail_recv(taken.wr.id, status, &mut self.unreported);
                Err(Local::Request.into())
            }
        }
    }

    /// Completes the receive WR with an error, and passes `error` on.
    fn refuse(&mut self, status: WcStatus, error: Error) -> Error {
        if let Some(filling) = self.filling.take() {
            self.stream
                .fail_recv(filling.wr.id, status, &mut self.unreported);
        }
        error
    }

    /// Copies octets to the buffers of the receive WR, `at` bytes from the start of the message.
    fn scatter(&mut self, at: u32, octets: &RxOctets<'_>, from: Range<usize>) -> Result<(), Error> {
        let Some(filling) = self.filling.as_ref() else {
            return Err(Local::Buffer.into());
        };

        match filling.scatter(self.stream, at, octets, from)? {
            Ok(()) => Ok(()),
            Err((status, error)) => Err(self.refuse(status, error)),
        }
    }

    /// Delivers a Send of `bytes`.
    fn deliver(
        &mut self,
        bytes: u32,
        solicited: bool,
        invalidate: Option<Stag>,
    ) -> Result<(), Error> {
        let Some(filling) = self.filling.take() else {
            return Err(Local::Buffer.into());
        };

        self.stream
            .deliver_send(
                filling.wr.id,
                bytes,
                solicited,
                invalidate,
                &mut self.unreported,
            )
            .map_err(Denied::invalidate)
    }
}

impl Filling {
    /// Copies octets to the buffers, `at` bytes from the start of the message. The inner error is that
    /// of a buffer: the WR fails with this status.
    fn scatter(
        &self,
        stream: &Stream,
        mut at: u32,
        octets: &RxOctets<'_>,
        mut from: Range<usize>,
    ) -> Result<Result<(), (WcStatus, Error)>, Error> {
        let Ok(buffers) = &self.wr.buffers else {
            return Err(Local::Buffer.into());
        };

        for sge in buffers.iter() {
            if from.is_empty() {
                break;
            }
            if at >= sge.len {
                at = at.wrapping_sub(sge.len);
                continue;
            }
            let room = sge.len.wrapping_sub(at);
            let n = u32::try_from(from.len()).unwrap_or(u32::MAX).min(room);
            // CAST: A 32-bit number fits, and it is at most the length of the range.
            let middle = from.start.saturating_add(n as usize);
            let found = match sge.addr.checked_add(at.into()) {
                Some(addr) => match buffers.memory(sge.stag, addr, n) {
                    Some(memory) => Ok(Sink::Memory(memory)),
                    None => stream
                        .regions
                        .find(sge.stag, Access::LOCAL_WRITE, addr, n)
                        .map(Sink::Region),
                },
                None => Err(Denied::Wrap),
            };
            let copied = match found {
                Ok(sink) => copy(stream, &sink, 0, octets, from.start..middle)?,
                Err(denied) => Err(denied),
            };

            if let Err(denied) = copied {
                return Ok(Err((WcStatus::LocalProtection, denied.local())));
            }
            from.start = middle;
            at = 0;
        }
        Ok(match from.is_empty() {
            true => Ok(()),
            false => Err((WcStatus::LocalLength, DdpUntagged::TooLong.into())),
        })
    }
}

/// Copies received octets to memory, `at` bytes from the start of `sink`.
fn copy(
    stream: &Stream,
    sink: &Sink<'_>,
    at: u32,
    octets: &RxOctets<'_>,
    from: Range<usize>,
) -> Result<Result<(), Denied>, Error> {
    let mut end = at;
    let mut copied = Ok(());

    octets
        .each(from, |fragment| {
            if copied.is_ok() {
                copied = sink.write(end, fragment);
                // CAST: A fragment is part of an FPDU.
                end = end.saturating_add(fragment.len() as u32);
            }
        })
        .map_err(|_| Local::LowerLayer)?;
    if copied.is_ok() {
        trace::place(&stream.sq, || {
            let (stag, addr) = sink.at(at);

            trace::Placed {
                stag,
                addr,
                len: end.wrapping_sub(at),
            }
        });
    }
    Ok(copied)
}

impl Placement for Placer<'_> {
    type Stream<'s> = RxOctets<'s>;

    #[inline]
    fn received(&mut self, header: &Header, len: u32) {
        trace::fpdu_rx(&self.stream.sq, header, len);
    }

    fn begin(&mut self, segment: &Segment) -> Result<(), Error> {
        match *segment {
            Segment::Send { mo, len, .. } => {
                if mo == 0 && self.filling.is_none() {
                    self.take_wr()?;
                }
                let room = self.filling.as_ref().map_or(0, |filling| filling.room);
                if mo.checked_add(len).is_none_or(|end| end > room) {
                    return Err(self.refuse(WcStatus::LocalLength, DdpUntagged::TooLong.into()));
                }
                Ok(())
            }
            // A Write without payload is not checked (RFC 5041, section 5.2).
            Segment::Write { len: 0, .. } => Ok(()),
            Segment::Write { .. } => self.find_tagged(segment),
            Segment::ReadResponse {
                stag,
                to,
                len,
                last,
            } => {
                self.stream
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
        octets: &RxOctets<'_>,
        from: Range<usize>,
    ) -> Result<(), Error> {
        if let Segment::Send { mo, .. } = *segment {
            return self.scatter(mo.saturating_add(offset), octets, from);
        }
        let Some(target) = &self.target else {
            return Err(Local::Buffer.into());
        };
        let placed = copy(self.stream, target, offset, octets, from)?;
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
            } => self.deliver(mo.saturating_add(len), solicited, invalidate)?,
            Segment::ReadResponse { last: true, .. } => self.finish_read(WcStatus::Success),
            _ => {}
        }
        self.tally
            .fpdu(segment.into(), segment.len(), segment.last());
        Ok(())
    }

    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error> {
        // A read of length 0 is not checked (RFC 5040, section 5.2.1).
        if request.len != 0 {
            self.find(
                request.src_stag,
                Access::REMOTE_READ,
                request.src_to,
                request.len,
            )
            .map_err(Denied::read_source)?;
        }

        let mut reads = self.stream.reads.lock();
        if !reads.peer_may_read() {
            return Err(DdpUntagged::TooManyReads.into());
        }
        let inbound = Inbound {
            request: *request,
            msn,
        };
        if reads.inbound.push(inbound).is_err() {
            return Err(DdpUntagged::TooManyReads.into());
        }
        self.stream.response_due.store(true, ordering::Relaxed);
        self.kick = true;
        self.tally.fpdu(Kind::ReadRequest, 0, true);
        Ok(())
    }

    fn terminated(&mut self, terminated: &Terminated) {
        self.tally.fpdu(Kind::Other, 0, true);
        self.terminated = Some(*terminated);
    }
}
