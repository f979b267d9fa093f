// SPDX-License-Identifier: GPL-2.0

//! `kernel::sync`: atomics, a barrier and `Arc`.

use crate::prelude::Flags;
use core::ops::Deref;

pub mod atomic;

pub mod barrier {
    use crate::sites::{self, Kind};
    use loom::sync::atomic::{fence, Ordering};

    #[track_caller]
    pub fn smp_mb(_full: super::atomic::ordering::Full) {
        if sites::orders(Kind::Barrier) {
            fence(Ordering::SeqCst);
        }
    }
}

/// A reference count. No model is about it, so it is not one of loom's.
pub struct Arc<T>(std::sync::Arc<T>);

impl<T> Arc<T> {
    pub fn new(value: T, _flags: Flags) -> crate::Result<Self> {
        Ok(Self(std::sync::Arc::new(value)))
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
