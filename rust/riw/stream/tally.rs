// SPDX-License-Identifier: GPL-2.0

//! Counts of one transmit batch or one receive, which go to the counters at its end.

use super::receive::Rx;
use crate::counters::{Counter, Counters};
use iwarp::{Message, Segment};
use kernel_ext::sync::BhSpinLockGuard;

/// Kinds of messages, as they are counted.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Send,
    Write,
    ReadRequest,
    ReadResponse,
    /// A message of connection management: a Terminate.
    Other,
}

impl From<&Message> for Kind {
    fn from(message: &Message) -> Self {
        match message {
            Message::Send { .. } => Self::Send,
            Message::Write { .. } => Self::Write,
            Message::ReadRequest(_) => Self::ReadRequest,
            Message::ReadResponse { .. } => Self::ReadResponse,
            _ => Self::Other,
        }
    }
}

impl From<&Segment> for Kind {
    fn from(segment: &Segment) -> Self {
        match segment {
            Segment::Send { .. } => Self::Send,
            Segment::Write { .. } => Self::Write,
            Segment::ReadResponse { .. } => Self::ReadResponse,
        }
    }
}

/// Messages of one kind.
#[derive(Default)]
struct Moved {
    messages: u64,
    /// Bytes of payload.
    bytes: u64,
}

/// The messages and bytes of one batch or one receive. Counting each FPDU by itself would cost a
/// call for each.
#[derive(Default)]
pub(super) struct Tally {
    fpdus: u64,
    sends: Moved,
    writes: Moved,
    requests: Moved,
    responses: Moved,
}

impl Tally {
    /// Notes an FPDU with `bytes` of payload, ignored for a kind of message that has none. `last`:
    /// it is the last of its message.
    #[inline]
    pub(super) fn fpdu(&mut self, kind: Kind, bytes: u32, last: bool) {
        self.fpdus = self.fpdus.wrapping_add(1);
        let moved = match kind {
            Kind::Send => &mut self.sends,
            Kind::Write => &mut self.writes,
            Kind::ReadRequest => &mut self.requests,
            Kind::ReadResponse => &mut self.responses,
            Kind::Other => return,
        };

        moved.messages = moved.messages.wrapping_add(last.into());
        moved.bytes = moved.bytes.wrapping_add(bytes.into());
    }

    /// Adds to the counters of transmitted messages, and counts the transmit run that sent them if it
    /// has just begun. Process context or softirq.
    pub(super) fn count_sent(&self, counters: &Counters, run: Option<Counter>) {
        let (run, runs) = run.map_or((Counter::TxInlineRuns, 0), |run| (run, 1));

        if (self.fpdus, runs) == (0, 0) {
            return;
        }
        counters.add_several(&[
            (run, runs),
            (Counter::TxFpdus, self.fpdus),
            (Counter::TxSends, self.sends.messages),
            (Counter::TxSendBytes, self.sends.bytes),
            (Counter::TxWrites, self.writes.messages),
            (Counter::TxWriteBytes, self.writes.bytes),
            (Counter::TxReadRequests, self.requests.messages),
            (Counter::TxReadResponses, self.responses.messages),
            (Counter::TxReadResponseBytes, self.responses.bytes),
        ]);
    }

    /// Adds to the counters of received messages, which the holder of a stream's `rx` does.
    pub(super) fn count_received(&self, rx: &BhSpinLockGuard<'_, Rx>) {
        let counts = [
            (Counter::RxFpdus, self.fpdus),
            (Counter::RxSends, self.sends.messages),
            (Counter::RxSendBytes, self.sends.bytes),
            (Counter::RxWrites, self.writes.messages),
            (Counter::RxWriteBytes, self.writes.bytes),
            (Counter::RxReadRequests, self.requests.messages),
            (Counter::RxReadResponses, self.responses.messages),
            (Counter::RxReadResponseBytes, self.responses.bytes),
        ];

        rx.counters.add_several_locked(rx, &counts);
    }
}
