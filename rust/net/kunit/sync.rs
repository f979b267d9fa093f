// SPDX-License-Identifier: GPL-2.0

//! Uses of something, against those who take it away, as a peer does with a region.

use super::{comes_true, let_others_run, Crowd};
use crate::sync::BhUses;
use kernel::{
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};

/// What is used.
#[pin_data]
struct Shared {
    there: Atomic<bool>,
    #[pin]
    uses: BhUses,
    /// Who took it away has waited, and may do with it what he likes.
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

    /// Uses it for a moment, if it is there.
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

#[kunit_tests(net_sync)]
mod tests {
    use super::*;

    const USERS: u32 = 2;
    const ROUNDS: usize = 2000;

    /// What is taken away is not used any more when the wait is over, and the wait ends.
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

            // Somebody is at it now, or has just been.
            met += usize::from(comes_true(|| shared.used.load(ordering::Relaxed) != before));
            shared.there.xchg(false, ordering::Full);
            shared.uses.wait();
            shared.taken.store(true, ordering::Relaxed);
            let_others_run();
            shared.taken.store(false, ordering::Relaxed);
            // Who sees it given back sees that before.
            shared.there.store(true, ordering::Release);
        }
        drop(crowd);
        assert_eq!(met, ROUNDS);
        assert_eq!(shared.wrong.load(ordering::Relaxed), 0);
        Ok(())
    }
}
