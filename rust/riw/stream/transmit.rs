// SPDX-License-Identifier: GPL-2.0

//! Transmitting: messages become FPDUs, and many FPDUs one send.

use crate::{
    link::Batch,
    mr::Finder,
    queue::wr::WcStatus,
    stream::{
        coalesce::Wait,
        gather::{Active, Gatherer, Stop},
        next::NextMessage,
        tx_state::{Sender, Tx},
        Stream, StreamError,
    },
};
use iwarp::{Denied, Local, Message, Quote, Terminate};
use kernel::{prelude::*, sync::atomic::ordering, time::Delta};
use kernel_ext::time::Ktime;
use trace::Source;

/// Maximum batch, in bytes.
const BATCH: usize = 256 * 1024;
/// Maximum batches in a row before other work items run.
const BATCHES: u32 = 8;

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassResult {
    /// Nothing is left to send. The next post starts the next run, unless a worker stays.
    Done,
    /// The rest waits for an event, which will start the next run.
    Blocked,
    /// There is more, but other work items run first.
    Yield,
    /// The next run comes later: there is no memory, and no event will report that there is; or the
    /// process posts WRs that send nothing as fast as they are taken. Has the number of passes in a
    /// row that had no memory for anything; 0: soon.
    Retry(u32),
    /// The batch begins to wait for more messages. The next run must come after this time, or
    /// earlier.
    Coalescing(Delta),
}

/// Whether messages are left to gather after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    /// Nothing: the next post rings the doorbell, or a worker looks for it.
    All,
    /// Nothing that may begin before a read ends.
    Blocked,
    /// There may be more messages.
    More,
    /// The same. Only WRs that send nothing have been executed, as many as may be in a row.
    Executed,
    /// The next FPDU, for which there is no memory.
    NoMemory,
}

/// Why an FPDU has not been gathered.
enum NotGathered {
    /// There is no memory. The message is as before, to be tried again.
    NoMemory,
    /// The message has failed.
    Failed(StreamError),
}

impl Stream {
    /// Sends messages until there are none, the link is full, or other work items must run. Process
    /// context; may sleep. Returns an error that ends the stream.
    pub(crate) fn transmit(&self, tx: &mut Tx) -> Result<PassResult, StreamError> {
        // Later batches of the run are parts of long messages.
        let mut rung = tx.rung();
        let mut sends_nothing = true;

        self.complete_rest()?;

        for _ in 0..BATCHES {
            let Some(room) = tx.sender.as_mut().and_then(|sender| sender.room()) else {
                return Ok(PassResult::Blocked);
            };
            let before = tx.batch.buf.len();
            let filled = self.fill(tx, room.min(BATCH))?;
            let has_grown = tx.batch.buf.len() > before;
            let failures = tx.note_memory(has_grown || filled != Filled::NoMemory);
            let wait = match filled {
                Filled::All => self.coalesce(tx, rung),
                _ => Wait::No,
            };

            // Before the peer can have the batch.
            tx.count();
            match wait {
                Wait::No => {}
                Wait::Begins(time) => return Ok(PassResult::Coalescing(time)),
                Wait::GoesOn => return Ok(PassResult::Done),
            }
            let Tx {
                sender: Some(sender),
                batch,
                coalescer,
                ..
            } = &mut *tx
            else {
                return Ok(PassResult::Blocked);
            };
            let bytes = batch.buf.len();

            sends_nothing &= filled == Filled::Executed && bytes == 0;
            if filled == Filled::More && room < BATCH {
                // If the peer's acknowledgments come at once, the send buffer never runs full, and
                // would keep its initial size, a fraction of a batch.
                sender.notify_room();
            }
            match (sender.link).with(|connection| connection.send(batch)) {
                Ok(()) => coalescer.sent(rung.take(), bytes),
                Err(e) if e == ENOBUFS => return Ok(PassResult::Retry(0)),
                // A full socket calls back when it has room.
                Err(e) if e == EAGAIN => return Ok(PassResult::Blocked),
                // The end of a connection is reported.
                Err(_) if sender.is_link_ended() => return Ok(PassResult::Blocked),
                // Something refuses to send, and nothing reports when that changes.
                Err(_) => return Err(StreamError::local(Local::LowerLayer)),
            }
            match filled {
                Filled::More | Filled::Executed => {}
                Filled::All => return Ok(PassResult::Done),
                Filled::Blocked => return Ok(PassResult::Blocked),
                Filled::NoMemory => return Ok(PassResult::Retry(failures)),
            }
        }
        match sends_nothing {
            true => Ok(PassResult::Retry(0)),
            false => Ok(PassResult::Yield),
        }
    }

    /// Whether the batch, which has all posted messages, waits for more; and whether a worker is
    /// called to send them. `rung`: when the doorbell was rung, if the run is in its context.
    fn coalesce(&self, tx: &mut Tx, rung: Option<Ktime>) -> Wait {
        let Some(rung) = rung else {
            return Wait::No;
        };
        let answered = self.answered.load(ordering::Relaxed);

        if answered {
            self.answered.store(false, ordering::Relaxed);
        }
        let (solicits, reads_ahead) = match &mut tx.sender {
            Some(sender) => (sender.take_solicits(), sender.reads_ahead()),
            None => (false, false),
        };
        if solicits || tx.batch.buf.is_empty() || tx.batch.has_messages() {
            return Wait::No;
        }
        let (bytes, dev) = (tx.batch.buf.len(), self.sq.device());
        let wait = tx.coalescer.doorbell(rung, bytes, answered);

        if dev.handover() != 0 {
            let next = self.sq.next();
            let waited = answered && !reads_ahead;

            tx.call = (tx.handover).doorbell(rung, next, bytes, waited, |cpu, idle| {
                dev.stays.join(cpu, idle)
            });
        }

        if wait != Wait::No {
            tx.cancel_run();
        }
        wait
    }

    /// Gathers FPDUs until the batch has `size` bytes or there is no message.
    fn fill(&self, tx: &mut Tx, size: usize) -> Result<Filled, StreamError> {
        let Tx {
            sender: Some(sender),
            batch,
            ..
        } = tx
        else {
            return Ok(Filled::All);
        };
        let mut finder = Finder::new(&self.regions);

        while !batch.is_full(size) {
            if !sender.segmenter.busy() {
                match self.next_message(sender)? {
                    NextMessage::Message => {}
                    NextMessage::Nothing => return Ok(Filled::All),
                    NextMessage::Blocked => return Ok(Filled::Blocked),
                    NextMessage::Later => return Ok(Filled::More),
                    NextMessage::Executed => return Ok(Filled::Executed),
                }
            }
            match self.gather_fpdu(sender, batch, &mut finder) {
                Ok(()) => {}
                Err(NotGathered::NoMemory) => return Ok(Filled::NoMemory),
                Err(NotGathered::Failed(error)) => return Err(error),
            }
        }
        Ok(Filled::More)
    }

    /// Gathers one FPDU. If it is the last of its message, completes the message.
    fn gather_fpdu(
        &self,
        sender: &mut Sender,
        batch: &mut Batch,
        finder: &mut Finder<'_>,
    ) -> Result<(), NotGathered> {
        let mark = batch.buf.mark();
        let active = sender.active.as_ref();
        let polled = match batch.begin_frame() {
            Err(_) => Err(Stop::Memory),
            Ok(()) => {
                let mut gatherer = Gatherer::new(finder, active, &sender.data, &mut batch.buf);

                sender.segmenter.poll_transmit(&mut gatherer)
            }
        };
        match polled {
            Ok(Some(emitted)) => {
                batch.end_frame(emitted.bytes);
                trace::fpdu_tx(&self.sq, &emitted.header, emitted.len);
                sender.tally.fpdu(sender.kind, emitted.len, emitted.last);
                if !emitted.last || sender.begin_immediate() {
                    return Ok(());
                }
                self.complete_sent(sender.take_active())
                    .map_err(NotGathered::Failed)
            }
            Ok(None) => Ok(()),
            Err(stop) => {
                batch.buf.rollback(mark);
                let Stop::Denied(denied) = stop else {
                    self.begin_active(sender);
                    return Err(NotGathered::NoMemory);
                };
                let gathered = sender.segmenter.offset();
                Err(NotGathered::Failed(self.stop_message(
                    sender.take_active(),
                    gathered,
                    denied,
                )))
            }
        }
    }

    /// Fails the message of which `gathered` bytes are on their way. Returns the error that ends
    /// the stream.
    #[cold]
    fn stop_message(&self, active: Option<Active>, gathered: u32, denied: Denied) -> StreamError {
        match active {
            Some(Active::Response(inbound)) => {
                return StreamError {
                    error: denied.read_source(),
                    quote: inbound.quote(gathered),
                };
            }
            Some(Active::Request { place, id, .. }) => {
                // The stream ends, so a lost completion changes nothing.
                let _ = self.finish_wr(place, id, WcStatus::LocalProtection);
            }
            _ => {}
        }
        StreamError {
            error: denied.local(),
            quote: Quote::NONE,
        }
    }

    /// Gathers a Terminate behind the batch. Process context; may sleep. Returns whether it has:
    /// without memory the peer only learns that the connection ends.
    pub(crate) fn gather_terminate(&self, tx: &mut Tx, terminate: Terminate) -> bool {
        let Some(sender) = &mut tx.sender else {
            return false;
        };

        let mut finder = Finder::new(&self.regions);

        sender.begin(Message::Terminate(terminate), 0, Active::Control)
            && self.gather_fpdu(sender, &mut tx.batch, &mut finder).is_ok()
    }

    /// Whether a FIN would cut something off: the socket has not taken the whole batch, which the
    /// process may have completions for, or has part of a message. Process context; may sleep; the
    /// caller holds no lock of the stream. The answer stays the same while there is no socket.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tx.lock().is_cut()
    }

    /// As [`Self::has_unsent`], and true while a transmit pass is at work. Process context; does
    /// not sleep.
    pub(crate) fn may_have_unsent(&self) -> bool {
        self.tx.try_lock().is_none_or(|tx| tx.is_cut())
    }

    /// Whether nothing is left to send or to wait for. Process context. If reads are outstanding,
    /// their end wakes the transmitter.
    pub(crate) fn is_drained(&self, tx: &Tx) -> bool {
        let no_reads = {
            let mut reads = self.reads.lock();

            reads.tx_blocked = !reads.outbound.is_empty();
            reads.outbound.is_empty() && reads.inbound.is_empty()
        };

        no_reads && self.sq.is_idle() && tx.batch.buf.is_empty()
    }
}
