// SPDX-License-Identifier: GPL-2.0

//! The state of the transmitting side.

use crate::{
    counters::{Counter, Counters},
    link::{Batch, Framer, Link, LinkState},
    queue::wr::{SendData, SendImmediate},
    stream::{
        coalesce::Coalescer,
        gather::Active,
        handover::Handover,
        start::Start,
        tally::{Kind, Tally},
    },
};
use iwarp::{Message, Segmenter};
use kernel::{prelude::*, sync::Arc};
use kernel_ext::{cpu::Cpu, memcg::MemCgroup, time::Ktime};

/// A process that has had so many reads outstanding does not wait for the response to each.
const AHEAD: u32 = 8;

/// The transmitting side of a stream.
pub(crate) struct Tx {
    /// In a box: see [`StartRoom`](super::StartRoom).
    pub(super) sender: Option<KVBox<Sender>>,
    pub(super) batch: Batch,
    pub(super) coalescer: Coalescer,
    pub(crate) handover: Handover,
    /// A worker has to be called to this CPU.
    pub(crate) call: Option<Cpu>,
    /// Octets of the batch, or of a message that was begun, have been dropped.
    cut: bool,
    /// Passes in a row that had no memory for anything.
    failures: u32,
    /// The transmit run that is at work, until it is counted.
    run: Option<TxRun>,
    /// The counters of the transmitting side.
    pub(super) counters: Arc<Counters>,
}

/// The context of a transmit run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxRun {
    /// In the context of a doorbell.
    Doorbell,
    /// In a worker.
    Worker,
}

impl TxRun {
    /// Returns the counter of these runs. Any context.
    pub(super) fn counter(self) -> Counter {
        match self {
            Self::Doorbell => Counter::TxInlineRuns,
            Self::Worker => Counter::TxDeferredRuns,
        }
    }
}

/// The transmitting side of a connected stream.
pub(super) struct Sender {
    /// Its connection may end, and be taken away, at any time.
    pub(super) link: Arc<Link>,
    pub(super) segmenter: Segmenter<Framer>,
    /// The message that the segmenter works on.
    pub(super) active: Option<Active>,
    /// The data of the WR that is being sent, or that is looked at: one place for all WRs.
    pub(super) data: SendData,
    /// The kind of the last message that has begun.
    pub(super) kind: Kind,
    /// Messages and bytes that are not counted yet.
    pub(super) tally: Tally,
    /// The frame that the peer waits for before any other.
    pub(super) first: Option<Message>,
    /// The last message was a WR's: a response to the peer is next, if one is due.
    pub(super) response_next: bool,
    /// Since the last doorbell, a message has begun that wakes the peer's consumer.
    solicits: bool,
    /// The process does not wait for the response to each read: several were outstanding.
    reads_ahead: bool,
}

impl Tx {
    /// Creates the transmitting side of a stream that is not connected. Any context. The batch is
    /// charged to `memcg`.
    pub(super) fn new(memcg: MemCgroup, counters: Arc<Counters>) -> Self {
        Self {
            sender: None,
            batch: Batch::charged_to(memcg),
            coalescer: Coalescer::new(),
            handover: Handover::new(),
            call: None,
            cut: false,
            failures: 0,
            run: None,
            counters,
        }
    }

    /// Starts the transmitting side. Process context.
    pub(super) fn start(&mut self, mut sender: KVBox<Sender>) {
        self.clear_batch(sender.segmenter.framing_mut().has_messages());
        self.cut = false;
        self.failures = 0;
        self.sender = Some(sender);
    }

    /// Notes that a worker sends the messages that wait, and what the process posts later.
    pub(crate) fn take_over(&mut self) {
        self.coalescer.forget_waiting();
    }

    /// Notes whether there was memory for something. Returns how often in a row there was none.
    pub(super) fn note_memory(&mut self, enough: bool) -> u32 {
        self.failures = match enough {
            true => 0,
            false => self.failures.saturating_add(1),
        };
        self.failures
    }

    /// Notes that a transmit run begins.
    pub(crate) fn begin_run(&mut self, run: TxRun) {
        self.run = Some(run);
    }

    /// Returns the time if the transmit run begins now, in the context of a doorbell.
    pub(super) fn rung(&self) -> Option<Ktime> {
        (self.run == Some(TxRun::Doorbell)).then(Ktime::now)
    }

    /// Notes that the transmit run at work sends nothing, and does not count.
    pub(super) fn cancel_run(&mut self) {
        self.run = None;
    }

    /// Counts the FPDUs that have been gathered since the last time, and the transmit run that has
    /// begun.
    pub(crate) fn count(&mut self) {
        let run = self.run.take();

        match &mut self.sender {
            Some(sender) => sender.tally.count_sent(&self.counters, run),
            None => Tally::default().count_sent(&self.counters, run),
        }
    }

    /// Sends nothing more, and remembers whether that cuts something off.
    pub(crate) fn stop(&mut self) {
        self.cut = self.is_cut();
        self.discard();
    }

    /// Sends nothing more. The rest of the batch is of no use to the peer.
    pub(crate) fn discard(&mut self) {
        self.count();
        self.sender = None;
        self.clear_batch(false);
    }

    fn clear_batch(&mut self, has_messages: bool) {
        self.batch.clear(has_messages);
        self.coalescer = Coalescer::new();
    }

    /// Whether an end of the stream now would cut off part of the batch or of a message.
    pub(super) fn is_cut(&self) -> bool {
        let busy = self
            .sender
            .as_ref()
            .is_some_and(|sender| sender.segmenter.busy());

        self.cut || busy || !self.batch.buf.is_empty()
    }

    /// Takes the message that was being sent, if it is not complete. No more of it can be sent.
    pub(super) fn take_active(&mut self) -> Option<Active> {
        self.sender.as_mut()?.take_active()
    }

    /// Whether messages wait for more.
    pub(crate) fn has_waiting(&self) -> bool {
        self.coalescer.has_waiting()
    }

    /// Whether a Terminate has been gathered.
    pub(crate) fn has_terminate(&self) -> bool {
        self.sender
            .as_ref()
            .is_some_and(|sender| sender.segmenter.terminated())
    }

    /// Sends the rest of the batch, as far as the link takes it: the stream is ending, so nothing
    /// waits for more messages. Process context; may sleep. Fails as `send` of a
    /// [`Connection`](crate::link::Connection) does.
    pub(crate) fn send_rest(&mut self) -> Result {
        let Some(sender) = &self.sender else {
            return Ok(());
        };

        self.coalescer.forget_waiting();
        (sender.link).with(|connection| connection.send(&mut self.batch))
    }
}

impl Sender {
    /// Returns the transmitting side of a stream that starts. Any context.
    pub(super) fn new(start: Start<'_>) -> Self {
        Self {
            link: start.link.clone(),
            segmenter: Segmenter::new(start.framer),
            active: None,
            data: SendData::none(),
            kind: Kind::Other,
            tally: Tally::default(),
            first: start.first,
            response_next: true,
            solicits: false,
            reads_ahead: false,
        }
    }

    /// Returns the bytes that the link has room for, and lets frames have its present EMSS. `None`
    /// without a connection or without room: nothing must be gathered that would wait here, perhaps
    /// for ever. The socket calls back when it has room. Process context; may sleep.
    pub(super) fn room(&mut self) -> Option<usize> {
        // This takes the link's lock, and the send takes it again: the end of the connection does
        // not wait while payload is gathered.
        let (room, emss) = (self.link)
            .with(|connection| Ok(connection.room_and_emss()))
            .ok()
            .filter(|(room, _)| *room != 0)?;

        self.segmenter.framing_mut().set_emss(emss);
        Some(room)
    }

    /// Lets the link report room at the next acknowledgment.
    pub(super) fn notify_room(&self) {
        // Without a connection, sending fails.
        let _ = self.link.with(|connection| {
            connection.notify_room();
            Ok(())
        });
    }

    /// Whether the link has ended, or is about to.
    #[cold]
    pub(super) fn is_link_ended(&self) -> bool {
        matches!(
            self.link.state(),
            LinkState::ShuttingDown | LinkState::Closed(_)
        )
    }

    /// Takes the active message: its WR has its buffers no longer, and has its id.
    pub(super) fn take_active(&mut self) -> Option<Active> {
        let mut active = self.active.take();

        if let (Some(lent), Some(Active::Request { id, .. })) = (self.data.give_up(), &mut active) {
            *id = lent;
        }
        active
    }

    /// Begins a message. Returns whether it has begun, which is so if no other is active.
    pub(super) fn begin(&mut self, message: Message, len: u32, active: Active) -> bool {
        self.active = Some(active);
        self.start(message, len)
    }

    fn start(&mut self, message: Message, len: u32) -> bool {
        self.kind = (&message).into();
        self.solicits |= matches!(
            message,
            Message::Send {
                solicited: true,
                ..
            } | Message::Immediate {
                solicited: true,
                ..
            }
        );
        self.segmenter.start(message, len).is_ok()
    }

    /// Notes that a read has begun, and that now so many are outstanding.
    pub(super) fn note_reads(&mut self, outstanding: u32) {
        self.reads_ahead |= outstanding >= AHEAD;
    }

    /// Whether the last message was a read of a process that has had several outstanding.
    pub(super) fn reads_ahead(&self) -> bool {
        self.reads_ahead && self.kind.is_request()
    }

    /// Returns whether a message has begun since the last call that wakes the peer's consumer.
    pub(super) fn take_solicits(&mut self) -> bool {
        core::mem::take(&mut self.solicits)
    }

    /// Begins the Immediate Data of the WR whose RDMA Write is gathered. No other message comes in
    /// between. Returns whether the WR has Immediate Data.
    pub(super) fn begin_immediate(&mut self) -> bool {
        let immediate = match &mut self.active {
            Some(Active::Request { immediate, .. }) => immediate.take(),
            _ => None,
        };
        let Some(SendImmediate { data, solicited }) = immediate else {
            return false;
        };
        let message = Message::Immediate {
            data: data.to_wire(),
            solicited,
        };

        self.start(message, 0)
    }
}
