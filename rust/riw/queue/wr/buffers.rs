// SPDX-License-Identifier: GPL-2.0

//! The buffers of a WR.
//!
//! [`Buffers`] serve WR after WR: a WR is decoded into them in place, and overwrites only the SGEs
//! that it has. So the cost of a WR depends on its own SGEs, not on the longest list.

use super::{Posted, WrId, MAX_SGE};
use crate::queue::entry::WrEntry;
use iwarp::{Denied, Stag};
use kernel::prelude::*;
use rdma::wr::{Memory, PostedSge, LOCAL_DMA_LKEY};

/// A buffer: part of a memory region, or memory of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Sge {
    pub(crate) addr: u64,
    /// Length in bytes.
    pub(crate) len: u32,
    pub(crate) stag: Stag,
}

impl Sge {
    const EMPTY: Self = Self {
        addr: 0,
        len: 0,
        stag: Stag(0),
    };

    /// Copies SGE `at` of the list at `offset` octets of an entry. Both ABIs have the same SGEs.
    /// `None` if it exceeds the entry.
    fn load(entry: &WrEntry<'_>, offset: usize, at: usize) -> Option<Self> {
        let mut words = [0; riw_abi::wr::Sge::WORDS];
        let octets = at.checked_mul(size_of::<riw_abi::wr::Sge>())?;

        entry.load(offset.checked_add(octets)?, &mut words)?;
        let sge = riw_abi::wr::Sge::from_words(words);

        Some(Self {
            addr: sge.addr,
            len: sge.length,
            stag: Stag(sge.lkey),
        })
    }
}

impl From<&PostedSge> for Sge {
    fn from(sge: &PostedSge) -> Self {
        Self {
            addr: sge.addr,
            len: sge.len,
            stag: Stag(sge.lkey),
        }
    }
}

/// The SGEs of a process's WR.
pub(crate) struct BufferList {
    /// Those behind `count` are of earlier WRs.
    sges: [Sge; MAX_SGE],
    count: usize,
}

impl BufferList {
    const EMPTY: Self = Self {
        sges: [Sge::EMPTY; MAX_SGE],
        count: 0,
    };

    /// Copies `count` SGEs, at `offset` octets of an entry. Any context. Returns `None`, with no
    /// SGE, if there are too many.
    fn load(&mut self, entry: &WrEntry<'_>, offset: usize, count: usize) -> Option<()> {
        self.count = 0;
        for (at, to) in self.sges.get_mut(..count)?.iter_mut().enumerate() {
            *to = Sge::load(entry, offset, at)?;
        }
        self.count = count;
        Some(())
    }

    fn get(&self, at: usize) -> Option<Sge> {
        self.sges.get(at).copied().filter(|_| at < self.count)
    }
}

/// The buffers of a WR.
// A stream has one in place for each direction.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Buffers {
    /// A process lends memory by its regions only.
    Process(BufferList),
    /// With the id of the WR. `None` if there are no buffers.
    Kernel(Option<Posted>),
}

impl Buffers {
    /// Returns no buffers. Any context.
    pub(crate) const fn none() -> Self {
        Self::Process(BufferList::EMPTY)
    }

    /// Copies `count` SGEs of a process, at `offset` octets of an entry. Any context. Returns
    /// `None`, with no buffers, if there are too many.
    pub(in crate::queue) fn load(
        &mut self,
        entry: &WrEntry<'_>,
        offset: usize,
        count: usize,
    ) -> Option<()> {
        if let Self::Kernel(_) = self {
            *self = Self::none();
        }
        match self {
            Self::Process(list) => list.load(entry, offset, count),
            Self::Kernel(_) => None,
        }
    }

    /// Gives all buffers up: the WR is done. Any context. Returns the id of a kernel user's WR.
    #[must_use]
    pub(crate) fn give_up(&mut self) -> Option<WrId> {
        match self {
            Self::Process(list) => {
                list.count = 0;
                None
            }
            Self::Kernel(posted) => posted.take().map(|posted| WrId::Kernel(posted.give_up())),
        }
    }

    /// Takes the WR of a kernel user with its memory. Any context.
    pub(in crate::queue) fn take_posted(&mut self) -> Option<Posted> {
        match self {
            Self::Process(_) => None,
            Self::Kernel(posted) => posted.take(),
        }
    }

    /// Returns the id of a kernel user's WR. Any context.
    pub(super) fn lent_id(&self) -> Option<&rdma::wr::WrId> {
        match self {
            Self::Process(_) => None,
            Self::Kernel(posted) => posted.as_ref().map(Posted::id),
        }
    }

    fn get(&self, at: usize) -> Option<Sge> {
        match self {
            Self::Process(list) => list.get(at),
            Self::Kernel(posted) => posted.as_ref()?.sges().get(at).map(Sge::from),
        }
    }

    /// Iterates over the buffers in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Sge> + '_ {
        // Not `0..`, which is checked for overflow.
        (0..usize::MAX).map_while(|at| self.get(at))
    }

    /// Returns where `len` bytes lie, from `offset` on: parts of the buffers, in order. They end
    /// early if the buffers do. Fails with [`Denied::Wrap`] at a part whose address exceeds 64
    /// bits.
    #[inline]
    pub(crate) fn parts(
        &self,
        mut offset: u32,
        mut len: usize,
    ) -> impl Iterator<Item = Result<Sge, Denied>> + '_ {
        let mut sges = self.iter();

        core::iter::from_fn(move || {
            while len != 0 {
                let sge = sges.next()?;

                if offset >= sge.len {
                    offset = offset.wrapping_sub(sge.len);
                    continue;
                }
                let room = sge.len.wrapping_sub(offset);
                let part = u32::try_from(len).unwrap_or(u32::MAX).min(room);
                let addr = sge.addr.checked_add(offset.into());

                offset = 0;
                // CAST: A 32-bit number fits.
                len = len.saturating_sub(part as usize);
                return Some(addr.ok_or(Denied::Wrap).map(|addr| Sge {
                    addr,
                    len: part,
                    ..sge
                }));
            }
            None
        })
    }

    /// Returns the only buffer, or an empty one if there is none; `None` if there are several.
    pub(in crate::queue) fn single(&self) -> Option<Sge> {
        match self.get(1) {
            None => Some(self.get(0).unwrap_or(Sge::EMPTY)),
            Some(_) => None,
        }
    }

    /// Returns the sum of the lengths, in bytes; `None` if it exceeds a message.
    pub(crate) fn len(&self) -> Option<u32> {
        self.iter()
            .try_fold(0u32, |sum, sge| sum.checked_add(sge.len))
    }

    /// Returns `len` bytes at `addr` of a kernel user's buffer with the key `stag`. Any context.
    /// `None` if `stag` names a region.
    pub(crate) fn memory(&self, stag: Stag, addr: u64, len: u32) -> Option<Memory<'_>> {
        match (self, stag.0) {
            (Self::Kernel(posted), LOCAL_DMA_LKEY) => posted.as_ref()?.memory(addr, len),
            _ => None,
        }
    }
}
