// SPDX-License-Identifier: GPL-2.0

//! Network namespaces.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use core::{net::SocketAddr, ptr::NonNull};
use kernel::bindings::AF_INET;
use riw_bindings as bindings;

/// Which namespace it is: for comparing, as long as a namespace exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(usize);

/// A counted reference to a network namespace.
///
/// As long as it is held the namespace is not dismantled.
///
/// # Invariants
///
/// `net` is a namespace of which one reference is ours.
pub struct Netns {
    net: NonNull<bindings::net>,
}

// SAFETY: A namespace may be used from any thread.
unsafe impl Send for Netns {}
// SAFETY: As above.
unsafe impl Sync for Netns {}

impl Netns {
    /// Takes over a reference.
    ///
    /// # Safety
    ///
    /// `net` must be null, or a namespace of which the caller owns one reference.
    pub(crate) unsafe fn from_raw(net: *mut bindings::net) -> Option<Self> {
        // INVARIANT: As the caller says.
        NonNull::new(net).map(|net| Self { net })
    }

    /// The namespace of the calling task. Process context.
    ///
    /// `None` if the task is about to exit and has none.
    pub fn current() -> Option<Self> {
        // SAFETY: It returns null or a new reference.
        unsafe { Self::from_raw(bindings::current_net()) }
    }

    /// Which namespace it is.
    pub fn id(&self) -> Id {
        Id(self.net.as_ptr().addr())
    }

    /// A number that no other namespace has, not even after this one is gone. Any context.
    pub fn cookie(&self) -> u64 {
        // SAFETY: The namespace is valid.
        unsafe { bindings::net_cookie(self.as_raw()) }
    }

    /// The pointer to the C struct, valid as long as `self`.
    pub fn as_raw(&self) -> *mut bindings::net {
        self.net.as_ptr()
    }

    /// As [`Self::as_raw`].
    pub(crate) fn raw(&self) -> NonNull<bindings::net> {
        self.net
    }

    /// The index of the network device that has `addr` as one of its addresses, at the moment.
    ///
    /// For a link-local address that is its scope. Any context.
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
        // SAFETY: The namespace is valid, and the address has the length that goes with its family.
        let index =
            unsafe { bindings::ip_owner(self.as_raw(), family as i32, aligned.as_ptr().cast()) };

        u32::try_from(index).ok().filter(|&index| index != 0)
    }

    /// The index of the device that the VLAN device with index `ifindex` runs over.
    ///
    /// `None` if there is no such device or it is no VLAN. Any context.
    pub fn vlan_real(&self, ifindex: u32) -> Option<u32> {
        let ifindex = i32::try_from(ifindex).ok()?;
        // SAFETY: The namespace is valid.
        let real = unsafe { bindings::vlan_real(self.as_raw(), ifindex) };

        u32::try_from(real).ok().filter(|&real| real != 0)
    }

    /// Whether `port` is one of those that sockets are given when they ask for none. Any context.
    pub fn is_ephemeral(&self, port: u16) -> bool {
        // SAFETY: The namespace is valid.
        unsafe { bindings::port_is_ephemeral(self.as_raw(), port) }
    }
}

impl Clone for Netns {
    fn clone(&self) -> Self {
        // SAFETY: We own a reference, hence there can be one more.
        unsafe { bindings::get_net(self.as_raw()) };
        // INVARIANT: The reference just taken.
        Self { net: self.net }
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        // SAFETY: The reference is ours.
        unsafe { bindings::put_net(self.as_raw()) }
    }
}

impl PartialEq for Netns {
    fn eq(&self, other: &Self) -> bool {
        self.net == other.net
    }
}

impl Eq for Netns {}
