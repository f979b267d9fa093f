// SPDX-License-Identifier: GPL-2.0

//! Segments that arrive out of order.

use kernel_ext::memcg::MemCgroup;

/// The treatment of segments that are ahead of a missing one.
#[derive(Clone)]
pub(crate) struct Reorder {
    /// Their memory is charged to this cgroup.
    pub(crate) memcg: MemCgroup,
    /// The payload of RDMA Writes is placed at once.
    pub(crate) early_placement: bool,
}

impl Reorder {
    /// Charges no cgroup, and places nothing early. Any context.
    pub(crate) fn none() -> Self {
        Self {
            memcg: MemCgroup::none(),
            early_placement: false,
        }
    }
}
