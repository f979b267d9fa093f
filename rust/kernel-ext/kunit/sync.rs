// SPDX-License-Identifier: GPL-2.0

//! `BhUses`: users of an object race with its removal, as for a memory region that a peer
//! invalidates.

use super::{wait_until, yield_cpu, Workers};
use crate::sync::BhUses;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};

/// The object that users race for.
#[pin_data]
struct Shared {
    alive: Atomic<bool>,
    #[pin]
    uses: BhUses,
    /// The remover has waited for all users, and owns the object.
    retired: Atomic<bool>,
    used: Atomic<u32>,
    wrong: Atomic<u32>,
}

impl Shared {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                alive: Atomic::new(true),
                uses <- BhUses::new(),
                retired: Atomic::new(false),
                used: Atomic::new(0),
                wrong: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Uses the object for a moment, if it is not removed.
    fn touch(&self) {
        self.uses.during(|| {
            if !self.alive.load(ordering::Acquire) {
                return;
            }
            self.used.fetch_add(1, ordering::Relaxed);
            for _ in 0..20 {
                if self.retired.load(ordering::Relaxed) {
                    self.wrong.fetch_add(1, ordering::Relaxed);
                }
                core::hint::spin_loop();
            }
        });
    }
}

#[kunit_tests(kernel_ext_sync)]
mod tests {
    use super::*;

    const USERS: u32 = 2;
    const ROUNDS: usize = 2000;

    /// After the wait a removed object has no users, and the wait ends.
    #[test]
    fn wait_drains_all_users() -> Result {
        let shared = Shared::new()?;
        let workers = Workers::new(USERS)?;
        let mut met = 0;

        for _ in 0..USERS {
            let shared = shared.clone();
            workers.add_loop(move || shared.touch())?;
        }
        for _ in 0..ROUNDS {
            let before = shared.used.load(ordering::Relaxed);

            // A user is active now, or was a moment ago.
            met += usize::from(wait_until(|| shared.used.load(ordering::Relaxed) != before));
            shared.alive.xchg(false, ordering::Full);
            shared.uses.wait();
            shared.retired.store(true, ordering::Relaxed);
            yield_cpu();
            shared.retired.store(false, ordering::Relaxed);
            // Release: a user that sees `alive` also sees `retired` cleared.
            shared.alive.store(true, ordering::Release);
        }
        drop(workers);
        assert_eq!(met, ROUNDS);
        assert_eq!(shared.wrong.load(ordering::Relaxed), 0);
        Ok(())
    }
}
