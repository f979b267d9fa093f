// SPDX-License-Identifier: GPL-2.0

//! Converts between [`core::net::SocketAddr`] and `struct sockaddr_storage`.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use kernel::bindings;

/// Reads an address. Any context. `None` if it is neither IPv4 nor IPv6.
pub fn from_storage(storage: &bindings::__kernel_sockaddr_storage) -> Option<SocketAddr> {
    let raw: *const _ = storage;
    // SAFETY: `raw` comes from a reference. The storage of every family begins with the family's
    // number.
    let family = unsafe { *raw.cast::<bindings::__kernel_sa_family_t>() };

    match u32::from(family) {
        bindings::AF_INET => {
            // SAFETY: `raw` comes from a reference. The storage has size and alignment for every
            // address, and a `sockaddr_in` is valid for all bytes.
            let sin = unsafe { &*raw.cast::<bindings::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(sin.sin_addr.s_addr));

            Some(SocketAddrV4::new(ip, u16::from_be(sin.sin_port)).into())
        }
        bindings::AF_INET6 => {
            // SAFETY: `raw` comes from a reference. The storage has size and alignment for every
            // address, and a `sockaddr_in6` is valid for all bytes.
            let sin6 = unsafe { &*raw.cast::<bindings::sockaddr_in6>() };
            // SAFETY: All members of the union are plain integers over the same 16 bytes.
            let ip = Ipv6Addr::from(unsafe { sin6.sin6_addr.in6_u.u6_addr8 });
            let port = u16::from_be(sin6.sin6_port);
            let flow = u32::from_be(sin6.sin6_flowinfo);

            Some(SocketAddrV6::new(ip, port, flow, sin6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Returns the storage for an address. Any context.
pub fn to_storage(addr: &SocketAddr) -> bindings::__kernel_sockaddr_storage {
    let mut storage = bindings::__kernel_sockaddr_storage::default();
    let raw: *mut _ = &mut storage;

    match addr {
        SocketAddr::V4(v4) => {
            // SAFETY: `raw` comes from an exclusive reference. The storage has size and alignment
            // for every address, and its zeroes are a valid `sockaddr_in`.
            let sin = unsafe { &mut *raw.cast::<bindings::sockaddr_in>() };

            sin.sin_family = bindings::AF_INET as bindings::__kernel_sa_family_t;
            sin.sin_port = v4.port().to_be();
            sin.sin_addr.s_addr = v4.ip().to_bits().to_be();
        }
        SocketAddr::V6(v6) => {
            // SAFETY: `raw` comes from an exclusive reference. The storage has size and alignment
            // for every address, and its zeroes are a valid `sockaddr_in6`.
            let sin6 = unsafe { &mut *raw.cast::<bindings::sockaddr_in6>() };

            sin6.sin6_family = bindings::AF_INET6 as u16;
            sin6.sin6_port = v6.port().to_be();
            sin6.sin6_flowinfo = v6.flowinfo().to_be();
            sin6.sin6_addr.in6_u.u6_addr8 = v6.ip().octets();
            sin6.sin6_scope_id = v6.scope_id();
        }
    }
    storage
}

/// Converts an IPv4-mapped IPv6 address to the IPv4 address; returns any other address unchanged.
/// Any context.
pub fn unmapped(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddrV4::new(v4, v6.port()).into(),
            None => addr,
        },
        SocketAddr::V4(_) => addr,
    }
}
