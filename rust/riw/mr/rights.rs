// SPDX-License-Identifier: GPL-2.0

//! The access flags of regions and windows (`enum ib_access_flags`).

/// The rights among the access flags (`enum ib_access_flags`).
pub(super) const RIGHTS: u32 = 0xf;
/// The rights of the peer among them: to write, to read, and to do atomic operations.
pub(super) const REMOTE_RIGHTS: u32 = 1 << 1 | 1 << 2 | 1 << 3;
/// `IB_ACCESS_MW_BIND`: memory windows may be bound to the region, and a peer may invalidate it.
pub(super) const MW_BIND: u32 = 1 << 4;
/// The access flags that riw accepts: [`RIGHTS`], [`MW_BIND`], huge pages, and the flags that a
/// driver may ignore.
pub(super) const KNOWN_ACCESS: u32 = RIGHTS | MW_BIND | 1 << 7 | 0x3ff << 20;
