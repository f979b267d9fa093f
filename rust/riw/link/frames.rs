// SPDX-License-Identifier: GPL-2.0

//! Where the frames of a batch end, for a lower layer that sends each as a message.

use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;

/// Maximum frames in a batch.
const FRAMES_MAX: usize = 256;

/// The lengths of the frames in a batch, in order. Over TCP, which sends octets, there are none.
pub(crate) struct Frames {
    lens: KVVec<usize>,
    /// The first one that is not sent.
    at: usize,
}

impl Frames {
    /// No frames. Any context.
    pub(crate) const fn new() -> Self {
        Self {
            lens: KVVec::new(),
            at: 0,
        }
    }

    /// Makes room for another frame, charged to `memcg`. May sleep. `ENOMEM` without memory.
    pub(crate) fn reserve(&mut self, memcg: &MemCgroup) -> Result {
        memcg.reserve_one(&mut self.lens)
    }

    /// Adds a frame of `len` bytes, for which there must be room.
    pub(crate) fn add(&mut self, len: usize) -> Result {
        self.lens.push_within_capacity(len).map_err(|_| ENOMEM)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// Whether the batch should have no more frames.
    pub(crate) fn is_full(&self) -> bool {
        self.lens.len() >= FRAMES_MAX
    }

    /// Drops all frames.
    pub(crate) fn clear(&mut self) {
        self.lens.clear();
        self.at = 0;
    }

    /// Returns the length of the first frame in bytes.
    pub(super) fn first(&self) -> Option<usize> {
        self.lens.get(self.at).copied()
    }

    /// Removes the first frame.
    pub(super) fn remove_first(&mut self) {
        self.at = self.at.saturating_add(1);
        if self.at >= self.lens.len() {
            self.clear();
        }
    }
}
