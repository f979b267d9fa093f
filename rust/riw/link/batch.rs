// SPDX-License-Identifier: GPL-2.0

//! Frames to send.

use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;
use net::SendBuf;

/// Maximum frames in a batch, if each is a message.
const FRAMES_MAX: usize = 256;

/// Frames to send, in order. It is complete: it refers to no memory of a process.
pub(crate) struct Batch {
    pub(crate) buf: SendBuf,
    /// The lower layer sends each frame as a message: `lens` has their lengths.
    has_messages: bool,
    lens: KVVec<usize>,
    /// The first one in `lens` that is not sent.
    at: usize,
}

impl Batch {
    /// An empty batch, charged to `memcg`. Any context.
    pub(crate) fn charged_to(memcg: MemCgroup) -> Self {
        Self {
            buf: SendBuf::charged_to(memcg),
            has_messages: false,
            lens: KVVec::new(),
            at: 0,
        }
    }

    /// Drops all frames. `has_messages`: the lower layer sends the next ones as messages. May
    /// sleep.
    pub(crate) fn clear(&mut self, has_messages: bool) {
        self.buf.clear();
        self.clear_lens();
        self.has_messages = has_messages;
    }

    fn clear_lens(&mut self) {
        self.lens.clear();
        self.at = 0;
    }

    /// Whether a frame costs no less if it is sent together with others.
    pub(crate) fn has_messages(&self) -> bool {
        self.has_messages
    }

    /// Whether the batch, which is to have some `size` bytes, should have no more frames.
    #[inline]
    pub(crate) fn is_full(&self, size: usize) -> bool {
        self.buf.len() >= size || self.lens.len() >= FRAMES_MAX
    }

    /// Begins a frame, whose bytes are appended to `buf`. May sleep. `ENOMEM` without memory.
    #[inline]
    pub(crate) fn begin_frame(&mut self) -> Result {
        if self.has_messages {
            self.buf.memcg().reserve_one(&mut self.lens)?;
        }
        Ok(())
    }

    /// Ends the frame, which has `len` bytes.
    #[inline]
    pub(crate) fn end_frame(&mut self, len: u32) {
        if self.has_messages {
            self.note_len(len);
        }
    }

    /// Notes the length of a frame. A function of its own: what rarely runs is not inlined into its
    /// caller as a whole, and would have code that panics.
    #[inline(never)]
    fn note_len(&mut self, len: u32) {
        // CAST: A 32-bit number fits. `begin_frame` has made room.
        let _ = self.lens.push_within_capacity(len as usize);
    }

    /// Returns the length of the first frame in bytes, if the lower layer sends it as a message.
    pub(super) fn first(&self) -> Option<usize> {
        self.lens.get(self.at).copied()
    }

    /// Notes that the first frame is sent.
    pub(super) fn remove_first(&mut self) {
        self.at = self.at.saturating_add(1);
        if self.at >= self.lens.len() {
            self.clear_lens();
        }
    }
}
