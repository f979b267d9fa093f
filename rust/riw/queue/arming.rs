// SPDX-License-Identifier: GPL-2.0

//! The kernel's side of arming, by a word that a process writes to.

use kernel::sync::{
    atomic::{ordering, Atomic},
    barrier,
};

/// Disarms a completion queue if `is_met` says that its word calls for an event. The caller has
/// published a completion. Any context. Returns whether it must trigger an event.
///
/// Ordering: `selftests/litmus/cq_arm.litmus`.
pub(super) fn disarm(control: &Atomic<u64>, is_met: impl Fn(u64) -> bool) -> bool {
    // Publish the completion before the check: either this sees the process's arming, or the
    // process, which polls again after it has armed, sees the completion.
    barrier::smp_mb(ordering::Full);
    let mut word = control.load(ordering::Relaxed);

    // The process changes the word at any time. A consumer that keeps re-arming meanwhile is
    // running; a spurious wakeup is harmless.
    for _ in 0..4 {
        if !is_met(word) {
            return false;
        }
        match control.cmpxchg(word, 0, ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => word = now,
        }
    }
    true
}
