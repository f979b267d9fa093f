// SPDX-License-Identifier: GPL-2.0

//! The length that a completion reports, against the buffers of its WR.

use super::Posted;
use kernel::{ffi::c_int, prelude::*};
use riw_bindings as bindings;

/// Returns a WR with SGEs of these lengths, of a region.
fn posted<const N: usize>(lens: [u32; N]) -> Result<Posted> {
    let mut sges = lens.map(|length| bindings::ib_sge {
        addr: 0,
        length,
        lkey: 1,
    });
    let list = sges.as_mut_ptr();

    // SAFETY: `list` points to `N` SGEs, and none has `LOCAL_DMA_LKEY`.
    unsafe { Posted::new(7, &raw const list, c_int::try_from(N)?) }
}

/// Returns the lengths that completions report for a message of no octet, of 128, and of the longest.
fn reported<const N: usize>(lens: [u32; N]) -> Result<[u32; 3]> {
    let id = posted(lens)?.id;

    Ok([0, 128, u32::MAX].map(|bytes| id.byte_len(bytes)))
}

#[kunit_tests(rdma_wr)]
mod tests {
    use super::*;

    /// No completion reports more than the WR's buffers have, whatever the driver passes.
    #[test]
    fn a_completion_reports_at_most_the_buffers() -> Result {
        assert_eq!(reported([])?, [0, 0, 0]);
        assert_eq!(reported([100])?, [0, 100, 100]);
        assert_eq!(reported([100, 0, 29])?, [0, 128, 129]);
        assert_eq!(reported([u32::MAX, 2])?, [0, 128, u32::MAX]);
        Ok(())
    }
}
