// SPDX-License-Identifier: GPL-2.0

//! Limits on the number of objects of a device.

use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};

/// A limit, and the count of objects against it.
#[derive(Clone)]
pub(crate) struct Limit(Arc<Count>);

struct Count {
    used: Atomic<u32>,
    max: u32,
}

/// One object counted against a limit until this is dropped.
pub(crate) struct Quota(Arc<Count>);

impl Limit {
    /// Creates a limit of `max` objects. Process context; may sleep. Fails with `ENOMEM` without
    /// memory.
    pub(crate) fn new(max: u32) -> Result<Self> {
        let count = Count {
            used: Atomic::new(0),
            max,
        };
        Ok(Self(Arc::new(count, GFP_KERNEL)?))
    }

    /// Counts one object. Any context. Fails with `ENOMEM` if the limit is reached.
    pub(crate) fn take(&self) -> Result<Quota> {
        let mut used = self.0.used.load(ordering::Relaxed);

        while used < self.0.max {
            match self
                .0
                .used
                .cmpxchg(used, used.wrapping_add(1), ordering::Relaxed)
            {
                Ok(_) => return Ok(Quota(self.0.clone())),
                Err(now) => used = now,
            }
        }
        Err(ENOMEM)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, ordering::Relaxed);
    }
}
