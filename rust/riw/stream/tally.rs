// SPDX-License-Identifier: GPL-2.0

//! Counts of one transmit batch or one receive, which go to the counters at its end.

use crate::{
    counters::{Counter, Counters},
    stream::tx_state::TxRun,
};
use iwarp::{AtomicOp, Message, Segment};

/// Kinds of messages, as they are counted.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Send,
    Write,
    ReadRequest,
    ReadResponse,
    FetchAdd,
    CmpSwap,
    AtomicResponse,
    Immediate,
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
            Message::AtomicRequest(request) => request.op.into(),
            Message::AtomicResponse(_) => Self::AtomicResponse,
            Message::Immediate { .. } => Self::Immediate,
            Message::Terminate(_) => Self::Other,
        }
    }
}

impl From<AtomicOp> for Kind {
    fn from(op: AtomicOp) -> Self {
        match op {
            AtomicOp::FetchAdd { .. } => Self::FetchAdd,
            AtomicOp::CmpSwap { .. } => Self::CmpSwap,
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

impl Kind {
    /// Whether the peer answers them.
    pub(super) fn is_request(self) -> bool {
        matches!(self, Self::ReadRequest | Self::FetchAdd | Self::CmpSwap)
    }
}

/// Messages of a kind whose length differs.
#[derive(Default)]
struct Moved {
    /// Bytes of payload.
    bytes: u64,
    messages: u32,
}

impl Moved {
    fn note(&mut self, bytes: u32, last: bool) {
        self.bytes = self.bytes.wrapping_add(bytes.into());
        self.messages = self.messages.wrapping_add(last.into());
    }
}

/// Messages of the kinds that are rarer, which have one FPDU each.
#[derive(Default, PartialEq, Eq)]
struct Rare {
    fetch_adds: u32,
    cmp_swaps: u32,
    atomic_responses: u32,
    immediates: u32,
}

/// The messages and bytes of one batch or one receive. Counting each FPDU by itself would cost a
/// call for each. Small: each batch and each receive clears one and reads it.
#[derive(Default)]
pub(super) struct Tally {
    sends: Moved,
    writes: Moved,
    responses: Moved,
    fpdus: u32,
    requests: u32,
    rare: Rare,
}

/// The counters of one direction.
struct Names {
    fpdus: Counter,
    sends: (Counter, Counter),
    writes: (Counter, Counter),
    responses: (Counter, Counter),
    requests: Counter,
    fetch_adds: Counter,
    cmp_swaps: Counter,
    atomic_responses: Counter,
    immediates: Counter,
}

const SENT: Names = Names {
    fpdus: Counter::TxFpdus,
    sends: (Counter::TxSends, Counter::TxSendBytes),
    writes: (Counter::TxWrites, Counter::TxWriteBytes),
    responses: (Counter::TxReadResponses, Counter::TxReadResponseBytes),
    requests: Counter::TxReadRequests,
    fetch_adds: Counter::TxFetchAdds,
    cmp_swaps: Counter::TxCmpSwaps,
    atomic_responses: Counter::TxAtomicResponses,
    immediates: Counter::TxImmediates,
};

const RECEIVED: Names = Names {
    fpdus: Counter::RxFpdus,
    sends: (Counter::RxSends, Counter::RxSendBytes),
    writes: (Counter::RxWrites, Counter::RxWriteBytes),
    responses: (Counter::RxReadResponses, Counter::RxReadResponseBytes),
    requests: Counter::RxReadRequests,
    fetch_adds: Counter::RxFetchAdds,
    cmp_swaps: Counter::RxCmpSwaps,
    atomic_responses: Counter::RxAtomicResponses,
    immediates: Counter::RxImmediates,
};

impl Tally {
    /// Notes an FPDU with `bytes` of payload, which are counted only for kinds of messages whose
    /// length differs. `last`: it is the last of its message.
    #[inline]
    pub(super) fn fpdu(&mut self, kind: Kind, bytes: u32, last: bool) {
        self.fpdus = self.fpdus.wrapping_add(1);
        let messages = match kind {
            Kind::Send => return self.sends.note(bytes, last),
            Kind::Write => return self.writes.note(bytes, last),
            Kind::ReadResponse => return self.responses.note(bytes, last),
            Kind::ReadRequest => &mut self.requests,
            Kind::FetchAdd => &mut self.rare.fetch_adds,
            Kind::CmpSwap => &mut self.rare.cmp_swaps,
            Kind::AtomicResponse => &mut self.rare.atomic_responses,
            Kind::Immediate => &mut self.rare.immediates,
            Kind::Other => return,
        };

        *messages = messages.wrapping_add(last.into());
    }

    /// Passes the counts to `add`, in one or two lists.
    #[inline]
    fn count(&self, names: &Names, add: impl Fn(&[(Counter, u64)])) {
        add(&[
            (names.fpdus, self.fpdus.into()),
            (names.sends.0, self.sends.messages.into()),
            (names.sends.1, self.sends.bytes),
            (names.writes.0, self.writes.messages.into()),
            (names.writes.1, self.writes.bytes),
            (names.responses.0, self.responses.messages.into()),
            (names.responses.1, self.responses.bytes),
            (names.requests, self.requests.into()),
        ]);
        if self.rare != Rare::default() {
            add(&[
                (names.fetch_adds, self.rare.fetch_adds.into()),
                (names.cmp_swaps, self.rare.cmp_swaps.into()),
                (names.atomic_responses, self.rare.atomic_responses.into()),
                (names.immediates, self.rare.immediates.into()),
            ]);
        }
    }

    /// Moves the counts to the counters of transmitted messages, and counts the transmit run that
    /// sent them if it has just begun. Process context or softirq.
    pub(super) fn count_sent(&mut self, counters: &Counters, run: Option<TxRun>) {
        if let Some(run) = run {
            counters.inc(run.counter());
        }
        if self.fpdus != 0 {
            self.count(&SENT, |counts| counters.add_several(counts));
            *self = Self::default();
        }
    }

    /// Passes the counts of received messages to `add`, which adds them to the counters.
    #[inline]
    pub(super) fn count_received(&self, add: impl Fn(&[(Counter, u64)])) {
        if self.fpdus != 0 {
            self.count(&RECEIVED, add);
        }
    }
}
