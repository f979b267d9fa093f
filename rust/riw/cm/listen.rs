// SPDX-License-Identifier: GPL-2.0

//! Listening.
//!
//! For a wildcard listener rdma_cm listens on each device. The devices in the consumer's network
//! namespace then share a socket for each transport, VRF, address and port. A connection goes to
//! the device whose netdev has the local address of the connection. The netdev by which the packets
//! arrive does not count: packets to an address of this host arrive by `lo`. rdma_cm listens on the
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
    accept,
    device::{CmDevice, Member},
    listener::{Key, Listener, Listeners},
    subscription::{Subscription, SubscriptionKey},
};
use crate::{
    driver::Riw,
    link::{Connection, ListenLink, Site, Transport, UnboundLink},
};
use kernel::{
    prelude::*,
    rbtree::{Entry, RBTreeNodeReservation},
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem,
};
use kernel_ext::{memalloc::without_io, vec, workqueue::mod_delayed_work};
use net::{ListenerHook, Netns};
use rdma::{
    iw::{Backlog, CmId, Setup},
    Device,
};

/// Connections that a listener accepts in a row before other work items run.
const BATCH: usize = 64;
/// Milliseconds until a listener that lacked memory accepts again.
const RETRY_TIME: u32 = 100;

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

impl Listener {
    /// Accepts connections, up to [`BATCH`] of them; a later work item accepts more. May sleep.
    fn accept_batch(self: &Arc<Self>) {
        let guard = self.link.lock();
        let Some(link) = guard.as_ref() else {
            return;
        };

        for _ in 0..BATCH {
            match self.accept(link) {
                Ok(()) => {}
                Err(e) if e == EAGAIN || e == EINVAL => return,
                Err(_) => {
                    // No callback follows for the connections that are queued already.
                    return mod_delayed_work::<Self, 1>(self, msecs_to_jiffies(RETRY_TIME));
                }
            }
        }
        self.kick();
    }

    /// Accepts a connection. `EAGAIN` if there is none. May sleep.
    fn accept(&self, link: &ListenLink) -> Result {
        let child = link.accept()?;

        match self.subscription_for(&child) {
            Ok(subscription) => {
                // An error ends the connection, not the listener.
                let _ = accept::incoming(child, subscription);
            }
            // No device has that address.
            Err(_) => child.abort(),
        }
        Ok(())
    }

    /// Finds the subscription of the device that a connection is for. May sleep. `ENODEV` if no
    /// device has the connection's local address.
    fn subscription_for(&self, child: &Connection) -> Result<Arc<Subscription>> {
        let local = child.addrs()?.local;
        let subscriptions = self.subscriptions.lock();
        let first = subscriptions.values().next().ok_or(ENODEV)?;
        // All devices are in the same namespace. One may be about to go.
        let ns = subscriptions
            .values()
            .find_map(|s| s.dev.netns().ok())
            .ok_or(ENODEV)?;
        let owner = ns.owner_of(&local);
        let on = |ifindex: Option<u32>| {
            subscriptions
                .values()
                .find(|s| Some(s.dev.ifindex) == ifindex)
        };

        on(owner)
            // rdma_cm confuses the addresses of a VLAN with the addresses of its lower device, in
            // both directions.
            .or_else(|| on(owner.and_then(|owner| ns.vlan_real(owner))))
            .or_else(|| {
                owner.and_then(|owner| {
                    subscriptions
                        .values()
                        .find(|s| ns.vlan_real(s.dev.ifindex) == Some(owner))
                })
            })
            // rdma_cm chose the device for this address.
            .or_else(|| (!self.key.addr.ip().is_unspecified()).then_some(first))
            .cloned()
            .ok_or(ENODEV)
    }
}

impl net::Listener for Listener {
    /// Atomic context.
    fn connection_ready(self: &Arc<Self>) {
        self.kick();
    }
}

impl WorkItem<0> for Listener {
    type Pointer = Arc<Self>;

    /// Accepts connections. May sleep, but must not wait for a peer or a stream.
    fn run(this: Arc<Self>) {
        // The next item may be of a connection that I/O waits for.
        without_io(|| this.accept_batch());
    }
}

impl WorkItem<1> for Listener {
    type Pointer = Arc<Self>;

    /// It is time to accept again.
    fn run(this: Arc<Self>) {
        this.kick();
    }
}
