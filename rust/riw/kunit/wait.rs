// SPDX-License-Identifier: GPL-2.0

//! When a stream that waits for a receive WR looks for one.

use super::{ReceiveWait, INTERVAL_MAX_MS, INTERVAL_MS};
use kernel::{prelude::*, time::msecs_to_jiffies};

/// Milliseconds of a wait that does not end meanwhile.
const LONG: i64 = 3_600_000;

#[kunit_tests(riw_wait)]
mod tests {
    use super::*;

    /// The first in line for a ring looks more and more seldom.
    #[test]
    fn the_first_in_line_looks_at_intervals() {
        let mut wait = ReceiveWait::new(LONG, true);

        assert_eq!(wait.next_look(true), msecs_to_jiffies(INTERVAL_MS));
        for _ in 0..10 {
            let _ = wait.next_look(true);
        }
        assert_eq!(wait.next_look(true), msecs_to_jiffies(INTERVAL_MAX_MS));
    }

    /// The others look when their time is over. Who becomes the first looks soon.
    #[test]
    fn the_others_have_their_deadline() {
        let mut wait = ReceiveWait::new(LONG, true);

        for _ in 0..10 {
            assert!(wait.next_look(false) > msecs_to_jiffies(1_800_000));
        }
        assert_eq!(wait.next_look(true), msecs_to_jiffies(INTERVAL_MS));
        // One whose WRs are posted by calls of the driver.
        assert!(ReceiveWait::new(LONG, false).next_look(true) > msecs_to_jiffies(1_800_000));
    }

    /// A look whose time is over does not come at once: the stream may have no link any more.
    #[test]
    fn a_look_is_never_immediate() {
        for looks_at_ring in [false, true] {
            let mut wait = ReceiveWait::new(0, looks_at_ring);

            assert!(wait.is_over());
            for first in [false, true] {
                assert!(wait.next_look(first) >= 1);
            }
        }
    }
}
