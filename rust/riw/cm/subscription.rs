// SPDX-License-Identifier: GPL-2.0

//! Listening ids of iw_cm.

use super::{
    backlog::Share,
    device::CmDevice,
    half_open::{HalfOpen, Source},
    listener::Listener,
};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTreeNode,
    sync::{aref::ARef, Arc, Mutex},
};
use rdma::iw::{Backlog, CmEvent, CmId};

/// The device of a subscription, by its netdev. While a netdev moves to another namespace, a device
/// there may have the same index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubscriptionKey {
    ifindex: u32,
    /// Its address.
    dev: usize,
}

/// A listening id of iw_cm.
#[pin_data]
pub(super) struct Subscription {
    pub(super) dev: Arc<CmDevice>,
    pub(super) token: usize,
    pub(super) backlog: Share,
    #[pin]
    state: Mutex<SubscriptionState>,
}

struct SubscriptionState {
    recipient: Recipient,
    /// Those that have the subscription, once all transports have been tried.
    listeners: KVec<Arc<Listener>>,
    half_open: HalfOpen,
}

/// The recipient of the connect requests of a subscription.
enum Recipient {
    /// They wait for the end of the call that listens. If that fails, rdma_cm destroys the id,
    /// maybe with a lock held that the handler of a request needs, and iw_cm waits for the handler.
    Awaited,
    Listening(ARef<CmId>),
    /// The subscription is closed.
    Gone,
}

impl Subscription {
    /// Creates a subscription, which no listener has yet. May sleep.
    pub(super) fn new(dev: &Arc<CmDevice>, backlog: Backlog) -> Result<Arc<Self>> {
        Arc::pin_init(
            try_pin_init!(Self {
                dev: dev.clone(),
                token: dev.token(),
                backlog: Share::new(&dev.shared.backlogs, backlog)?,
                state <- new_mutex!(SubscriptionState {
                    recipient: Recipient::Awaited,
                    listeners: KVec::new(),
                    half_open: HalfOpen::new(),
                }, "riw::cm::Subscription::state"),
            }? Error),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns the key among the subscriptions of a listener. Any context.
    pub(super) fn key(&self) -> SubscriptionKey {
        SubscriptionKey {
            ifindex: self.dev.ifindex,
            dev: core::ptr::from_ref::<CmDevice>(&self.dev).addr(),
        }
    }

    /// Sets the listeners that have the subscription: the close drops it from them. May sleep.
    pub(super) fn set_listeners(&self, listeners: KVec<Arc<Listener>>) {
        self.state.lock().listeners = listeners;
    }

    /// Connect requests go to `id` from now on, unless the subscription is closed. May sleep.
    pub(super) fn open(&self, id: &CmId) {
        let mut state = self.state.lock();

        if matches!(state.recipient, Recipient::Awaited) {
            state.recipient = Recipient::Listening(ARef::from(id));
        }
        drop(state);
        self.backlog.offer_next();
    }

    /// Reports an event to iw_cm. `EAGAIN` if the subscription is not open yet, `ENOENT` if it is
    /// closed; otherwise fails as [`CmId::event`] does. May sleep.
    pub(super) fn report_event(&self, event: &CmEvent<'_>) -> Result {
        // Under the lock: no event may reach the id after `close`.
        match &self.state.lock().recipient {
            Recipient::Awaited => Err(EAGAIN),
            Recipient::Listening(id) => id.event(event),
            Recipient::Gone => Err(ENOENT),
        }
    }

    /// Adds the half-open connection number `token`. Evicts one if there are too many.
    /// `ECONNREFUSED` if the subscription is closed. May sleep.
    pub(super) fn enter(&self, source: Source, token: usize) -> Result {
        // Not under the lock: the worker of all connections may wait here for memory.
        let connection = RBTreeNode::new((source, token), (), GFP_KERNEL_ACCOUNT)?;
        let evicted = {
            let mut state = self.state.lock();

            if matches!(state.recipient, Recipient::Gone) {
                return Err(ECONNREFUSED);
            }
            state.half_open.insert(connection)
        };

        if let Some(evicted) = evicted {
            self.evict(evicted);
        }
        Ok(())
    }

    /// Removes a half-open connection, if it is there: its request has been reported, or never will
    /// be. May sleep.
    pub(super) fn leave(&self, source: Source, token: usize) {
        self.state.lock().half_open.remove(source, token);
    }

    /// Has a half-open connection end, unless it has ended or the shutdown of the device is ending
    /// it. May sleep.
    fn evict(&self, token: usize) {
        if let Some(connection) = self.dev.endpoint(token) {
            connection.evict();
        }
    }

    /// Closes the subscription. On return no event reaches the id, and the sockets of which this
    /// was the last subscription are gone, whoever has closed it. May sleep.
    pub(super) fn close(&self) {
        // Until the sockets are closed: another caller, which finds none, must not return before.
        let mut all = self.dev.shared.listeners.lock();
        let (recipient, listeners, half_open) = {
            let mut state = self.state.lock();
            let half_open = core::mem::replace(&mut state.half_open, HalfOpen::new());

            (
                core::mem::replace(&mut state.recipient, Recipient::Gone),
                core::mem::take(&mut state.listeners),
                half_open,
            )
        };

        for listener in &listeners {
            listener.drop_subscription(self, &mut all);
        }
        drop(all);
        for token in half_open.tokens() {
            self.evict(token);
        }
        drop(recipient);
        self.backlog.retire();
        self.dev.remove(self.token);
    }
}
