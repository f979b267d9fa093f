// SPDX-License-Identifier: GPL-2.0

//! Atomic updates of 8 bytes of memory that others access, too.

/// Tries before [`try_update`] gives up. They run with bottom halves off.
const TRIES: u32 = 64;

/// Whether the byte `at` bytes from the start of memory is at a multiple of 8. The memory starts
/// `offset` bytes from a larger multiple of 8, as the start of a page. Any context.
pub(crate) fn is_word(at: u64, offset: usize) -> bool {
    // CAST: An offset in a page or block fits.
    at.wrapping_add(offset as u64) % 8 == 0
}

/// Replaces a number by the result of `f` for it. `cmpxchg(old, new)` replaces `old` by `new`, or
/// leaves another number as it is, and returns the number before. Any context that these allow.
/// Returns the original number, or `None` if it has changed with each try.
pub(crate) fn try_update(f: impl Fn(u64) -> u64, cmpxchg: impl Fn(u64, u64) -> u64) -> Option<u64> {
    // 0 becomes 0, and any other number stays: this only reads.
    let mut old = cmpxchg(0, 0);

    for _ in 0..TRIES {
        let seen = cmpxchg(old, f(old));

        if seen == old {
            return Some(old);
        }
        old = seen;
    }
    None
}
