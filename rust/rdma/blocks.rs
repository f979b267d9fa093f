// SPDX-License-Identifier: GPL-2.0

//! Memory in blocks of one size.

use kernel::prelude::*;

/// Calls `f(block, offset in the block, bytes done, bytes in this piece)` for each piece of the
/// `len` bytes that begin `start` bytes behind the start of `blocks`, of `1 << shift` bytes each.
/// The pieces cover these bytes in order, and each lies within its block. Any context that `f`
/// allows.
///
/// Fails with `EINVAL` if the blocks do not contain the bytes; `f` has got those that they contain
/// then.
#[inline]
pub(crate) fn each_piece<T: Copy>(
    blocks: &[T],
    shift: u32,
    start: usize,
    len: usize,
    mut f: impl FnMut(T, usize, usize, usize),
) -> Result {
    let size = 1usize.checked_shl(shift).ok_or(EINVAL)?;
    let mut blocks = blocks
        .get(start.wrapping_shr(shift)..)
        .ok_or(EINVAL)?
        .iter();
    let mut offset = start & size.wrapping_sub(1);
    let mut done = 0usize;

    while done < len {
        let n = size.saturating_sub(offset).min(len.saturating_sub(done));

        f(*blocks.next().ok_or(EINVAL)?, offset, done, n);
        done = done.saturating_add(n);
        // The pieces behind the first one are at the front of their blocks.
        offset = 0;
    }
    Ok(())
}
