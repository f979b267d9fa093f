// SPDX-License-Identifier: GPL-2.0

//! Transmit runs: a queue pair sends as its state allows.

use super::{stream_error::StreamErrorReason, Qp, TRANSMIT_WORK};
use crate::{
    queue::send::Flush,
    stream::{
        transmit::PassResult,
        tx_state::{Tx, TxRun},
        StreamError,
    },
};
use iwarp::qp::{Event, State};
use kernel::{
    prelude::*,
    sync::{Arc, MutexGuard},
    workqueue::WorkItem,
};
use kernel_ext::workqueue::{expedite_delayed_work, HasQueue};

/// Maximum passes of one run before a worker continues: another thread of the process can ring the
/// doorbell without end.
const PASSES: u32 = 16;

impl WorkItem<TRANSMIT_WORK> for Qp {
    type Pointer = Arc<Self>;

    /// A transmit run in a worker. Only a holder of the right to transmit queues the item, now or
    /// by its timer, and so passes the right to it.
    fn run(this: Arc<Self>) {
        this.in_worker(|| this.transmit(TxRun::Worker));
    }
}

impl Qp {
    /// Starts a transmit run in a worker, unless one is on its way. Any context.
    pub(crate) fn kick(self: &Arc<Self>) {
        if self.runner.want() {
            self.queue().kick::<_, TRANSMIT_WORK>(self);
        }
    }

    /// Transmits the posted WRs, in the context of the caller unless a run is at work already.
    /// Process context; may sleep.
    ///
    /// Fails with `ENOTCONN` if there has been no connection. The WRs are dropped then: the process
    /// takes them as not posted.
    pub(crate) fn ring_doorbell(self: &Arc<Self>) -> Result {
        trace::doorbell(&**self);
        if !self.is_stream_active() && self.discard_unconnected() {
            return Err(ENOTCONN);
        }
        if self.runner.want() {
            self.transmit(TxRun::Doorbell);
        }
        Ok(())
    }

    /// Drops all posted send WRs if there has been no connection. Process context; may sleep.
    /// Returns whether there has been none.
    fn discard_unconnected(&self) -> bool {
        // A connection begins before or after, not in between: see `Qp::start`. Nor is anything
        // flushed, if the state becomes ERROR.
        let _tx = self.stream.tx.lock();
        let Some(mut more) = self.if_unconnected(|| self.stream.sq.flush_some(Flush::Discard).1)
        else {
            return false;
        };

        for _ in self.stream.sq.chunks() {
            if !more {
                break;
            }
            more = self.stream.sq.flush_some(Flush::Discard).1;
        }
        true
    }

    /// Transmits, in a run that the caller has the right to. Process context; may sleep. Returns
    /// the right, or passes it to a worker.
    pub(super) fn transmit(self: &Arc<Self>, run: TxRun) {
        let mut run = Some(run);

        for _ in 0..PASSES {
            let state = self.current.load();
            let over = match self.pass(run.take()) {
                PassResult::Yield => break,
                PassResult::Retry(failures) => self.transmit_later(failures, state),
                PassResult::Done | PassResult::Blocked => self.runner.done(),
                PassResult::Coalescing(time) => {
                    self.push_later(time);
                    self.runner.done()
                }
            };

            if over {
                return;
            }
        }
        self.queue().kick::<_, TRANSMIT_WORK>(self);
    }

    /// Passes the right to transmit to a run after some time, or at once if the state is not
    /// `state` any more, unless the queue pair is being destroyed. A run at once would only find
    /// what the last one has found, and there may be a request for one: the link reports room while
    /// nothing is in flight. Process context. Returns whether it has passed the right.
    #[cold]
    pub(super) fn transmit_later(self: &Arc<Self>, failures: u32, state: Option<State>) -> bool {
        let has_passed = self.queue_later::<TRANSMIT_WORK>(self.pause(failures));

        // `hasten` came too early. It does not after this: the timer has started under the lock
        // under which the state changes.
        if has_passed && self.current.load() != state {
            expedite_delayed_work::<Self, TRANSMIT_WORK>(self);
        }
        has_passed
    }

    /// Starts a transmit run in a worker after a change of the state, also if one was to come
    /// later: it may need no memory now. Any context.
    pub(super) fn hasten(self: &Arc<Self>) {
        self.kick();
        expedite_delayed_work::<Self, TRANSMIT_WORK>(self);
    }

    /// Sends, or flushes and closes, depending on the state. `begun`: the run that begins with this
    /// pass, to be counted.
    pub(super) fn pass(self: &Arc<Self>, begun: Option<TxRun>) -> PassResult {
        // No reset comes in between while `tx` is held.
        let mut tx = self.stream.tx.lock();

        if let Some(run) = begun {
            tx.begin_run(run);
        }
        // Whoever changes the state later requests another pass.
        match self.current.load() {
            Some(state @ (State::Rts | State::Draining)) => {
                let may_send = self.stream.may_send();
                let sent = match may_send {
                    true => self.stream.transmit(&mut tx),
                    false => Ok(PassResult::Blocked),
                };

                tx.count();
                if let Some(cpu) = tx.call.take() {
                    self.call_worker(cpu);
                }
                match sent {
                    Ok(result) if state == State::Rts => result,
                    sent => self.after_pass(tx, state, sent, may_send),
                }
            }
            Some(State::Terminate | State::Error) => self.pass_in_error(tx),
            // WRs that are posted in CLOSING are flushed when the connection has ended.
            _ => {
                tx.count();
                PassResult::Done
            }
        }
    }

    /// Ends the stream if sending has failed. A queue pair that drains closes its half of the
    /// connection after the last message.
    #[cold]
    fn after_pass(
        self: &Arc<Self>,
        tx: MutexGuard<'_, Tx>,
        state: State,
        sent: Result<PassResult, StreamError>,
        may_send: bool,
    ) -> PassResult {
        // A close does not wait for a peer that has not sent its first FPDU.
        let drained = state == State::Draining
            && matches!(sent, Ok(PassResult::Done | PassResult::Blocked))
            && (!may_send || self.stream.is_drained(&tx));

        // While `tx` excludes a reset: the outcome is of this stream, not of a later one.
        if drained && self.event(Event::Drained).is_some() {
            self.close(State::Closing);
        }
        let (result, report) = match sent {
            Ok(result) => (result, None),
            // The batch goes out before the Terminate.
            Err(StreamError { error, quote }) => (
                PassResult::Done,
                self.end_stream(StreamErrorReason::Found(error), quote),
            ),
        };
        drop(tx);
        if let Some(event) = report {
            self.report_event(event);
        }
        result
    }

    /// Flushes WRs, sends the Terminate if one is due, and closes this half of the connection.
    #[cold]
    fn pass_in_error(self: &Arc<Self>, mut tx: MutexGuard<'_, Tx>) -> PassResult {
        let status = self.snapshot();
        // The queue pair, and so its completion queues, must not be destroyed before the consumer
        // has been notified.
        let object = self.handle();
        let flushed = self.flush(&mut tx);

        self.report_flushed(&flushed);
        drop(object);
        // In ERROR, too: a consumer may move there as soon as it sees its first WR fail.
        self.gather_terminate(&mut tx);
        // A Terminate waits for room in the socket, which calls back then, or for memory. After an
        // end by the peer or the consumer nothing waits.
        let has_terminate = tx.has_terminate();
        let sent = tx.send_rest();
        let waits = (sent == Err(EAGAIN) || sent == Err(ENOBUFS))
            && status.state == State::Terminate
            && has_terminate;
        tx.count();
        if status.state == State::Error {
            tx.stop();
        } else if !has_terminate {
            // The peer ended the stream: it discards further data.
            tx.discard();
        }
        if !waits {
            self.close(status.state);
        }
        drop(tx);
        // A process can post the whole ring again with one store. A worker that went on at once
        // would be busy for as long as that goes on, and the process is not charged for its time.
        if flushed.more() || (waits && sent == Err(ENOBUFS)) {
            PassResult::Retry(0)
        } else {
            PassResult::Done
        }
    }

    /// Closes this side's half of the connection, unless the state has changed: then the next pass
    /// handles the new state.
    fn close(&self, state: State) {
        let status = self.snapshot();

        if status.state == state {
            if let Some(connection) = status.connection {
                connection.as_arc_borrow().close();
            }
        }
    }
}
