// SPDX-License-Identifier: GPL-2.0

//! The next message to send: the first frame, WRs of the send queue, Read and Atomic Responses.

use crate::{
    queue::wr::{SendImmediate, SendRequest, SendWr, WcStatus, WrId, WrPlace, WrReport},
    stream::{
        deliver::Lost,
        gather::{check_access, Active},
        reads::{AwaitedResponse, Inbound, Outbound},
        tx_state::Sender,
        Stream, StreamError,
    },
};
use iwarp::{
    AtomicRequest, AtomicResponse, Denied, Local, Message, Outstanding, Quote, ReadRequest,
};
use kernel::{prelude::*, sync::atomic::ordering};

impl Stream {
    /// Begins the next message, if there is one. Responses and WRs take turns.
    pub(super) fn next_message(&self, sender: &mut Sender) -> Result<NextMessage, StreamError> {
        if let Some(first) = sender.first.take() {
            if let Message::ReadRequest(request) = &first {
                let awaited = read_response(request);

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
    /// received: it must not change the data of the response to an earlier read, and it may begin
    /// only when the response to an earlier atomic operation has been generated (RFC 7306, section
    /// 7). The messages before its request have been placed, as they were when the request was
    /// queued (section 5.4, rule 5).
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

    /// Begins the next WR that sends a message, if one may begin now, and executes those before it
    /// that send none.
    fn next_wr(&self, sender: &mut Sender) -> Result<NextMessage, StreamError> {
        // A process may post WRs without a message as fast as they are executed.
        for _ in 0..MAX_EXECUTED {
            let mut peeked = self.sq.peek(&mut sender.data);
            // A WR is large: it stays where it is.
            let Some(wr) = &mut peeked else {
                return Ok(NextMessage::Nothing);
            };

            match self.check_wr(sender, wr) {
                Ok(len) => {
                    let report = self.sq.report(wr, &sender.data, len);

                    if let StartedWr::Message = self.start_wr(sender, wr, report)? {
                        return Ok(NextMessage::Message);
                    }
                }
                Err(NotStarted::Blocked) => {
                    self.sq.put_back(peeked, &mut sender.data);
                    return Ok(NextMessage::Blocked);
                }
                Err(NotStarted::Invalid(status)) => return Err(self.refuse_wr(sender, wr, status)),
            }
        }
        Ok(NextMessage::Executed)
    }

    /// Checks that a WR may begin now, and may use its local buffers. Returns the length of its
    /// message.
    fn check_wr(&self, sender: &Sender, wr: &SendWr) -> Result<u32, NotStarted> {
        if !self.may_begin() {
            return Err(NotStarted::Blocked);
        }
        self.check_reads(wr)?;
        let (request, len) = match &wr.request {
            Ok((request, len)) => (request, *len),
            Err(status) => return Err(NotStarted::Invalid(*status)),
        };
        let at_once = sender.segmenter.takes_at_once(len);

        check_access(&self.regions, request, &sender.data, at_once).map_err(NotStarted::Invalid)?;
        Ok(len)
    }

    /// Starts the message of a WR, or executes it.
    #[inline]
    fn start_wr(
        &self,
        sender: &mut Sender,
        wr: &mut SendWr,
        report: WrReport,
    ) -> Result<StartedWr, StreamError> {
        let id = wr.take_id();

        match wr.request {
            Ok((
                SendRequest::Write {
                    stag,
                    to,
                    immediate,
                },
                _,
            )) => {
                let message = Message::Write { stag, to };

                self.start_message(sender, id, report, message, immediate)
            }
            Ok((
                SendRequest::Send {
                    solicited,
                    invalidate,
                },
                _,
            )) => {
                let message = Message::Send {
                    solicited,
                    invalidate,
                };

                self.start_message(sender, id, report, message, None)
            }
            Ok((SendRequest::Read { sink, stag, to }, len)) => {
                let request = ReadRequest {
                    sink_stag: sink.stag,
                    sink_to: sink.addr,
                    len,
                    src_stag: stag,
                    src_to: to,
                };
                let awaited = read_response(&request);
                let message = Message::ReadRequest(request);

                self.start_request(sender, id, report, message, awaited)
            }
            _ => self.start_other(sender, id, report, wr.take_request()),
        }
    }

    /// Starts the request of an atomic operation, or executes a WR that sends no message.
    fn start_other(
        &self,
        sender: &mut Sender,
        mut id: WrId,
        report: WrReport,
        request: Option<SendRequest>,
    ) -> Result<StartedWr, StreamError> {
        let (done, failure) = match request {
            Some(SendRequest::Atomic {
                op, sink, stag, to, ..
            }) => {
                // The peer returns it. Its responses come in order, so any number would do.
                let number = sender.segmenter.next_request();
                let request = AtomicRequest {
                    op,
                    id: number,
                    stag,
                    to,
                };
                let awaited = AwaitedResponse::AtomicResponse { id: number, sink };
                let message = Message::AtomicRequest(request);

                return self.start_request(sender, id, report, message, awaited);
            }
            Some(SendRequest::Register(mapping)) => {
                let done = self.regions.register(mapping, id.of_kernel());

                (done, WcStatus::LocalProtection)
            }
            Some(SendRequest::Unregister) => {
                let done = self.regions.unregister(id.of_kernel());

                (done, WcStatus::LocalProtection)
            }
            Some(SendRequest::LocalInvalidate(stag)) => {
                let done = self.regions.invalidate_local(stag);

                (done, WcStatus::LocalProtection)
            }
            Some(SendRequest::Bind(bind)) => (self.regions.bind(&bind), WcStatus::Bind),
            // `start_wr` starts these.
            Some(
                SendRequest::Send { .. } | SendRequest::Write { .. } | SendRequest::Read { .. },
            )
            | None => return StartedWr::begun(false),
        };

        self.executed(report, id, done, failure)
    }

    /// Starts the message of a WR with payload. A WR whose payload fits into one FPDU begins when
    /// that is gathered, and then it is done.
    fn start_message(
        &self,
        sender: &mut Sender,
        id: WrId,
        report: WrReport,
        message: Message,
        immediate: Option<SendImmediate>,
    ) -> Result<StartedWr, StreamError> {
        let at_once = immediate.is_none() && sender.segmenter.takes_at_once(report.bytes);
        let place = match at_once {
            true => WrPlace::Next(report),
            false => WrPlace::Begun(self.begin_wr(report, None)?),
        };
        let active = Active::Request {
            place,
            id,
            immediate,
        };

        StartedWr::begun(sender.begin(message, report.bytes, active))
    }

    /// Starts the request of a WR that waits for a response of the peer.
    fn start_request(
        &self,
        sender: &mut Sender,
        id: WrId,
        report: WrReport,
        message: Message,
        awaited: AwaitedResponse,
    ) -> Result<StartedWr, StreamError> {
        let number = self.begin_wr(report, Some(id))?;

        let count =
            self.note_outstanding(Some(number), sender.segmenter.next_request(), awaited)?;

        sender.note_reads(count);
        StartedWr::begun(sender.begin(message, 0, Active::Control))
    }

    /// Begins the WR of the active message, unless it has begun: it stays with the transmitter.
    #[cold]
    pub(super) fn begin_active(&self, sender: &mut Sender) {
        if let Some(Active::Request { place, .. }) = &mut sender.active {
            if let WrPlace::Next(report) = *place {
                if let Some(number) = self.sq.begin(report, None) {
                    *place = WrPlace::Begun(number);
                }
            }
        }
    }

    /// Completes a WR that sends no message; with status `failure` if it failed. Returns the error
    /// that ends the stream then.
    fn executed(
        &self,
        report: WrReport,
        id: WrId,
        done: Result<(), Denied>,
        failure: WcStatus,
    ) -> Result<StartedWr, StreamError> {
        let status = match done {
            Ok(()) => WcStatus::Success,
            Err(_) => failure,
        };
        let finished = self.finish_wr(WrPlace::Next(report), id, status);

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
    fn check_reads(&self, wr: &SendWr) -> Result<(), NotStarted> {
        let is_read = wr.awaits_response();

        if !is_read && !wr.fence {
            return Ok(());
        }
        let mut reads = self.reads.lock();
        if is_read && reads.ord_is_zero() {
            return Err(NotStarted::Invalid(WcStatus::LocalOperation));
        }
        let fenced = wr.fence && !reads.outbound.is_empty();

        if fenced || (is_read && reads.ord_reached()) {
            reads.tx_blocked = true;
            return Err(NotStarted::Blocked);
        }
        Ok(())
    }

    /// Whether there is room for another WR that has begun. If there is none, the end of a read
    /// makes room and wakes the transmitter.
    fn may_begin(&self) -> bool {
        self.sq.has_room() || {
            let mut reads = self.reads.lock();

            // The read may have ended before this is noted: look once more.
            reads.tx_blocked = true;
            self.sq.has_room()
        }
    }

    /// Begins a WR, for which there is room. `waits`: its id, if it waits for a response. Returns
    /// its number.
    fn begin_wr(&self, report: WrReport, waits: Option<WrId>) -> Result<u32, StreamError> {
        let number = self.sq.begin(report, waits);

        number.ok_or(StreamError::local(Local::Request))
    }

    /// Completes a WR that cannot begin with an error. Returns the error that ends the stream.
    #[cold]
    fn refuse_wr(&self, sender: &mut Sender, wr: &mut SendWr, status: WcStatus) -> StreamError {
        let report = self.sq.report(wr, &sender.data, 0);
        let id = wr.give_up(&mut sender.data);

        // The stream ends, so a lost completion changes nothing.
        let _ = self.finish_wr(WrPlace::Next(report), id, status);
        StreamError::local(match status {
            WcStatus::LocalProtection => Local::Buffer,
            _ => Local::Request,
        })
    }

    /// Notes a read as outstanding, and returns how many are. This comes before the send: the
    /// response may arrive before the send returns.
    fn note_outstanding(
        &self,
        number: Option<u32>,
        msn: u32,
        awaited: AwaitedResponse,
    ) -> Result<u32, StreamError> {
        let outbound = Outbound {
            number,
            msn,
            awaited,
        };

        // `check_reads` found room, and the receiver only makes more.
        let mut reads = self.reads.lock();

        match reads.outbound.push(outbound) {
            Ok(_) => Ok(reads.outbound.len()),
            Err(outbound) => {
                self.end_read(outbound);
                Err(StreamError::local(Local::Request))
            }
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
    /// The next WR waits for the end of a read, which kicks the queue pair. The process need not
    /// ring the doorbell before.
    Blocked,
    /// There may be one, but other work comes first.
    Later,
    /// The same, and only WRs without a message have been executed.
    Executed,
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
                Self::Message => Self::Message,
                _ => Self::Later,
            }),
            Self::Executed => Ok(match other()? {
                Self::Nothing | Self::Blocked => Self::Executed,
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

impl StartedWr {
    /// The segmenter has taken the message of the WR, as it takes each that follows another.
    fn begun(begun: bool) -> Result<Self, StreamError> {
        match begun {
            true => Ok(Self::Message),
            false => Err(StreamError::local(Local::Request)),
        }
    }
}

/// Why a WR does not begin.
enum NotStarted {
    /// It waits for the end of a read, which wakes the transmitter.
    Blocked,
    Invalid(WcStatus),
}

/// Returns the response that a Read Request waits for.
fn read_response(request: &ReadRequest) -> AwaitedResponse {
    let progress = Outstanding::new(request.sink_stag, request.sink_to, request.len);

    AwaitedResponse::ReadResponse(progress)
}
