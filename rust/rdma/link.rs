// SPDX-License-Identifier: GPL-2.0

//! Link types: devices that `rdma link add` creates.
//!
//! C header: `include/rdma/rdma_netlink.h`. C source: `core/nldev.c`

use core::{pin::Pin, slice};
use kernel::{
    error::from_result,
    ffi::{c_char, c_int},
    prelude::*,
    sync::atomic::{ordering, Atomic},
    types::Opaque,
};
use kernel_ext::net::NetDevice;
use riw_bindings as bindings;

/// A link type (`struct rdma_link_ops`, `include/rdma/rdma_netlink.h`).
pub trait LinkType: Send + Sync + Sized + 'static {
    /// The name of the type in `rdma link add NAME type TYPE netdev NETDEV`.
    const TYPE: &'static CStr;

    /// Returns the slot that holds the registration: always the same static of the implementer, or
    /// `rdma link add` fails. Any context.
    fn slot() -> &'static Slot<Self>;

    /// Creates and registers the device `name` on `netdev` (`rdma_link_ops::newlink`). Called in
    /// process context with `link_ops_rwsem` of `core/nldev.c` held; may sleep.
    ///
    /// Netlink returns the error to the user. ib_core does not pass the extended ack to drivers, so
    /// any more detail can only go to the kernel log.
    fn add(&self, name: &CStr, netdev: &NetDevice) -> Result;
}

/// Leads from ib_core's `newlink` call, which carries no context, to the registration.
///
/// # Invariants
///
/// The pointer is null, or points to the target of a [`Registration`] of a type in ib_core's list,
/// which empties the slot before it removes the type.
pub struct Slot<L: LinkType>(Atomic<*mut L>);

impl<L: LinkType> Slot<L> {
    /// Creates an empty slot. Any context.
    pub const fn new() -> Self {
        Self(Atomic::new(core::ptr::null_mut()))
    }
}

impl<L: LinkType> Default for Slot<L> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: The pointer is only accessed atomically. It gives access to an `L`, which is `Send` and
// `Sync`.
unsafe impl<L: LinkType> Sync for Slot<L> {}

/// The registration of a link type. Dropping it waits for running `newlink` calls
/// (`rdma_link_unregister()`, `core/nldev.c`). May sleep.
#[pin_data(PinnedDrop)]
pub struct Registration<L: LinkType> {
    #[pin]
    target: L,
    /// Whether ib_core has the type in its list.
    registered: Atomic<bool>,
    /// The slot that may point to `target`. [`LinkType::slot`] is safe, so it may return another
    /// one later.
    slot: &'static Slot<L>,
    #[pin]
    ops: Opaque<bindings::rdma_link_ops>,
}

impl<L: LinkType> Registration<L> {
    /// Registers the type, served by `target` (`rdma_link_register()`, `core/nldev.c`). Process
    /// context; may sleep.
    ///
    /// Fails with `EBUSY` if the type is registered already, `ENOMEM` without memory.
    pub fn new(target: L) -> Result<Pin<KBox<Self>>> {
        let ops = bindings::rdma_link_ops {
            type_: L::TYPE.as_char_ptr(),
            newlink: Some(Self::newlink),
            ..Default::default()
        };
        let this = KBox::pin(
            Self {
                target,
                registered: Atomic::new(false),
                slot: L::slot(),
                ops: Opaque::new(ops),
            },
            GFP_KERNEL,
        )?;

        // SAFETY: `ops` is initialized and pinned, and stays valid until `drop` has unregistered
        // it.
        unsafe { bindings::rdma_link_register(this.ops.get()) };
        // ib_core reports a name that is taken by a warning only, and does not list `ops` then.
        // SAFETY: `ops` is valid. Its list entry was zeroed, so a null `next` means that ib_core
        // has not listed it. Other entries may be added or removed concurrently, so the pointer is
        // read once, volatile, and not followed.
        let next = unsafe { (&raw const (*this.ops.get()).list.next).read_volatile() };
        if next.is_null() {
            return Err(EBUSY);
        }
        this.registered.store(true, ordering::Relaxed);

        // INVARIANT: The type is in the list. `target` is pinned in a box, and `drop` empties the
        // slot before it removes the type and frees the box.
        (this.slot.0)
            .cmpxchg(core::ptr::null_mut(), this.target(), ordering::Release)
            .map_err(|_| EBUSY)?;
        Ok(this)
    }

    /// Returns the address of the target, as the slot holds it. Must not be written through.
    fn target(&self) -> *mut L {
        (&raw const self.target).cast_mut()
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `newlink` of the registration of an `L`.
    unsafe extern "C" fn newlink(name: *const c_char, netdev: *mut bindings::net_device) -> c_int {
        from_result(|| {
            // SAFETY: By the invariant of the slot, whichever it is, the pointer is null or points
            // to a target whose `drop` empties the slot before rdma_link_unregister(). That waits
            // for `link_ops_rwsem`, under which this call runs, so the target outlives this call.
            let target = unsafe { L::slot().0.load(ordering::Acquire).as_ref() }.ok_or(ENODEV)?;

            // SAFETY: ib_core passes a NUL-terminated name, which stays in memory during the call.
            // So its length with the NUL does not wrap.
            let name =
                unsafe { slice::from_raw_parts(name, bindings::strlen(name).wrapping_add(1)) };
            // SAFETY: ib_core holds a reference to the netdev during the call.
            let netdev = unsafe { NetDevice::from_raw(netdev) };

            let name = CStr::from_bytes_with_nul(name).map_err(|_| EINVAL)?;
            target.add(name, netdev)?;
            Ok(0)
        })
    }
}

#[pinned_drop]
impl<L: LinkType> PinnedDrop for Registration<L> {
    fn drop(self: Pin<&mut Self>) {
        // If this registration failed, another one may own the slot.
        let _ = (self.slot.0).cmpxchg(self.target(), core::ptr::null_mut(), ordering::Release);

        if self.registered.load(ordering::Relaxed) {
            // SAFETY: `registered` says that `ops` is in ib_core's list. This waits for
            // `link_ops_rwsem`, under which `newlink` runs, so no call uses `ops` or the target
            // afterwards: earlier calls are over, and later ones find the slot empty.
            unsafe { bindings::rdma_link_unregister(self.ops.get()) };
        }
    }
}

// SAFETY: ib_core locks its list of link types, so `ops` may be unregistered by any thread. The
// target is `Send`.
unsafe impl<L: LinkType> Send for Registration<L> {}
// SAFETY: `&self` gives access to the target, which is `Sync`, and to an atomic. ib_core accesses
// `ops` under its own lock.
unsafe impl<L: LinkType> Sync for Registration<L> {}
