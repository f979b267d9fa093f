// SPDX-License-Identifier: GPL-2.0

//! The description of a device.

use crate::{abi::UserAbi, wr::LOCAL_DMA_LKEY};
use kernel::prelude::*;
use kernel_ext::net::NetDevice;
use riw_bindings as bindings;

/// The description of a device (fields of `struct ib_device`, `include/rdma/ib_verbs.h`).
pub struct Info {
    /// The GUID of the device: an EUI-64, unique on the host, in network byte order.
    pub node_guid: [u8; 8],
    /// A human-readable description (`node_desc`).
    pub description: &'static CStr,
    /// The number of completion vectors.
    pub completion_vectors: i32,
    /// The ABI with user space: one of [`Driver::USER_ABIS`](crate::Driver::USER_ABIS).
    pub abi: &'static UserAbi,
}

impl Info {
    pub(super) fn apply(&self, dev: &mut bindings::ib_device, netdev: &NetDevice) {
        dev.node_guid = u64::from_ne_bytes(self.node_guid);
        dev.node_type = bindings::RDMA_NODE_RNIC as u8;
        dev.phys_port_cnt = 1;
        dev.num_comp_vectors = self.completion_vectors;
        dev.local_dma_lkey = LOCAL_DMA_LKEY;
        dev.uverbs_cmd_mask |= self.abi.command_mask();
        // The user chooses the TCP port; there is no port mapper.
        dev.iw_driver_flags = bindings::iw_flags_IW_F_NO_PORT_MAP;
        copy_name(&mut dev.node_desc, self.description);
        copy_name(&mut dev.iw_ifname, &netdev.name());
    }
}

/// Copies a name into a zeroed C array, with at least one zero at the end.
fn copy_name(to: &mut [kernel::ffi::c_char], from: &CStr) {
    let room = to.len().saturating_sub(1);

    for (to, from) in to.iter_mut().take(room).zip(from.to_bytes_with_nul()) {
        *to = *from;
    }
}
