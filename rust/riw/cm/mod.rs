// SPDX-License-Identifier: GPL-2.0

//! Connection management: from iw_cm's calls to a link that a queue pair works on.
//!
//! - An [`Endpoint`] is a connection, from its beginning until the queue pair releases it.
//!   `endpoint.rs` has its phases. `connect.rs` and `accept.rs` have the phases before the stream
//!   is active, `established.rs` has those after, `end.rs` has the end and `reason.rs` its reasons.
//!   `events.rs` gets the events of the link and the calls of the queue pair. `steps.rs` has the
//!   work items, `phase_lock.rs` the lock that they and iw_cm's calls take, `note.rs` counts,
//!   traces and logs.
//! - A `Listener` has a listening link and a `Subscription` for each listening id of iw_cm
//!   (`create_listen.rs`). It accepts connections and makes endpoints of them (`incoming.rs`).
//!   `half_open.rs` limits those whose request has not arrived, `backlog.rs` has the requests that
//!   wait for room in the backlog of the consumer.
//! - A [`CmDevice`] knows all endpoints and subscriptions of a device, its members, so that it can
//!   end them. `load.rs` loads the modules that its transports need.
//!
//! # Contexts
//!
//! Nothing here waits for a peer. Events of links (softirq) only queue a work item of their
//! endpoint or listener; events of an established connection go directly to the queue pair. All
//! else runs in process context, in such a work item or in a call of iw_cm. Each endpoint has its
//! own deadline.
//!
//! One ordered queue for all devices sets connections up. Once the queue pair handles the stream,
//! ending it may mean waiting for a transmit pass, which may wait for memory. So a second work item
//! of the endpoint does that, on a queue whose items do not wait for each other.
//!
//! # Locks
//!
//! `Documentation/locking.md` has the order of all locks. An object ends under the lock that its
//! work items take first, and its timer stops under the same lock. So nothing waits for a work
//! item.
//!
//! # Lifetimes
//!
//! A link holds no reference to its network namespace, unless it has TLS. So
//! [`CmDevice::shutdown`], which runs when the netdev is unregistered, closes all links of the
//! device before it returns. Each link belongs to a member of the device or to its set of lingering
//! connections; after the shutdown both refuse new ones.

mod accept;
mod backlog;
mod connect;
mod create_listen;
mod device;
mod end;
mod endpoint;
mod established;
mod events;
mod half_open;
mod incoming;
mod listener;
mod load;
mod note;
mod ops;
mod pending;
mod phase_lock;
mod reason;
mod steps;
mod subscription;

pub(crate) use device::{CmDevice, Shared};
use endpoint::Endpoint;
