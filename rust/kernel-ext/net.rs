// SPDX-License-Identifier: GPL-2.0

//! Network devices, network namespaces and addresses, for drivers that may have no socket.

pub mod addr;
pub mod netdev;
pub mod netns;

pub use netdev::NetDevice;
pub use netns::Netns;

use core::net::SocketAddr;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4
    V4,
    /// IPv6; for a socket also IPv4, by mapped addresses, unless that is turned off
    V6,
}

impl From<&SocketAddr> for Family {
    fn from(addr: &SocketAddr) -> Self {
        match addr {
            SocketAddr::V4(_) => Self::V4,
            SocketAddr::V6(_) => Self::V6,
        }
    }
}
