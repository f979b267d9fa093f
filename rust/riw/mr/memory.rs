// SPDX-License-Identifier: GPL-2.0

//! The memory of regions.

use kernel::prelude::*;
use net::{Fragment, Room};
use rdma::{dmabuf::DmaBuf, page_list::PageList, umem::Umem};

/// Memory of a process.
pub(super) enum UserMemory {
    Pages(Umem),
    DmaBuf(DmaBuf),
}

impl UserMemory {
    /// Returns the length in bytes. Any context.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Pages(umem) => umem.len(),
            Self::DmaBuf(buf) => buf.len(),
        }
    }

    /// Returns the number of pages. Any context.
    pub(super) fn pages(&self) -> usize {
        match self {
            Self::Pages(umem) => umem.pages(),
            Self::DmaBuf(buf) => buf.pages(),
        }
    }

    /// Returns the memory for an access. Any context.
    pub(super) fn lend(&self) -> LentMemory<'_> {
        match self {
            Self::Pages(umem) => LentMemory::Pages(umem),
            Self::DmaBuf(buf) => LentMemory::DmaBuf(buf),
        }
    }
}

/// Memory of a region, lent for an access. Each method calls the method of the kind, and has its
/// contexts and errors, unless it says otherwise.
pub(super) enum LentMemory<'a> {
    Pages(&'a Umem),
    DmaBuf(&'a DmaBuf),
    /// Of a kernel user.
    List(&'a PageList),
}

impl LentMemory<'_> {
    /// Copies `from` to the memory, `at` bytes from its start.
    pub(super) fn write(&self, at: u64, from: Fragment<'_>) -> Result {
        match self {
            Self::Pages(umem) => umem.write(at, from),
            Self::DmaBuf(buf) => buf.write(at, from),
            Self::List(list) => list.write(at, from),
        }
    }

    /// Copies `len` bytes to `to`, from `at` bytes after the start of the memory.
    pub(super) fn read(&self, at: u64, len: usize, to: &mut Room<'_>) -> Result {
        match self {
            Self::Pages(umem) => umem.read(at, len, to),
            Self::DmaBuf(buf) => buf.read(at, len, to),
            Self::List(list) => list.read(at, len, to),
        }
    }

    /// Whether the byte `at` bytes from the start is at a multiple of 8 in memory that has atomic
    /// operations.
    pub(super) fn is_word(&self, at: u64) -> bool {
        match self {
            Self::Pages(umem) => umem.is_word(at),
            Self::DmaBuf(_) => false,
            Self::List(list) => list.is_word(at),
        }
    }

    /// Replaces 8 bytes atomically. Fails with `EOPNOTSUPP` for a dma-buf.
    pub(super) fn update(&self, at: u64, f: impl Fn(u64) -> u64) -> Result<Option<u64>> {
        match self {
            Self::Pages(umem) => umem.update(at, f),
            Self::DmaBuf(_) => Err(EOPNOTSUPP),
            Self::List(list) => list.update(at, f),
        }
    }
}
