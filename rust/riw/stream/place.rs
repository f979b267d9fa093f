// SPDX-License-Identifier: GPL-2.0

//! Placing: moves the payload of a received segment to registered memory, or a message to a queue.

use crate::{
    mr::{Finder, Sink},
    queue::{
        completion::ReceivedImmediate,
        receive::{NextTurn, TakenWr},
        wr::{AtomicSink, Immediate, RecvWr, Sge, WcStatus},
    },
    stream::{
        deliver::Unreported,
        filling::{Filling, Written},
        octets::RxOctets,
        reads::Inbound,
        tally::{Kind, Tally},
        wait::ReceiveWait,
        Stream,
    },
};
use core::ops::Range;
use iwarp::{
    ddp::Header, Access, Admission, AtomicRequest, AtomicResponse, DdpUntagged, Denied, Error,
    Local, Placement, Rdmap, ReadRequest, Segment, Stag, Taker, Terminated,
};
use kernel::{prelude::*, sync::atomic::ordering};
use trace::Source;

/// Places the segments that a receiver finds.
pub(super) struct Placer<'a> {
    stream: &'a Stream,
    finder: Finder<'a>,
    filling: &'a mut Filling,
    wait: &'a mut Option<ReceiveWait>,
    /// Where the tagged segment goes.
    target: Option<Sink<'static>>,
    written: &'a mut Written,
    pub(super) tally: Tally,
    pub(super) unreported: Unreported,
    /// The transmitter has new work.
    pub(super) kick: bool,
    /// A message has begun to wait for a receive WR.
    pub(super) wait_begins: bool,
    /// The queue pair that waits next for a WR of the same receive queue.
    pub(super) next: NextTurn,
    /// The peer's Terminate.
    pub(super) terminated: Option<Terminated>,
}

impl<'a> Placer<'a> {
    /// Places the next segments of `stream`; `filling` is the WR of the message that is incomplete,
    /// `wait` the wait of one for a WR.
    pub(super) fn new(
        stream: &'a Stream,
        filling: &'a mut Filling,
        wait: &'a mut Option<ReceiveWait>,
        written: &'a mut Written,
    ) -> Self {
        Self {
            stream,
            finder: Finder::new(&stream.regions),
            filling,
            wait,
            target: None,
            written,
            tally: Tally::default(),
            unreported: Unreported::default(),
            kick: false,
            wait_begins: false,
            next: NextTurn::default(),
            terminated: None,
        }
    }

    /// Queues a read or an atomic operation of the peer for its response.
    fn queue_response(&mut self, inbound: Inbound) -> Result<(), Error> {
        let mut reads = self.stream.reads.lock();

        if !reads.peer_may_read() || reads.inbound.push(inbound).is_err() {
            return Err(DdpUntagged::TooManyReads.into());
        }
        self.stream.response_due.store(true, ordering::Relaxed);
        self.kick = true;
        // The length of a Write counts only for Immediate Data right behind it.
        self.written.take();
        Ok(())
    }

    /// Finds where a tagged segment goes.
    fn find_tagged(&mut self, segment: &Segment) -> Result<(), Error> {
        let found = match *segment {
            Segment::Write { stag, to, len, .. } => self
                .finder
                .find(stag, Access::REMOTE_WRITE, to, len)
                .map_err(Denied::tagged)?,
            Segment::ReadResponse { stag, to, len, .. } => self
                .finder
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

    /// Puts off a message for which there is no receive WR. Fails if its time is over.
    fn put_off(&mut self) -> Result<Admission, Error> {
        let (dev, rq) = (self.stream.sq.device(), &self.stream.rq);
        let begins = self.wait.is_none();
        let wait = self
            .wait
            .get_or_insert_with(|| ReceiveWait::new(dev.receive_wait(), rq.queue().is_ring()));

        if wait.is_over() {
            return Err(DdpUntagged::NoBuffer.into());
        }
        self.wait_begins |= begins;
        Ok(Admission::Later)
    }

    /// Takes a receive WR for a message that begins. `filling` has its buffers.
    fn fill(&mut self, taken: TakenWr) -> Result<(), Error> {
        let RecvWr { id, valid } = taken.wr;

        self.unreported.srq_limit |= taken.limit_reached;
        if let Err(status) = valid {
            self.stream.fail_recv(id, status, &mut self.unreported);
            return Err(Local::Request.into());
        }
        // More buffer than a message can fill is not wrong.
        let room = self.filling.buffers.len().unwrap_or(u32::MAX);

        self.filling.wr = Some((id, room));
        Ok(())
    }

    /// Completes the receive WR with an error, and passes `error` on.
    fn refuse(&mut self, status: WcStatus, error: Error) -> Error {
        if let Some(id) = self.filling.take() {
            self.stream.fail_recv(id, status, &mut self.unreported);
        }
        error
    }

    /// Copies octets to the buffers of the receive WR, `at` bytes from the start of the message.
    fn scatter(&mut self, at: u32, octets: &RxOctets<'_>, from: Range<usize>) -> Result<(), Error> {
        let (stream, finder) = (self.stream, &mut self.finder);

        match self.filling.scatter(stream, finder, at, octets, from)? {
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
        let id = self.filling.take().ok_or(Local::Buffer)?;

        self.stream
            .deliver_send(id, bytes, solicited, invalidate, &mut self.unreported)
            .map_err(Denied::invalidate)
    }
}

impl Stream {
    /// Stores the original value of an atomic operation. Softirq or process context.
    fn store(&self, sink: &AtomicSink, value: &[u8]) -> Result<(), Denied> {
        let sink = match sink.memory() {
            Some(memory) => Sink::Memory(memory),
            None => {
                let Sge { addr, len, stag } = sink.sge();

                Sink::Region(self.regions.find(stag, Access::LOCAL_WRITE, addr, len)?)
            }
        };

        sink.write(0, value.into())
    }
}

impl Filling {
    /// Copies octets to the buffers, `at` bytes from the start of the message. The inner error is the
    /// error of a buffer: the WR fails with this status.
    fn scatter(
        &self,
        stream: &Stream,
        finder: &mut Finder<'_>,
        mut at: u32,
        octets: &RxOctets<'_>,
        mut from: Range<usize>,
    ) -> Result<Result<(), (WcStatus, Error)>, Error> {
        if self.wr.is_none() {
            return Err(Local::Buffer.into());
        }
        for sge in self.buffers.iter() {
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
                Some(addr) => match self.buffers.memory(sge.stag, addr, n) {
                    Some(memory) => Ok(Sink::Memory(memory)),
                    None => finder
                        .find(sge.stag, Access::LOCAL_WRITE, addr, n)
                        .map(Sink::Region),
                },
                None => Err(Denied::Wrap),
            };
            let copied = match found {
                Ok(sink) => {
                    let copied = copy(stream, &sink, 0, octets, from.start..middle)?;

                    if let Sink::Region(target) = sink {
                        finder.keep(target);
                    }
                    copied
                }
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
pub(super) fn copy(
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

    fn take_receive(&mut self, taker: Taker) -> Result<Admission, Error> {
        if taker == Taker::Immediate && !self.stream.rq.takes_immediate() {
            return Err(Rdmap::UnexpectedOpcode.into());
        }
        let waits = self.wait.is_some();
        let buffers = &mut self.filling.buffers;
        let (taken, next) = self.stream.rq.take_in_turn(waits, buffers);

        // An earlier message of this run may have passed the turn on.
        self.next = next.or(self.next);
        let Some(taken) = taken else {
            return self.put_off();
        };
        *self.wait = None;
        self.fill(taken)?;
        Ok(Admission::Now)
    }

    fn begin(&mut self, segment: &Segment) -> Result<(), Error> {
        match *segment {
            Segment::Send { mo, len, .. } => {
                let room = self.filling.room();
                if mo.checked_add(len).is_none_or(|end| end > room) {
                    return Err(self.refuse(WcStatus::LocalLength, DdpUntagged::TooLong.into()));
                }
                Ok(())
            }
            // A Write without payload is not checked (RFC 5041, section 5.2).
            Segment::Write { len: 0, .. } => Ok(()),
            Segment::Write { .. } => self.find_tagged(segment),
            Segment::ReadResponse { len, .. } => {
                self.stream.reads.lock().accept(segment)?;
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
        if octets.is_placed() {
            return Ok(());
        }
        let placed = copy(self.stream, target, offset, octets, from)?;
        placed.map_err(|denied| match segment {
            Segment::ReadResponse { .. } => self.refuse_sink(denied),
            _ => denied.tagged(),
        })
    }

    fn end(&mut self, segment: &Segment) -> Result<(), Error> {
        if let Some(Sink::Region(target)) = self.target.take() {
            self.finder.keep(target);
        }
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
        self.written.note(segment);
        self.tally
            .fpdu(segment.into(), segment.len(), segment.last());
        Ok(())
    }

    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error> {
        // A read of length 0 is not checked (RFC 5040, section 5.2.1).
        if request.len != 0 {
            let found = self.finder.find(
                request.src_stag,
                Access::REMOTE_READ,
                request.src_to,
                request.len,
            );

            self.finder.keep(found.map_err(Denied::read_source)?);
        }

        self.queue_response(Inbound::Read {
            request: *request,
            msn,
        })?;
        self.tally.fpdu(Kind::ReadRequest, 0, true);
        Ok(())
    }

    fn atomic_request(&mut self, request: &AtomicRequest, msn: u32) -> Result<(), Error> {
        // It is executed, and checked once more, when its response is due.
        self.stream.regions.find_atomic(request)?;
        self.queue_response(Inbound::Atomic {
            request: *request,
            msn,
        })?;
        self.tally.fpdu(request.op.into(), 0, true);
        Ok(())
    }

    fn atomic_response(&mut self, response: &AtomicResponse, _: u32) -> Result<(), Error> {
        let value = response.original.to_ne_bytes();
        let stored = {
            let mut reads = self.stream.reads.lock();
            let sink = reads.accept_atomic(response)?;

            self.stream.store(sink, &value)
        };

        stored.map_err(|denied| self.refuse_sink(denied))?;
        self.finish_read(WcStatus::Success);
        self.tally.fpdu(Kind::AtomicResponse, 0, true);
        Ok(())
    }

    fn immediate(&mut self, data: [u8; 8], solicited: bool, _: u32) -> Result<(), Error> {
        let id = self.filling.take().ok_or(Local::Buffer)?;
        let immediate = ReceivedImmediate {
            data: Immediate::from_wire(data),
            written: self.written.take(),
        };

        self.stream
            .deliver_immediate(id, immediate, solicited, &mut self.unreported);
        self.tally.fpdu(Kind::Immediate, 0, true);
        Ok(())
    }

    fn terminated(&mut self, terminated: &Terminated) {
        self.tally.fpdu(Kind::Other, 0, true);
        self.terminated = Some(*terminated);
    }
}
