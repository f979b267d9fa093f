// SPDX-License-Identifier: GPL-2.0

//! `BhUses`: users of an object race with its removal, as for a memory region that a peer
//! invalidates.

use super::{comes_true, let_others_run, Crowd};
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
    there: Atomic<bool>,
    #[pin]
    uses: BhUses,
    /// The remover has waited for all users, and owns the object.
    taken: Atomic<bool>,
    used: Atomic<u32>,
    wrong: Atomic<u32>,
}

impl Shared {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                there: Atomic::new(true),
                uses <- BhUses::new(),
                taken: Atomic::new(false),
                used: Atomic::new(0),
                wrong: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Uses the object for a moment, if it is not removed.
    fn touch(&self) {
        self.uses.during(|| {
            if !self.there.load(ordering::Acquire) {
                return;
            }
            self.used.fetch_add(1, ordering::Relaxed);
            for _ in 0..20 {
                if self.taken.load(ordering::Relaxed) {
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
    fn what_is_taken_away_is_left_alone() -> Result {
        let shared = Shared::new()?;
        let crowd = Crowd::new(USERS)?;
        let mut met = 0;

        for _ in 0..USERS {
            let shared = shared.clone();
            crowd.keep(move || shared.touch())?;
        }
        for _ in 0..ROUNDS {
            let before = shared.used.load(ordering::Relaxed);

            // A user is active now, or was a moment ago.
            met += usize::from(comes_true(|| shared.used.load(ordering::Relaxed) != before));
            shared.there.xchg(false, ordering::Full);
            shared.uses.wait();
            shared.taken.store(true, ordering::Relaxed);
            let_others_run();
            shared.taken.store(false, ordering::Relaxed);
            // Release: a user that sees `there` also sees `taken` cleared.
            shared.there.store(true, ordering::Release);
        }
        drop(crowd);
        assert_eq!(met, ROUNDS);
        assert_eq!(shared.wrong.load(ordering::Relaxed), 0);
        Ok(())
    }
}
