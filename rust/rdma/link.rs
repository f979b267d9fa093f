// SPDX-License-Identifier: GPL-2.0

//! `rdma link add`: devices that are made by command.
//!
//! C header: `include/rdma/rdma_netlink.h`

use core::{marker::PhantomData, pin::Pin};
use kernel::{error::from_result, ffi::{c_char, c_int}, prelude::*, types::Opaque};
use riw_bindings as bindings;

/// A type of link that can be added.
pub trait Link: 'static {
    /// The name of the type: `rdma link add NAME type TYPE netdev NETDEV`.
    const TYPE: &'static CStr;

    /// Makes the device `name` on `netdev`. May sleep.
    ///
    /// The netlink call's extended error is not within reach of a driver: what is wrong beyond
    /// the errno can only be said in the kernel's log.
    fn add(name: &CStr, netdev: &net::NetDevice) -> Result;
}

/// The registration of a type of link. Dropping it waits for calls under way.
#[pin_data(PinnedDrop)]
pub struct Registration<L: Link> {
    #[pin]
    ops: Opaque<bindings::rdma_link_ops>,
    _link: PhantomData<L>,
}

impl<L: Link> Registration<L> {
    /// Registers the type. May sleep.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            ops <- Opaque::ffi_init(|slot: *mut bindings::rdma_link_ops| {
                // SAFETY: `slot` is ours and pinned; it stays until `drop` has unregistered it.
                unsafe {
                    slot.write(bindings::rdma_link_ops {
                        type_: L::TYPE.as_ptr().cast(),
                        newlink: Some(Self::newlink),
                        ..Default::default()
                    });
                    bindings::rdma_link_register(slot);
                }
            }),
            _link: PhantomData,
        })
    }

    unsafe extern "C" fn newlink(name: *const c_char, netdev: *mut bindings::net_device) -> c_int {
        from_result(|| {
            // SAFETY: ib_core passes a string, and holds a reference to the netdev.
            unsafe { L::add(CStr::from_ptr(name.cast()), net::NetDevice::from_raw(netdev))? };
            Ok(0)
        })
    }
}

#[pinned_drop]
impl<L: Link> PinnedDrop for Registration<L> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by `new`. Takes the lock that `newlink` is called under.
        unsafe { bindings::rdma_link_unregister(self.ops.get()) };
    }
}

// SAFETY: ib_core locks its list of link types.
unsafe impl<L: Link> Send for Registration<L> {}
// SAFETY: As above.
unsafe impl<L: Link> Sync for Registration<L> {}
