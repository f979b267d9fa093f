// SPDX-License-Identifier: GPL-2.0

//! Network devices, as those who run over them see them.
//!
//! C header: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

use crate::Netns;
use core::{ops::Deref, ptr::NonNull};
use kernel::{
    fmt,
    prelude::*,
    sync::aref::{ARef, AlwaysRefCounted},
    types::Opaque,
};
use riw_bindings as bindings;

/// A network device (`struct net_device`).
///
/// A reference to it ([`ARef<NetDevice>`]) must not be kept beyond [`Event::Unregister`]: the
/// device does not go before the last one has gone.
///
/// All methods may be called from any context unless they say otherwise. What they return may be
/// out of date by then, except under rtnl.
///
/// [`Event::Unregister`]: crate::Event::Unregister
#[repr(transparent)]
pub struct NetDevice(Opaque<bindings::net_device>);

// SAFETY: A network device may be used from any thread.
unsafe impl Send for NetDevice {}
// SAFETY: As above.
unsafe impl Sync for NetDevice {}

// SAFETY: `dev_hold()` keeps the device from being freed.
unsafe impl AlwaysRefCounted for NetDevice {
    fn inc_ref(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::dev_hold(self.as_raw()) }
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns a reference.
        unsafe { bindings::dev_put(obj.as_ptr().cast()) }
    }
}

impl NetDevice {
    /// Borrows a device from its raw pointer.
    ///
    /// # Safety
    ///
    /// `dev` must point to a device that lives for `'a`.
    pub unsafe fn from_raw<'a>(dev: *mut bindings::net_device) -> &'a Self {
        // SAFETY: As the caller says; the type is transparent.
        unsafe { &*dev.cast() }
    }

    /// The pointer to the C struct.
    pub fn as_raw(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    /// Looks a device up by its index. Process context.
    pub fn by_index(ns: &Netns, ifindex: u32) -> Option<ARef<Self>> {
        let ifindex = i32::try_from(ifindex).ok()?;
        // SAFETY: The namespace is valid.
        let dev = unsafe { bindings::dev_get_by_index(ns.as_raw(), ifindex) };

        // SAFETY: If it is not null we own the reference that was taken for us.
        NonNull::new(dev).map(|dev| unsafe { ARef::from_raw(dev.cast()) })
    }

    /// Its name.
    pub fn name(&self) -> Name {
        let mut name = Name([0; Name::SIZE]);

        // SAFETY: The device is valid; a name has `IFNAMSIZ` bytes with the NUL at its end.
        unsafe { bindings::dev_name_copy(self.as_raw(), name.0.as_mut_ptr().cast()) };
        name
    }

    /// Its index in its namespace.
    pub fn ifindex(&self) -> u32 {
        // SAFETY: The device is valid.
        unsafe { bindings::dev_ifindex(self.as_raw()) as u32 }
    }

    /// The kind of its hardware address, `ARPHRD_ETHER` for example.
    pub fn kind(&self) -> u32 {
        // SAFETY: The device is valid.
        unsafe { bindings::dev_type(self.as_raw()) }
    }

    /// Whether it is an Ethernet device (or one like it, such as a bridge, bond, VLAN or dummy), a
    /// device for bare IP such as tun or WireGuard, or loopback.
    pub fn is_ethernet_like(&self) -> bool {
        matches!(
            self.kind(),
            bindings::ARPHRD_ETHER | bindings::ARPHRD_NONE | bindings::ARPHRD_LOOPBACK
        )
    }

    /// The longest packet it takes, in bytes, without the link's header.
    pub fn mtu(&self) -> u32 {
        // SAFETY: The device is valid.
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

    /// Whether it is up and can pass packets (`IFF_RUNNING`), as users are shown it.
    pub fn is_running(&self) -> bool {
        self.flags() & bindings::net_device_flags_IFF_RUNNING != 0
    }

    fn flags(&self) -> u32 {
        // SAFETY: The device is valid.
        unsafe { bindings::dev_flags(self.as_raw()) }
    }

    /// Whether the link has a carrier.
    pub fn has_carrier(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::dev_carrier(self.as_raw()) }
    }

    /// Its RFC 2863 state (`IF_OPER_UP` and so on).
    pub fn operstate(&self) -> u32 {
        // SAFETY: The device is valid.
        unsafe { bindings::dev_operstate(self.as_raw()) }
    }

    /// Whether it is a VLAN over another device.
    pub fn is_vlan(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::dev_is_vlan(self.as_raw()) }
    }

    /// The index of the bridge, bond or the like that it is a port of.
    pub fn master(&self) -> Option<u32> {
        // SAFETY: The device is valid.
        let master = unsafe { bindings::dev_master(self.as_raw()) };

        u32::try_from(master).ok().filter(|&master| master != 0)
    }

    /// Its hardware address.
    pub fn address(&self) -> Address {
        let mut address = Address {
            bytes: [0; Address::MAX],
            len: 0,
        };

        // SAFETY: The device is valid, and no address is longer than `MAX_ADDR_LEN`.
        let len = unsafe { bindings::dev_address(self.as_raw(), address.bytes.as_mut_ptr()) };
        address.len = Address::MAX.min(len as usize);
        address
    }

    /// Its namespace; `None` if that is being dismantled.
    pub fn netns(&self) -> Option<Netns> {
        // SAFETY: The device is valid; the result is null, or a new reference.
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
