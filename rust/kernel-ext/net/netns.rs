// SPDX-License-Identifier: GPL-2.0

//! Network namespaces.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use core::{net::SocketAddr, ptr::NonNull};
use kernel::bindings::AF_INET;
use riw_bindings as bindings;

/// The identity of a namespace, for comparing. Reused once the namespace is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(usize);

/// A counted reference to a network namespace.
///
/// It prevents the teardown of the namespace. May be cloned and dropped in any context.
///
/// # Invariants
///
/// `net` is a namespace, and this object owns one reference to it.
pub struct Netns {
    net: NonNull<bindings::net>,
}

// SAFETY: The reference count is atomic: any thread may drop a reference.
unsafe impl Send for Netns {}
// SAFETY: Shared access takes references and calls functions that use RCU or read constants. Both
// are safe from any thread.
unsafe impl Sync for Netns {}

impl Netns {
    /// Takes over a reference. Any context. `None` if `net` is null.
    ///
    /// # Safety
    ///
    /// `net` must be null, or a namespace of which the caller owns one reference.
    pub unsafe fn from_raw(net: *mut bindings::net) -> Option<Self> {
        // INVARIANT: The caller promises that `net` comes with a reference.
        NonNull::new(net).map(|net| Self { net })
    }

    /// Returns the namespace's identity. Any context.
    pub fn id(&self) -> Id {
        Id(self.net.as_ptr().addr())
    }

    /// Returns the namespace's cookie, which is never reused. Any context.
    pub fn cookie(&self) -> u64 {
        // SAFETY: By the type's invariant the namespace is valid.
        unsafe { bindings::net_cookie(self.as_raw()) }
    }

    /// Returns the pointer to the C struct, valid as long as `self`. Any context.
    pub fn as_raw(&self) -> *mut bindings::net {
        self.net.as_ptr()
    }

    /// As [`Self::as_raw`], but typed as not null. Any context.
    pub fn raw(&self) -> NonNull<bindings::net> {
        self.net
    }

    /// Returns the index of the network device that currently has the address `addr`; for an IPv6
    /// address with a scope, the scope, unchecked. Any context. `None` if no device has it.
    pub fn owner_of(&self, addr: &SocketAddr) -> Option<u32> {
        let (family, octets) = match addr {
            SocketAddr::V4(v4) => (AF_INET, &v4.ip().octets()[..]),
            SocketAddr::V6(v6) if v6.scope_id() != 0 => return Some(v6.scope_id()),
            SocketAddr::V6(v6) => (kernel::bindings::AF_INET6, &v6.ip().octets()[..]),
        };

        let mut aligned = [0u32; 4];
        for (word, bytes) in aligned.iter_mut().zip(octets.chunks_exact(4)) {
            *word = u32::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
        // SAFETY: By the type's invariant the namespace is valid. `aligned` is aligned for, and at
        // least as long as, an address of either family.
        let index =
            unsafe { bindings::ip_owner(self.as_raw(), family as i32, aligned.as_ptr().cast()) };

        u32::try_from(index).ok().filter(|&index| index != 0)
    }

    /// Returns the index of the real device below the VLAN device `ifindex`. Any context. `None` if
    /// the device does not exist or is not a VLAN.
    pub fn vlan_real(&self, ifindex: u32) -> Option<u32> {
        let ifindex = i32::try_from(ifindex).ok()?;
        // SAFETY: By the type's invariant the namespace is valid.
        let real = unsafe { bindings::vlan_real(self.as_raw(), ifindex) };

        u32::try_from(real).ok().filter(|&real| real != 0)
    }

    /// Whether a listener of TCP that is in no VRF gets the connections of all VRFs
    /// (`tcp_l3mdev_accept`). Any context.
    pub fn tcp_listens_in_vrfs(&self) -> bool {
        // SAFETY: By the type's invariant the namespace is valid.
        unsafe { bindings::tcp_l3mdev_accept(self.as_raw()) }
    }

    /// Whether `port` is in the range of ephemeral ports (`ip_local_port_range`). Any context.
    pub fn is_ephemeral(&self, port: u16) -> bool {
        // SAFETY: By the type's invariant the namespace is valid.
        unsafe { bindings::port_is_ephemeral(self.as_raw(), port) }
    }
}

impl Clone for Netns {
    fn clone(&self) -> Self {
        // SAFETY: By the type's invariant `self` owns a reference, so the count is not zero.
        unsafe { bindings::get_net(self.as_raw()) };
        // INVARIANT: The new object owns the reference taken above.
        Self { net: self.net }
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant `self` owns a reference, and does not use it after this.
        unsafe { bindings::put_net(self.as_raw()) }
    }
}

impl PartialEq for Netns {
    fn eq(&self, other: &Self) -> bool {
        self.net == other.net
    }
}

impl Eq for Netns {}
