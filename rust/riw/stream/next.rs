// SPDX-License-Identifier: GPL-2.0

//! The next message to send: the first frame, WRs of the send queue, Read and Atomic Responses.

use crate::{
    mr::Regions,
    queue::wr::{AtomicSink, SendData, SendRequest, SendWr, Sge, WcStatus, WrId},
    stream::{
        deliver::Lost,
        gather::Active,
        reads::{AwaitedResponse, Inbound, Outbound},
        tx::Sender,
        Stream, StreamError,
    },
};
use iwarp::{
    Access, AtomicOp, AtomicRequest, AtomicResponse, Denied, Local, Message, Outstanding, Quote,
    ReadRequest, Stag,
};
use kernel::{prelude::*, sync::atomic::ordering};

impl Stream {
    /// Begins the next message, if there is one. Responses and WRs take turns.
    pub(super) fn next_message(&self, sender: &mut Sender) -> Result<NextMessage, StreamError> {
        if let Some(first) = sender.first.take() {
            if let Message::ReadRequest(request) = &first {
                let awaited = read_response(request, None);

                self.note_outstanding(None, sender.segmenter.next_request(), awaited)?;
            }
            return Ok(NextMessage::begun(sender.begin(first, 0, Active::Control)));
        }
        sender.response_next = !sender.response_next;
        if sender.response_next {
            self.next_wr(sender)?.or_else(|| self.next_response(sender))
        } else {
            self.next_response(sender)?.or_else(|| self.next_wr(sender))
        }
    }

    /// Begins the response to the peer's oldest read or atomic operation, if one is due. Returns
    /// [`NextMessage::Later`] for an atomic operation that did not succeed now.
    ///
    /// An atomic operation is executed here, when its turn comes, and not when its request is
    /// received: it must not change the data of the response to an earlier read, and it may begin only when
    /// the response to an earlier atomic operation has been generated (RFC 7306, section 7). The messages
    /// before its request have been placed, as they were when the request was queued (section 5.4, rule 5).
    fn next_response(&self, sender: &mut Sender) -> Result<NextMessage, StreamError> {
        if !self.response_due.load(ordering::Relaxed) {
            return Ok(NextMessage::Nothing);
        }
        // The read stays in the queue until the response is gathered: it counts against the IRD.
        let Some(inbound) = self.reads.lock().inbound.front().copied() else {
            return Ok(NextMessage::Nothing);
        };
        let (message, len) = match &inbound {
            Inbound::Read { request, .. } => {
                let message = Message::ReadResponse {
                    stag: request.sink_stag,
                    to: request.sink_to,
                };

                (message, request.len)
            }
            Inbound::Atomic { request, .. } => {
                // Once: the response is the active message then, until it is gathered or the stream
                // ends.
                let original = self.regions.atomic(request).map_err(|error| StreamError {
                    error,
                    quote: inbound.quote(0),
                })?;
                let Some(original) = original else {
                    return Ok(NextMessage::Later);
                };
                let id = request.id;

                (Message::AtomicResponse(AtomicResponse { id, original }), 0)
            }
        };

        let begun = sender.begin(message, len, Active::Response(inbound));

        Ok(NextMessage::begun(begun))
    }

    /// Begins the next WR that sends a message, if one may begin now, and executes those before it that send
    /// none.
    fn next_wr(&self, sender: &mut Sender) -> Result<NextMessage, StreamError> {
        // A process may post WRs without a message as fast as they are executed.
        for _ in 0..MAX_EXECUTED {
            let Some(wr) = self.sq.peek(&mut sender.data) else {
                return Ok(NextMessage::Nothing);
            };

            match self.read_order(&wr) {
                ReadOrder::Clear => {}
                ReadOrder::Wait => {
                    self.sq.put_back(wr, &mut sender.data);
                    return Ok(NextMessage::Blocked);
                }
                ReadOrder::Never => {
                    return Err(self.refuse_wr(sender, wr, WcStatus::LocalOperation));
                }
            }
            let len = match self.check_wr(sender, &wr) {
                Ok(len) => len,
                Err(status) => return Err(self.refuse_wr(sender, wr, status)),
            };
            let Some(number) = self.begin_wr(&wr, &sender.data, len) else {
                self.sq.put_back(wr, &mut sender.data);
                return Ok(NextMessage::Blocked);
            };
            if let StartedWr::Message = self.start_wr(sender, number, wr, len)? {
                return Ok(NextMessage::Message);
            }
        }
        Ok(NextMessage::Later)
    }

    /// Checks that a WR may use its local buffers. Returns the length of its message.
    fn check_wr(&self, sender: &Sender, wr: &SendWr) -> Result<u32, WcStatus> {
        let (request, len) = wr.request.as_ref().map_err(|status| *status)?;
        let at_once = sender.segmenter.takes_at_once(*len);

        check_access(&self.regions, request, &sender.data, at_once)?;
        Ok(*len)
    }

    /// Starts the message of WR `number`, or executes it.
    #[inline]
    fn start_wr(
        &self,
        sender: &mut Sender,
        number: u32,
        wr: SendWr,
        len: u32,
    ) -> Result<StartedWr, StreamError> {
        let id = wr.id;
        let (request, _) = wr.request.map_err(|_| StreamError::local(Local::Request))?;

        let (done, failure) = match request {
            SendRequest::Register(mapping) => {
                (self.regions.register(mapping), WcStatus::LocalProtection)
            }
            SendRequest::LocalInvalidate(stag) => {
                let done = self.regions.invalidate_local(stag);

                (done, WcStatus::LocalProtection)
            }
            SendRequest::Bind(bind) => (self.regions.bind(&bind), WcStatus::Bind),
            request => {
                return match self.start_message(sender, number, id, request, len)? {
                    true => Ok(StartedWr::Message),
                    false => Err(StreamError::local(Local::Request)),
                };
            }
        };

        self.executed(number, id, done, failure)
    }

    /// Starts the message of WR `number`. Returns whether the segmenter has taken it.
    #[inline]
    fn start_message(
        &self,
        sender: &mut Sender,
        number: u32,
        id: WrId,
        request: SendRequest,
        len: u32,
    ) -> Result<bool, StreamError> {
        match request {
            SendRequest::Write {
                stag,
                to,
                immediate,
            } => Ok(sender.begin(
                Message::Write { stag, to },
                len,
                Active::request(number, id, immediate),
            )),
            SendRequest::Send {
                solicited,
                invalidate,
            } => {
                let message = Message::Send {
                    solicited,
                    invalidate,
                };

                Ok(sender.begin(message, len, Active::request(number, id, None)))
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
                self.start_read(sender, number, request, invalidate)
            }
            SendRequest::Atomic {
                op, sink, stag, to, ..
            } => {
                self.sq.wait(number, id);
                self.start_atomic(sender, number, op, sink, stag, to)
            }
            // They send none.
            SendRequest::Register(_) | SendRequest::LocalInvalidate(_) | SendRequest::Bind(_) => {
                Ok(false)
            }
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
        let awaited = read_response(&request, invalidate.then_some(request.sink_stag));

        self.note_outstanding(Some(number), msn, awaited)?;
        Ok(sender.begin(Message::ReadRequest(request), 0, Active::Control))
    }

    /// Starts the request of an atomic operation, as [`Self::start_read`] does.
    fn start_atomic(
        &self,
        sender: &mut Sender,
        number: u32,
        op: AtomicOp,
        sink: AtomicSink,
        stag: Stag,
        to: u64,
    ) -> Result<bool, StreamError> {
        let msn = sender.segmenter.next_request();
        // The peer returns the id. Its responses come in order, so any number would do.
        let id = msn;

        self.note_outstanding(
            Some(number),
            msn,
            AwaitedResponse::AtomicResponse { id, sink },
        )?;
        let request = AtomicRequest { op, id, stag, to };
        Ok(sender.begin(Message::AtomicRequest(request), 0, Active::Control))
    }

    /// Completes a WR that sends no message; with status `failure` if it failed. Returns the error that ends
    /// the stream then.
    fn executed(
        &self,
        number: u32,
        id: WrId,
        done: Result<(), Denied>,
        failure: WcStatus,
    ) -> Result<StartedWr, StreamError> {
        let status = match done {
            Ok(()) => WcStatus::Success,
            Err(_) => failure,
        };
        let finished = self.finish_wr(number, id, status);

        match (done, finished) {
            (Err(denied), _) => Err(StreamError {
                error: denied.local(),
                quote: Quote::NONE,
            }),
            (Ok(()), Err(Lost)) => Err(StreamError::local(Local::Completion)),
            (Ok(()), Ok(())) => Ok(StartedWr::Executed),
        }
    }

    /// Checks a WR against the reads and atomic operations in flight: another one needs room (ORD),
    /// and a fence waits for all of them.
    fn read_order(&self, wr: &SendWr) -> ReadOrder {
        let is_read = wr.awaits_response();

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
    fn begin_wr(&self, wr: &SendWr, data: &SendData, len: u32) -> Option<u32> {
        self.sq.begin(wr, data, len).or_else(|| {
            let mut reads = self.reads.lock();

            // The read may have ended before this is noted: try once more.
            reads.tx_blocked = true;
            self.sq.begin(wr, data, len)
        })
    }

    /// Completes a WR that cannot begin with an error. Returns the error that ends the stream.
    #[cold]
    fn refuse_wr(&self, sender: &mut Sender, wr: SendWr, status: WcStatus) -> StreamError {
        match self.sq.begin(&wr, &sender.data, 0) {
            Some(number) => {
                sender.data.clear();
                if let Some(stag) = wr.invalidates() {
                    // The sink may be the reason for which the WR fails.
                    let _ = self.regions.invalidate_local(stag);
                }
                let SendWr { id, request, .. } = wr;
                // It may have the memory that is lent for an original value.
                drop(request);
                // The stream ends, so a lost completion changes nothing.
                let _ = self.finish_wr(number, id, status);
            }
            None => self.sq.put_back(wr, &mut sender.data),
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
        awaited: AwaitedResponse,
    ) -> Result<(), StreamError> {
        let outbound = Outbound {
            number,
            msn,
            awaited,
        };

        // `read_order` found room, and the receiver only makes more.
        match self.reads.lock().outbound.push(outbound) {
            Ok(_) => Ok(()),
            Err(_) => Err(StreamError::local(Local::Request)),
        }
    }
}

/// WRs without a message that are executed in a row.
const MAX_EXECUTED: u32 = 64;

/// Whether there is a message to send.
#[derive(PartialEq, Eq)]
pub(super) enum NextMessage {
    /// One has begun.
    Message,
    /// There is none. The event that brings one kicks the queue pair.
    Nothing,
    /// The next WR waits for the end of a read, which kicks the queue pair. The process need not ring the
    /// doorbell before.
    Blocked,
    /// There may be one, but other work comes first.
    Later,
}

impl NextMessage {
    fn begun(begun: bool) -> Self {
        match begun {
            true => Self::Message,
            false => Self::Nothing,
        }
    }

    /// Looks for another message unless one has begun.
    fn or_else(
        self,
        other: impl FnOnce() -> Result<Self, StreamError>,
    ) -> Result<Self, StreamError> {
        match self {
            Self::Message => Ok(self),
            Self::Nothing => other(),
            Self::Later => Ok(match other()? {
                Self::Nothing | Self::Blocked => Self::Later,
                found => found,
            }),
            Self::Blocked => Ok(match other()? {
                Self::Nothing => Self::Blocked,
                found => found,
            }),
        }
    }
}

/// The state of a WR that has been started.
enum StartedWr {
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

/// Returns the response that a Read Request waits for.
fn read_response(request: &ReadRequest, invalidate: Option<Stag>) -> AwaitedResponse {
    AwaitedResponse::ReadResponse {
        progress: Outstanding::new(request.sink_stag, request.sink_to, request.len),
        invalidate,
    }
}

/// Checks that a request with its data may use its local buffers. With `at_once` the payload fits into one
/// FPDU: then gathering checks the buffers, before anything is sent.
fn check_access(
    regions: &Regions,
    request: &SendRequest,
    data: &SendData,
    at_once: bool,
) -> Result<(), WcStatus> {
    let check = |sge: &Sge, want| match sge.len {
        0 => Ok(()),
        len => regions
            .find(sge.stag, want, sge.addr, len)
            .map(drop)
            .map_err(|_| WcStatus::LocalProtection),
    };

    match request {
        SendRequest::Read { sink, .. } => check(sink, Access::LOCAL_WRITE),
        SendRequest::Atomic { sink, .. } => match sink.memory() {
            Some(_) => Ok(()),
            None => check(&sink.sge(), Access::LOCAL_WRITE),
        },
        SendRequest::Send { .. } | SendRequest::Write { .. } => match data {
            SendData::Buffers(buffers) if !at_once => buffers
                .iter()
                .filter(|sge| buffers.memory(sge.stag, sge.addr, sge.len).is_none())
                .try_for_each(|sge| check(&sge, Access::NONE)),
            _ => Ok(()),
        },
        SendRequest::Register(_) | SendRequest::LocalInvalidate(_) | SendRequest::Bind(_) => Ok(()),
    }
}
