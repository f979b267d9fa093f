// SPDX-License-Identifier: GPL-2.0

//! Connection management: from iw_cm's calls to a TCP connection that a queue pair works on.
//!
//! - An [`Endpoint`] is a connection, from its beginning until the queue pair releases it.
//! - A `Linger` is what is left of it then: a socket whose peer has not closed yet.
//! - A `Listener` is a listening socket. It has a `Subscription` for each listening id of iw_cm.
//! - A [`CmDevice`] knows all of these of a device, so that it can end them.
//!
//! # Contexts
//!
//! Nothing here waits for a peer. Socket callbacks (softirq) only note an event and queue a work
//! item of their endpoint or listener; the callbacks of an established connection go directly to
//! the queue pair. All else runs in process context, in such a work item or in a call of iw_cm.
//! Each endpoint has its own deadline.
//!
//! One ordered queue for all devices sets connections up. The queue pair has the stream after that,
//! and to end it may mean waiting for a transmit pass, which may wait for memory. So a second work
//! item of the endpoint does that, on a queue whose items do not wait for each other.
//!
//! # Locks
//!
//! `Documentation/locking.md` has the order of all locks. An object ends under the lock that its
//! work items take first, and its timer stops under the same lock. So nothing waits for a work
//! item.
//!
//! # Lifetimes
//!
//! A socket holds no reference to its network namespace. So [`CmDevice::shutdown`], which runs when
//! the netdev is unregistered, closes all sockets of the device before it returns. Each socket
//! belongs to a member of the device, and a device that is shut down refuses new members.
//!
//! `Endpoint::socket` is held while the endpoint's socket is in use; a transmit pass takes it for
//! each send. A socket is removed from there, and then loses its callbacks, before it is released
//! or lingers. So nothing sends on a released socket and no callback comes from it. A transmit pass
//! that is under way finds no socket at its next send.

mod accept;
mod connect;
mod deadline;
mod device;
mod end;
mod endpoint;
mod established;
mod frame;
mod half_open;
mod linger;
mod listen;
mod ops;
mod pending;
mod phase;
mod subscription;

pub(crate) use device::{CmDevice, Shared};
pub(crate) use endpoint::Endpoint;

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The side that connected.
    Initiator,
    /// The side that accepted.
    Responder,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The peer sent its FIN. This side may still send.
    Graceful,
    /// The peer or this side reset it.
    Reset,
    /// The peer does not answer.
    Timeout,
}
