// SPDX-License-Identifier: GPL-2.0

//! Lookups that race with the destruction of the object, as with a region that a peer names.

use super::Table;
use crate::object::Object;
use core::mem::MaybeUninit;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
    types::Opaque,
};
use kernel_ext::kunit::{wait_until, yield_cpu, Workers};
use riw_bindings as bindings;

/// Stands in for ib_core's part.
#[repr(C)]
struct Base {
    rcu: Opaque<bindings::callback_head>,
}

/// Stands in for the driver's part. `state` shows whether it has been dropped.
struct Data {
    state: Atomic<u32>,
}

type Thing = Object<Base, (), Data>;

const THERE: u32 = 0x7e12_e5a1;
const GONE: u32 = 0xdead_0bad;

impl Drop for Data {
    fn drop(&mut self) {
        self.state.store(GONE, ordering::Relaxed);
    }
}

/// A table in which a single number is registered and removed.
#[pin_data]
struct Shared {
    #[pin]
    table: Table<Base, (), Data>,
    found: Atomic<u64>,
    missed: Atomic<u64>,
    wrong: Atomic<u32>,
}

/// The number that is used.
const NUMBER: u32 = 0x12_3456;

impl Shared {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                table <- Table::new(),
                found: Atomic::new(0),
                missed: Atomic::new(0),
                wrong: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Registers an object and returns it.
    fn register(&self) -> Result<*mut Base> {
        self.table.reserve(NUMBER)?;
        self.store()
    }

    /// Stores an object at the number, which is reserved or has another object, and returns it.
    fn store(&self) -> Result<*mut Base> {
        self.store_at(NUMBER)
    }

    /// Stores an object at `number`, which is reserved or has another object, and returns it.
    fn store_at(&self, number: u32) -> Result<*mut Base> {
        let memory = KBox::<MaybeUninit<Thing>>::new_uninit(GFP_KERNEL | __GFP_ZERO)?;
        let base: *mut Base = KBox::into_raw(memory).cast();
        let data = Data {
            state: Atomic::new(THERE),
        };

        // SAFETY: The memory is new, zeroed, of the size of a `Thing`, and nothing else accesses
        // it. It is freed by `end`, after a grace period that begins when the object has left the
        // table.
        unsafe {
            Thing::create(base, data);
            self.table.fill(number, base);
        }
        Ok(base)
    }

    /// Deregisters an object, as `dereg_mr` does.
    fn deregister(&self, base: *mut Base) {
        self.table.remove(NUMBER);
        Self::end(base);
    }

    /// Replaces an object by another one, as `rereg_user_mr` and `dereg_mr` do, and returns the
    /// latter.
    fn replace(&self, base: *mut Base) -> Result<*mut Base> {
        let new = self.store()?;

        Self::end(base);
        Ok(new)
    }

    /// Ends an object that has left the table.
    fn end(base: *mut Base) {
        // SAFETY: `store` created the object, and each is ended once and not used
        // afterwards. kfree_rcu() delays the free for lookups that found it in the table.
        unsafe {
            Thing::destroy(base);
            bindings::kfree_rcu((*base).rcu.get(), base.cast());
        }
    }

    /// Looks up the object as the receive path does, and uses it briefly.
    fn look(&self) {
        let Some(thing) = self.table.get(NUMBER) else {
            self.missed.fetch_add(1, ordering::Relaxed);
            return;
        };
        self.found.fetch_add(1, ordering::Relaxed);
        for _ in 0..20 {
            if thing.state.load(ordering::Relaxed) != THERE {
                self.wrong.fetch_add(1, ordering::Relaxed);
            }
            core::hint::spin_loop();
        }
    }
}

#[kunit_tests(rdma_table)]
mod tests {
    use super::*;

    const LOOKERS: u32 = 2;
    const ROUNDS: usize = 500;
    const REPLACEMENTS: usize = 20_000;

    /// An object that a lookup finds stays whole until its reference is dropped. Once
    /// deregistration returns, nothing uses it.
    #[test]
    fn what_is_found_is_there() -> Result {
        let shared = Shared::new()?;
        let workers = Workers::new(LOOKERS)?;
        let mut met = 0;

        for _ in 0..LOOKERS {
            let shared = shared.clone();
            workers.add_loop(move || shared.look())?;
        }
        let mut failed = Ok(());
        for _ in 0..ROUNDS {
            let before = shared.found.load(ordering::Relaxed);
            match shared.register() {
                Ok(base) => {
                    // A lookup has used it, or is using it now.
                    met += usize::from(wait_until(|| {
                        shared.found.load(ordering::Relaxed) != before
                    }));
                    shared.deregister(base);
                }
                Err(e) => {
                    failed = Err(e);
                    break;
                }
            }
        }
        drop(workers);
        assert_eq!(shared.wrong.load(ordering::Relaxed), 0);
        assert_eq!(met, ROUNDS);
        failed
    }

    /// A lookup that meets the replacement of an object finds one of the two.
    #[test]
    fn a_replaced_object_is_never_missed() -> Result {
        let shared = Shared::new()?;
        let mut base = shared.register()?;
        let workers = Workers::new(LOOKERS)?;
        let mut failed = Ok(());

        for _ in 0..LOOKERS {
            let shared = shared.clone();
            workers.add_loop(move || shared.look())?;
        }
        for number in 0..REPLACEMENTS {
            // On a single CPU, the lookers run meanwhile.
            if number % 200 == 0 {
                yield_cpu();
            }
            match shared.replace(base) {
                Ok(new) => base = new,
                Err(e) => {
                    failed = Err(e);
                    break;
                }
            }
        }
        drop(workers);
        shared.deregister(base);
        assert_eq!(shared.wrong.load(ordering::Relaxed), 0);
        assert_eq!(shared.missed.load(ordering::Relaxed), 0);
        assert!(shared.found.load(ordering::Relaxed) != 0);
        failed
    }

    /// A walk meets each object once, and no reservation.
    #[test]
    fn a_walk_meets_all_objects() -> Result {
        const OTHER: u32 = u32::MAX;

        let shared = Shared::new()?;
        let count = || {
            let mut count = 0;

            shared.table.for_each(|thing| {
                assert_eq!(thing.state.load(ordering::Relaxed), THERE);
                count += 1;
            });
            count
        };

        for number in [0, NUMBER, OTHER] {
            shared.table.reserve(number)?;
        }
        assert_eq!(count(), 0);
        let first = shared.store()?;
        assert_eq!(count(), 1);
        let second = shared.store_at(OTHER)?;
        assert_eq!(count(), 2);

        shared.deregister(first);
        assert_eq!(count(), 1);
        shared.table.remove(OTHER);
        Shared::end(second);
        assert_eq!(count(), 0);
        Ok(())
    }

    /// A lookup of a reserved number finds nothing, and the number cannot be reserved again.
    #[test]
    fn a_reservation_is_no_object() -> Result {
        let shared = Shared::new()?;

        shared.table.reserve(NUMBER)?;
        assert!(shared.table.get(NUMBER).is_none());
        assert_eq!(shared.table.reserve(NUMBER), Err(EBUSY));
        shared.table.remove(NUMBER);
        let base = shared.register()?;
        assert!(shared.table.get(NUMBER).is_some());
        shared.deregister(base);
        assert!(shared.table.get(NUMBER).is_none());
        Ok(())
    }
}
