// SPDX-License-Identifier: GPL-2.0

//! Finding ranges of regions, one after the other.

use super::{MrObject, Regions, Target};
use iwarp::{Access, Denied, Stag};
use kernel::{prelude::*, sync::aref::ARef};

/// Finds the ranges of a run of FPDUs. Most are in the same region, so it keeps the region that was used
/// last: a search in the table and two atomic operations are a good part of what an FPDU costs.
///
/// Deregistration waits for the region that is kept. So keep a finder only for a run whose length is
/// bounded, and that does not sleep.
pub(crate) struct Finder<'a> {
    regions: &'a Regions,
    last: Option<ARef<MrObject>>,
}

impl<'a> Finder<'a> {
    /// Returns a finder that keeps no region yet. Any context.
    pub(crate) fn new(regions: &'a Regions) -> Self {
        Self {
            regions,
            last: None,
        }
    }

    /// Finds a range, as [`Regions::find`] does. Process context or softirq.
    pub(crate) fn find(
        &mut self,
        stag: Stag,
        want: Access,
        addr: u64,
        len: u32,
    ) -> Result<Target, Denied> {
        let mr = self.regions.mrs.get_again(stag.0, self.last.take());

        self.regions.find_in(mr, stag, want, addr, len)
    }

    /// Keeps the region of a range whose copies are done. Any context.
    pub(crate) fn keep(&mut self, target: Target) {
        self.last = Some(target.mr);
    }
}
