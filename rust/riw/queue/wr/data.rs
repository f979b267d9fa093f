// SPDX-License-Identifier: GPL-2.0

//! The data of a send WR: where it is, or the data itself.

use super::{Buffers, Posted, WrId, MAX_INLINE};
use crate::queue::entry::{WrEntry, WORD};
use kernel::prelude::*;

/// Data that the WR itself holds, at most `N` bytes.
pub(crate) struct Inline<const N: usize = MAX_INLINE> {
    /// Those behind `len` are of earlier WRs.
    data: [u8; N],
    len: u32,
}

impl<const N: usize> Inline<N> {
    const EMPTY: Self = Self {
        data: [0; N],
        len: 0,
    };

    /// Copies `len` bytes at `offset` octets of an entry. Any context. Returns `None`, with no
    /// data, if there is more than fits.
    fn load(&mut self, entry: &WrEntry<'_>, offset: usize, len: u32) -> Option<()> {
        self.len = 0;
        // CAST: A 32-bit number fits.
        let end = (len as usize).checked_next_multiple_of(WORD)?;
        let words = self.data.get_mut(..end)?.chunks_exact_mut(WORD);

        for (at, to) in words.enumerate() {
            let mut word = 0;
            let from = offset.checked_add(at.checked_mul(WORD)?)?;

            entry.load(from, core::slice::from_mut(&mut word))?;
            to.copy_from_slice(&word.to_ne_bytes());
        }
        self.len = len;
        Some(())
    }

    /// Copies the data of a kernel user's WR. Fails with `EINVAL` if there is more than fits, or if
    /// it is not memory of the kernel.
    pub(in crate::queue) fn of_kernel(posted: &Posted) -> Result<Self> {
        let mut inline = Self::EMPTY;

        for sge in posted.sges().iter().filter(|sge| sge.len != 0) {
            // CAST: 32-bit numbers fit.
            let to = inline.data.get_mut(inline.len as usize..).ok_or(EINVAL)?;
            let to = to.get_mut(..sge.len as usize).ok_or(EINVAL)?;

            let memory = posted.memory(sge.addr, sge.len).ok_or(EINVAL)?;

            memory.copy_to(to)?;
            inline.len = inline.len.checked_add(sge.len).ok_or(EINVAL)?;
        }
        Ok(inline)
    }

    /// Returns a copy of `other`, which has no data if that does not fit. Any context.
    pub(in crate::queue) fn copied<const M: usize>(other: &Inline<M>) -> Self {
        let mut inline = Self::EMPTY;

        inline.copy_from(other);
        inline
    }

    /// Copies the data of `other`, which has no more than fits.
    fn copy_from<const M: usize>(&mut self, other: &Inline<M>) {
        let from = other.bytes();
        let to = self.data.get_mut(..from.len());

        self.len = to.map_or(0, |to| {
            to.copy_from_slice(from);
            other.len
        });
    }

    /// Returns the length in bytes. Any context.
    pub(in crate::queue) fn len(&self) -> u32 {
        self.len
    }

    fn bytes(&self) -> &[u8] {
        // CAST: A 32-bit number fits.
        self.data.get(..self.len as usize).unwrap_or_default()
    }

    /// Returns `len` bytes from `offset` on; `None` if the WR has fewer.
    pub(crate) fn get(&self, offset: u32, len: usize) -> Option<&[u8]> {
        // CAST: A 32-bit number fits.
        let start = offset as usize;

        self.bytes().get(start..start.checked_add(len)?)
    }
}

/// The data of a send WR. It serves WR after WR, as [`Buffers`] do: only the octets that a WR has
/// are written.
// A stream has one in place for each direction.
#[allow(clippy::large_enum_variant)]
pub(crate) enum SendData {
    Buffers(Buffers),
    Inline(Inline),
}

impl SendData {
    /// Returns no data. Any context.
    pub(crate) const fn none() -> Self {
        Self::Buffers(Buffers::none())
    }

    /// Copies `count` SGEs of a process, at `offset` octets of an entry. Any context. Returns the
    /// buffers; `None` if there are too many.
    pub(in crate::queue) fn load(
        &mut self,
        entry: &WrEntry<'_>,
        offset: usize,
        count: usize,
    ) -> Option<&Buffers> {
        if let Self::Inline(_) = self {
            *self = Self::none();
        }
        let Self::Buffers(buffers) = self else {
            return None;
        };

        buffers.load(entry, offset, count)?;
        Some(buffers)
    }

    /// Copies inline data of `len` bytes, at `offset` octets of an entry. Any context. Returns
    /// `None` if there is more than fits.
    pub(in crate::queue) fn load_inline(
        &mut self,
        entry: &WrEntry<'_>,
        offset: usize,
        len: u32,
    ) -> Option<()> {
        self.inline()?.load(entry, offset, len)
    }

    /// Stores inline data of a kernel user. Any context.
    pub(in crate::queue) fn store_inline<const N: usize>(&mut self, data: &Inline<N>) {
        if let Some(inline) = self.inline() {
            inline.copy_from(data);
        }
    }

    /// Returns the place of inline data.
    fn inline(&mut self) -> Option<&mut Inline> {
        if let Self::Buffers(_) = self {
            *self = Self::Inline(Inline::EMPTY);
        }
        match self {
            Self::Inline(inline) => Some(inline),
            Self::Buffers(_) => None,
        }
    }

    /// Gives the data up: the WR is done. Any context. Returns the id of a kernel user's WR for
    /// which memory was lent.
    #[must_use]
    pub(crate) fn give_up(&mut self) -> Option<WrId> {
        match self {
            Self::Buffers(buffers) => buffers.give_up(),
            Self::Inline(inline) => {
                inline.len = 0;
                None
            }
        }
    }

    /// Returns the id of a kernel user's WR for which memory is lent. Any context.
    pub(super) fn lent_id(&self) -> Option<&rdma::wr::WrId> {
        match self {
            Self::Buffers(buffers) => buffers.lent_id(),
            Self::Inline(_) => None,
        }
    }
}
