// SPDX-License-Identifier: GPL-2.0

//! Atomic operations that kernel users post.

use super::{SendOperation, SendWr};
use crate::Driver;
use riw_bindings as bindings;

/// An atomic operation (`struct ib_atomic_wr`). A plain one comes as the masked one that does the
/// same.
#[derive(Clone, Copy, Debug)]
pub enum PostedAtomic {
    /// Adds (`IB_WR_ATOMIC_FETCH_AND_ADD`, `IB_WR_MASKED_ATOMIC_FETCH_AND_ADD`).
    FetchAdd {
        /// The number to add.
        add: u64,
        /// Bits from which no carry goes to the next one.
        boundaries: u64,
    },
    /// Compares and swaps (`IB_WR_ATOMIC_CMP_AND_SWP`, `IB_WR_MASKED_ATOMIC_CMP_AND_SWP`).
    CmpSwap {
        /// The expected value.
        compare: u64,
        /// The bits that are compared.
        compare_mask: u64,
        /// The new value.
        swap: u64,
        /// The bits that are swapped.
        swap_mask: u64,
    },
}

impl<T: Driver> SendWr<'_, T> {
    /// Returns the atomic operation with this opcode.
    ///
    /// # Safety
    ///
    /// `opcode` must be the opcode of the WR, and of an atomic operation.
    pub(super) unsafe fn atomic(&self, opcode: bindings::ib_wr_opcode) -> SendOperation {
        let wr = self.raw.as_ptr().cast::<bindings::ib_atomic_wr>();
        let masked = matches!(
            opcode,
            bindings::ib_wr_opcode_IB_WR_MASKED_ATOMIC_FETCH_AND_ADD
                | bindings::ib_wr_opcode_IB_WR_MASKED_ATOMIC_CMP_AND_SWP
        );
        let adds = matches!(
            opcode,
            bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD
                | bindings::ib_wr_opcode_IB_WR_MASKED_ATOMIC_FETCH_AND_ADD
        );

        // SAFETY: By the caller's promise and the rules of the verbs, the WR is the first member of
        // a `struct ib_atomic_wr`. The fields that the opcode needs are initialized: the masks only
        // of a masked operation, `swap` and `swap_mask` only of a comparison.
        unsafe {
            let op = match (adds, masked) {
                (true, false) => PostedAtomic::FetchAdd {
                    add: (*wr).compare_add,
                    boundaries: 0,
                },
                (true, true) => PostedAtomic::FetchAdd {
                    add: (*wr).compare_add,
                    boundaries: (*wr).compare_add_mask,
                },
                (false, false) => PostedAtomic::CmpSwap {
                    compare: (*wr).compare_add,
                    compare_mask: u64::MAX,
                    swap: (*wr).swap,
                    swap_mask: u64::MAX,
                },
                (false, true) => PostedAtomic::CmpSwap {
                    compare: (*wr).compare_add,
                    compare_mask: (*wr).compare_add_mask,
                    swap: (*wr).swap,
                    swap_mask: (*wr).swap_mask,
                },
            };

            SendOperation::Atomic {
                op,
                masked,
                rkey: (*wr).rkey,
                addr: (*wr).remote_addr,
            }
        }
    }
}
