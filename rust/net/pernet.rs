// SPDX-License-Identifier: GPL-2.0

//! Keeps a network namespace alive until its last socket is released.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::net::Netns;
use riw_bindings as bindings;

/// Whether a [`Pernet`] exists. The C struct that it registers is static, so there can be only one.
static REGISTERED: Atomic<bool> = Atomic::new(false);

/// A registration as a subsystem of every network namespace.
///
/// A kernel socket has no reference to its namespace, unless it gets TLS. With a reference the
/// namespace would never go away: sockets are closed when the namespace's devices are unregistered,
/// which is part of its teardown. Instead, the teardown first unregisters the devices, then waits
/// for the last [`Socket`](crate::Socket).
///
/// Dropping it waits for the sockets of all namespaces: process context, may sleep; not in a netdev
/// notifier callback. Each socket holds a reference; the owner must keep its own reference longest,
/// so that the drop does not run in a socket's context.
pub struct Pernet(());

impl Pernet {
    /// Registers the subsystem. Process context, may sleep; RTNL must not be held. `EBUSY` if a
    /// registration exists, `ENOMEM` if there is no memory.
    pub fn register() -> Result<Arc<Self>> {
        if REGISTERED.xchg(true, ordering::Full) {
            return Err(EBUSY);
        }
        // SAFETY: The exchange of `REGISTERED` lets one caller register, and only while no
        // registration exists.
        if let Err(e) = to_result(unsafe { bindings::register_pernet() }) {
            REGISTERED.store(false, ordering::Release);
            return Err(e);
        }
        // If the allocation fails, `Self` is dropped and unregisters.
        Ok(Arc::new(Self(()), GFP_KERNEL)?)
    }
}

impl Drop for Pernet {
    fn drop(&mut self) {
        #[cfg(CONFIG_RDMA_RIW_TLS)]
        crate::tls::wait_for_callbacks();
        // SAFETY: A `Pernet` exists only after a successful `register_pernet()`, and is dropped
        // once.
        unsafe { bindings::unregister_pernet() };
        #[cfg(CONFIG_RDMA_RIW_SCTP)]
        self.unload_sctp();
        REGISTERED.store(false, ordering::Release);
    }
}

/// One socket in the socket count of a namespace.
///
/// # Invariants
///
/// The socket count of `net` includes this object, so the teardown of `net` waits for it.
pub(crate) struct Counted {
    net: NonNull<bindings::net>,
    pernet: Arc<Pernet>,
}

// SAFETY: The count is an atomic of the namespace: any thread may decrement it.
unsafe impl Send for Counted {}
// SAFETY: Shared access only clones, which increments the count atomically.
unsafe impl Sync for Counted {}

impl Counted {
    /// Counts a socket in a namespace. Any context.
    pub(crate) fn new(pernet: &Arc<Pernet>, ns: &Netns) -> Self {
        // SAFETY: `ns` holds a reference to the namespace. `pernet` is a registration, so the
        // namespace has the count.
        unsafe { bindings::count_socket(ns.as_raw()) };
        // INVARIANT: The count was incremented while `ns` held the namespace.
        Self {
            net: ns.raw(),
            pernet: pernet.clone(),
        }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        // SAFETY: By the type's invariant the namespace is alive, and `pernet` is a registration,
        // so it has the count.
        unsafe { bindings::count_socket(self.net.as_ptr()) };
        // INVARIANT: The count was incremented while `self` is included in it.
        Self {
            net: self.net,
            pernet: self.pernet.clone(),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant the namespace is alive and counts this object. The field
        // `pernet` is dropped later, so the registration still exists.
        unsafe { bindings::uncount_socket(self.net.as_ptr()) };
    }
}
