// SPDX-License-Identifier: GPL-2.0

//! `kernel::sync::atomic`.

use crate::sites::{self, Kind};
use loom::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

pub mod ordering {
    pub struct Relaxed;
    pub struct Acquire;
    pub struct Release;
    #[derive(Clone, Copy)]
    pub struct Full;

    pub trait ReleaseOrRelaxed: super::Order {}

    impl ReleaseOrRelaxed for Release {}
    impl ReleaseOrRelaxed for Relaxed {}
}

/// The ordering of a load or a store.
pub trait Order {
    const ORDER: Ordering;
}

impl Order for ordering::Relaxed {
    const ORDER: Ordering = Ordering::Relaxed;
}

impl Order for ordering::Acquire {
    const ORDER: Ordering = Ordering::Acquire;
}

impl Order for ordering::Release {
    const ORDER: Ordering = Ordering::Release;
}

/// The ordering of a read-modify-write.
pub trait Exchange {
    const FULL: bool;
}

impl Exchange for ordering::Relaxed {
    const FULL: bool = false;
}

impl Exchange for ordering::Full {
    const FULL: bool = true;
}

/// Whether the caller's exchange is a full barrier if it succeeds.
#[track_caller]
fn is_full<E: Exchange>() -> bool {
    E::FULL && sites::orders(Kind::Exchange)
}

/// The ordering of an exchange. A full barrier is this and [`after`].
fn exchange(full: bool) -> Ordering {
    match full {
        true => Ordering::AcqRel,
        false => Ordering::Relaxed,
    }
}

/// Ends an exchange that has succeeded.
fn after(full: bool) {
    if full {
        fence(Ordering::SeqCst);
    }
}

/// A type that can be in an [`Atomic`].
pub trait Value: Copy {
    type Cell;

    fn cell(self) -> Self::Cell;
    fn load(cell: &Self::Cell, order: Ordering) -> Self;
    fn store(cell: &Self::Cell, value: Self, order: Ordering);
    fn swap(cell: &Self::Cell, value: Self, order: Ordering) -> Self;
    fn compare_exchange(
        cell: &Self::Cell,
        old: Self,
        new: Self,
        order: Ordering,
    ) -> Result<Self, Self>;
}

macro_rules! value {
    ($value:ty, $cell:ty) => {
        impl Value for $value {
            type Cell = $cell;

            fn cell(self) -> $cell {
                <$cell>::new(self)
            }

            fn load(cell: &$cell, order: Ordering) -> Self {
                cell.load(order)
            }

            fn store(cell: &$cell, value: Self, order: Ordering) {
                cell.store(value, order)
            }

            fn swap(cell: &$cell, value: Self, order: Ordering) -> Self {
                cell.swap(value, order)
            }

            fn compare_exchange(
                cell: &$cell,
                old: Self,
                new: Self,
                order: Ordering,
            ) -> Result<Self, Self> {
                // One that fails is no barrier.
                cell.compare_exchange(old, new, order, Ordering::Relaxed)
            }
        }
    };
}

value!(u32, AtomicU32);
value!(u64, AtomicU64);

/// A word.
pub struct Atomic<T: Value>(Arc<T::Cell>);

impl<T: Value> Atomic<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new(value.cell()))
    }

    /// loom's word, which the process accesses, too.
    pub fn cell(&self) -> &Arc<T::Cell> {
        &self.0
    }

    #[track_caller]
    pub fn load<O: Order>(&self, _order: O) -> T {
        T::load(&self.0, sites::ordering(O::ORDER))
    }

    #[track_caller]
    pub fn store<O: Order>(&self, value: T, _order: O) {
        T::store(&self.0, value, sites::ordering(O::ORDER))
    }

    #[track_caller]
    pub fn xchg<E: Exchange>(&self, value: T, _order: E) -> T {
        let full = is_full::<E>();
        let old = T::swap(&self.0, value, exchange(full));

        after(full);
        old
    }

    #[track_caller]
    pub fn cmpxchg<E: Exchange>(&self, old: T, new: T, _order: E) -> Result<T, T> {
        let full = is_full::<E>();
        let now = T::compare_exchange(&self.0, old, new, exchange(full))?;

        after(full);
        Ok(now)
    }
}
