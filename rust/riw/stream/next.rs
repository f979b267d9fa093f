// SPDX-License-Identifier: GPL-2.0

//! The next message to send: the first frame, WRs of the send queue, and Read Responses.

use crate::{
    mr::Regions,
    queue::wr::{Payload, SendRequest, SendWr, Sge, WcOpcode, WcStatus, WrId},
    stream::{
        deliver::Lost, gather::Active, reads::Outbound, transmit::Sender, Stream, StreamError,
    },
};
use iwarp::{Access, Denied, Local, Message, Outstanding, Quote, ReadRequest, Stag};
use kernel::{prelude::*, sync::atomic::ordering};

impl Stream {
    /// Begins the next message. Returns whether there is one. Responses and WRs take turns.
    pub(super) fn next_message(&self, sender: &mut Sender) -> Result<bool, StreamError> {
        if let Some(first) = sender.first.take() {
            if let Message::ReadRequest(request) = &first {
                self.note_outstanding(None, sender.segmenter.next_request(), request, None)?;
            }
            return Ok(sender.begin(first, 0, Active::Control));
        }
        if sender.response_next {
            sender.response_next = false;
            return Ok(self.next_response(sender) || self.next_wr(sender)?);
        }
        sender.response_next = true;
        Ok(self.next_wr(sender)? || self.next_response(sender))
    }

    /// Begins the response to the peer's oldest read. Returns whether one is due.
    fn next_response(&self, sender: &mut Sender) -> bool {
        if !self.response_due.load(ordering::Relaxed) {
            return false;
        }
        // The read stays in the queue until the response is gathered: it counts against the IRD.
        let Some(inbound) = self.reads.lock().inbound.front().copied() else {
            return false;
        };
        let message = Message::ReadResponse {
            stag: inbound.request.sink_stag,
            to: inbound.request.sink_to,
        };

        sender.begin(message, inbound.request.len, Active::Response(inbound))
    }

    /// Begins the next WR that sends a message, and executes those before it that send none. Returns
    /// whether there is one that may begin now.
    fn next_wr(&self, sender: &mut Sender) -> Result<bool, StreamError> {
        // Only kernel users post WRs without a message, and each belongs to one with a message.
        while let Some(wr) = self.sq.peek() {
            match self.read_order(&wr) {
                ReadOrder::Clear => {}
                ReadOrder::Wait => {
                    self.sq.put_back(wr);
                    return Ok(false);
                }
                ReadOrder::Never => return Err(self.refuse_wr(wr, WcStatus::LocalOperation)),
            }
            let len = match self.check_wr(sender, &wr) {
                Ok(len) => len,
                Err(status) => return Err(self.refuse_wr(wr, status)),
            };
            let Some(number) = self.begin_wr(&wr, len) else {
                self.sq.put_back(wr);
                return Ok(false);
            };
            if let Begun::Message = self.start_wr(sender, number, wr, len)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks that a WR may use its local buffers. Returns the length of its message.
    fn check_wr(&self, sender: &Sender, wr: &SendWr) -> Result<u32, WcStatus> {
        let (request, len) = wr.request.as_ref().map_err(|status| *status)?;
        let at_once = sender.segmenter.takes_at_once(*len);

        check_access(&self.regions, request, at_once)?;
        Ok(*len)
    }

    /// Starts the message of WR `number`, or executes it.
    fn start_wr(
        &self,
        sender: &mut Sender,
        number: u32,
        wr: SendWr,
        len: u32,
    ) -> Result<Begun, StreamError> {
        let id = wr.id;
        let (request, _) = wr.request.map_err(|_| StreamError::local(Local::Request))?;

        let began = match request {
            SendRequest::Write { payload, stag, to } => {
                let message = Message::Write { stag, to };

                sender.begin(message, len, Active::request(number, id, payload))
            }
            SendRequest::Send {
                payload,
                solicited,
                invalidate,
            } => {
                let message = Message::Send {
                    solicited,
                    invalidate,
                };

                sender.begin(message, len, Active::request(number, id, payload))
            }
            SendRequest::Read {
                sink,
                stag,
                to,
                invalidate,
            } => {
                let request = ReadRequest {
                    sink_stag: sink.stag,
                    sink_to: sink.addr,
                    len,
                    src_stag: stag,
                    src_to: to,
                };

                // Its response completes it.
                self.sq.wait(number, id);
                self.start_read(sender, number, request, invalidate)?
            }
            SendRequest::Register(mapping) => {
                return self.executed(number, id, self.regions.register(mapping));
            }
            SendRequest::LocalInvalidate(stag) => {
                return self.executed(number, id, self.regions.invalidate_local(stag));
            }
        };

        match began {
            true => Ok(Begun::Message),
            false => Err(StreamError::local(Local::Request)),
        }
    }

    /// Starts the request of an RDMA Read. Returns whether the segmenter has taken it.
    fn start_read(
        &self,
        sender: &mut Sender,
        number: u32,
        request: ReadRequest,
        invalidate: bool,
    ) -> Result<bool, StreamError> {
        let msn = sender.segmenter.next_request();
        let invalidated = invalidate.then_some(request.sink_stag);

        self.note_outstanding(Some(number), msn, &request, invalidated)?;
        Ok(sender.begin(Message::ReadRequest(request), 0, Active::Control))
    }

    /// Completes a WR that sends no message. Returns the error that ends the stream if it failed.
    fn executed(
        &self,
        number: u32,
        id: WrId,
        done: Result<(), Denied>,
    ) -> Result<Begun, StreamError> {
        let status = match done {
            Ok(()) => WcStatus::Success,
            Err(_) => WcStatus::LocalProtection,
        };
        let finished = self.finish_wr(number, id, status);

        match (done, finished) {
            (Err(denied), _) => Err(StreamError {
                error: denied.local(),
                quote: Quote::NONE,
            }),
            (Ok(()), Err(Lost)) => Err(StreamError::local(Local::Completion)),
            (Ok(()), Ok(())) => Ok(Begun::Executed),
        }
    }

    /// Checks a WR against the reads in flight: a read needs room for one more (ORD), and a fence
    /// waits for all of them.
    fn read_order(&self, wr: &SendWr) -> ReadOrder {
        let is_read = wr.opcode == WcOpcode::Read;

        if !is_read && !wr.fence {
            return ReadOrder::Clear;
        }
        let mut reads = self.reads.lock();
        if is_read && reads.ord_is_zero() {
            return ReadOrder::Never;
        }
        let fenced = wr.fence && !reads.outbound.is_empty();

        if fenced || (is_read && reads.ord_reached()) {
            reads.tx_blocked = true;
            return ReadOrder::Wait;
        }
        ReadOrder::Clear
    }

    /// Begins a WR if there is room. If there is none, the end of a read makes room and wakes the
    /// transmitter.
    fn begin_wr(&self, wr: &SendWr, len: u32) -> Option<u32> {
        self.sq.begin(wr, len).or_else(|| {
            let mut reads = self.reads.lock();

            // The read may have ended before this is noted: try once more.
            reads.tx_blocked = true;
            self.sq.begin(wr, len)
        })
    }

    /// Completes a WR that cannot begin with an error. Returns the error that ends the stream.
    fn refuse_wr(&self, wr: SendWr, status: WcStatus) -> StreamError {
        match self.sq.begin(&wr, 0) {
            // The stream ends, so a lost completion changes nothing.
            Some(number) => drop(self.finish_wr(number, wr.id, status)),
            None => self.sq.put_back(wr),
        }
        StreamError::local(match status {
            WcStatus::LocalProtection => Local::Buffer,
            _ => Local::Request,
        })
    }

    /// Notes a read as outstanding. This comes before the send: the response may arrive before the
    /// send returns.
    fn note_outstanding(
        &self,
        number: Option<u32>,
        msn: u32,
        request: &ReadRequest,
        invalidate: Option<Stag>,
    ) -> Result<(), StreamError> {
        let outbound = Outbound {
            number,
            msn,
            progress: Outstanding::new(request.sink_stag, request.sink_to, request.len),
            invalidate,
        };

        // `read_order` found room, and the receiver only makes more.
        match self.reads.lock().outbound.push(outbound) {
            Ok(_) => Ok(()),
            Err(_) => Err(StreamError::local(Local::Request)),
        }
    }
}

/// What became of a WR.
enum Begun {
    /// Its message is active.
    Message,
    /// It is complete, and sends no message.
    Executed,
}

/// When a WR may begin, for the reads in flight.
enum ReadOrder {
    Clear,
    /// When a read ends, which wakes the transmitter.
    Wait,
    /// The startup left this side no reads.
    Never,
}

impl Sender {
    /// Begins a message. Returns whether it has begun, which is so if no other is active.
    pub(super) fn begin(&mut self, message: Message, len: u32, active: Active) -> bool {
        self.kind = (&message).into();
        self.active = Some(active);
        self.segmenter.start(message, len).is_ok()
    }
}

/// Checks that a request may use its local buffers. With `at_once` the payload fits into one FPDU:
/// then gathering checks the buffers, before anything is sent.
fn check_access(regions: &Regions, request: &SendRequest, at_once: bool) -> Result<(), WcStatus> {
    let check = |sge: &Sge, want| match sge.len {
        0 => Ok(()),
        len => regions
            .find(sge.stag, want, sge.addr, len)
            .map(drop)
            .map_err(|_| WcStatus::LocalProtection),
    };

    match request {
        SendRequest::Read { sink, .. } => check(sink, Access::LOCAL_WRITE),
        SendRequest::Send { payload, .. } | SendRequest::Write { payload, .. } => match payload {
            Payload::Buffers(buffers) if !at_once => buffers
                .iter()
                .filter(|sge| buffers.memory(sge.stag, sge.addr, sge.len).is_none())
                .try_for_each(|sge| check(&sge, Access::NONE)),
            _ => Ok(()),
        },
        SendRequest::Register(_) | SendRequest::LocalInvalidate(_) => Ok(()),
    }
}
