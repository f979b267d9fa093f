// SPDX-License-Identifier: GPL-2.0

//! The connection management of a device, and the parts that devices share.

use super::{
    backlog::Backlogs, endpoint::Endpoint, listener::Listeners, subscription::Subscription,
};
use crate::{
    counters::Counters,
    driver::Riw,
    link::{LingerSet, Reorder, Transport},
    log::DeviceLog,
    members::Members,
    qp::Qp,
    settings::Settings,
};
use core::net::SocketAddr;
use kernel::{
    new_condvar, new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
        Arc, CondVar, Mutex,
    },
};
use kernel_ext::{
    memalloc::without_io,
    vec,
    workqueue::{Flags, Queue},
};
use net::{Family, NetDevice, Netns, Pernet};
use rdma::{device::Registered, Device};

/// The parts of connection management that all devices of the module share.
#[pin_data]
pub(crate) struct Shared {
    /// Sets connections up. Ordered, because some consumers rely on connect requests in the order
    /// of arrival. An item delays all others, so it must not wait for a stream.
    pub(super) setup_queue: Arc<Queue>,
    /// Ends streams and connections. An item may wait for the transmit pass of its own queue pair,
    /// and so for memory. Items do not wait for each other.
    pub(super) stream_queue: Arc<Queue>,
    /// Does so for connections that reclaim may wait for.
    pub(super) kernel_queue: Arc<Queue>,
    /// Loads modules. Only module exit waits for its items, before it drops this: see
    /// [`load`](super::load).
    pub(super) load_queue: Queue,
    pub(super) pernet: Arc<Pernet>,
    #[pin]
    pub(super) listeners: Mutex<Listeners>,
    pub(super) backlogs: Arc<Backlogs>,
    /// The devices that are not shut down. The netdev notifier needs this list: ib_core does not
    /// find a device by its netdev while it unregisters it or moves it to another namespace.
    #[pin]
    devices: Mutex<KVec<Arc<CmDevice>>>,
}

impl Shared {
    /// Creates it. `setup_queue` must be ordered. May sleep.
    pub(crate) fn new(
        setup_queue: Arc<Queue>,
        stream_queue: Arc<Queue>,
        kernel_queue: Arc<Queue>,
        pernet: Arc<Pernet>,
    ) -> Result<Arc<Self>> {
        let backlogs = Backlogs::new(setup_queue.clone())?;
        // Reclaim needs none of its items. But an item of another queue may drop the last `Shared`,
        // and a queue with this flag must not wait for one without it.
        let load_queue = Queue::new(c"riw_load", Flags::UNBOUND | Flags::MEM_RECLAIM)?;

        Arc::pin_init(
            pin_init!(Self {
                setup_queue,
                stream_queue,
                kernel_queue,
                load_queue,
                pernet,
                backlogs,
                listeners <- new_mutex!(RBTree::new(), "riw::cm::Shared::listeners"),
                devices <- new_mutex!(KVec::new(), "riw::cm::Shared::devices"),
            }),
            GFP_KERNEL,
        )
    }

    /// Waits for the work items that load modules. The devices must be unregistered. Process
    /// context; waits for `modprobe`.
    pub(crate) fn drain_loads(&self) {
        self.load_queue.drain();
    }

    /// Shuts down the device on `netdev`, which is about to leave its namespace. When it returns,
    /// the device has no socket, and never will. Process context, may sleep; the RTNL may be held.
    pub(crate) fn netdev_gone(&self, netdev: &NetDevice) {
        let is_on = |dev: &&Arc<CmDevice>| dev.is_on(netdev);

        // `shutdown` removes the device from the list.
        while let Some(dev) = {
            let devices = self.devices.lock();
            devices.iter().find(is_on).cloned()
        } {
            dev.shutdown();
        }
    }
}

/// Addresses of a socket, at most: the INIT of an association lists all of them.
const ADDRS_MAX: usize = 8;

/// The connection management of a device.
#[pin_data]
pub(crate) struct CmDevice {
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Settings,
    pub(crate) counters: Arc<Counters>,
    pub(crate) log: Arc<DeviceLog>,
    pub(super) ifindex: u32,
    /// Connections that endpoints have closed.
    pub(super) lingers: Arc<LingerSet>,
    /// The task that is registering the device; otherwise 0.
    registering: Atomic<i32>,
    /// Held during the shutdown: a second caller, and [`Self::wait_for_shutdown`], wait for the end
    /// of it.
    #[pin]
    shutdown: Mutex<()>,
    #[pin]
    state: Mutex<DeviceState>,
    /// The shutdown has begun, or what a caller of [`Self::wait_for`] waits for is there.
    #[pin]
    changed: CondVar,
}

struct DeviceState {
    /// `None` once the device has been shut down. It is held as long as the device has a socket:
    /// the dismantling of a namespace waits for its netdevs.
    netdev: Option<ARef<NetDevice>>,
    members: Members<Member>,
}

/// An object that has a link, or a share in one, which the shutdown has to close.
pub(super) enum Member {
    Endpoint(Arc<Endpoint>),
    Subscription(Arc<Subscription>),
}

impl CmDevice {
    /// Creates the connection management of a device on `netdev`. May sleep. Fails with `EINVAL`
    /// for a bad module parameter, or `ENOMEM`.
    ///
    /// Until [`Self::shutdown`] it holds a reference to `netdev`, and `shared` holds one to it.
    pub(crate) fn new(netdev: &NetDevice, shared: Arc<Shared>) -> Result<Arc<Self>> {
        let settings = Settings::new()?;
        let counters = Counters::new(None)?;
        let log = DeviceLog::new()?;
        let lingers = LingerSet::new(shared.stream_queue.clone())?;
        let this = Arc::pin_init(
            pin_init!(Self {
                shared,
                settings,
                counters,
                log,
                ifindex: netdev.ifindex(),
                lingers,
                registering: Atomic::new(0),
                shutdown <- new_mutex!((), "riw::cm::CmDevice::shutdown"),
                state <- new_mutex!(DeviceState {
                    netdev: Some(netdev.into()),
                    members: Members::new(),
                }, "riw::cm::CmDevice::state"),
                changed <- new_condvar!("riw::cm::CmDevice::changed"),
            }),
            GFP_KERNEL,
        )?;

        // The shutdown of another device takes the lock, and I/O may wait for that.
        without_io(|| vec::push(&mut this.shared.devices.lock(), this.clone(), GFP_KERNEL))?;
        Ok(this)
    }

    /// Whether the device is on `netdev` and has not been shut down. May sleep.
    fn is_on(&self, netdev: &NetDevice) -> bool {
        let state = self.state.lock();

        state
            .netdev
            .as_deref()
            .is_some_and(|own| core::ptr::eq(own, netdev))
    }

    /// Resets all connections and closes all listeners. When it returns, the device has no socket,
    /// and never will. Process context, may sleep; the RTNL may be held.
    pub(crate) fn shutdown(&self) {
        let _one = self.shutdown.lock();
        let members = self.state.lock().members.shut_down();
        self.changed.notify_all();

        // Under locks that a connection of another device may need, and I/O may wait for that.
        without_io(|| {
            // The end of each connection waits for whoever uses it. That may be a process that is
            // above its `memory.high`, and sleeps for up to 2 s whenever the socket charges memory.
            // With all of them marked first, these sleeps overlap, and no other follows: the RTNL
            // is not held for one after the other.
            for member in members.values() {
                if let Member::Endpoint(endpoint) = member {
                    endpoint.link.shut_down();
                }
            }
            for member in members.values() {
                match member {
                    Member::Endpoint(endpoint) => endpoint.shutdown(),
                    Member::Subscription(subscription) => subscription.close(),
                }
            }
        });
        // An endpoint lets its connection linger before its own shutdown returns, and before it
        // leaves the members: so each such connection is in the set by now, and no other follows.
        self.lingers.shutdown();

        let this = {
            let mut devices = self.shared.devices.lock();
            let at = devices.iter().position(|dev| core::ptr::eq(&**dev, self));
            at.and_then(|at| devices.remove(at).ok())
        };
        let netdev = self.state.lock().netdev.take();
        // Drop the references outside of the locks that guard them. `_one` is still held; the
        // caller's own reference keeps its mutex.
        drop((this, netdev));
        // The list of devices may keep this one until another one is added.
        self.settings.release();
    }

    /// Waits for the end of a shutdown that has begun. May sleep.
    pub(super) fn wait_for_shutdown(&self) {
        drop(self.shutdown.lock());
    }

    /// Whether the shutdown of the device has begun. May sleep.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.state.lock().members.is_shut_down()
    }

    /// Waits until `ready` returns a result. It is called under `state`. Whoever makes the result
    /// available must then call [`Self::notify`]. `ENODEV` if the device is shut down, `EINTR`
    /// after a signal. Process context; sleeps.
    pub(super) fn wait_for<R>(&self, ready: impl Fn() -> Option<R>) -> Result<R> {
        let mut state = self.state.lock();
        let mut interrupted = false;

        loop {
            if let Some(result) = ready() {
                return Ok(result);
            }
            if state.members.is_shut_down() {
                return Err(ENODEV);
            }
            if interrupted {
                return Err(EINTR);
            }
            interrupted = self.changed.wait_interruptible(&mut state);
        }
    }

    /// Lets callers of [`Self::wait_for`] check again. May sleep.
    pub(super) fn notify(&self) {
        // A caller that has checked before sleeps by now.
        drop(self.state.lock());
        self.changed.notify_all();
    }

    /// Calls `register`, which registers the device with ib_core.
    pub(crate) fn while_registering<R>(&self, register: impl FnOnce() -> R) -> R {
        self.registering.store(current!().pid(), ordering::Relaxed);
        let result = register();
        self.registering.store(0, ordering::Relaxed);
        result
    }

    /// Whether this task is registering the device: ib_core is informing its clients of it.
    pub(super) fn is_registering(&self) -> bool {
        // Any other task reads 0, or a PID that is not its own.
        self.registering.load(ordering::Relaxed) == current!().pid()
    }

    /// Returns the network namespace of the device, held for the caller. `ENODEV` if the device is
    /// shut down. May sleep.
    ///
    /// A socket made in the namespace must belong to a member of the device before the caller
    /// drops the namespace.
    pub(super) fn netns(&self) -> Result<Netns> {
        self.netdev()?.netns().ok_or(ENODEV)
    }

    /// Returns the network namespace of the device, as [`Self::netns`] does, for a consumer in
    /// `home`. `ENODEV` also if that is another one: a consumer gets sockets only in its own
    /// namespace. May sleep.
    pub(super) fn netns_of(&self, home: Option<&Netns>) -> Result<Netns> {
        let ns = self.netns()?;

        match home {
            Some(home) if *home == ns => Ok(ns),
            _ => Err(ENODEV),
        }
    }

    /// Returns the netdev. `ENODEV` if the device is shut down. May sleep.
    fn netdev(&self) -> Result<ARef<NetDevice>> {
        let state = self.state.lock();
        let shut = state.members.is_shut_down();

        state.netdev.clone().filter(|_| !shut).ok_or(ENODEV)
    }

    /// Returns the index of the VRF device to which a socket at `local` is bound, if the netdev is
    /// in a VRF. A loopback address is the host's, and in a VRF only if somebody has added it
    /// there. May sleep. `ENODEV` if the device is shut down.
    pub(super) fn vrf(&self, local: &SocketAddr) -> Result<Option<u32>> {
        let vrf = self.netdev()?.vrf();

        Ok(vrf.filter(|_| !local.ip().is_loopback()))
    }

    /// Returns the VRF of a socket in `ns` that listens at `local`, as [`Self::vrf`] does. A
    /// wildcard listener may be in none.
    pub(super) fn listener_vrf(
        &self,
        transport: Transport,
        ns: &Netns,
        local: &SocketAddr,
    ) -> Result<Option<u32>> {
        let is_outside = transport.listens_outside_vrfs(ns);
        let vrf = self.vrf(local)?;

        Ok(vrf.filter(|_| !is_outside || !local.ip().is_unspecified()))
    }

    /// Returns the addresses that a socket at `local` has besides, of the same family: none, unless
    /// the setting `multihoming` is on and `local` is an address of the netdev. So a wildcard
    /// address is left as it is: it means all addresses of the host. May sleep. `ENODEV` if the
    /// device is shut down, `ENOMEM`.
    pub(super) fn further_addrs(
        &self,
        transport: Transport,
        local: &SocketAddr,
    ) -> Result<KVec<SocketAddr>> {
        let mut further = KVec::new();

        if !transport.is_multihomed() || !self.settings.is_multihomed() {
            return Ok(further);
        }
        let netdev = self.netdev()?;
        let ns = netdev.netns().ok_or(ENODEV)?;
        if ns.owner_of(local) != Some(self.ifindex) {
            return Ok(further);
        }
        let mut addrs = [*local; ADDRS_MAX];
        let count = netdev.ip_addrs(Family::from(local), &mut addrs);

        for addr in addrs.iter().take(count) {
            if addr.ip() != local.ip() {
                vec::push(&mut further, *addr, GFP_KERNEL_ACCOUNT)?;
            }
        }
        Ok(further)
    }

    /// Returns the treatment of segments of a queue pair that arrive out of order. Any context.
    pub(super) fn reorder(&self, qp: &Qp) -> Reorder {
        Reorder {
            memcg: qp.memcg().clone(),
            early_placement: self.settings.places_early(),
        }
    }

    /// Returns the device of ib_core; `None` if it is not registered. May sleep. Drop it soon: the
    /// unregistration waits for it.
    pub(super) fn registered(&self) -> Option<Registered<Riw>> {
        let netdev = self.state.lock().netdev.clone()?;

        Device::<Riw>::on(&netdev).ok().flatten()
    }

    /// Returns a number for a member. The device never reuses it. May sleep.
    pub(super) fn token(&self) -> usize {
        self.state.lock().members.token()
    }

    /// Adds a member. `ENODEV` if the device is shut down, `ENOMEM`. May sleep.
    pub(super) fn add(&self, token: usize, member: Member) -> Result {
        // Not under the lock: a process at the limit of its memory cgroup may wait here for long.
        let member = RBTreeNode::new(token, member, GFP_KERNEL_ACCOUNT)?;

        self.state.lock().members.add(member)
    }

    /// Removes a member, unless the shutdown has removed it already. May sleep.
    pub(super) fn remove(&self, token: usize) {
        let member = self.state.lock().members.remove(token);
        // Outside of the lock: this may be the last reference.
        drop(member);
    }

    /// Returns the endpoint with this token. May sleep.
    pub(super) fn endpoint(&self, token: usize) -> Option<Arc<Endpoint>> {
        match self.state.lock().members.get(token)? {
            Member::Endpoint(endpoint) => Some(endpoint.clone()),
            _ => None,
        }
    }

    /// Returns the subscription with this token. May sleep.
    pub(super) fn subscription(&self, token: usize) -> Option<Arc<Subscription>> {
        match self.state.lock().members.get(token)? {
            Member::Subscription(subscription) => Some(subscription.clone()),
            _ => None,
        }
    }
}
