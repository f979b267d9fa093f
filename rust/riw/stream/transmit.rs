// SPDX-License-Identifier: GPL-2.0

//! Transmitting: requests become FPDUs, many at a time become one send.

use crate::{
    abi::{self, Opcode, Sqe, Status, MAX_INLINE},
    cm::{Endpoint, Role},
    mr::Target,
    qp::Qp,
    stream::{
        crc,
        gather::{Active, Gatherer, Source, Stop},
        reads::Outbound,
    },
};
use iwarp::{
    mpa::Framer,
    qp::{Event, State},
    startup::Parameters,
    Access, Error, Message, Outstanding, Quote, ReadRequest, Segmenter, Stag, TxConfig,
};
use kernel::{
    prelude::*,
    sync::{atomic::ordering, Arc},
};
use net::{MemCgroup, SendBuf};

/// The most bytes that are gathered before they are sent.
const BATCH: usize = 256 * 1024;
/// How often a caller looks again, because something was wanted while it ran, before a worker has
/// to: a process can ring its doorbell without end from another thread.
const PASSES: u32 = 16;
/// Batches that are sent in a row before others get their turn.
const BATCHES: u32 = 8;

/// The transmitting side of a queue pair.
pub(crate) struct Tx {
    stream: Option<Stream>,
    /// What is to be sent next, complete: it refers to no memory of the process.
    buf: SendBuf,
    /// Some of that, or of the message at hand, has been dropped.
    cut: bool,
}

struct Stream {
    segmenter: Segmenter<Framer<crc::Kernel>>,
    /// Where the payload of the message at hand comes from.
    active: Option<Active>,
    /// The frame that the peer waits for, before any other.
    first: Option<Message>,
    /// The last message was of the send queue: an answer to the peer is next if there is one.
    answer_next: bool,
}

impl Tx {
    /// Not connected. What is gathered is charged to `memcg`.
    pub(crate) fn new(memcg: MemCgroup) -> Self {
        Self {
            stream: None,
            buf: SendBuf::charged_to(memcg),
            cut: false,
        }
    }

    /// The stream begins.
    pub(crate) fn start(&mut self, parameters: &Parameters, role: Role, mss: u32) {
        let first = match role {
            Role::Initiator => parameters.rtr.map(|rtr| rtr.message()),
            Role::Responder => None,
        };

        self.buf.clear();
        self.cut = false;
        self.stream = Some(Stream {
            segmenter: Segmenter::new(Framer::new(TxConfig {
                crc: parameters.crc,
                markers: parameters.tx_markers,
                emss: mss,
            })),
            active: None,
            first,
            answer_next: true,
        });
    }

    /// Nothing is sent any more.
    pub(crate) fn stop(&mut self) {
        self.cut = self.is_cut();
        self.discard();
    }

    /// Nothing is sent any more, and the peer misses nothing by that.
    fn discard(&mut self) {
        self.stream = None;
        self.buf.clear();
    }

    /// Whether the stream, if it ended now, would end before all that has been gathered, or in the
    /// midst of a message.
    fn is_cut(&self) -> bool {
        let stream = self.stream.as_ref();

        self.cut || !self.buf.is_empty() || stream.is_some_and(|stream| stream.segmenter.busy())
    }
}

/// What a pass through the work has come to.
enum Pass {
    /// There is nothing left to do, or it has to wait for an event that will kick.
    Done,
    /// There is more, but it is others' turn.
    Yield,
}

impl Qp {
    /// Does all that there is to transmit. Process context, may sleep; the caller has the right
    /// to transmit, which this hands back or passes on.
    pub(crate) fn transmit(self: &Arc<Self>) {
        for _ in 0..PASSES {
            match self.pass() {
                Pass::Yield => break,
                Pass::Done if self.runner.done() => return,
                Pass::Done => {}
            }
        }
        self.schedule();
    }

    fn pass(self: &Arc<Self>) -> Pass {
        let mut tx = self.tx.lock();
        // As long as `tx` is held the queue pair is not reset.
        let (state, endpoint, dead, silent) = {
            let status = self.status.lock();
            let endpoint = status.endpoint.clone();
            (status.state, endpoint, status.dead, status.silent)
        };

        match state {
            _ if dead => Pass::Done,
            State::Idle => Pass::Done,
            State::Rts if silent => Pass::Done,
            // Everything that is posted now is flushed when the connection has ended.
            State::Closing => Pass::Done,
            State::Rts | State::Draining => {
                let failed = match &endpoint {
                    // What the peer's silence keeps back is not waited for when closing.
                    Some(endpoint) if !silent => self.stream(&mut tx, endpoint),
                    _ => Ok(Pass::Done),
                };
                let drained = state == State::Draining
                    && matches!(failed, Ok(Pass::Done))
                    && (silent || self.is_drained(&tx));

                drop(tx);
                if drained && self.event(Event::Drained, None).is_some() {
                    self.close(State::Closing);
                }
                failed.unwrap_or_else(|(error, quote)| {
                    // What has been gathered goes out before the Terminate does.
                    self.fail(error, quote);
                    Pass::Done
                })
            }
            State::Terminate | State::Error => {
                let flushed = self.flush();

                // A responder's first frame is not sent before the peer's (RFC 5044 §7.1.2), not
                // even this one.
                if state == State::Terminate && !silent {
                    self.gather_terminate(&mut tx);
                }
                // A Terminate waits for room in the socket, which will tell. What its peer or its
                // consumer has ended does not.
                let said = tx
                    .stream
                    .as_ref()
                    .is_some_and(|stream| stream.segmenter.terminated());
                let waits = endpoint
                    .is_some_and(|endpoint| endpoint.send(&mut tx.buf) == Err(EAGAIN))
                    && state == State::Terminate
                    && said;
                if state == State::Error {
                    tx.stop();
                } else if !said {
                    // The peer wants no more of it.
                    tx.discard();
                }
                drop(tx);
                self.tell_flushed(&flushed);
                if !waits {
                    self.close(state);
                }
                if flushed.more {
                    Pass::Yield
                } else {
                    Pass::Done
                }
            }
        }
    }

    /// Sends what there is, as long as the socket takes it.
    fn stream(&self, tx: &mut Tx, endpoint: &Endpoint) -> Result<Pass, (Error, Quote)> {
        for _ in 0..BATCHES {
            // The endpoint has the socket for these calls only: who ends the connection does not wait
            // while payload is gathered.
            let Ok((room, mss)) = endpoint.room_and_mss() else {
                return Ok(Pass::Done);
            };
            if room == 0 {
                // Nothing is gathered that would wait here, perhaps for ever. The socket tells when
                // it has room.
                return Ok(Pass::Done);
            }
            if let Some(stream) = &mut tx.stream {
                stream.segmenter.framing_mut().set_emss(mss);
            }
            let more = self.fill(tx, room.min(BATCH))?;

            match endpoint.send(&mut tx.buf) {
                Ok(()) if more => {}
                Ok(()) => return Ok(Pass::Done),
                // A full socket tells when it has room, the endpoint that the connection has ended.
                Err(e) if e == EAGAIN || !endpoint.is_connected() => return Ok(Pass::Done),
                // Something refuses, and nobody tells when it would not.
                Err(_) => return Err((Error::LocalCatastrophic, Quote::NONE)),
            }
        }
        Ok(Pass::Yield)
    }

    /// Gathers FPDUs until there is a batch of so many bytes or nothing more to send. Returns whether
    /// there may be more; if not, who posts the next request rings the doorbell for it.
    fn fill(&self, tx: &mut Tx, batch: usize) -> Result<bool, (Error, Quote)> {
        let Tx {
            stream: Some(stream),
            buf,
            ..
        } = tx
        else {
            return Ok(false);
        };

        while buf.len() < batch {
            if !stream.segmenter.busy() && !self.next_message(stream)? {
                return Ok(false);
            }
            self.emit(stream, buf)?;
        }
        Ok(true)
    }

    /// Gathers one FPDU of the message at hand, and does what its last one means.
    fn emit(&self, stream: &mut Stream, buf: &mut SendBuf) -> Result<(), (Error, Quote)> {
        let mark = buf.mark();
        let mut gatherer = Gatherer::new(self, stream.active.as_ref(), buf);

        match stream.segmenter.poll_transmit(&mut gatherer) {
            Ok(Some(emitted)) if emitted.last => {
                let result = self.sent(stream.active.as_ref());
                stream.active = None;
                result
            }
            Ok(_) => Ok(()),
            Err(stop) => {
                buf.rollback(mark);
                let gathered = stream.segmenter.offset();
                Err(self.stopped(stream.active.take(), gathered, stop))
            }
        }
    }

    /// Begins the next message. Returns whether there is one.
    fn next_message(&self, stream: &mut Stream) -> Result<bool, (Error, Quote)> {
        if let Some(first) = stream.first.take() {
            if let Message::ReadRequest(request) = &first {
                self.note_outstanding(None, stream.segmenter.next_request(), request)?;
            }
            stream.active = Some(Active::Bare);
            // A segmenter that is not busy takes any message.
            return Ok(stream.segmenter.start(first, 0).is_ok());
        }
        if stream.answer_next {
            stream.answer_next = false;
            if self.next_response(stream) {
                return Ok(true);
            }
            return self.next_request(stream);
        }
        stream.answer_next = true;
        Ok(self.next_request(stream)? || self.next_response(stream))
    }

    /// Begins the answer to the peer's oldest read.
    fn next_response(&self, stream: &mut Stream) -> bool {
        if !self.asked.load(ordering::Relaxed) {
            return false;
        }
        // It stays in the queue until it is answered: IRD counts it.
        let Some(inbound) = self.reads.lock().inbound.front().copied() else {
            return false;
        };
        let message = Message::ReadResponse {
            stag: inbound.request.sink_stag,
            to: inbound.request.sink_to,
        };

        stream.active = Some(Active::Response(inbound));
        stream.segmenter.start(message, inbound.request.len).is_ok()
    }

    /// Begins the next request of the send queue.
    fn next_request(&self, stream: &mut Stream) -> Result<bool, (Error, Quote)> {
        let Some(sqe) = self.sq.peek() else {
            return Ok(false);
        };
        let Some(opcode) = Opcode::of_send(sqe.opcode) else {
            return self.refuse(&sqe, Opcode::Send, Status::LocalOperation);
        };

        if opcode == Opcode::Read || sqe.flags & abi::READ_FENCE != 0 {
            let mut reads = self.reads.lock();
            if opcode == Opcode::Read && reads.may_never_ask() {
                drop(reads);
                return self.refuse(&sqe, opcode, Status::LocalOperation);
            }
            let fenced = sqe.flags & abi::READ_FENCE != 0 && reads.outbound.front().is_some();

            if fenced || (opcode == Opcode::Read && !reads.may_ask()) {
                reads.awaited = true;
                return Ok(false);
            }
        }
        let (source, len) = match self.source(&sqe, opcode, &stream.segmenter) {
            Ok(found) => found,
            Err(status) => return self.refuse(&sqe, opcode, status),
        };
        let Some(number) = self.begin(&sqe, opcode, len) else {
            return Ok(false);
        };

        let message = match opcode {
            Opcode::Write => Message::Write {
                stag: Stag(sqe.rkey),
                to: sqe.raddr,
            },
            Opcode::Read => {
                self.ask(&sqe, number, stream.segmenter.next_request(), &source, len)?
            }
            _ => Message::Send {
                solicited: sqe.flags & abi::SOLICITED != 0,
                invalidate: (opcode == Opcode::SendInvalidate).then_some(Stag(sqe.rkey)),
            },
        };
        // Only its answer completes a read.
        let (active, payload) = match opcode {
            Opcode::Read => (Active::Bare, 0),
            _ => (Active::Request { number, source }, len),
        };

        stream.active = Some(active);
        Ok(stream.segmenter.start(message, payload).is_ok())
    }

    /// Begins a request, if there is room; if not, the end of a read makes some.
    fn begin(&self, sqe: &Sqe, opcode: Opcode, len: u32) -> Option<u32> {
        self.sq.begin(sqe, opcode, len).or_else(|| {
            let mut reads = self.reads.lock();

            // That end may have come before this was noted.
            reads.awaited = true;
            self.sq.begin(sqe, opcode, len)
        })
    }

    /// A request that cannot be begun: it is completed with an error, and the stream ends.
    fn refuse<T>(&self, sqe: &Sqe, opcode: Opcode, status: Status) -> Result<T, (Error, Quote)> {
        if let Some(number) = self.sq.begin(sqe, opcode, 0) {
            let news = self.sq.finish(number, status);
            self.sq.tell(news);
        }
        Err((Error::LocalCatastrophic, Quote::NONE))
    }

    /// Finds the payload of a request and its length, and checks that it may be used so, unless
    /// gathering it does that before anything is sent.
    fn source(
        &self,
        sqe: &Sqe,
        opcode: Opcode,
        segmenter: &Segmenter<Framer<crc::Kernel>>,
    ) -> Result<(Source, u32), Status> {
        let sgl = sqe.sgl.ok_or(Status::LocalOperation)?;

        if sqe.flags & abi::INLINE != 0 {
            // The length is that of the first element.
            let len = sgl.iter().next().map_or(0, |sge| sge.len);

            if opcode == Opcode::Read {
                return Err(Status::LocalOperation);
            }
            // CAST: A 32-bit number fits.
            if len as usize > MAX_INLINE {
                return Err(Status::LocalLength);
            }
            return Ok((Source::Inline(sgl.inline_data()), len));
        }

        let len = sgl.len().ok_or(Status::LocalLength)?;
        let want = if opcode == Opcode::Read {
            // The sink is named to the peer by one STag.
            if sgl.count() > 1 {
                return Err(Status::LocalOperation);
            }
            Access::LOCAL_WRITE
        } else if segmenter.takes_at_once(len) {
            return Ok((Source::Buffers(sgl), len));
        } else {
            Access::NONE
        };
        for sge in sgl.iter().filter(|sge| sge.len != 0) {
            Target::find(&self.mrs, Stag(sge.lkey), self.pd, want, sge.addr, sge.len)
                .map_err(|_| Status::LocalProtection)?;
        }
        Ok((Source::Buffers(sgl), len))
    }

    /// Returns the message that asks for a read, which is then outstanding.
    fn ask(
        &self,
        sqe: &Sqe,
        number: u32,
        msn: u32,
        source: &Source,
        len: u32,
    ) -> Result<Message, (Error, Quote)> {
        let sink = match source {
            Source::Buffers(sgl) => sgl.iter().next().unwrap_or_default(),
            Source::Inline(_) => abi::Sge::default(),
        };
        let request = ReadRequest {
            sink_stag: Stag(sink.lkey),
            sink_to: sink.addr,
            len,
            src_stag: Stag(sqe.rkey),
            src_to: sqe.raddr,
        };
        self.note_outstanding(Some(number), msn, &request)?;
        Ok(Message::ReadRequest(request))
    }

    /// Notes a read as outstanding: the answer may be here before we have returned from sending.
    fn note_outstanding(
        &self,
        number: Option<u32>,
        msn: u32,
        request: &ReadRequest,
    ) -> Result<(), (Error, Quote)> {
        let outbound = Outbound {
            number,
            msn,
            progress: Outstanding::new(request.sink_stag, request.sink_to, request.len),
        };

        // There is a place, as was seen before; only the receiver, which makes more, came between.
        match self.reads.lock().outbound.push(outbound) {
            Ok(_) => Ok(()),
            Err(_) => Err((Error::LocalCatastrophic, Quote::NONE)),
        }
    }

    /// A message has been gathered whole: its buffers are the process's again.
    fn sent(&self, active: Option<&Active>) -> Result<(), (Error, Quote)> {
        match active {
            Some(Active::Request { number, .. }) => {
                let news = self.sq.finish(*number, Status::Success);
                let lost = news.lost;

                self.sq.tell(news);
                if lost {
                    return Err((Error::LocalCatastrophic, Quote::NONE));
                }
            }
            Some(Active::Response(_)) => {
                let mut reads = self.reads.lock();

                reads.inbound.pop();
                self.asked
                    .store(!reads.inbound.is_empty(), ordering::Relaxed);
            }
            Some(Active::Bare) | None => {}
        }
        Ok(())
    }

    /// Gathering has stopped in the middle of a message, of which `gathered` bytes are on their way.
    fn stopped(&self, active: Option<Active>, gathered: u32, stop: Stop) -> (Error, Quote) {
        let (error, status) = match stop {
            Stop::Denied(denied) => match active {
                Some(Active::Response(inbound)) => {
                    let left = inbound.request.advanced(gathered);
                    return (
                        denied.read_source(),
                        Quote::read_request(inbound.msn, &left),
                    );
                }
                _ => (denied.local(), Status::LocalProtection),
            },
            // The process's buffers are not to blame.
            Stop::Memory => (Error::LocalCatastrophic, Status::General),
        };

        if let Some(Active::Request { number, .. }) = active {
            let news = self.sq.finish(number, status);
            self.sq.tell(news);
        }
        (error, Quote::NONE)
    }

    /// Puts the Terminate that is due behind what has been gathered.
    fn gather_terminate(&self, tx: &mut Tx) {
        let terminate = self.status.lock().terminate.take();

        if let (Some(stream), Some(terminate)) = (tx.stream.as_mut(), terminate) {
            stream.active = None;
            if stream
                .segmenter
                .start(Message::Terminate(terminate), 0)
                .is_ok()
            {
                // Without memory the peer learns no more than that the connection ends.
                let _ = self.emit(stream, &mut tx.buf);
            }
        }
    }

    /// Sends what has been gathered already, as far as the socket takes it now, for the process may
    /// have a completion for it; and the Terminate that is due. Process context.
    pub(crate) fn push_out(&self) {
        let mut tx = self.tx.lock();
        let (endpoint, silent) = {
            let status = self.status.lock();
            (status.endpoint.clone(), status.silent)
        };

        if let Some(endpoint) = endpoint {
            if !silent {
                self.gather_terminate(&mut tx);
            }
            // What it does not take is lost with the queue pair, and so resets the connection.
            let _ = endpoint.send(&mut tx.buf);
        }
        tx.stop();
    }

    /// Whether a FIN would tell the peer of an orderly end that is none: the socket has not taken all
    /// that the process may have completions for, or a message only in part. May sleep; none of the
    /// queue pair's locks is held. As long as there is no socket that could take the rest, this stays
    /// as it is.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tx.lock().is_cut()
    }

    /// Whether nothing is left to send or to wait for.
    fn is_drained(&self, tx: &Tx) -> bool {
        let reads = {
            let mut reads = self.reads.lock();
            reads.awaited = !reads.outbound.is_empty();
            reads.outbound.is_empty() && reads.inbound.is_empty()
        };
        reads && self.sq.is_idle() && tx.buf.is_empty()
    }

    /// Closes this side's half of the connection, unless the state is another by now: then the next
    /// pass does what that needs.
    fn close(&self, state: State) {
        let endpoint = {
            let status = self.status.lock();

            if status.state != state {
                return;
            }
            status.endpoint.clone()
        };
        if let Some(endpoint) = endpoint {
            endpoint.close();
        }
    }
}
