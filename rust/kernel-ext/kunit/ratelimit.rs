// SPDX-License-Identifier: GPL-2.0

//! `RateLimit`: the events that pass.

use crate::ratelimit::RateLimit;
use kernel::{
    prelude::*,
    time::{delay::fsleep, Delta},
};

#[kunit_tests(kernel_ext_ratelimit)]
mod tests {
    use super::*;

    /// Many more events than the limit allows.
    const MANY: u32 = 1000;
    // CAST: A small positive number.
    const BURST: u32 = RateLimit::BURST as u32;

    /// Makes many events. Returns the number of events that pass, and the number of suppressed
    /// events that the limit has reported.
    fn make_events(limit: &RateLimit) -> (u32, u32) {
        (0..MANY)
            .filter_map(|_| limit.pass())
            .fold((0, 0), |(passed, missed), more| (passed + 1, missed + more))
    }

    /// An interval has as many events as the limit says, and the next interval has them again, with
    /// the number of those that were above the limit. A slow machine may begin an interval
    /// meanwhile. Sleeps 6 s: an interval and a second.
    #[test]
    fn an_interval_has_few_events() -> Result {
        let limit = KBox::pin_init(RateLimit::new(), GFP_KERNEL)?;
        let (first, missed) = make_events(&limit);

        assert!((BURST..=2 * BURST).contains(&first));
        fsleep(Delta::from_secs(i64::from(RateLimit::INTERVAL) + 1));
        let (second, missed_later) = make_events(&limit);
        assert!((BURST..=2 * BURST).contains(&second));
        assert!(missed + missed_later >= MANY - first);
        assert!(missed + missed_later <= 2 * MANY - first - second);
        Ok(())
    }

    /// An exhausted limit takes nothing from another one.
    #[test]
    fn limits_are_independent() -> Result {
        let exhausted = KBox::pin_init(RateLimit::new(), GFP_KERNEL)?;
        let other = KBox::pin_init(RateLimit::new(), GFP_KERNEL)?;

        make_events(&exhausted);
        assert!(exhausted.pass().is_none());
        assert_eq!(other.pass(), Some(0));
        Ok(())
    }
}
