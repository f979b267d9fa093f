// SPDX-License-Identifier: GPL-2.0

//! Registrations that kernel users post.

use super::{SendWr, WrId};
use crate::{
    mr::{Mr, PostedMapping},
    Driver,
};
use kernel::prelude::*;
use riw_bindings as bindings;

impl<T: Driver> SendWr<'_, T> {
    /// Whether the WR registers memory (`IB_WR_REG_MR`).
    pub(super) fn registers(&self) -> bool {
        // SAFETY: By the type invariant the WR is valid.
        unsafe { (*self.raw.as_ptr()).opcode == bindings::ib_wr_opcode_IB_WR_REG_MR }
    }

    /// Returns the memory that the WR with `id` registers. Fails as [`Self::take`] does.
    ///
    /// # Safety
    ///
    /// The WR must [register](Self::registers) memory.
    pub(super) unsafe fn mapping(&self, id: &WrId) -> Result<PostedMapping> {
        let wr = self.raw.as_ptr().cast::<bindings::ib_reg_wr>();

        // SAFETY: By the caller's promise and the rules of the verbs, the WR is the first member of
        // a `struct ib_reg_wr` whose fields are initialized. It names a region of the same device,
        // which the consumer keeps during the call.
        let (mr, (stag, base, access)) = unsafe {
            let mr = (*wr).mr;
            // CAST: A bit mask.
            let terms = ((*wr).key, (*mr).iova, (*wr).access as u32);

            (Mr::<T>::from_base(mr.cast()), terms)
        };
        let region = mr.registrations().ok_or(EINVAL)?;

        match stag >> 8 == mr.stag() >> 8 {
            true => PostedMapping::take(region, id, (stag, base, access)),
            false => Err(EINVAL),
        }
    }
}
