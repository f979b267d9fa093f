// SPDX-License-Identifier: GPL-2.0

//! A listening link and its subscriptions. `listen.rs` says which devices share one.

use super::{device::Shared, subscription::Subscription};
use crate::link::{ListenLink, Transport, UnboundLink};
use core::net::SocketAddr;
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_mutex, new_work,
    prelude::*,
    sync::{Arc, Mutex},
    workqueue::{DelayedWork, Work},
};
use kernel_ext::workqueue::{cancel_delayed_work, impl_has_queue, Queue};
use net::netns;

/// The minimum length of the accept queue; a larger backlog of the consumer makes it longer,
/// although that backlog limits connections whose Request has arrived. The minimum is not higher: a
/// connection that waits here for too long has been given up by its peer.
const QUEUE_MIN: u32 = 256;

/// The address that a listening link is bound to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) transport: Transport,
    pub(super) ns: netns::Id,
    pub(super) addr: SocketAddr,
    pub(super) family_only: bool,
}

/// A listening link, for all devices of a namespace.
#[pin_data]
pub(super) struct Listener {
    pub(super) key: Key,
    /// At most one of each device.
    #[pin]
    pub(super) subscriptions: Mutex<KVec<Arc<Subscription>>>,
    /// Held while connections are accepted, until each of them belongs to its device. `None` once
    /// it is closed.
    #[pin]
    pub(super) link: Mutex<Option<ListenLink>>,
    /// Accepts connections.
    #[pin]
    pub(super) work: Work<Listener, 0>,
    /// Kicks the listener to accept again. Set and stopped under `link`; runs only while there is a
    /// link.
    #[pin]
    pub(super) timer: DelayedWork<Listener, 1>,
    pub(super) queue: Arc<Queue>,
}

impl_has_work! {
    impl HasWork<Listener, 0> for Listener { self.work }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Listener, 1> for Listener { self.timer }
}
impl_has_queue! {
    impl HasQueue for Listener { self.queue }
}

impl Listener {
    /// Listens on `link` at the address of `key`. May sleep. Fails as `bind()` and `listen()` do.
    pub(super) fn open(
        shared: &Arc<Shared>,
        key: Key,
        link: UnboundLink,
        tos: Option<u8>,
        backlog: u32,
    ) -> Result<Arc<Self>> {
        let this = Arc::pin_init(
            pin_init!(Self {
                key,
                subscriptions <- new_mutex!(KVec::new(), "riw::cm::Listener::subscriptions"),
                link <- new_mutex!(None, "riw::cm::Listener::link"),
                work <- new_work!("riw::cm::Listener::work"),
                timer <- new_delayed_work!("riw::cm::Listener::timer"),
                queue: shared.setup_queue.clone(),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let Key {
            addr, family_only, ..
        } = &this.key;
        let backlog = backlog.max(QUEUE_MIN);
        let link = link.listen(addr, *family_only, tos, backlog, this.clone())?;

        *this.link.lock() = Some(link);
        // Connections may have arrived before it was set.
        this.kick();
        Ok(this)
    }

    /// Queues the work item that accepts connections. Any context.
    pub(super) fn kick(self: &Arc<Self>) {
        self.queue.kick::<_, 0>(self);
    }

    /// Closes the link. On return it reports no event, and the work item accepts no connection: it
    /// does so under `link`. May sleep.
    pub(super) fn close(self: &Arc<Self>) {
        let link = {
            let mut link = self.link.lock();
            cancel_delayed_work::<Self, 1>(self);
            link.take()
        };

        // The drop waits for an event that is being reported.
        drop(link);
    }

    /// Adds a subscription. May sleep. `EADDRINUSE` if there is one of its device, which is another
    /// consumer's; `ENOMEM`.
    pub(super) fn subscribe(&self, subscription: &Arc<Subscription>) -> Result {
        let mut subscriptions = self.subscriptions.lock();
        let is_on = |other: &Arc<Subscription>| Arc::ptr_eq(&other.dev, &subscription.dev);

        if subscriptions.iter().any(is_on) {
            return Err(EADDRINUSE);
        }
        Ok(subscriptions.push(subscription.clone(), GFP_KERNEL_ACCOUNT)?)
    }

    /// Removes a subscription. The last one closes the listener. `listeners` is the list of all. May
    /// sleep.
    pub(super) fn drop_subscription(
        self: &Arc<Self>,
        subscription: &Arc<Subscription>,
        listeners: &mut KVec<Arc<Self>>,
    ) {
        self.subscriptions
            .lock()
            .retain(|other| !Arc::ptr_eq(other, subscription));
        self.close_unused(listeners);
    }

    /// Closes the listener if it has no subscription. May sleep.
    pub(super) fn close_unused(self: &Arc<Self>, listeners: &mut KVec<Arc<Self>>) {
        if self.subscriptions.lock().is_empty() {
            listeners.retain(|listener| !Arc::ptr_eq(listener, self));
            self.close();
        }
    }
}
