// SPDX-License-Identifier: GPL-2.0

//! A listening link and its subscriptions. `create_listen.rs` says which devices share one.

use super::subscription::{Subscription, SubscriptionKey};
use crate::{
    bounds::ACCEPT_QUEUE_MIN,
    link::{ListenLink, Transport, UnboundLink},
};
use core::net::SocketAddr;
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_mutex, new_work,
    prelude::*,
    rbtree::{Entry, RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
    workqueue::{DelayedWork, Work},
};
use kernel_ext::workqueue::{cancel_delayed_work, HasQueue, Queue};
use net::{netns, ListenerHook};

/// The address that a listening link is bound to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) transport: Transport,
    pub(super) ns: netns::Id,
    /// The index of the VRF device, if the socket is in a VRF.
    pub(super) vrf: Option<u32>,
    pub(super) addr: SocketAddr,
    pub(super) family_only: bool,
}

/// The listeners that are open.
pub(super) type Listeners = RBTree<Key, Arc<Listener>>;

/// A listening link, for all devices of a namespace that are in the same VRF, or in none.
#[pin_data]
pub(super) struct Listener {
    pub(super) key: Key,
    /// One of a device at most.
    #[pin]
    pub(super) subscriptions: Mutex<RBTree<SubscriptionKey, Arc<Subscription>>>,
    /// Held while connections are accepted, until each of them belongs to its device. `None` before
    /// it is open and once it is closed.
    #[pin]
    pub(super) link: Mutex<Option<ListenLink>>,
    /// Accepts connections.
    #[pin]
    work: Work<Listener, 0>,
    /// Kicks the listener to accept again. Set and stopped under `link`; runs only while there is a
    /// link.
    #[pin]
    timer: DelayedWork<Listener, 1>,
    queue: Arc<Queue>,
}

impl_has_work! {
    impl HasWork<Listener, 0> for Listener { self.work }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Listener, 1> for Listener { self.timer }
}

impl HasQueue for Listener {
    fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl Listener {
    /// Creates a listener, not open yet. Work items of `queue` accept its connections. May sleep.
    /// `ENOMEM` if there is no memory.
    pub(super) fn new(queue: Arc<Queue>, key: Key) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                key,
                subscriptions <- new_mutex!(RBTree::new(), "riw::cm::Listener::subscriptions"),
                link <- new_mutex!(None, "riw::cm::Listener::link"),
                work <- new_work!("riw::cm::Listener::work"),
                timer <- new_delayed_work!("riw::cm::Listener::timer"),
                queue,
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Listens on `link` at the address of the key; `hook` is of this listener. May sleep. Fails as
    /// `bind()` and `listen()` do.
    pub(super) fn open(
        self: &Arc<Self>,
        link: UnboundLink,
        hook: ListenerHook,
        tos: Option<u8>,
        backlog: u32,
    ) -> Result {
        let Key {
            addr, family_only, ..
        } = &self.key;
        let backlog = backlog.max(ACCEPT_QUEUE_MIN);
        let link = link.listen(addr, *family_only, tos, backlog, hook)?;

        *self.link.lock() = Some(link);
        // Connections may have arrived before it was set.
        self.kick();
        Ok(())
    }

    /// Queues the work item that accepts connections. Any context.
    pub(super) fn kick(self: &Arc<Self>) {
        self.queue.kick::<_, 0>(self);
    }

    /// Closes the link. On return it reports no event, and the work item accepts no connection: it
    /// does so under `link`. May sleep.
    fn close(self: &Arc<Self>) {
        let link = {
            let mut link = self.link.lock();
            cancel_delayed_work::<Self, 1>(self);
            link.take()
        };

        // The drop waits for an event that is being reported.
        drop(link);
    }

    /// Adds a subscription. May sleep. `EADDRINUSE` if there is one of its device, which is another
    /// consumer's.
    pub(super) fn subscribe(
        &self,
        subscription: &Arc<Subscription>,
        node: RBTreeNodeReservation<SubscriptionKey, Arc<Subscription>>,
    ) -> Result {
        match self.subscriptions.lock().entry(subscription.key()) {
            Entry::Occupied(_) => return Err(EADDRINUSE),
            Entry::Vacant(entry) => entry.insert(subscription.clone(), node),
        };
        Ok(())
    }

    /// Removes a subscription. The last one closes the listener. `listeners` is the list of all.
    /// May sleep.
    pub(super) fn drop_subscription(
        self: &Arc<Self>,
        subscription: &Subscription,
        listeners: &mut Listeners,
    ) {
        let is_unused = {
            let mut subscriptions = self.subscriptions.lock();

            subscriptions.remove(&subscription.key());
            subscriptions.cursor_front().is_none()
        };

        if is_unused {
            listeners.remove(&self.key);
            self.close();
        }
    }
}
