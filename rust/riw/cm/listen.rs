// SPDX-License-Identifier: GPL-2.0

//! Listening.
//!
//! rdma_cm has a wildcard listener listen on every device, one call for each. Devices in the same
//! network namespace share one TCP socket per address and port then, and a connection goes to the
//! device whose netdev has the address that was connected to. Where the packets come in does not
//! matter: those for an address of this host come by `lo`.
//!
//! A device has several subscriptions to a listener when consumers in several network namespaces
//! listen at the same port, in the shared mode of `rdma system`. rdma_cm lets only the one in the
//! device's own namespace accept; that one is asked first.

use super::{
    accept,
    device::Member,
    half_open::{HalfOpen, Source},
    CmDevice, Endpoint, Shared,
};
use core::net::SocketAddr;
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_mutex, new_work,
    prelude::*,
    sync::{aref::ARef, Arc, Mutex},
    time::msecs_to_jiffies,
    workqueue::{DelayedWork, Work, WorkItem},
};
use net::{
    addr, netns,
    workqueue::{cancel_delayed_work, impl_has_queue, mod_delayed_work, Queue},
    Family, ListenSocket, Netns, Socket,
};
use rdma::iw::{CmId, Event, Setup};

/// Connections that may wait to be accepted from TCP, if the backlog is lower. The consumer's backlog
/// is of those whose Request has come. What is too much for the worker should not wait here for longer
/// than its peers do.
const QUEUE_MIN: u32 = 256;
/// Connections that are accepted in a row before others get their turn.
const BATCH: usize = 64;
/// Milliseconds until a listener tries again to accept when memory is short.
const RETRY_TIME: u32 = 100;

/// What a listening socket is bound to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    ns: netns::Id,
    addr: SocketAddr,
    family_only: bool,
}

/// A listening socket.
#[pin_data]
pub(super) struct Listener {
    key: Key,
    #[pin]
    subscriptions: Mutex<KVec<Arc<Subscription>>>,
    /// Held while connections are taken, until each belongs to its device.
    #[pin]
    socket: Mutex<Option<ListenSocket>>,
    /// Takes connections.
    #[pin]
    work: Work<Listener, 0>,
    /// Kicks the listener when it is to try again. Set and stopped under `socket`; it waits only as
    /// long as there is one.
    #[pin]
    timer: DelayedWork<Listener, 1>,
    queue: Arc<Queue>,
}

/// One of iw_cm's listening ids.
#[pin_data]
pub(super) struct Subscription {
    dev: Arc<CmDevice>,
    token: usize,
    /// The consumer is in the device's network namespace.
    home: bool,
    /// `None` if the address is in use in a namespace that is not the consumer's.
    listener: Option<Arc<Listener>>,
    #[pin]
    state: Mutex<SubscriptionState>,
}

struct SubscriptionState {
    /// `None` once it is closed.
    id: Option<ARef<CmId>>,
    half_open: HalfOpen<Arc<Endpoint>>,
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

/// Begins to listen, as [`CmOperations::create_listen`](rdma::iw::CmOperations::create_listen)
/// says.
pub(super) fn listen(dev: &Arc<CmDevice>, id: &CmId, setup: &Setup, backlog: u32) -> Result<usize> {
    listen_on(dev, id, setup, backlog).or_else(|e| {
        if !is_everywhere(setup) {
            return Err(e);
        }
        // The device is about to go, or its namespace is: rdma_cm drops the listener with the
        // device.
        if dev.netns().is_err() {
            return Ok(dev.token());
        }
        if dev.is_registering() {
            // The consumer has been listening for long, and cannot be told; and rdma_cm would not
            // serve the device at all.
            pr_warn!(
                "a listener at port {} is not served on the new device: error {}\n",
                setup.local.port(),
                e.to_errno()
            );
            return Ok(dev.token());
        }
        Err(e)
    })
}

/// Whether rdma_cm listens at that address on every device. It lets such a listener fail as a whole
/// if it fails on one of them.
fn is_everywhere(setup: &Setup) -> bool {
    let ip = setup.local.ip();
    ip.is_unspecified() || ip.is_loopback()
}

fn listen_on(dev: &Arc<CmDevice>, id: &CmId, setup: &Setup, backlog: u32) -> Result<usize> {
    let ns = dev.netns()?;
    // An id does not say which namespace is its consumer's. Most often the consumer calls; but if
    // the device is being added, whoever adds it does.
    let home = Netns::current().is_none_or(|current| current == ns);
    let key = Key {
        ns: ns.id(),
        addr: setup.local,
        family_only: setup.family_only,
    };
    // Outside of the locks: it may have a module loaded.
    let socket = Socket::new(&dev.shared.pernet, &ns, Family::from(&setup.local))?;

    let mut listeners = dev.shared.listeners.lock();
    let known = listeners
        .iter()
        .find(|listener| listener.key == key)
        .cloned();
    let listener = match known {
        Some(listener) => Some(listener),
        None => match Listener::open(&dev.shared, key, socket, setup, backlog) {
            Ok(listener) => {
                listeners
                    .push(listener.clone(), GFP_KERNEL)
                    .inspect_err(|_| listener.close())?;
                Some(listener)
            }
            // The consumer could not accept what comes there anyway.
            Err(e) if e == EADDRINUSE && !home && is_everywhere(setup) => None,
            Err(e) => return Err(e),
        },
    };

    let token = dev.token();
    let subscribed = Subscription::new(dev, token, home, listener.clone()).and_then(|s| {
        if let Some(listener) = &listener {
            let mut subscriptions = listener.subscriptions.lock();

            subscriptions.reserve(1, GFP_KERNEL)?;
            // The one that is asked first comes first.
            let place = if home { 0 } else { subscriptions.len() };
            let _ = subscriptions.insert_within_capacity(place, s.clone());
        }
        s.state.lock().id = Some(ARef::from(id));
        Ok(s)
    });
    let subscription = match subscribed {
        Ok(subscription) => subscription,
        Err(e) => {
            if let Some(listener) = &listener {
                Listener::close_unused(listener, &mut listeners);
            }
            return Err(e);
        }
    };
    drop(listeners);

    dev.add(token, Member::Subscription(subscription.clone()))
        .inspect_err(|_| subscription.close())?;
    Ok(token)
}

impl Listener {
    /// Has `socket` listen. May sleep.
    fn open(
        shared: &Arc<Shared>,
        key: Key,
        socket: Socket,
        setup: &Setup,
        backlog: u32,
    ) -> Result<Arc<Self>> {
        socket.set_reuseaddr();
        if key.addr.is_ipv6() {
            socket.set_v6only(key.family_only);
        }
        if let Some(tos) = setup.tos {
            socket.set_tos(tos);
        }
        socket.bind(&key.addr)?;

        let this = Arc::pin_init(
            pin_init!(Self {
                key,
                subscriptions <- new_mutex!(KVec::new(), "riw::cm::Listener::subscriptions"),
                socket <- new_mutex!(None, "riw::cm::Listener::socket"),
                work <- new_work!("riw::cm::Listener::work"),
                timer <- new_delayed_work!("riw::cm::Listener::timer"),
                queue: shared.setup_queue.clone(),
            }),
            GFP_KERNEL,
        )?;
        let socket = ListenSocket::new(socket, backlog.max(QUEUE_MIN))?;

        socket.set_listener(this.clone())?;
        *this.socket.lock() = Some(socket);
        // For what came before it was set.
        this.kick();
        Ok(this)
    }

    /// Has the work look for connections. Any context.
    fn kick(self: &Arc<Self>) {
        self.queue.kick::<_, 0>(self);
    }

    /// Closes the socket. On return no callback of the listener runs, and no connection is being
    /// taken: whoever takes some holds `socket`, or finds none. May sleep.
    fn close(self: &Arc<Self>) {
        let socket = {
            let mut socket = self.socket.lock();
            cancel_delayed_work::<Self, 1>(self);
            socket.take()
        };

        // Its callback runs no more when it is dropped.
        drop(socket);
    }

    /// Closes the socket if it has no subscription.
    fn close_unused(self: &Arc<Self>, listeners: &mut KVec<Arc<Self>>) {
        if self.subscriptions.lock().is_empty() {
            listeners.retain(|listener| !Arc::ptr_eq(listener, self));
            self.close();
        }
    }

    /// Takes a connection from TCP. `EAGAIN` if there is none.
    fn take(&self, socket: &ListenSocket) -> Result {
        let child = socket.accept()?;

        match self.candidates(&child) {
            Ok((dev, candidates)) => {
                // If it fails that is the connection's end, not the listener's.
                let _ = accept::incoming(&dev, child, candidates);
            }
            // No device has that address.
            Err(_) => child.abort(),
        }
        Ok(())
    }

    /// The device that a connection is for, and its subscriptions.
    fn candidates(&self, child: &Socket) -> Result<(Arc<CmDevice>, KVec<Arc<Subscription>>)> {
        let local = addr::unmapped(child.local_addr()?);
        let subscriptions = self.subscriptions.lock();
        let first = subscriptions.first().ok_or(ENODEV)?;
        // Any of them will do; one may be about to go.
        let ns = subscriptions
            .iter()
            .find_map(|s| s.dev.netns().ok())
            .ok_or(ENODEV)?;
        let owner = ns.owner_of(&local);
        let on = |ifindex: Option<u32>| {
            subscriptions
                .iter()
                .find(|s| Some(s.dev.ifindex) == ifindex)
        };

        let chosen = on(owner)
            // rdma_cm takes an address of a VLAN for one of the device below, and the other way
            // round.
            .or_else(|| on(owner.and_then(|owner| ns.vlan_real(owner))))
            .or_else(|| {
                owner.and_then(|owner| {
                    subscriptions
                        .iter()
                        .find(|s| ns.vlan_real(s.dev.ifindex) == Some(owner))
                })
            })
            // rdma_cm has found the device for that address.
            .or_else(|| (!self.key.addr.ip().is_unspecified()).then_some(first))
            .ok_or(ENODEV)?;

        let mut candidates = KVec::new();
        for other in subscriptions.iter() {
            if Arc::ptr_eq(&other.dev, &chosen.dev) {
                candidates.push(other.clone(), GFP_KERNEL)?;
            }
        }
        Ok((chosen.dev.clone(), candidates))
    }
}

impl net::Listener for Listener {
    /// Softirq.
    fn connection_ready(self: &Arc<Self>) {
        self.kick();
    }
}

impl WorkItem<0> for Listener {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let guard = this.socket.lock();
        let Some(socket) = guard.as_ref() else {
            return;
        };

        for _ in 0..BATCH {
            match this.take(socket) {
                Ok(()) => {}
                Err(e) if e == EAGAIN || e == EINVAL => return,
                Err(_) => {
                    // No callback comes for a connection that is there already.
                    return mod_delayed_work::<Self, 1>(&this, msecs_to_jiffies(RETRY_TIME));
                }
            }
        }
        this.kick();
    }
}

impl WorkItem<1> for Listener {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.kick();
    }
}

impl Subscription {
    fn new(
        dev: &Arc<CmDevice>,
        token: usize,
        home: bool,
        listener: Option<Arc<Listener>>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                dev: dev.clone(),
                token,
                home,
                listener,
                state <- new_mutex!(SubscriptionState {
                    id: None,
                    half_open: HalfOpen::new(),
                }, "riw::cm::Subscription::state"),
            }),
            GFP_KERNEL,
        )
    }

    /// Reports an event to iw_cm. `ENOENT` if the subscription is closed. May sleep.
    pub(super) fn report_event(&self, event: &Event<'_>) -> Result {
        // Under the lock: once it is closed no event may come.
        self.state.lock().id.as_ref().ok_or(ENOENT)?.event(event)
    }

    /// Notes a connection whose Request has not come. If there are too many one gives way. May sleep.
    pub(super) fn enter(&self, source: Source, endpoint: &Arc<Endpoint>) -> Result {
        let mut state = self.state.lock();

        if state.id.is_none() {
            return Err(ECONNREFUSED);
        }
        let evicted = state
            .half_open
            .insert(source, endpoint.token, endpoint.clone())?;
        if let Some(evicted) = evicted {
            evicted.evict();
        }
        Ok(())
    }

    /// Forgets a connection: its Request has come, or never will. May sleep.
    pub(super) fn leave(&self, source: Source, endpoint: &Endpoint) {
        let left = self.state.lock().half_open.remove(source, endpoint.token);
        // Not under the lock.
        drop(left);
    }

    /// Ends listening. On return no event comes to the id. May sleep.
    pub(super) fn close(self: &Arc<Self>) {
        let (id, half_open) = {
            let mut state = self.state.lock();

            let half_open = core::mem::replace(&mut state.half_open, HalfOpen::new());

            (state.id.take(), half_open)
        };

        if let Some(listener) = &self.listener {
            let mut listeners = self.dev.shared.listeners.lock();

            listener
                .subscriptions
                .lock()
                .retain(|other| !Arc::ptr_eq(other, self));
            listener.close_unused(&mut listeners);
        }
        for endpoint in half_open.iter() {
            endpoint.evict();
        }
        drop(id);
        self.dev.remove(self.token);
    }
}
