// SPDX-License-Identifier: GPL-2.0

//! The ABIs of a driver with user space.

use riw_bindings as bindings;

/// The driver id of siw (`RDMA_DRIVER_SIW`, `include/uapi/rdma/ib_user_ioctl_verbs.h`), for which
/// rdma-core chooses its libsiw.
pub const DRIVER_SIW: u32 = bindings::rdma_driver_id_RDMA_DRIVER_SIW;

/// An ABI of a driver with user space. A device has one of them.
#[derive(Debug)]
pub struct UserAbi {
    /// The id by which user space selects its library (`ib_device_ops::driver_id`): one of `enum
    /// rdma_driver_id`, or a number above them.
    pub driver_id: u32,
    /// The version of the ABI (`ib_device_ops::uverbs_abi_ver`).
    pub version: u32,
    /// Processes ring a doorbell for receive WRs, too.
    pub recv_doorbell: bool,
}

impl UserAbi {
    /// Returns the commands that devices with this ABI add to ib_core's
    /// (`ib_device::uverbs_cmd_mask`): user space rings doorbells by them.
    pub(crate) fn commands(&self) -> u64 {
        let send = 1 << bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_SEND;
        let recv = 1 << bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_RECV
            | 1 << bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_SRQ_RECV;

        match self.recv_doorbell {
            true => send | recv,
            false => send,
        }
    }
}
