// SPDX-License-Identifier: GPL-2.0

//! `rdma link add`: devices that are made by command.
//!
//! C header: `include/rdma/rdma_netlink.h`

use core::pin::Pin;
use kernel::{
    error::from_result,
    ffi::{c_char, c_int},
    prelude::*,
    sync::atomic::{ordering, Atomic},
    types::Opaque,
};
use riw_bindings as bindings;

/// A type of link that can be added.
pub trait Link: Send + Sync + Sized + 'static {
    /// The name of the type: `rdma link add NAME type TYPE netdev NETDEV`.
    const TYPE: &'static CStr;

    /// Where the registration is found: a static of the implementer's.
    fn slot() -> &'static Slot<Self>;

    /// Makes the device `name` on `netdev`. May sleep.
    ///
    /// The netlink call's extended error is not within reach of a driver: what is wrong beyond
    /// the errno can only be said in the kernel's log.
    fn add(&self, name: &CStr, netdev: &net::NetDevice) -> Result;
}

/// Leads from ib_core's call, which has no context, to the registration.
///
/// # Invariants
///
/// Null, or points to the target of a [`Registration`], as long as that is registered.
pub struct Slot<L: Link>(Atomic<*mut L>);

impl<L: Link> Slot<L> {
    /// Empty.
    pub const fn new() -> Self {
        Self(Atomic::new(core::ptr::null_mut()))
    }
}

impl<L: Link> Default for Slot<L> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: What is pointed to is `Send` and `Sync`.
unsafe impl<L: Link> Sync for Slot<L> {}

/// The registration of a type of link. Dropping it waits for calls under way.
#[pin_data(PinnedDrop)]
pub struct Registration<L: Link> {
    #[pin]
    target: L,
    /// ib_core has the type in its list.
    registered: Atomic<bool>,
    #[pin]
    ops: Opaque<bindings::rdma_link_ops>,
}

impl<L: Link> Registration<L> {
    /// Registers the type, for `target` to serve. `EBUSY` if it is registered. May sleep.
    pub fn new(target: L) -> Result<Pin<KBox<Self>>> {
        let ops = bindings::rdma_link_ops {
            type_: L::TYPE.as_ptr().cast(),
            newlink: Some(Self::newlink),
            ..Default::default()
        };
        let this = KBox::pin(
            Self {
                target,
                registered: Atomic::new(false),
                ops: Opaque::new(ops),
            },
            GFP_KERNEL,
        )?;

        // INVARIANT: ib_core calls, and so looks into the slot, only after the registration below.
        // `drop` empties the slot.
        if L::slot()
            .0
            .cmpxchg(core::ptr::null_mut(), this.target(), ordering::Release)
            .is_err()
        {
            return Err(EBUSY);
        }
        // SAFETY: `ops` is pinned, and stays until `drop` has unregistered it.
        unsafe { bindings::rdma_link_register(this.ops.get()) };
        // If another module has a type of that name, ib_core says so in the log only.
        // SAFETY: `ops` are valid, and were zeroed: null is what is not in a list. Neighbours in the
        // list may come and go meanwhile, so that the pointer is read as it is and not followed.
        let next = unsafe { (&raw const (*this.ops.get()).list.next).read_volatile() };
        if next.is_null() {
            return Err(EBUSY);
        }
        this.registered.store(true, ordering::Relaxed);
        Ok(this)
    }

    /// The address of the target, as the slot has it; not to be written through.
    fn target(&self) -> *mut L {
        (&raw const self.target).cast_mut()
    }

    unsafe extern "C" fn newlink(name: *const c_char, netdev: *mut bindings::net_device) -> c_int {
        from_result(|| {
            // SAFETY: This is called under a lock that unregistering takes too; only after that
            // is the slot emptied and the target dropped.
            let target = unsafe { L::slot().0.load(ordering::Acquire).as_ref() }.ok_or(ENODEV)?;

            // SAFETY: ib_core passes a string, and holds a reference to the netdev.
            unsafe {
                target.add(
                    CStr::from_ptr(name.cast()),
                    net::NetDevice::from_raw(netdev),
                )?
            };
            Ok(0)
        })
    }
}

#[pinned_drop]
impl<L: Link> PinnedDrop for Registration<L> {
    fn drop(self: Pin<&mut Self>) {
        if self.registered.load(ordering::Relaxed) {
            // SAFETY: It is. Waits for the lock that `newlink` is called under.
            unsafe { bindings::rdma_link_unregister(self.ops.get()) };
        }
        // Another registration may have the slot, if this one has failed.
        let _ = L::slot()
            .0
            .cmpxchg(self.target(), core::ptr::null_mut(), ordering::Release);
    }
}

// SAFETY: ib_core locks its list of link types; the target is `Send` and `Sync`.
unsafe impl<L: Link> Send for Registration<L> {}
// SAFETY: As above.
unsafe impl<L: Link> Sync for Registration<L> {}
