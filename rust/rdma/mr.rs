// SPDX-License-Identifier: GPL-2.0

//! Memory regions, and the table that looks up STags from the wire.
//!
//! C sources: `core/uverbs_cmd.c`, `core/uverbs_std_types_mr.c`, `core/verbs.c`

pub(crate) mod callbacks;
mod grant;
mod mapping;
mod registrar;
mod registration;

pub(crate) use grant::Grant;
pub use mapping::{PostedMapping, Terms};
pub use registrar::Registrar;
pub use registration::{InForce, Invalidated, KernelRegion, Unregistered};

use crate::{object::Object, page_list::FilledMr, table::Table, Driver};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::{aref::ARef, Arc},
    types::Opaque,
};
use kernel_ext::random::random_u32;
use riw_bindings as bindings;

/// ib_core's part of a region (`struct ib_mr`, `include/rdma/ib_verbs.h`), and the RCU head that
/// delays freeing.
#[repr(C)]
pub struct MrBase {
    ib: FilledMr,
    rcu: Opaque<bindings::callback_head>,
    index: u32,
    /// Another region has its place in the table.
    replaced: bool,
    /// It has the place of another region in the table.
    replacement: bool,
    /// The registrations of a kernel user. Does not change after the creation, and until the data
    /// is dropped.
    registrations: Option<Arc<KernelRegion>>,
}

/// A memory region (`struct ib_mr`, `include/rdma/ib_verbs.h`).
pub type Mr<T> = Object<MrBase, T, <T as Driver>::Mr>;

impl<T: Driver> Mr<T> {
    /// Returns the upper 24 bits of its STag, with the lower ones 0. Any context.
    pub fn stag(&self) -> u32 {
        self.index() << 8
    }

    /// Returns the upper 24 bits of its STag. Any context.
    fn index(&self) -> u32 {
        // SAFETY: `base` points to the region's own part, which is alive as `self` is. Nothing
        // writes to the field after the region has been created.
        unsafe { (*self.base()).index }
    }

    /// Returns the registrations of a kernel user; `None` for a region of a process. Any context.
    pub fn registrations(&self) -> Option<&Arc<KernelRegion>> {
        // SAFETY: As in `index`.
        unsafe { (*self.base()).registrations.as_ref() }
    }
}

/// The arguments of a registration (`ib_device_ops::reg_user_mr`, `include/rdma/ib_verbs.h`).
pub struct MrRequest {
    /// The memory.
    pub memory: MrRange,
    /// The rights (`enum ib_access_flags`).
    pub access: u32,
    /// The STag of the new region.
    pub stag: u32,
}

/// The arguments of a registration of a dma-buf (`ib_device_ops::reg_user_mr_dmabuf`).
pub struct DmaBufRequest {
    /// The file, of the calling process.
    pub fd: c_int,
    /// The offset in the dma-buf.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// The address of the region in work requests and on the wire.
    pub iova: u64,
    /// The rights (`enum ib_access_flags`).
    pub access: u32,
    /// The STag of the new region.
    pub stag: u32,
}

/// The arguments of a re-registration (`ib_device_ops::rereg_user_mr`, `include/rdma/ib_verbs.h`).
pub struct MrChange {
    /// The new memory.
    pub memory: Option<MrRange>,
    /// The new rights (`enum ib_access_flags`).
    pub access: Option<u32>,
}

/// Memory of a process.
pub struct MrRange {
    /// The address in the calling process.
    pub start: u64,
    /// The length in bytes.
    pub length: u64,
    /// The address of the region in work requests and on the wire.
    pub iova: u64,
}

/// The addresses of a region, as ib_core shows them to users. A region of a kernel user has none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Extent {
    iova: u64,
    length: u64,
}

/// Whose region it is.
pub(crate) enum Kind {
    /// Of a process, or a window.
    Process(Extent),
    Kernel(Arc<KernelRegion>),
}

impl Extent {
    /// Returns the extent of a region.
    ///
    /// # Safety
    ///
    /// The region is alive, and nothing changes its extent meanwhile.
    unsafe fn of(ib: *const bindings::ib_mr) -> Self {
        // SAFETY: By the caller's promise.
        unsafe {
            Self {
                iova: (*ib).iova,
                length: (*ib).length,
            }
        }
    }
}

impl MrChange {
    fn new(flags: c_int, access: c_int, memory: MrRange) -> Self {
        // CAST: Bit masks.
        let has = |flag: bindings::ib_mr_rereg_flags| flags as u32 & flag != 0;

        Self {
            memory: has(bindings::ib_mr_rereg_flags_IB_MR_REREG_TRANS).then_some(memory),
            access: has(bindings::ib_mr_rereg_flags_IB_MR_REREG_ACCESS).then_some(access as u32),
        }
    }
}

/// Attempts to find a free index (the upper 24 bits of the STag; 0 is not used) at random. If half
/// of them are taken, one registration in 2^64 fails.
const ATTEMPTS: usize = 64;

/// The regions of a device, by STag (`struct xarray`, `lib/xarray.c`).
#[pin_data]
pub struct MrTable<T: Driver> {
    #[pin]
    table: Table<MrBase, T, T::Mr>,
}

impl<T: Driver> MrTable<T> {
    /// Creates an empty table. Any context.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self { table <- Table::new() })
    }

    /// Looks up a region by the index of an STag. The caller must check key, PD, rights and bounds.
    /// Any context.
    ///
    /// Returns `None` if there is no region, or if it is being deregistered. Drop the reference
    /// soon: deregistration waits for it.
    pub fn get(&self, stag: u32) -> Option<ARef<Mr<T>>> {
        self.table.get(stag >> 8)
    }

    /// Looks up a region as [`Self::get`] does. If it is `last`, this costs no search; it may have
    /// been replaced then, or be in deregistration, which waits for this reference. Any context.
    pub fn get_again(&self, stag: u32, last: Option<ARef<Mr<T>>>) -> Option<ARef<Mr<T>>> {
        match last {
            Some(last) if last.index() == stag >> 8 => Some(last),
            _ => self.get(stag),
        }
    }

    /// Calls `f` with each region, except those that are being deregistered or replaced. Process
    /// context; sleeps only if `f` does. Takes time for each region of the device.
    pub fn for_each(&self, f: impl FnMut(&Mr<T>)) {
        self.table.for_each(f);
    }

    /// Reserves a random STag: a peer cannot predict it from others. Process context; may sleep.
    ///
    /// Fails with `ENOSPC` if it finds no free index, `ENOMEM` without memory.
    pub(crate) fn reserve(&self) -> Result<u32> {
        for _ in 0..ATTEMPTS {
            let stag = random_u32();

            if stag >> 8 == 0 {
                continue;
            }
            match self.table.reserve(stag >> 8) {
                Ok(()) => return Ok(stag),
                Err(e) if e == EBUSY => {}
                Err(e) => return Err(e),
            }
        }
        Err(ENOSPC)
    }

    /// Releases an STag that is reserved and not filled. Process context.
    pub(crate) fn release(&self, stag: u32) {
        self.table.remove(stag >> 8);
    }
}
