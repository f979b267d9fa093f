// SPDX-License-Identifier: GPL-2.0

//! The ABIs of a driver with user space.

use riw_bindings as bindings;

/// An ABI of a driver with user space. A device has one of them.
#[derive(Debug)]
pub struct UserAbi {
    /// The id by which user space selects its library (`ib_device_ops::driver_id`): one of `enum
    /// rdma_driver_id`, or a number above them.
    pub driver_id: u32,
    /// The version of the ABI (`ib_device_ops::uverbs_abi_ver`).
    pub version: u32,
    /// The commands that ib_core accepts beside those that it always does
    /// (`ib_device::uverbs_cmd_mask`).
    pub commands: &'static [UserCommand],
}

/// A command of a process that ib_core accepts only if the driver asks for it (`enum
/// ib_uverbs_write_cmds`, `include/uapi/rdma/ib_user_verbs.h`).
#[derive(Clone, Copy, Debug)]
pub enum UserCommand {
    /// [`QpVerbs::user_post_send`](crate::ops::QpVerbs::user_post_send).
    PostSend,
    /// [`QpVerbs::user_post_recv`](crate::ops::QpVerbs::user_post_recv).
    PostRecv,
    /// [`SrqVerbs::user_post_recv`](crate::ops::SrqVerbs::user_post_recv).
    PostSrqRecv,
}

impl UserAbi {
    /// Returns the commands as a mask.
    pub(crate) fn command_mask(&self) -> u64 {
        let bit = |command: &UserCommand| match command {
            UserCommand::PostSend => bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_SEND,
            UserCommand::PostRecv => bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_RECV,
            UserCommand::PostSrqRecv => {
                bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_SRQ_RECV
            }
        };

        (self.commands.iter()).fold(0, |mask, command| mask | 1 << bit(command))
    }
}
