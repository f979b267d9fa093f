// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! `rdma/rdma_user_ioctl_cmds.h` and `rdma/ib_user_ioctl_cmds.h`: commands of uverbs by ioctl(), of
//! which this library uses `UVERBS_METHOD_INVOKE_WRITE`. It executes a command that write() takes,
//! too.

use super::layout::{c_constants, c_structs};

c_structs! {
    struct ib_uverbs_attr {
        attr_id: u16,
        len: u16,
        flags: u16,
        /// A union in C. 0 for attributes with data.
        attr_data: u16,
        data: u64,
    }

    /// Attributes follow it.
    struct ib_uverbs_ioctl_hdr {
        length: u16,
        object_id: u16,
        method_id: u16,
        num_attrs: u16,
        reserved1: u64,
        driver_id: u32,
        reserved2: u32,
    }
}

c_constants! {
    const RDMA_VERBS_IOCTL: u32 = 0xc018_1b01;
    const UVERBS_OBJECT_DEVICE: u16 = 0;
    const UVERBS_METHOD_INVOKE_WRITE: u16 = 0;
    const UVERBS_ATTR_CORE_IN: u16 = 0;
    const UVERBS_ATTR_CORE_OUT: u16 = 1;
    const UVERBS_ATTR_WRITE_CMD: u16 = 2;
    const UVERBS_ATTR_F_MANDATORY: u16 = 1;
}
