// SPDX-License-Identifier: GPL-2.0

//! A call of iw_cm that listens: finds the listeners for its address, or opens them.
//!
//! For a wildcard listener rdma_cm listens on each device. The devices in the consumer's network
//! namespace then share a socket for each transport, VRF, address and port. rdma_cm listens on the
//! devices one after the other: until it has come to a device, a connection to that is reset, as if
//! nobody listened.
//!
//! On a device in another namespace there is no socket, in the shared mode of `rdma system` as in
//! the exclusive one: rdma_cm would let the consumer accept no connection there, and the port is
//! not the consumer's.
//!
//! A listener has one subscription of each device. rdma_cm has several port spaces, and each may
//! have a listener at the same port: the second one fails.

use super::{
    device::{CmDevice, Member},
    listener::{Key, Listener, Listeners},
    subscription::{Subscription, SubscriptionKey},
};
use crate::{
    driver::Riw,
    link::{Site, Transport, UnboundLink},
};
use kernel::{
    prelude::*,
    rbtree::{Entry, RBTreeNodeReservation},
    sync::Arc,
};
use kernel_ext::vec;
use net::{ListenerHook, Netns};
use rdma::{
    iw::{Backlog, CmId, Setup},
    Device,
};

/// Starts to listen, as [`CmOperations::create_listen`](rdma::iw::CmOperations::create_listen)
/// says. May sleep.
pub(super) fn listen(
    dev: &Device<Riw>,
    id: &CmId,
    setup: &Setup,
    home: Option<&Netns>,
    backlog: Backlog,
) -> Result<usize> {
    let cm = &dev.cm;

    listen_on(cm, id, setup, home, backlog).or_else(|e| {
        if !is_everywhere(setup) {
            return Err(e);
        }
        // The device is not in the consumer's namespace. Or it or its namespace is about to go:
        // rdma_cm drops the listener with the device.
        if cm.netns_of(home).is_err() {
            return Ok(cm.token());
        }
        if cm.is_registering() || dev.is_moving() {
            // The consumer has listened since before and cannot be informed. With an error, rdma_cm
            // would not serve the device at all. Any user may have many listeners.
            cm.log.warn_unregistered(fmt!(
                "a listener at port {} is not served on the new or moved device: error {}",
                setup.local.port(),
                e.to_errno()
            ));
            return Ok(cm.token());
        }
        Err(e)
    })
}

/// Whether rdma_cm listens at this address on each device. Such a listener fails as a whole if it
/// fails on one of them.
fn is_everywhere(setup: &Setup) -> bool {
    let ip = setup.local.ip();
    ip.is_unspecified() || ip.is_loopback()
}

/// Listens on one device. Returns the token of the subscription. May sleep.
fn listen_on(
    dev: &Arc<CmDevice>,
    id: &CmId,
    setup: &Setup,
    home: Option<&Netns>,
    backlog: Backlog,
) -> Result<usize> {
    let ns = dev.netns_of(home)?;
    let subscription = Subscription::new(dev, backlog)?;
    // Outside of the lock: this may load the module of an address family.
    let candidates = candidates(dev, &ns, setup)?;
    let mut found = KVec::with_capacity(candidates.len(), GFP_KERNEL_ACCOUNT)?;

    let mut listeners = dev.shared.listeners.lock();
    let subscribed = candidates.into_iter().try_for_each(|candidate| {
        let listener =
            candidate.subscribe(&subscription, &mut listeners, setup.tos, backlog.size)?;
        // There is room.
        Ok(vec::push(&mut found, listener, GFP_KERNEL_ACCOUNT)?)
    });
    subscription.set_listeners(found);
    drop(listeners);

    let token = subscription.token;
    subscribed
        .and_then(|()| dev.add(token, Member::Subscription(subscription.clone())))
        // Connections may have arrived.
        .inspect_err(|_| subscription.close())?;
    subscription.open(id);
    Ok(token)
}

/// Makes a candidate for each transport that the device uses, if it uses several without those that
/// the kernel lacks. May sleep.
fn candidates(dev: &Arc<CmDevice>, ns: &Netns, setup: &Setup) -> Result<KVec<Candidate>> {
    let wanted = dev.settings.transports();
    let mut candidates = KVec::with_capacity(2, GFP_KERNEL_ACCOUNT)?;

    for transport in wanted {
        match Candidate::new(*transport, dev, ns, setup) {
            Ok(candidate) => vec::push(&mut candidates, candidate, GFP_KERNEL_ACCOUNT)?,
            Err(e) if Transport::is_missing(e) && wanted.len() > 1 => {}
            Err(e) => return Err(e),
        }
    }
    Ok(candidates)
}

/// A listener that is opened if there is none for its transport and address, and what a
/// subscription needs in either case.
///
/// All of it is allocated before [`Shared::listeners`](super::device::Shared) is locked. All who
/// listen wait for that lock, and a process at the limit of its memory cgroup may wait for memory
/// for long.
struct Candidate {
    listener: Arc<Listener>,
    link: UnboundLink,
    hook: ListenerHook,
    listener_node: RBTreeNodeReservation<Key, Arc<Listener>>,
    subscription_node: RBTreeNodeReservation<SubscriptionKey, Arc<Subscription>>,
}

impl Candidate {
    /// May sleep. Fails as `socket()` does.
    fn new(transport: Transport, dev: &Arc<CmDevice>, ns: &Netns, setup: &Setup) -> Result<Self> {
        let transport = transport.listener();
        let site = Site {
            pernet: &dev.shared.pernet,
            ns,
            vrf: dev.listener_vrf(transport, ns, &setup.local)?,
        };
        let more = dev.further_addrs(transport, &setup.local)?;
        let key = Key {
            transport,
            ns: ns.id(),
            vrf: site.vrf,
            addr: setup.local,
            family_only: setup.family_only,
        };
        let listener = Listener::new(dev.shared.setup_queue.clone(), key)?;

        Ok(Self {
            link: UnboundLink::new(transport, &site, &setup.local, more)?,
            hook: ListenerHook::new(listener.clone())?,
            listener_node: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            subscription_node: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            listener,
        })
    }

    /// Adds `subscription` to the listener for the address, which is opened if there is none. May
    /// sleep; riw allocates nothing. Fails as `bind()` and `listen()` do, and as
    /// [`Listener::subscribe`].
    fn subscribe(
        self,
        subscription: &Arc<Subscription>,
        listeners: &mut Listeners,
        tos: Option<u8>,
        backlog: u32,
    ) -> Result<Arc<Listener>> {
        match listeners.entry(self.listener.key) {
            Entry::Occupied(known) => {
                let listener = known.get().clone();
                listener.subscribe(subscription, self.subscription_node)?;
                Ok(listener)
            }
            Entry::Vacant(entry) => {
                // Before it is open: a connection without a subscription is reset.
                (self.listener).subscribe(subscription, self.subscription_node)?;
                (self.listener).open(self.link, self.hook, tos, backlog)?;
                Ok(entry.insert(self.listener, self.listener_node).clone())
            }
        }
    }
}
