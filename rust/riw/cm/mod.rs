// SPDX-License-Identifier: GPL-2.0

//! Connection management: from iw_cm's calls to a TCP connection that a queue pair works on.
//!
//! An [`Endpoint`] is one connection, from its beginning to the moment that the queue pair lets go
//! of it; a [`Linger`] is what is left of it then, a socket whose peer has still to learn of the
//! end. A [`Listener`] is a listening socket, with a [`Subscription`] for each of iw_cm's listening
//! ids.
//!
//! # Contexts
//!
//! Nothing here waits for a peer. Callbacks of sockets (softirq) set a flag and queue a work item of
//! their endpoint or listener, except for those of an established connection, which go straight to
//! the queue pair. Everything else is done in process context, by that work or by the caller. Each
//! endpoint has its own time limit.
//!
//! Connections are set up in order, by one queue for all devices. Once an endpoint has handed its
//! stream to the queue pair, ending it can mean to wait for a transmit pass, which may be waiting for
//! memory: another work item does that, in a queue whose items do not wait for each other.
//!
//! # Locks
//!
//! `Documentation/locking.md` has them in their order. What is ended is ended under the lock that its
//! work takes first, and its timer is stopped there. So nobody waits for work.
//!
//! # Lifetimes
//!
//! A socket keeps no reference to its network namespace. So [`CmDevice::shutdown`], which the
//! unregistering of the netdev calls, closes every socket of the device before it returns: each of
//! them belongs to a [`Member`] of the device. What is added later is refused.
//!
//! Whoever uses an endpoint's socket holds `Endpoint::socket` meanwhile, the queue pair's runner for
//! one send at a time. The socket is taken out of there before it is released or left to linger, and
//! its callbacks are taken off then. So nobody sends on a socket that is released, and no callback
//! comes from it, though the queue pair may be in the midst of a transmit pass: its next send finds
//! no socket.

mod accept;
mod connect;
mod endpoint;
mod half_open;
mod linger;
mod listen;
mod ops;

pub(crate) use endpoint::Endpoint;

use crate::settings::Settings;
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
        Arc, Mutex,
    },
    time::{msecs_to_jiffies, Instant, Jiffies, Monotonic},
};
use kernel_ext::workqueue::Queue;
use linger::Linger;
use listen::{Listener, Subscription};
use net::{NetDevice, Netns, Pernet};

/// Milliseconds that the queue pair has to close its side after the peer has.
const CLOSE_TIME: i64 = 3_000;
/// Milliseconds that the queue pair has to close its side when it is the first to: to send what its
/// user has posted and have its reads answered, or to tell the peer of an error. It is given them
/// again as long as a byte has moved in them.
const ENDING_TIME: i64 = 10_000;
/// Milliseconds that the peer has to answer a FIN, or to acknowledge something before it.
const LINGER_TIME: i64 = 10_000;
/// Milliseconds after which a lingering connection is looked at again.
const LINGER_LOOK: i64 = 1_000;
/// Milliseconds after which a connection lingers no more, or does not go on to end, whatever the peer
/// does.
const LINGER_TIME_MAX: i64 = 300_000;
/// Probes that an idle peer may leave unanswered: they take as long, all together, as the silence
/// before the first.
const PROBES: u16 = 5;
/// Connections of a device that have been refused and may linger; more are reset.
const REFUSED_MAX: usize = 1024;

/// Which side of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The one that connected.
    Initiator,
    /// The one that was connected to.
    Responder,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The peer sent its FIN. This side may still send.
    Graceful,
    /// The peer reset it, or this side did.
    Reset,
    /// The peer does not answer.
    Timeout,
}

/// How to end a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disconnect {
    /// With a FIN behind everything that TCP has got.
    Graceful,
    /// With a RST.
    Abort,
}

/// What the devices of a module share.
#[pin_data]
pub(crate) struct Shared {
    /// Sets connections up, one item at a time. Ordered: some consumers rely on it that connection
    /// requests are reported in the order of arrival. So nothing here may wait for a stream.
    setup_queue: Arc<Queue>,
    /// Ends streams and connections. An item may wait for its own queue pair's transmit pass, and
    /// thereby for memory; no other waits for it.
    stream_queue: Arc<Queue>,
    pernet: Arc<Pernet>,
    #[pin]
    listeners: Mutex<KVec<Arc<Listener>>>,
    /// Those that are not shut down. A device that ib_core is unregistering, or moving to another
    /// namespace, cannot be found by its netdev otherwise.
    #[pin]
    devices: Mutex<KVec<Arc<CmDevice>>>,
}

impl Shared {
    /// Makes it. The setup queue must be ordered. May sleep.
    pub(crate) fn new(
        setup_queue: Arc<Queue>,
        stream_queue: Arc<Queue>,
        pernet: Arc<Pernet>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                setup_queue,
                stream_queue,
                pernet,
                listeners <- new_mutex!(KVec::new(), "riw::cm::Shared::listeners"),
                devices <- new_mutex!(KVec::new(), "riw::cm::Shared::devices"),
            }),
            GFP_KERNEL,
        )
    }

    /// Shuts down what is on `netdev`, which is about to go from its namespace. On return there is
    /// no socket of it, nor will there be one. Process context, may sleep; rtnl may be held.
    pub(crate) fn netdev_gone(&self, netdev: &NetDevice) {
        let is_on = |dev: &&Arc<CmDevice>| dev.is_on(netdev);

        // One that is gone leaves the list.
        while let Some(dev) = {
            let devices = self.devices.lock();
            devices.iter().find(is_on).cloned()
        } {
            dev.shutdown();
        }
    }
}

/// The connection management of a device.
#[pin_data]
pub(crate) struct CmDevice {
    shared: Arc<Shared>,
    pub(crate) settings: Settings,
    ifindex: u32,
    /// The task that registers the device; 0 before and after that.
    registering: Atomic<i32>,
    /// Held while it is shut down: who comes second waits until that is done.
    #[pin]
    shutdown: Mutex<()>,
    #[pin]
    state: Mutex<DeviceState>,
}

struct DeviceState {
    /// `None` once the device has been shut down. As long as there is a socket, it is there: a
    /// namespace that is being left waits for its netdevs.
    netdev: Option<ARef<NetDevice>>,
    /// There is no more of this device.
    shut: bool,
    members: RBTree<usize, Member>,
    /// Members that are refused connections.
    refused: usize,
    next_token: usize,
}

/// Whatever has a socket, or a part in one.
#[derive(Clone)]
enum Member {
    Endpoint(Arc<Endpoint>),
    Linger(Arc<Linger>),
    Subscription(Arc<Subscription>),
}

impl Member {
    fn is_refused(&self) -> bool {
        matches!(self, Self::Linger(linger) if linger.refused)
    }
}

impl CmDevice {
    /// Makes it, for a device on `netdev`. May sleep.
    ///
    /// It keeps a reference to `netdev`, and is kept itself, until [`Self::shutdown`].
    pub(crate) fn new(netdev: &NetDevice, shared: Arc<Shared>) -> Result<Arc<Self>> {
        let settings = Settings::new()?;
        let this = Arc::pin_init(
            pin_init!(Self {
                shared,
                settings,
                ifindex: netdev.ifindex(),
                registering: Atomic::new(0),
                shutdown <- new_mutex!((), "riw::cm::CmDevice::shutdown"),
                state <- new_mutex!(DeviceState {
                    netdev: Some(netdev.into()),
                    shut: false,
                    members: RBTree::new(),
                    refused: 0,
                    next_token: 1,
                }, "riw::cm::CmDevice::state"),
            }),
            GFP_KERNEL,
        )?;

        this.shared.devices.lock().push(this.clone(), GFP_KERNEL)?;
        Ok(this)
    }

    /// Whether it is on a netdev, and has not been shut down.
    fn is_on(&self, netdev: &NetDevice) -> bool {
        let state = self.state.lock();

        state
            .netdev
            .as_deref()
            .is_some_and(|own| core::ptr::eq(own, netdev))
    }

    /// Aborts all connections and ends all listening. On return no socket of the device exists,
    /// nor will one. Process context, may sleep; rtnl may be held.
    pub(crate) fn shutdown(&self) {
        let _one = self.shutdown.lock();
        let members = {
            let mut state = self.state.lock();

            state.shut = true;
            core::mem::replace(&mut state.members, RBTree::new())
        };

        for member in members.values() {
            match member {
                Member::Endpoint(endpoint) => endpoint.shutdown(),
                Member::Linger(linger) => linger.end(),
                Member::Subscription(subscription) => subscription.close(),
            }
        }

        let this = {
            let mut devices = self.shared.devices.lock();
            let at = devices.iter().position(|dev| core::ptr::eq(&**dev, self));
            at.and_then(|at| devices.remove(at).ok())
        };
        let netdev = self.state.lock().netdev.take();
        // No longer under the locks that guard them. `_one` is held still, but its mutex does not
        // go: the caller has a reference to this, too.
        drop((this, netdev));
    }

    /// Whether the device is gone, or about to go. May sleep.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.state.lock().shut
    }

    /// Calls `register`, which registers the device with ib_core.
    pub(crate) fn while_registering<R>(&self, register: impl FnOnce() -> R) -> R {
        self.registering.store(current!().pid(), ordering::Relaxed);
        let result = register();
        self.registering.store(0, ordering::Relaxed);
        result
    }

    /// Whether the caller is ib_core telling its clients of the new device.
    fn is_registering(&self) -> bool {
        // By another task it is some other one's number, or 0.
        self.registering.load(ordering::Relaxed) == current!().pid()
    }

    /// The network namespace of the device, held for the caller; `ENODEV` if it is shut down.
    ///
    /// A socket made in it must be known to a member of the device before it is let go.
    fn netns(&self) -> Result<Netns> {
        let netdev = {
            let state = self.state.lock();
            state.netdev.clone().filter(|_| !state.shut).ok_or(ENODEV)?
        };

        netdev.netns().ok_or(ENODEV)
    }

    /// A number for a member, which no other of the device ever had.
    fn token(&self) -> usize {
        let mut state = self.state.lock();
        let token = state.next_token;

        state.next_token = token.wrapping_add(1);
        token
    }

    /// Adds a member. `ENODEV` if the device is shut down. May sleep.
    fn add(&self, token: usize, member: Member) -> Result {
        let refused = member.is_refused();
        let mut state = self.state.lock();

        if state.shut {
            return Err(ENODEV);
        }
        if refused && state.refused >= REFUSED_MAX {
            return Err(EBUSY);
        }
        state
            .members
            .try_create_and_insert(token, member, GFP_KERNEL)?;
        if refused {
            state.refused = state.refused.saturating_add(1);
        }
        Ok(())
    }

    /// Removes a member, if it still is one. May sleep.
    fn remove(&self, token: usize) {
        let member = {
            let mut state = self.state.lock();
            let member = state.members.remove(&token);

            if member.as_ref().is_some_and(Member::is_refused) {
                state.refused = state.refused.saturating_sub(1);
            }
            member
        };
        // Not under the lock: it may be the last reference.
        drop(member);
    }

    /// The endpoint with a token.
    fn endpoint(&self, token: usize) -> Option<Arc<Endpoint>> {
        match self.state.lock().members.get(&token)? {
            Member::Endpoint(endpoint) => Some(endpoint.clone()),
            _ => None,
        }
    }

    /// The subscription with a token.
    fn subscription(&self, token: usize) -> Option<Arc<Subscription>> {
        match self.state.lock().members.get(&token)? {
            Member::Subscription(subscription) => Some(subscription.clone()),
            _ => None,
        }
    }
}

/// A moment in the future.
#[derive(Clone, Copy)]
struct Deadline {
    since: Instant<Monotonic>,
    /// Milliseconds from then on.
    time: i64,
}

impl Deadline {
    fn new(time: i64) -> Self {
        Self {
            since: Instant::now(),
            time,
        }
    }

    /// The earlier of two.
    fn min(self, other: Self) -> Self {
        if self.left() < other.left() {
            self
        } else {
            other
        }
    }

    /// How long it is until then; `None` if it is past.
    fn left(&self) -> Option<Jiffies> {
        let left = self.time.saturating_sub(self.since.elapsed().as_millis());

        // A tick more, not to be early.
        (left > 0)
            .then(|| msecs_to_jiffies(u32::try_from(left).unwrap_or(u32::MAX)).saturating_add(1))
    }
}
