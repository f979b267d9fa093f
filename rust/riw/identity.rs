// SPDX-License-Identifier: GPL-2.0

//! GIDs and GUIDs of devices.

use kernel::prelude::*;
use kernel_ext::random::{hash_3u64, random_u64};

/// The identity of a device.
pub(crate) struct Identity {
    /// The GUID of the device, unique on the host.
    pub(crate) node_guid: [u8; 8],
    /// The system image GUID: shared by devices whose netdevs have the same Ethernet address.
    pub(crate) system_guid: [u8; 8],
    /// The address of a port whose netdev has no Ethernet address.
    random_address: [u8; 6],
}

impl Identity {
    /// Creates the identity of a device on `netdev`. Any context. Fails with `ENODEV` if the
    /// namespace of `netdev` is being dismantled.
    pub(crate) fn new(netdev: &net::NetDevice) -> Result<Self> {
        let node_guid = node_guid(netdev)?;

        Ok(Self {
            node_guid,
            system_guid: ethernet_address(netdev).map_or(node_guid, eui64),
            random_address: random_address(),
        })
    }

    /// Returns the GID of the port: the Ethernet address of `netdev`, where rdma_cm expects it for
    /// iWARP. Any context.
    pub(crate) fn gid(&self, netdev: Option<&net::NetDevice>) -> [u8; 16] {
        let address = netdev.and_then(ethernet_address);
        let [a, b, c, d, e, f] = address.unwrap_or(self.random_address);

        [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    }
}

/// Returns the GUID of the device on `netdev`.
///
/// Kernel users (NVMe, iSER, RTRS), and possibly librdmacm, treat two devices with the same GUID as
/// one device. Several netdevs can have the same Ethernet address (VLANs, macvlans, bonds), or the
/// same name (in different namespaces). The ifindex and the namespace identify a netdev until it
/// is unregistered. So the GUID is a hash of both, and of the Ethernet address, which
/// distinguishes hosts. It stays the same when riw is loaded again.
fn node_guid(netdev: &net::NetDevice) -> Result<[u8; 8]> {
    let [a, b, c, d, e, f] = ethernet_address(netdev).unwrap_or_default();
    let hash = hash_3u64(
        netdev.netns().ok_or(ENODEV)?.cookie(),
        netdev.ifindex().into(),
        u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
    );
    let [first, rest @ ..] = hash.to_be_bytes();
    let [b, c, d, e, f, g, h] = rest;

    // Mark the EUI-64 as locally administered.
    Ok([first & 0xfc | 0x02, b, c, d, e, f, g, h])
}

/// Returns the Ethernet address of a netdev; `None` if it has none, or zero.
fn ethernet_address(netdev: &net::NetDevice) -> Option<[u8; 6]> {
    let address = netdev.address();
    let address: [u8; 6] = address.get(..6)?.try_into().ok()?;

    (address != [0; 6]).then_some(address)
}

/// Returns a random, locally administered unicast address.
fn random_address() -> [u8; 6] {
    let [a, b, c, d, e, f, ..] = random_u64().to_ne_bytes();

    [a & 0xfc | 0x02, b, c, d, e, f]
}

/// Returns the EUI-64 of an Ethernet address.
fn eui64([a, b, c, d, e, f]: [u8; 6]) -> [u8; 8] {
    [a ^ 0x02, b, c, 0xff, 0xfe, d, e, f]
}
