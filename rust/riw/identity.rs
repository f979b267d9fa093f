// SPDX-License-Identifier: GPL-2.0

//! Addresses and GUIDs of devices.

use kernel::prelude::*;

/// What tells a device from others.
pub(crate) struct Identity {
    /// The GUID of the device. No other device of the host has it.
    pub(crate) node_guid: [u8; 8],
    /// The GUID of what the device is a part of: devices whose netdevs share an Ethernet address
    /// share this.
    pub(crate) system_guid: [u8; 8],
    /// The address of a port whose netdev has none.
    random_address: [u8; 6],
}

impl Identity {
    /// The identity of a device on `netdev`. `ENODEV` if the namespace of `netdev` is being
    /// dismantled. Any context.
    pub(crate) fn new(netdev: &net::NetDevice) -> Result<Self> {
        let node_guid = node_guid(netdev)?;

        Ok(Self {
            node_guid,
            system_guid: ethernet_address(netdev).map_or(node_guid, eui64),
            random_address: random_address(),
        })
    }

    /// The GID of the port: the Ethernet address of `netdev`, where the connection manager expects
    /// it for iWARP. Any context.
    pub(crate) fn gid(&self, netdev: Option<&net::NetDevice>) -> [u8; 16] {
        let address = netdev.and_then(ethernet_address);
        let [a, b, c, d, e, f] = address.unwrap_or(self.random_address);

        [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    }
}

/// The GUID of the device on `netdev`.
///
/// Kernel users (NVMe, iSER, RTRS) take two devices with one GUID for the same device, and
/// librdmacm may. Netdevs share their Ethernet address, and even their name, with others: VLANs,
/// macvlans and bonds do, and so does whatever is in another namespace. Index and namespace
/// together belong to one netdev only, until it goes. So the GUID is made of those, and is the same
/// when riw is loaded again; the address is there to tell hosts apart.
fn node_guid(netdev: &net::NetDevice) -> Result<[u8; 8]> {
    let [a, b, c, d, e, f] = ethernet_address(netdev).unwrap_or_default();
    let hash = rdma::device::hash(
        netdev.netns().ok_or(ENODEV)?.cookie(),
        netdev.ifindex().into(),
        u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
    );
    let [first, rest @ ..] = hash.to_be_bytes();
    let [b, c, d, e, f, g, h] = rest;

    // An EUI-64 that is locally administered.
    Ok([first & 0xfc | 0x02, b, c, d, e, f, g, h])
}

/// The Ethernet address of a netdev, if it has one that is not all zeros.
fn ethernet_address(netdev: &net::NetDevice) -> Option<[u8; 6]> {
    let address = netdev.address();
    let address: [u8; 6] = address.get(..6)?.try_into().ok()?;

    (address != [0; 6]).then_some(address)
}

/// A locally administered unicast address.
fn random_address() -> [u8; 6] {
    let [a, b, c, d, e, f, ..] = rdma::device::random().to_ne_bytes();

    [a & 0xfc | 0x02, b, c, d, e, f]
}

/// The EUI-64 of an Ethernet address.
fn eui64([a, b, c, d, e, f]: [u8; 6]) -> [u8; 8] {
    [a ^ 0x02, b, c, 0xff, 0xfe, d, e, f]
}
