// SPDX-License-Identifier: GPL-2.0

//! Random numbers, and a hash.
//!
//! C headers: `include/linux/random.h`, `include/linux/siphash.h`

use riw_bindings as bindings;

/// Returns an unpredictable number (`get_random_u32()`, `drivers/char/random.c`). Any context.
pub fn random_u32() -> u32 {
    // SAFETY: get_random_u32() has no preconditions.
    unsafe { bindings::get_random_u32() }
}

/// Returns an unpredictable number (`get_random_u64()`, `drivers/char/random.c`). Any context.
pub fn random_u64() -> u64 {
    // SAFETY: get_random_u64() has no preconditions.
    unsafe { bindings::get_random_u64() }
}

/// Returns a hash of three numbers, which is the same on all machines (`siphash_3u64()`,
/// `lib/siphash.c`, with a zero key). Any context.
pub fn hash_3u64(a: u64, b: u64, c: u64) -> u64 {
    /// No secret: equal input must give equal hashes.
    const KEY: bindings::siphash_key_t = bindings::siphash_key_t { key: [0; 2] };

    // SAFETY: The key is valid for reads during the call, which only reads it.
    unsafe { bindings::siphash_3u64(a, b, c, &KEY) }
}
