// SPDX-License-Identifier: GPL-2.0

//! What keeps a network namespace until the last socket in it has gone.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use crate::Netns;
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use riw_bindings as bindings;

/// Whether there is a registration: the C struct behind it is one.
static REGISTERED: Atomic<bool> = Atomic::new(false);

/// A registration as a subsystem of every network namespace.
///
/// A socket of the kernel's has no reference to its namespace: one that had would keep the namespace
/// for ever, since it is the going of a namespace's devices that has sockets closed. Instead the
/// dismantling of a namespace waits for the last [`Socket`](crate::Socket) in it, after its devices
/// have been unregistered.
///
/// Dropping it waits for the sockets of all namespaces. Each socket has a reference, so whoever keeps
/// another until the end decides where that is: process context, may sleep; not in a callback for an
/// event of a device.
pub struct Pernet(());

impl Pernet {
    /// Registers. `EBUSY` if that was done before. Process context, may sleep; RTNL must not be
    /// held.
    pub fn register() -> Result<Arc<Self>> {
        if REGISTERED.xchg(true, ordering::Full) {
            return Err(EBUSY);
        }
        // SAFETY: It is not registered.
        if let Err(e) = to_result(unsafe { bindings::register_pernet() }) {
            REGISTERED.store(false, ordering::Release);
            return Err(e);
        }
        // If there is no memory, this one is dropped, and unregisters.
        Ok(Arc::new(Self(()), GFP_KERNEL)?)
    }
}

impl Drop for Pernet {
    fn drop(&mut self) {
        // SAFETY: It was registered, once.
        unsafe { bindings::unregister_pernet() };
        REGISTERED.store(false, ordering::Release);
    }
}

/// A socket, as far as its namespace is concerned.
///
/// # Invariants
///
/// `net` is a namespace that counts this, and so is not dismantled.
pub(crate) struct Counted {
    net: NonNull<bindings::net>,
    pernet: Arc<Pernet>,
}

// SAFETY: It may be counted in one thread and no more in another.
unsafe impl Send for Counted {}
// SAFETY: All that can be done with a shared one is to count one more, which is atomic.
unsafe impl Sync for Counted {}

impl Counted {
    /// Counts a socket in a namespace.
    pub(crate) fn new(pernet: &Arc<Pernet>, ns: &Netns) -> Self {
        // SAFETY: The namespace is held, and there is a registration.
        unsafe { bindings::count_socket(ns.as_raw()) };
        // INVARIANT: It was counted just now, before its namespace could be dismantled.
        Self {
            net: ns.raw(),
            pernet: pernet.clone(),
        }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        // SAFETY: By the type's invariant the namespace is there, and `pernet` is the registration.
        unsafe { bindings::count_socket(self.net.as_ptr()) };
        // INVARIANT: It was counted just now, while the one before it still is.
        Self {
            net: self.net,
            pernet: self.pernet.clone(),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // SAFETY: It is counted by the type's invariant. `pernet` is dropped after this.
        unsafe { bindings::uncount_socket(self.net.as_ptr()) };
    }
}
