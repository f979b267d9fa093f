// SPDX-License-Identifier: GPL-2.0

//! The queues of kernel users, and where their WRs are completed.

use super::account::{Account, Call, Effect, Entry};
use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{Arc, Completion, SpinLockIrq},
    warn_on,
};
use riw_bindings as bindings;

/// Maximum length of a queue in WRs, far more than any driver supports.
const MAX_LEN: u32 = 1 << 20;

/// A queue that a kernel user posts to: a send queue, a receive queue of one queue pair, or a
/// shared one.
///
/// It keeps account of the WRs that the driver has, so that it knows which of them may be completed
/// ([`super::WrId`] has a place in the account), and that its end waits for all.
///
/// A WR has its place until the consumer has polled the completion, and a driver may have room for
/// another WR as soon as it has taken one. So there are more places than WRs that fit in the queue:
/// enough for consumers that have as many WRs outstanding as they have announced, as the verbs
/// demand. A shared queue has some more, for consumers that refill it at its limit.
#[pin_data]
pub(crate) struct PostedQueue {
    /// Whether several queue pairs take WRs of it, so that they complete in any order.
    shared: bool,
    /// Consumers post and poll in any context, so the lock disables interrupts.
    #[pin]
    wrs: SpinLockIrq<Wrs>,
    /// The queue has ended, and no WR is left.
    #[pin]
    done: Completion,
}

struct Wrs {
    account: Account,
    ended: bool,
}

impl PostedQueue {
    /// Creates a queue for `len` WRs. Process context; may sleep. Fails with `EINVAL` for more than
    /// any driver supports, `ENOMEM` without memory.
    pub(crate) fn new(len: u32, shared: bool) -> Result<Arc<Self>> {
        if len > MAX_LEN {
            return Err(EINVAL);
        }
        let places = match shared {
            true => len.saturating_mul(4).saturating_add(1024),
            false => len.saturating_mul(2).saturating_add(64),
        };
        let wrs = Wrs {
            account: Account::new(places)?,
            ended: false,
        };

        Arc::pin_init(
            pin_init!(Self {
                shared,
                wrs <- new_spinlock_irq!(wrs, "rdma::PostedQueue::wrs"),
                done <- Completion::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Calls `post` with a call that posts WRs, and returns its result. Any context.
    pub(super) fn while_posting<R>(&self, post: impl FnOnce(Call) -> R) -> R {
        let call = self.wrs.lock().account.begin();
        let posted = post(call);

        self.with_wrs(|account| account.end(call));
        posted
    }

    /// Takes in a WR of a call. Any context. Fails with `ENOMEM` if there is no place, `EINVAL` if
    /// the queue ends.
    pub(super) fn enter(&self, call: Call, effect: Effect) -> Result<Entry> {
        let mut wrs = self.wrs.lock();

        match wrs.ended {
            true => Err(EINVAL),
            false => wrs.account.enter(call, effect).ok_or(ENOMEM),
        }
    }

    /// Notes that the consumer gets the completion of the WR at a place, which goes. Returns
    /// whether it may: by that, it learns that all WRs that were posted to the queue before are
    /// complete, unless the queue is shared. Any context.
    pub(super) fn complete(&self, place: u32) -> bool {
        self.with_wrs(|account| {
            let may = self.shared || account.is_first(place);

            if may {
                account.complete(place);
            }
            may
        })
    }

    /// Notes that the WR at a place goes, without a completion. If it has not invalidated what it
    /// must, and does not count as not posted, no WR of the queue can be completed any more, with a
    /// warning. Any context.
    pub(super) fn give_up(&self, place: u32) {
        self.with_wrs(|account| account.give_up(place));
    }

    /// Returns the number of the WR at a place, in the order of posting. Any context.
    pub(super) fn number(&self, place: u32) -> u64 {
        self.wrs.lock().account.number(place)
    }

    /// Returns the STag of the registration that the WR at a place has still to end. Any context.
    pub(super) fn invalidates(&self, place: u32) -> Option<u32> {
        match self.wrs.lock().account.effect(place) {
            Effect::Ends(stag) => Some(stag),
            Effect::None | Effect::Done => None,
        }
    }

    /// Notes that the WR at a place was executed: it cannot count as not posted any more. Any
    /// context.
    pub(super) fn note_executed(&self, place: u32) {
        self.wrs.lock().account.note_executed(place);
    }

    /// Notes that the driver has left out a WR of a call, which counts as posted: no WR of the
    /// queue can be completed any more, with a warning. Any context.
    pub(super) fn break_off(&self) {
        self.with_wrs(Account::break_off);
    }

    /// Calls `f` with the account, of which it may let WRs go.
    fn with_wrs<R>(&self, f: impl FnOnce(&mut Account) -> R) -> R {
        let mut wrs = self.wrs.lock();
        let was_broken = wrs.account.is_broken();

        let result = f(&mut wrs.account);
        let breaks = wrs.account.is_broken() && !was_broken && !wrs.ended;

        if wrs.ended && wrs.account.is_empty() {
            self.done.complete_all();
        }
        drop(wrs);
        warn_on!(breaks);
        result
    }

    /// Whether the consumer may be told that a WR, which was taken last, was not posted. Any
    /// context. Warns if the driver has kept or completed it.
    pub(super) fn may_refuse(&self, taken: Option<Entry>) -> bool {
        let may = taken.is_none_or(|taken| self.wrs.lock().account.may_refuse(taken));

        warn_on!(!may);
        may
    }

    /// Notes that the queue is about to end: the driver drops its WRs, and no other one is taken
    /// in. Any context.
    pub(crate) fn close(&self) {
        self.wrs.lock().ended = true;
    }

    /// Ends the queue: waits, without a time-out, until the driver has no WR of it. Process
    /// context; may sleep.
    pub(crate) fn end(&self) {
        let busy = {
            let mut wrs = self.wrs.lock();

            wrs.ended = true;
            !wrs.account.is_empty()
        };

        if busy {
            self.done.wait_for_completion();
        }
        // Whoever let the last WR go may drop the queue itself, in any context: the places may be
        // memory that cannot be freed there.
        let places = self.wrs.lock().account.close();
        drop(places);
    }
}

/// A queue of a queue pair, and the completion queue that gets the completions of its WRs.
pub(crate) struct QueueOfPair {
    pub(crate) queue: Arc<PostedQueue>,
    /// Only to be compared.
    pub(crate) cq: *mut bindings::ib_cq,
}

/// The queues of a queue pair to which a kernel user posts.
pub(crate) struct PostedQueues {
    pub(crate) send: QueueOfPair,
    /// Its own, or the shared one.
    pub(crate) recv: QueueOfPair,
}

impl PostedQueues {
    /// Whether `cq` gets the completions of WRs that were posted to `queue`: to the receive queue
    /// if `receive`, or to the send queue. Any context.
    pub(crate) fn completes(
        &self,
        receive: bool,
        queue: &Arc<PostedQueue>,
        cq: *mut bindings::ib_cq,
    ) -> bool {
        let own = match receive {
            true => &self.recv,
            false => &self.send,
        };

        Arc::ptr_eq(&own.queue, queue) && own.cq == cq
    }

    /// Notes that the queues of a queue pair are about to end, as [`PostedQueue::close`] does.
    pub(crate) fn close(&self) {
        for queue in [&self.send.queue, &self.recv.queue] {
            if !queue.shared {
                queue.close();
            }
        }
    }

    /// Ends the queues of a queue pair, as [`PostedQueue::end`] does. A shared one does not end.
    pub(crate) fn end(&self) {
        self.send.queue.end();
        if !self.recv.queue.shared {
            self.recv.queue.end();
        }
    }
}
