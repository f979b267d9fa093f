// SPDX-License-Identifier: GPL-2.0

//! Placing and delivering: moves the payload of a received segment to registered memory, or a
//! message to a queue.

use crate::{
    link::{Pause, Segments},
    mr::{Finder, Sink},
    queue::{
        completion::ReceivedImmediate,
        receive::TakenWr,
        wr::{AtomicSink, Immediate, RecvWr, Sge, WcStatus},
    },
    stream::{
        copy::{place, Unplaced},
        filling::{Filling, Written},
        reads::Inbound,
        receive::{Received, RxEnd, RxPause},
        tally::{Kind, Tally},
        wait::ReceiveWait,
        Stream,
    },
};
use iwarp::{
    ddp::Runs, Access, AtomicRequest, AtomicResponse, Content, DdpUntagged, Denied, Error, Local,
    Rdmap, ReadRequest, Receiver, Segment, Stag, Taker,
};
use kernel::{prelude::*, sync::atomic::ordering};
use net::Unread;
use trace::Source;

/// What has become of the segment at the front.
pub(super) enum Reception {
    /// It is placed and taken.
    Taken,
    /// There is none, it is not taken, or it is the last one.
    Pause(RxPause),
}

/// Whether a segment can be placed.
enum Admitted {
    Yes,
    /// Its message waits for a receive WR, since now (`begins`) or before.
    Waits {
        begins: bool,
    },
}

/// Places and delivers the segments that a receiver yields.
pub(super) struct Placer<'a> {
    stream: &'a Stream,
    finder: Finder<'a>,
    /// The receive WR of the message that is incomplete.
    filling: &'a mut Filling,
    /// The wait of the message at the front for a receive WR.
    wait: &'a mut Option<ReceiveWait>,
    written: &'a mut Written,
    pub(super) tally: Tally,
    pub(super) received: Received,
}

impl<'a> Placer<'a> {
    /// Places the next segments of `stream`, into the state of its receiving side.
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
            written,
            tally: Tally::default(),
            received: Received::default(),
        }
    }

    /// Receives the next segment. Fails if it breaks a rule, or if this side fails: the stream must
    /// end.
    #[inline]
    pub(super) fn receive<S: Segments>(
        &mut self,
        receiver: &mut Receiver,
        segments: &mut S,
    ) -> Result<Reception, Error> {
        let Some(frame) = receiver.next(S::SHORT, |head| segments.next(head))? else {
            return Ok(Reception::Pause(RxPause::Link(Pause::Event)));
        };
        // A message that waits has been traced before.
        if self.wait.is_none() {
            if let Some((header, len)) = frame.header() {
                trace::fpdu_rx(&self.stream.sq, &header, len);
            }
        }
        let segment = frame.check()?;
        let content = segment.content();

        if let Admitted::Waits { begins } = self.admit(content)? {
            segment.put_off();
            return Ok(Reception::Pause(RxPause::NoReceive { begins }));
        }
        if let Content::Payload(payload) = content {
            self.place(payload, segment.payload(), &segments.octets())?;
        }
        self.deliver(content)?;
        let step = match content {
            Content::Terminate(terminated) => {
                Reception::Pause(RxPause::End(RxEnd::Terminated(*terminated)))
            }
            _ => Reception::Taken,
        };

        segments.advance(segment.advance());
        Ok(step)
    }

    /// Takes a receive WR for a message that begins, if it needs one. Fails if there is none and
    /// its time is over, or if the consumer does not take such a message.
    fn admit(&mut self, content: &Content) -> Result<Admitted, Error> {
        let Some(taker) = content.takes_receive() else {
            return Ok(Admitted::Yes);
        };
        if taker == Taker::Immediate && !self.stream.rq.takes_immediate() {
            return Err(Rdmap::UnexpectedOpcode.into());
        }
        let waits = self.wait.is_some();
        let buffers = &mut self.filling.buffers;
        let (taken, next) = self.stream.rq.take_in_turn(waits, buffers);

        // An earlier message of this run may have passed the turn on.
        self.received.next = next.or(self.received.next);
        let Some(taken) = taken else {
            return self.put_off();
        };
        *self.wait = None;
        self.fill(taken)?;
        Ok(Admitted::Yes)
    }

    /// Puts off a message for which there is no receive WR. Fails if its time is over.
    fn put_off(&mut self) -> Result<Admitted, Error> {
        let (dev, rq) = (self.stream.sq.device(), &self.stream.rq);
        let begins = self.wait.is_none();
        let wait = self
            .wait
            .get_or_insert_with(|| ReceiveWait::new(dev.receive_wait(), rq.queue().is_ring()));

        if wait.is_over() {
            return Err(DdpUntagged::NoBuffer.into());
        }
        Ok(Admitted::Waits { begins })
    }

    /// Takes a receive WR for a message that begins. `filling` has its buffers.
    fn fill(&mut self, taken: TakenWr) -> Result<(), Error> {
        let RecvWr { id, valid } = taken.wr;
        let unreported = &mut self.received.unreported;

        unreported.srq_limit |= taken.limit_reached;
        if let Err(status) = valid {
            let id = self.filling.buffers.give_up().unwrap_or(id);

            self.stream.fail_recv(id, status, unreported);
            return Err(Local::Request.into());
        }
        // More buffer than a message can fill is not wrong.
        let room = self.filling.buffers.len().unwrap_or(u32::MAX);

        self.filling.wr = Some((id, room));
        Ok(())
    }

    /// Places the payload of a segment: the octets `runs`.
    fn place(&mut self, segment: &Segment, runs: Runs, octets: &Unread<'_>) -> Result<(), Error> {
        match *segment {
            Segment::Send { mo, len, .. } => self
                .place_send(mo, len, runs, octets)
                .map_err(|unplaced| self.refuse_send(unplaced)),
            // A Write without payload is not checked (RFC 5041, section 5.2).
            Segment::Write { len: 0, .. } => Ok(()),
            Segment::Write { stag, to, len, .. } => self
                .place_tagged((stag, to, len), Access::REMOTE_WRITE, runs, octets)
                .map_err(|unplaced| unplaced.error(Denied::tagged)),
            Segment::ReadResponse { stag, to, len, .. } => {
                self.stream.reads.lock().accept(segment)?;
                if len == 0 {
                    return Ok(());
                }
                self.place_tagged((stag, to, len), Access::LOCAL_WRITE, runs, octets)
                    .map_err(|unplaced| unplaced.error(|denied| self.refuse_sink(denied)))
            }
        }
    }

    /// Copies the octets `runs` to the buffers of the receive WR, `mo` bytes from the start of the
    /// message.
    fn place_send(
        &mut self,
        mo: u32,
        len: u32,
        runs: Runs,
        octets: &Unread<'_>,
    ) -> Result<(), Unplaced> {
        let room = self.filling.room();
        let mut at = mo;

        if mo.checked_add(len).is_none_or(|end| end > room) {
            return Err(Unplaced::TooLong);
        }
        for run in runs {
            // CAST: A part of an FPDU.
            let len = run.len() as u32;

            self.filling
                .scatter(&self.stream.sq, &mut self.finder, at, octets, run)?;
            at = at.saturating_add(len);
        }
        Ok(())
    }

    /// Copies the octets `runs` to the range of a region. Checks the access even if there are none,
    /// as they have been placed.
    fn place_tagged(
        &mut self,
        (stag, to, len): (Stag, u64, u32),
        want: Access,
        runs: Runs,
        octets: &Unread<'_>,
    ) -> Result<(), Unplaced> {
        let target = self.finder.find(stag, want, to, len)?;
        let mut at = 0u32;

        for run in runs {
            // CAST: A part of an FPDU.
            let len = run.len() as u32;

            place(octets, run, &self.stream.sq, &Sink::Region(&target), at)?;
            at = at.saturating_add(len);
        }
        self.finder.keep(target);
        Ok(())
    }

    /// Completes the receive WR of a Send that cannot be placed. Returns the error that ends the
    /// stream.
    fn refuse_send(&mut self, unplaced: Unplaced) -> Error {
        let status = match unplaced {
            // It is flushed.
            Unplaced::Octets => None,
            Unplaced::Sink(_) => Some(WcStatus::LocalProtection),
            Unplaced::TooLong => Some(WcStatus::LocalLength),
        };

        if let Some(status) = status {
            if let Some(id) = self.filling.take() {
                self.stream
                    .fail_recv(id, status, &mut self.received.unreported);
            }
        }
        unplaced.error(Denied::local)
    }

    /// Fails the oldest read: its sink may not be written to.
    fn refuse_sink(&mut self, denied: Denied) -> Error {
        self.finish_read(WcStatus::LocalProtection);
        denied.local()
    }

    fn finish_read(&mut self, status: WcStatus) {
        let received = &mut self.received;

        received.kick |= self.stream.finish_read(status, &mut received.unreported);
    }

    /// Delivers the message that a segment completes: a segment with payload that is placed, or a
    /// message without payload.
    fn deliver(&mut self, content: &Content) -> Result<(), Error> {
        let kind = match content {
            Content::Payload(segment) => {
                self.deliver_payload(segment)?;
                self.written.note(segment);
                self.tally
                    .fpdu(segment.into(), segment.len(), segment.last());
                return Ok(());
            }
            Content::ReadRequest { request, msn } => self.read_request(request, *msn)?,
            Content::AtomicRequest { request, msn } => self.atomic_request(request, *msn)?,
            Content::AtomicResponse { response, .. } => self.atomic_response(response)?,
            Content::Immediate {
                data, solicited, ..
            } => self.immediate(*data, *solicited)?,
            Content::Terminate(_) => Kind::Other,
        };

        self.tally.fpdu(kind, 0, true);
        Ok(())
    }

    fn deliver_payload(&mut self, segment: &Segment) -> Result<(), Error> {
        match *segment {
            Segment::Send {
                mo,
                len,
                last: true,
                solicited,
                invalidate,
                ..
            } => {
                let id = self.filling.take().ok_or(Local::Buffer)?;
                let bytes = mo.saturating_add(len);

                if invalidate.is_some() {
                    self.finder.forget();
                }
                let unreported = &mut self.received.unreported;

                self.stream
                    .deliver_send(id, bytes, solicited, invalidate, unreported)
                    .map_err(Denied::invalidate)
            }
            Segment::ReadResponse { last: true, .. } => {
                self.finish_read(WcStatus::Success);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<Kind, Error> {
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
        Ok(Kind::ReadRequest)
    }

    fn atomic_request(&mut self, request: &AtomicRequest, msn: u32) -> Result<Kind, Error> {
        // It is executed, and checked once more, when its response is due.
        self.stream.regions.find_atomic(request)?;
        self.queue_response(Inbound::Atomic {
            request: *request,
            msn,
        })?;
        Ok(request.op.into())
    }

    /// Queues a read or an atomic operation of the peer for its response.
    fn queue_response(&mut self, inbound: Inbound) -> Result<(), Error> {
        let mut reads = self.stream.reads.lock();

        if !reads.peer_may_read() || reads.inbound.push(inbound).is_err() {
            return Err(DdpUntagged::TooManyReads.into());
        }
        self.stream.response_due.store(true, ordering::Relaxed);
        self.received.kick = true;
        // The length of a Write counts only for Immediate Data right behind it.
        self.written.take();
        Ok(())
    }

    fn atomic_response(&mut self, response: &AtomicResponse) -> Result<Kind, Error> {
        let value = response.original.to_ne_bytes();
        let stored = {
            let mut reads = self.stream.reads.lock();
            let sink = reads.accept_atomic(response)?;

            self.stream.store(sink, &value)
        };

        stored.map_err(|denied| self.refuse_sink(denied))?;
        self.finish_read(WcStatus::Success);
        Ok(Kind::AtomicResponse)
    }

    fn immediate(&mut self, data: [u8; 8], solicited: bool) -> Result<Kind, Error> {
        let id = self.filling.take().ok_or(Local::Buffer)?;
        let immediate = ReceivedImmediate {
            data: Immediate::from_wire(data),
            written: self.written.take(),
        };

        self.stream
            .deliver_immediate(id, immediate, solicited, &mut self.received.unreported);
        Ok(Kind::Immediate)
    }
}

impl Stream {
    /// Stores the original value of an atomic operation. Softirq or process context.
    fn store(&self, sink: &AtomicSink, value: &[u8]) -> Result<(), Denied> {
        match sink.memory() {
            Some(memory) => Sink::Memory(memory).write(0, value.into()),
            None => {
                let Sge { addr, len, stag } = sink.sge();
                let target = self.regions.find(stag, Access::LOCAL_WRITE, addr, len)?;

                Sink::Region(&target).write(0, value.into())
            }
        }
    }
}
