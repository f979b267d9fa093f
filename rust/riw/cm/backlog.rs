// SPDX-License-Identifier: GPL-2.0

//! The backlogs of listening consumers: the connect requests that a consumer may not have read yet,
//! and those that wait for room.

use crate::bounds::HALF_OPEN_MAX;
use kernel::{
    impl_has_delayed_work, new_delayed_work, new_mutex,
    prelude::*,
    rbtree::{Entry, RBTree, RBTreeNode, RBTreeNodeReservation},
    sync::{
        atomic::{ordering, Atomic},
        Arc, Mutex,
    },
    time::msecs_to_jiffies,
    workqueue::{DelayedWork, WorkItem},
};
use kernel_ext::{
    memalloc::without_io,
    workqueue::{cancel_delayed_work, mod_delayed_work, HasQueue, Queue},
};
use rdma::iw;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/backlog.rs"]
mod kunit;

/// Milliseconds until a request is offered although the backlog is full, at first. A consumer may
/// collect requests before it decides on them.
const RETRY_MIN: u32 = 10;
/// The maximum of that time. It doubles each time that the backlog is full still.
const RETRY_MAX: u32 = 320;

/// A connect request in the queue of a backlog: a connection, which the backlog does not know
/// otherwise. A connection knows its subscription, and that its backlog.
pub(super) trait QueuedRequest: Send + Sync {
    /// Reports the request, if it is queued still. Does nothing while another call uses the
    /// connection: the next offer comes by the timer. May sleep.
    fn offer(self: Arc<Self>);
}

/// The backlogs of all consumers that listen.
#[pin_data]
pub(super) struct Backlogs {
    #[pin]
    consumers: Mutex<RBTree<usize, SharedBacklog>>,
    /// The queue that sets connections up: it keeps the order of the requests.
    setup_queue: Arc<Queue>,
}

/// The backlog of a consumer.
struct SharedBacklog {
    backlog: Arc<Backlog>,
    /// Its [`Share`]s in use.
    shares: usize,
}

impl Backlogs {
    /// May sleep. `ENOMEM`.
    pub(super) fn new(setup_queue: Arc<Queue>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                consumers <- new_mutex!(RBTree::new(), "riw::cm::Backlogs::consumers"),
                setup_queue,
            }),
            GFP_KERNEL,
        )
    }
}

/// The share that a listening id has in the backlog of its consumer: a consumer has one for all
/// devices and transports.
pub(super) struct Share {
    all: Arc<Backlogs>,
    backlog: Arc<Backlog>,
    consumer: usize,
    size: usize,
    /// Whether it counts among the shares of the backlog. Changes under `Backlogs::consumers`.
    is_used: Atomic<bool>,
}

/// A report of a request.
#[derive(Clone, Copy)]
pub(super) struct Report {
    number: u64,
    /// Whether iw_cm and rdma_cm had room for the request in any case.
    pub(super) had_room: bool,
}

impl Share {
    /// Finds the backlog of a consumer, or creates it. May sleep. `ENOMEM`.
    pub(super) fn new(all: &Arc<Backlogs>, backlog: iw::Backlog) -> Result<Self> {
        // Not under the lock, though it may be there already.
        let shared = SharedBacklog {
            backlog: Backlog::new(all.setup_queue.clone())?,
            shares: 0,
        };
        let node = RBTreeNode::new(backlog.consumer, shared, GFP_KERNEL_ACCOUNT)?;
        let mut consumers = all.consumers.lock();

        if consumers.get(&backlog.consumer).is_none() {
            consumers.insert(node);
        }
        let shared = consumers.get_mut(&backlog.consumer).ok_or(ENOMEM)?;

        shared.shares = shared.shares.saturating_add(1);
        Ok(Self {
            all: all.clone(),
            backlog: shared.backlog.clone(),
            consumer: backlog.consumer,
            size: usize::try_from(backlog.size).unwrap_or(usize::MAX),
            is_used: Atomic::new(true),
        })
    }

    /// The listening id is gone. The next consumer may have the same number, but not the same
    /// backlog. May sleep.
    pub(super) fn retire(&self) {
        let mut consumers = self.all.consumers.lock();

        if !self.is_used.xchg(false, ordering::Relaxed) {
            return;
        }
        if let Entry::Occupied(mut known) = consumers.entry(self.consumer) {
            let shared = known.get_mut();

            shared.shares = shared.shares.saturating_sub(1);
            if shared.shares == 0 {
                // Not the last reference: `self` has one.
                known.remove();
            }
        }
    }

    /// Returns the place of the next request in the queue, in the order of the calls. May sleep.
    pub(super) fn place(&self) -> u64 {
        self.backlog.state.lock().number()
    }

    /// Whether iw_cm and rdma_cm have room for a request in any case, and none is queued. May
    /// sleep.
    pub(super) fn is_free(&self) -> bool {
        let state = self.backlog.state.lock();

        state.has_room(self.size) && state.queued.is_empty()
    }

    /// Adds a request to those that the consumer has not read, also beyond the backlog. In the
    /// worker that reports requests, just before the report. May sleep. `ENOMEM`.
    pub(super) fn report(&self) -> Result<Report> {
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut state = self.backlog.state.lock();
        let had_room = state.has_room(self.size);

        // The consumer reads, but does not decide: otherwise it would not have taken so many.
        if state.unread_len >= self.size.saturating_add(HALF_OPEN_MAX) {
            if let Some(first) = state.first_unread() {
                state.remove_unread(first);
            }
        }
        Ok(Report {
            number: state.add_unread(node),
            had_room,
        })
    }

    /// Removes the request of a report that the consumer does not have. May sleep.
    pub(super) fn take_back(&self, report: Report) {
        self.backlog.state.lock().remove_unread(report.number);
    }

    /// The consumer has decided on the request of a report, so it has read it and all before it.
    /// Offers the first request of the queue. May sleep.
    pub(super) fn decided(&self, report: Report) {
        let mut state = self.backlog.state.lock();

        while let Some(first) = state.first_unread().filter(|n| *n <= report.number) {
            state.remove_unread(first);
        }
        self.backlog.offer_now(&mut state);
    }

    /// Offers the first request of the queue, if there is room. May sleep.
    pub(super) fn offer_next(&self) {
        let mut state = self.backlog.state.lock();

        if state.has_room(self.size) {
            self.backlog.offer_now(&mut state);
        }
    }

    /// Queues a request at `place`, unless it is there. Under the phase of its connection. May
    /// sleep. `ENOMEM`.
    pub(super) fn enqueue(&self, place: u64, request: Arc<dyn QueuedRequest>) -> Result {
        if self.backlog.state.lock().queued.get(&place).is_some() {
            return Ok(());
        }
        let node = RBTreeNode::new(place, request, GFP_KERNEL_ACCOUNT)?;
        let mut state = self.backlog.state.lock();

        // If others are queued, the timer is set.
        if state.queued.is_empty() {
            self.backlog.offer_after(state.retry);
        }
        state.queued.insert(node);
        Ok(())
    }

    /// Removes the request at `place` from the queue, if it is there. May sleep.
    pub(super) fn dequeue(&self, place: u64) {
        let mut state = self.backlog.state.lock();
        let removed = state.queued.remove(&place);

        if state.queued.is_empty() {
            cancel_delayed_work::<Backlog, 0>(&self.backlog);
        }
        drop(state);
        // Outside of the lock: this may be the last reference.
        drop(removed);
    }

    /// The consumer has not taken a request: the next offer comes later, unless one is due. May
    /// sleep.
    pub(super) fn back_off(&self) {
        let mut state = self.backlog.state.lock();

        if state.is_due {
            return;
        }
        state.retry = state.last_retry.saturating_mul(2).min(RETRY_MAX);
        if !state.queued.is_empty() {
            self.backlog.offer_after(state.retry);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.retire();
    }
}

/// The backlog of a consumer.
///
/// A consumer reads requests in the order in which riw reports them. So its decision on one shows
/// that it has read all earlier ones, too.
#[pin_data]
struct Backlog {
    #[pin]
    state: Mutex<State<Arc<dyn QueuedRequest>>>,
    /// Offers the first request of the queue. Set and stopped under `state`; runs only while a
    /// request is queued.
    #[pin]
    offer: DelayedWork<Backlog, 0>,
    setup_queue: Arc<Queue>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Backlog, 0> for Backlog { self.offer }
}

impl HasQueue for Backlog {
    fn queue(&self) -> &Queue {
        &self.setup_queue
    }
}

impl Backlog {
    /// May sleep. `ENOMEM`.
    fn new(setup_queue: Arc<Queue>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- new_mutex!(State::new(), "riw::cm::Backlog::state"),
                offer <- new_delayed_work!("riw::cm::Backlog::offer"),
                setup_queue,
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Offers the first request of the queue at once.
    fn offer_now(self: &Arc<Self>, state: &mut State<Arc<dyn QueuedRequest>>) {
        state.retry = RETRY_MIN;
        state.last_retry = RETRY_MIN;
        if !state.queued.is_empty() {
            state.is_due = true;
            self.offer_after(0);
        }
    }

    /// Sets the timer of the offer to `delay` milliseconds. Under `state`.
    fn offer_after(self: &Arc<Self>, delay: u32) {
        mod_delayed_work::<Self, 0>(self, msecs_to_jiffies(delay));
    }

    /// Offers the first request of the queue, and sets the timer for the next one. May sleep.
    fn offer_first(self: &Arc<Self>) {
        let first = {
            let mut state = self.state.lock();
            let first = state.first_queued().cloned();

            state.is_due = false;
            // Short again, unless the consumer turns out to have no room for this one. iw_cm may
            // need some time for that.
            state.last_retry = core::mem::replace(&mut state.retry, RETRY_MIN);
            if first.is_some() {
                self.offer_after(state.last_retry);
            }
            first
        };

        if let Some(request) = first {
            request.offer();
        }
    }
}

impl WorkItem<0> for Backlog {
    type Pointer = Arc<Self>;

    /// Offers a request. May sleep, but must not wait for a peer or a stream.
    fn run(this: Arc<Self>) {
        // The next item may be of a connection that I/O waits for.
        without_io(|| this.offer_first());
    }
}

/// The connect requests of a consumer.
struct State<T> {
    /// The reports of those that the consumer may not have read. A request that has ended keeps its
    /// place in the consumer's backlog until the consumer has read it, so it stays here.
    unread: RBTree<u64, ()>,
    unread_len: usize,
    /// Those that wait for room, by their places.
    queued: RBTree<u64, T>,
    /// The next place, or the number of the next report.
    next: u64,
    /// The consumer has decided, and the offer that follows from that has not been made.
    is_due: bool,
    /// Milliseconds between the next two offers.
    retry: u32,
    /// Milliseconds from the last offer to the next one.
    last_retry: u32,
}

impl<T> State<T> {
    fn new() -> Self {
        Self {
            unread: RBTree::new(),
            unread_len: 0,
            queued: RBTree::new(),
            next: 0,
            is_due: false,
            retry: RETRY_MIN,
            last_retry: RETRY_MIN,
        }
    }

    fn number(&mut self) -> u64 {
        let number = self.next;

        self.next = number.wrapping_add(1);
        number
    }

    fn has_room(&self, size: usize) -> bool {
        self.unread_len < size
    }

    fn first_queued(&self) -> Option<&T> {
        self.queued.values().next()
    }

    fn first_unread(&self) -> Option<u64> {
        self.unread.keys().next().copied()
    }

    fn add_unread(&mut self, node: RBTreeNodeReservation<u64, ()>) -> u64 {
        let report = self.number();

        self.unread.insert(node.into_node(report, ()));
        self.unread_len = self.unread_len.saturating_add(1);
        report
    }

    fn remove_unread(&mut self, report: u64) {
        if self.unread.remove(&report).is_some() {
            self.unread_len = self.unread_len.saturating_sub(1);
        }
    }
}
