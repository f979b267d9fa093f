// SPDX-License-Identifier: GPL-2.0

//! Chunks that arrive out of order.

use kernel_ext::memcg::MemCgroup;
use net::Unread;

/// The treatment of chunks that are ahead of a missing one.
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

/// A segment chunk whose turn has come.
#[derive(Clone, Copy)]
pub(crate) struct SegmentChunk<'a> {
    /// Its bytes; only the first [`HEAD_LEN`](iwarp::sctp::HEAD_LEN) if the payload has been placed.
    pub(crate) bytes: &'a [u8],
    /// Its length in bytes.
    pub(crate) len: usize,
}

impl<'a> SegmentChunk<'a> {
    /// A chunk of which nothing has been placed, or the payload of one. Any context.
    pub(crate) fn whole(bytes: &'a [u8]) -> Self {
        let len = bytes.len();

        Self { bytes, len }
    }

    /// Whether the payload has been placed. Any context.
    pub(crate) fn is_placed(&self) -> bool {
        self.bytes.len() < self.len
    }

    /// Returns the bytes. Any context.
    pub(crate) fn unread(&self) -> Unread<'a> {
        Unread::head_of(self.bytes, self.len)
    }
}
