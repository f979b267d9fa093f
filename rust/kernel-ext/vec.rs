// SPDX-License-Identifier: GPL-2.0

//! Growth of vectors.
//!
//! [`Vec::push`] and [`Vec::reserve`] compute with the length and the capacity of a vector. With
//! `CONFIG_RUST_OVERFLOW_CHECKS` they are compiled with a panic for a vector that breaks its own
//! invariants, which the compiler does not know. The functions here return an error for it.

use kernel::{
    alloc::{AllocError, Allocator, Flags, Vec},
    prelude::*,
};

/// Makes room for `additional` elements, as [`Vec::reserve`] does. Any context that `flags` allow.
/// Fails without memory.
pub fn reserve<T, A: Allocator>(
    vec: &mut Vec<T, A>,
    additional: usize,
    flags: Flags,
) -> Result<(), AllocError> {
    const { assert!(size_of::<T>() != 0) };
    let capacity = vec.capacity();

    // CAST: It is positive.
    if vec.len() > capacity || capacity > isize::MAX as usize {
        return Err(AllocError);
    }
    vec.reserve(additional, flags)
}

/// Appends `value`, as [`Vec::push`] does. Any context that `flags` allow. Fails without memory;
/// `value` is dropped then.
pub fn push<T, A: Allocator>(
    vec: &mut Vec<T, A>,
    value: T,
    flags: Flags,
) -> Result<(), AllocError> {
    reserve(vec, 1, flags)?;
    vec.push_within_capacity(value).map_err(|_| AllocError)
}
