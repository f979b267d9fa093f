// SPDX-License-Identifier: GPL-2.0

//! Network devices, for protocols that run over them.
//!
//! C header: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

use super::{addr, Family, Netns};
use core::{net::SocketAddr, ops::Deref, ptr::NonNull};
use kernel::{fmt, prelude::*, sync::aref::AlwaysRefCounted, types::Opaque};
use riw_bindings as bindings;

/// A network device (`struct net_device`).
///
/// Drop all references ([`ARef<NetDevice>`]) at the event `NETDEV_UNREGISTER`: the unregistration
/// waits for them.
///
/// All methods may be called from any context unless they say otherwise. Except under RTNL, their
/// results may be out of date at once.
///
/// [`ARef<NetDevice>`]: kernel::sync::aref::ARef
#[repr(transparent)]
pub struct NetDevice(Opaque<bindings::net_device>);

// SAFETY: The reference count is safe from any thread, and so is the last drop.
unsafe impl Send for NetDevice {}
// SAFETY: The methods only take references and read fields that any thread may read without a lock.
unsafe impl Sync for NetDevice {}

// SAFETY: `dev_hold()` keeps the device from being freed until the matching `dev_put()`.
unsafe impl AlwaysRefCounted for NetDevice {
    fn inc_ref(&self) {
        // SAFETY: The device behind `&self` is alive.
        unsafe { bindings::dev_hold(self.as_raw()) }
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller promises that it owns a reference, and gives it up.
        unsafe { bindings::dev_put(obj.as_ptr().cast()) }
    }
}

impl NetDevice {
    /// Borrows a device from its raw pointer. Any context.
    ///
    /// # Safety
    ///
    /// `dev` must point to a device that lives for `'a`.
    pub unsafe fn from_raw<'a>(dev: *mut bindings::net_device) -> &'a Self {
        // SAFETY: The caller promises a device that lives for `'a`. The type is transparent over
        // it.
        unsafe { &*dev.cast() }
    }

    /// Returns the pointer to the C struct, valid as long as `self`.
    pub fn as_raw(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    /// Returns the name.
    pub fn name(&self) -> Name {
        let mut name = Name([0; Name::SIZE]);

        // SAFETY: The device behind `&self` is alive. The buffer has `IFNAMSIZ` bytes, the most
        // that are written.
        unsafe { bindings::dev_name_copy(self.as_raw(), name.0.as_mut_ptr().cast()) };
        name
    }

    /// Returns the index in its namespace.
    pub fn ifindex(&self) -> u32 {
        // SAFETY: The device behind `&self` is alive.
        unsafe { bindings::dev_ifindex(self.as_raw()) as u32 }
    }

    /// Returns the type of the hardware address, for example `ARPHRD_ETHER`.
    pub fn kind(&self) -> u32 {
        // SAFETY: The device behind `&self` is alive.
        unsafe { bindings::dev_type(self.as_raw()) }
    }

    /// Returns the MTU in bytes, without the link header.
    pub fn mtu(&self) -> u32 {
        // SAFETY: The device behind `&self` is alive.
        unsafe { bindings::dev_mtu(self.as_raw()) }
    }

    /// Whether it is administratively up.
    pub fn is_up(&self) -> bool {
        self.flags() & bindings::net_device_flags_IFF_UP != 0
    }

    /// Whether it is a loopback device.
    pub fn is_loopback(&self) -> bool {
        self.flags() & bindings::net_device_flags_IFF_LOOPBACK != 0
    }

    fn flags(&self) -> u32 {
        // SAFETY: The device behind `&self` is alive.
        unsafe { bindings::netif_get_flags(self.as_raw()) }
    }

    /// Whether the link has a carrier.
    pub fn has_carrier(&self) -> bool {
        // SAFETY: The device behind `&self` is alive.
        unsafe { bindings::dev_carrier(self.as_raw()) }
    }

    /// Returns the index of the VRF device that it is, or is a port of. `None` if it is in no VRF.
    pub fn vrf(&self) -> Option<u32> {
        // SAFETY: The device behind `&self` is alive.
        let vrf = unsafe { bindings::dev_l3_master(self.as_raw()) };

        u32::try_from(vrf).ok().filter(|&vrf| vrf != 0)
    }

    /// Returns the hardware address.
    pub fn address(&self) -> Address {
        let mut address = Address {
            bytes: [0; Address::MAX],
            len: 0,
        };

        // SAFETY: The device behind `&self` is alive. The buffer has `MAX_ADDR_LEN` bytes, and no
        // address is longer.
        let len = unsafe { bindings::dev_address(self.as_raw(), address.bytes.as_mut_ptr()) };
        address.len = Address::MAX.min(len as usize);
        address
    }

    /// Writes the IP addresses of a family to `to`, with port 0, as many as fit. Returns their
    /// number. Any context except hard interrupts. Addresses that are valid on the host or the link
    /// only are left out, and so are IPv6 addresses that are temporary, deprecated or not verified.
    pub fn ip_addrs(&self, family: Family, to: &mut [SocketAddr]) -> usize {
        /// Addresses that are read, at most.
        const MAX: usize = 8;
        let mut storages = [bindings::__kernel_sockaddr_storage::default(); MAX];
        let family = match family {
            Family::V4 => bindings::AF_INET,
            Family::V6 => bindings::AF_INET6,
        };

        // SAFETY: The device behind `&self` is alive. `storages` has room for `MAX` addresses.
        let count = unsafe {
            bindings::dev_ip_addrs(self.as_raw(), family as c_int, storages.as_mut_ptr(), MAX)
        };
        let found = storages.iter().take(count).filter_map(addr::from_storage);

        to.iter_mut().zip(found).fold(0, |n, (to, found)| {
            *to = found;
            n + 1
        })
    }

    /// Returns a reference to its namespace. `None` if the namespace is being torn down.
    pub fn netns(&self) -> Option<Netns> {
        // SAFETY: The device behind `&self` is alive. The result is null or a new reference, which
        // the `Netns` now owns.
        unsafe { Netns::from_raw(bindings::dev_net(self.as_raw())) }
    }
}

/// The name of a network device.
pub struct Name([u8; Self::SIZE]);

impl Name {
    /// `IFNAMSIZ`
    const SIZE: usize = bindings::IFNAMSIZ as usize;
}

impl Deref for Name {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_str().unwrap_or("?"))
    }
}

/// A hardware address.
#[derive(Clone, Copy)]
pub struct Address {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Address {
    /// `MAX_ADDR_LEN`
    const MAX: usize = 32;
}

impl Deref for Address {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
