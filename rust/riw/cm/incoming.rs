// SPDX-License-Identifier: GPL-2.0

//! New connections of a listener.
//!
//! A connection goes to the device whose netdev has its local address, and waits there for the
//! request of its peer. The netdev by which the packets arrive does not count: packets to an
//! address of this host arrive by `lo`.

use super::{
    device::Member,
    endpoint::{Incoming, Phase, Request},
    half_open::Source,
    listener::Listener,
    reason::EndReason,
    subscription::Subscription,
    Endpoint,
};
use crate::link::{AwaitedRequest, Connection, Deadline, ListenLink, Security};
use kernel::{prelude::*, sync::Arc, time::msecs_to_jiffies, workqueue::WorkItem};
use kernel_ext::{memalloc::without_io, workqueue::mod_delayed_work};
use trace::CmPhase;

/// Connections that a listener accepts in a row before other work items run.
const BATCH: usize = 64;
/// Milliseconds until a listener that lacked memory accepts again.
const RETRY_TIME: u32 = 100;

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
                let _ = take_over(child, subscription);
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

/// Takes a connection over from a listener, for `subscription`. Resets the connection if that
/// fails. May sleep.
fn take_over(connection: Connection, subscription: Arc<Subscription>) -> Result {
    let dev = subscription.dev.clone();
    let security = dev.settings.security();
    let connection = connection.secured(&security)?;
    let made = connection.addrs().and_then(|addrs| {
        let incoming = Incoming {
            addrs,
            subscription,
        };
        Ok((Endpoint::new(&dev, false)?, incoming))
    });
    let (endpoint, incoming) = match made {
        Ok(made) => made,
        Err(e) => {
            connection.abort();
            return Err(e);
        }
    };

    let mut phase = endpoint.lock_phase();
    let begun = match dev.add(endpoint.token, Member::Endpoint(endpoint.clone())) {
        Ok(()) => endpoint.await_request(connection, incoming, security),
        Err(e) => {
            connection.abort();
            Err(EndReason::Local(e))
        }
    };
    let begun = begun.map(|request| {
        *phase = Phase::AwaitRequest(request);
        endpoint.note_phase(CmPhase::New, &phase);
    });
    endpoint.proceed(phase, begun)
}

impl Endpoint {
    /// Gives the link its connection, and waits for the request. May sleep.
    fn await_request(
        self: &Arc<Self>,
        connection: Connection,
        incoming: Incoming,
        security: Security,
    ) -> Result<KBox<Request>, EndReason> {
        self.set_connection(connection).map_err(EndReason::Local)?;
        let request = Request::new(self, incoming, security)?;

        request.incoming.enter(self).map_err(EndReason::Local)?;
        Ok(request)
    }
}

impl Incoming {
    /// Adds the connection to the half-open ones of its subscription. May sleep.
    pub(super) fn enter(&self, endpoint: &Endpoint) -> Result {
        self.subscription.enter(self.source(), endpoint.token)
    }

    /// Removes the connection from the half-open ones, if it is one of them. May sleep.
    pub(super) fn leave(&self, endpoint: &Endpoint) {
        self.subscription.leave(self.source(), endpoint.token);
    }

    fn source(&self) -> Source {
        self.addrs.remote.ip().into()
    }
}

impl Request {
    /// Waits for the request on the link of `endpoint`, which has its connection. May sleep.
    fn new(
        endpoint: &Endpoint,
        incoming: Incoming,
        security: Security,
    ) -> Result<KBox<Self>, EndReason> {
        let settings = &endpoint.dev.settings;
        let request = Self {
            incoming,
            awaited: AwaitedRequest::new(&endpoint.link, &settings.policy(), security)?,
            deadline: Deadline::new(settings.startup_time()),
        };

        KBox::new(request, GFP_KERNEL_ACCOUNT).map_err(|e| EndReason::Local(e.into()))
    }
}
