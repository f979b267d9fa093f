// SPDX-License-Identifier: GPL-2.0

//! Connections whose half of this side is closed.
//!
//! A transport retransmits nothing for a kernel socket that riw has released. So a connection is
//! kept until the peer has acknowledged everything and closed its side, without an owner. It is
//! reset if the peer makes no progress for a while. Data that arrives is discarded.

use super::{deadline::Deadline, transport::Connection, types::LinkState};
use crate::{
    bounds::{LINGERING_MAX, REFUSED_MAX},
    members::Members,
};
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_mutex, new_work,
    prelude::*,
    rbtree::RBTreeNode,
    sync::{Arc, Mutex},
    time::Jiffies,
    workqueue::{DelayedWork, Work, WorkItem},
};
use kernel_ext::{
    memalloc::without_io,
    workqueue::{cancel_delayed_work, mod_delayed_work, HasQueue, Queue},
};
use net::{AnyEvent, Callbacks, LockedSock, TcpState};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/linger.rs"]
mod kunit;

/// Milliseconds for the peer to answer a FIN, or to acknowledge something before it.
const LINGER_TIME: i64 = 10_000;
/// Milliseconds between two polls of a connection: TCP does not report acknowledgments of the peer.
const POLL_TIME: i64 = 1_000;
/// Milliseconds after which a connection is reset, whether the peer makes progress or not.
const LINGER_TIME_MAX: i64 = 300_000;

/// The connections of a device that linger.
#[pin_data]
pub(crate) struct LingerSet {
    /// Runs the work items of the connections.
    queue: Arc<Queue>,
    #[pin]
    state: Mutex<SetState>,
}

struct SetState {
    members: Members<Arc<Linger>>,
    places: LingerPlaces,
}

/// The places of a set that are taken.
struct LingerPlaces {
    all: usize,
    refused: usize,
}

impl LingerPlaces {
    fn new() -> Self {
        Self { all: 0, refused: 0 }
    }

    /// Takes a place for a connection, which was refused or not. `EBUSY` if there is none. Any
    /// context.
    fn take(&mut self, refused: bool) -> Result {
        if self.all >= LINGERING_MAX || refused && self.refused >= REFUSED_MAX {
            return Err(EBUSY);
        }
        self.all = self.all.saturating_add(1);
        self.refused = self.refused.saturating_add(refused.into());
        Ok(())
    }

    /// Gives the place of a connection back. Any context.
    fn give_back(&mut self, refused: bool) {
        self.all = self.all.saturating_sub(1);
        self.refused = self.refused.saturating_sub(refused.into());
    }
}

/// A connection that waits for its peer to close.
#[pin_data]
struct Linger {
    set: Arc<LingerSet>,
    token: usize,
    /// The connection was refused before it was established.
    refused: bool,
    limit: Deadline,
    /// `None` once it has ended.
    #[pin]
    state: Mutex<Option<LingerState>>,
    /// Polls the connection.
    #[pin]
    work: Work<Linger, 0>,
    /// Kicks the linger when the next poll is due. Set and stopped under `state`; runs only while
    /// there is a connection.
    #[pin]
    timer: DelayedWork<Linger, 1>,
    queue: Arc<Queue>,
}

/// How far the end of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseProgress {
    /// It has ended.
    Closed,
    /// The peer has not acknowledged so many bytes. `more`: there may be more to discard.
    Open { unacknowledged: u32, more: bool },
}

struct LingerState {
    connection: Connection,
    /// The peer has to acknowledge something before this, so that less than `unacknowledged` bytes
    /// remain.
    deadline: Deadline,
    unacknowledged: u32,
}

impl_has_work! {
    impl HasWork<Linger, 0> for Linger { self.work }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Linger, 1> for Linger { self.timer }
}

impl HasQueue for Linger {
    fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl LingerSet {
    /// Creates an empty set, whose work items run on `queue`. May sleep.
    pub(crate) fn new(queue: Arc<Queue>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                queue,
                state <- new_mutex!(SetState {
                    members: Members::new(),
                    places: LingerPlaces::new(),
                }, "riw::link::LingerSet::state"),
            }),
            GFP_KERNEL,
        )
    }

    /// Sends a FIN, and keeps the connection until the peer has answered it. `refused` says that
    /// the connection was refused before it was established. May sleep.
    ///
    /// The connection must have been taken from its link. It is reset if there is no memory, if the
    /// set is shut down, or if too many connections linger.
    pub(crate) fn close(self: &Arc<Self>, mut connection: Connection, refused: bool) {
        if matches!(connection.state(), LinkState::Closed(_)) {
            return;
        }
        let Ok(linger) = Linger::new(self, refused) else {
            return connection.abort();
        };

        // Once it is added, `shutdown` may end it at any time, and then waits for this lock.
        let mut place = linger.state.lock();
        let ready = self
            .add(&linger)
            .and_then(|()| connection.set_callbacks(linger.clone()))
            .and_then(|()| connection.close_write());
        match ready {
            Ok(()) => {
                *place = Some(LingerState {
                    connection,
                    deadline: Deadline::new(LINGER_TIME),
                    unacknowledged: u32::MAX,
                });
                drop(place);
                // The awaited event may have preceded the callbacks.
                linger.kick();
            }
            Err(_) => {
                connection.base().clear_callbacks();
                connection.abort();
                drop(place);
                self.remove(linger.token);
            }
        }
    }

    /// Resets all connections. On return the set has none, and never will. May sleep.
    pub(crate) fn shutdown(&self) {
        let members = self.state.lock().members.shut_down();

        for linger in members.values() {
            linger.end();
        }
    }

    /// Adds a member. `ENODEV` if the set is shut down, `EBUSY` if too many connections linger,
    /// `ENOMEM`. May sleep.
    fn add(&self, linger: &Arc<Linger>) -> Result {
        let member = RBTreeNode::new(linger.token, linger.clone(), GFP_KERNEL_ACCOUNT)?;
        let mut state = self.state.lock();

        state.places.take(linger.refused)?;
        state
            .members
            .add(member)
            .inspect_err(|_| state.places.give_back(linger.refused))
    }

    /// Removes a member, unless `shutdown` has removed it already. May sleep.
    fn remove(&self, token: usize) {
        let member = {
            let mut state = self.state.lock();
            let member = state.members.remove(token);

            if let Some(linger) = member.as_ref() {
                state.places.give_back(linger.refused);
            }
            member
        };
        // Outside of the lock: this may be the last reference.
        drop(member);
    }
}

impl Linger {
    fn new(set: &Arc<LingerSet>, refused: bool) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                set: set.clone(),
                token: set.state.lock().members.token(),
                refused,
                limit: Deadline::new(LINGER_TIME_MAX),
                state <- new_mutex!(None, "riw::link::Linger::state"),
                work <- new_work!("riw::link::Linger::work"),
                timer <- new_delayed_work!("riw::link::Linger::timer"),
                queue: set.queue.clone(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Queues the work item that polls the connection. Any context.
    fn kick(self: &Arc<Self>) {
        self.queue.kick::<_, 0>(self);
    }

    /// Releases the connection, and resets it if it is not closed. On return there is no socket any
    /// more, whoever has released it, and no callback of it runs. May sleep.
    fn end(self: &Arc<Self>) {
        let mut place = self.state.lock();
        cancel_delayed_work::<Self, 1>(self);

        let Some(LingerState { connection, .. }) = place.take() else {
            return;
        };
        // Under the lock: `LingerSet::shutdown` must not return before the socket is gone.
        connection.base().clear_callbacks();
        // Without effect on the peer if the connection has closed.
        connection.abort();
        drop(place);
        self.set.remove(self.token);
    }

    /// Polls the connection, and sets the timer for the next poll. Returns false if there is
    /// nothing to wait for. May sleep.
    fn poll(self: &Arc<Self>) -> bool {
        let mut state = self.state.lock();

        let left = Option::as_mut(&mut state).and_then(|state| self.time_left(state));
        if let Some(left) = left {
            mod_delayed_work::<Self, 1>(self, left);
        }
        left.is_some()
    }

    /// Returns the time until the next poll; `None` if there is nothing to wait for. May sleep.
    fn time_left(self: &Arc<Self>, state: &mut LingerState) -> Option<Jiffies> {
        let CloseProgress::Open {
            unacknowledged,
            more,
        } = state.connection.progress()
        else {
            return None;
        };

        if more {
            self.kick();
        }
        if unacknowledged < state.unacknowledged {
            state.unacknowledged = unacknowledged;
            state.deadline = Deadline::new(LINGER_TIME);
        }
        let next = Deadline::new(POLL_TIME).left().unwrap_or(1);
        Some(next.min(state.deadline.left()?).min(self.limit.left()?))
    }
}

impl WorkItem<0> for Linger {
    type Pointer = Arc<Self>;

    /// Polls the connection. May sleep, but must not wait for the peer.
    fn run(this: Arc<Self>) {
        // Other items of the queue end streams that I/O waits for.
        without_io(|| {
            if !this.poll() {
                this.end();
            }
        });
    }
}

impl WorkItem<1> for Linger {
    type Pointer = Arc<Self>;

    /// The next poll is due.
    fn run(this: Arc<Self>) {
        this.kick();
    }
}

impl Callbacks for Linger {
    /// Discards the data, so that the peer's FIN can follow. Atomic context, the socket is locked.
    fn data_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        sk.discard();
    }

    /// Atomic context, the socket is locked.
    fn state_change(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        if sk.state() == TcpState::Closed {
            self.kick();
        }
    }

    fn write_space(self: &Arc<Self>) {}

    fn error_report(self: &Arc<Self>) {}
}

impl AnyEvent for Linger {
    fn changed(self: &Arc<Self>) {
        self.kick();
    }

    /// There may be room for the last chunk.
    fn room(self: &Arc<Self>) {
        self.kick();
    }
}
