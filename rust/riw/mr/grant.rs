// SPDX-License-Identifier: GPL-2.0

//! Memory windows: the WR by which a process binds one, and the queue pair whose stream a window of
//! type 2B belongs to.

use iwarp::Stag;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};

/// A WR that binds a window.
#[derive(Clone, Copy)]
pub(crate) struct BindRequest {
    /// The new STag of the window.
    pub(crate) stag: Stag,
    /// The STag of the region.
    pub(crate) region: Stag,
    /// The address of the first byte, in the region.
    pub(crate) addr: u64,
    /// The length in bytes. 0: the window is not bound any more.
    pub(crate) len: u64,
    /// The access flags.
    pub(crate) access: u32,
}

/// A queue pair as the owner of the rights that it grants. They serve only this queue pair, and end
/// with its stream.
pub(crate) struct Grantor {
    /// Counts the ends of streams.
    stream: Atomic<u64>,
}

/// The owner of a right: a stream of a queue pair.
pub(super) struct Grant {
    grantor: Arc<Grantor>,
    stream: u64,
}

impl Grantor {
    /// Creates a queue pair that grants nothing yet. Process context; may sleep. Fails with
    /// `ENOMEM` without memory.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let grantor = Self {
            stream: Atomic::new(0),
        };

        Ok(Arc::new(grantor, GFP_KERNEL_ACCOUNT)?)
    }

    /// Returns the owner of a right that is granted now. Any context.
    pub(super) fn grant(self: &Arc<Self>) -> Grant {
        Grant {
            grantor: self.clone(),
            stream: self.stream.load(ordering::Relaxed),
        }
    }

    /// Ends all rights. Any context. An access that is in progress may go on, so the caller has
    /// stopped the stream, the only one that can access anything by them.
    pub(super) fn revoke(&self) {
        self.stream.fetch_add(1u64, ordering::Full);
    }
}

impl Grant {
    /// Whether the stream has not ended. Any context.
    pub(super) fn is_in_force(&self) -> bool {
        self.stream == self.grantor.stream.load(ordering::Relaxed)
    }

    /// Whether the right is one of `grantor`. Any context.
    pub(super) fn is_of(&self, grantor: &Arc<Grantor>) -> bool {
        Arc::ptr_eq(&self.grantor, grantor)
    }
}
