// SPDX-License-Identifier: GPL-2.0

//! Memory regions and windows: registration, checks of access, and copies.
//!
//! A stream names memory by an STag: [`regions`] finds it and copies. It is a region of a process
//! ([`user`], whose pages [`memory`] holds), of a kernel user ([`rdma::mr::KernelRegion`]), or a
//! [`window`] in a region of a process. [`grant`] has the WR that binds one, and the stream that
//! it ends with; [`granting`] who owns what a queue pair grants.

mod grant;
mod granting;
mod memory;
mod regions;
mod user;
mod window;

pub(crate) use grant::BindRequest;
pub(crate) use granting::{check_terms, Granting, Invalidated};
pub(crate) use regions::{Finder, Regions, Sink, ATOMIC_LEN};

use crate::{
    abi::Provider,
    driver::Riw,
    limits::{self, ObjectCharge},
};
use kernel::prelude::*;
use kernel_ext::sync::BhUses;
use rdma::{
    mr::{DmaBufRequest, MrChange},
    mw::MwKind,
    pd::Pd,
    ContextUdata, Device,
};
use user::{MrDetails, UserRegion, RIGHTS};
use window::{Window, WindowCount};

/// A memory region, as a verbs object.
pub(crate) type MrObject = rdma::mr::Mr<Riw>;

/// The driver's part of a memory region.
#[pin_data]
pub(crate) struct Mr {
    pd: u64,
    memory: MrMemory,
    /// Tracks copies to and from memory of a process that can be invalidated. After the delivery of
    /// a Send with Invalidate, the consumer may rely on no further access to the region (RFC 5040
    /// §5.3).
    #[pin]
    copies: BhUses,
    /// The windows that are bound to it.
    windows: WindowCount,
    _charge: ObjectCharge,
}

/// The memory of a region.
enum MrMemory {
    /// Memory of a process, registered when the region is created.
    User(UserRegion),
    /// Memory of a kernel user, which registers and invalidates it by WRs:
    /// [`registrations`](rdma::mr::Mr::registrations).
    Kernel,
    /// A window, which has no memory of its own.
    Window(Pin<KBox<Window>>),
}

impl Mr {
    /// Registers user memory. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` for an unknown access flag, `EINVAL` for a range that wraps,
    /// `ENOMEM` above the limit of regions, and with the errors of [`rdma::umem::Umem::pin`],
    /// [`rdma::Udata::request`] and [`rdma::Udata::respond`].
    pub(crate) fn new(
        pd: &Pd<Riw>,
        request: &rdma::mr::MrRequest,
        udata: &ContextUdata<'_, Riw>,
    ) -> Result<impl PinInit<Self>> {
        let charge = pd.device().limits.mr.charge()?;
        let region = UserRegion::new(pd.device(), request, udata)?;

        Ok(Self::of(pd, MrMemory::User(region), charge))
    }

    /// Registers memory of a dma-buf. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` for atomic operations or an unknown access flag, `EINVAL` for a
    /// range that wraps, `ENOMEM` above the limit of such regions, and with the errors of
    /// [`rdma::dmabuf::DmaBuf::map`].
    pub(crate) fn of_dmabuf(pd: &Pd<Riw>, request: &DmaBufRequest) -> Result<impl PinInit<Self>> {
        let charge = pd.device().limits.dmabuf_mr.charge()?;
        let region = UserRegion::of_dmabuf(request)?;

        Ok(Self::of(pd, MrMemory::User(region), charge))
    }

    /// Creates a region for at most `max` blocks of memory of a kernel user. Process context; may
    /// sleep. Fails with `EINVAL` for more blocks than riw supports, `ENOMEM` above the limit of
    /// regions.
    pub(crate) fn for_kernel(pd: &Pd<Riw>, max: u32) -> Result<impl PinInit<Self>> {
        if max > limits::MAX_MR_BLOCKS {
            return Err(EINVAL);
        }
        let charge = pd.device().limits.mr.charge()?;

        Ok(Self::of(pd, MrMemory::Kernel, charge))
    }

    /// Returns the region that replaces this one, with the same STag, in domain `pd`. Process
    /// context; may sleep.
    ///
    /// Fails with `EINVAL` for the region of a kernel user or a range that wraps, `EOPNOTSUPP` for
    /// an unknown access flag or a dma-buf, `EACCES` if memory has to be pinned for writing that
    /// another process has pinned, `ENOMEM` above the limit of regions, which both count against
    /// until the old one has ended, and with the errors of [`rdma::umem::Umem::pin`].
    pub(crate) fn replacement(
        &self,
        pd: &Pd<Riw>,
        change: &MrChange,
    ) -> Result<impl PinInit<Self>> {
        let MrMemory::User(region) = &self.memory else {
            return Err(EINVAL);
        };
        let charge = pd.device().limits.mr.charge()?;
        let region = region.changed(pd.device(), change)?;

        Ok(Self::of(pd, MrMemory::User(region), charge))
    }

    /// Creates a memory window. Process context; may sleep. Fails with `EOPNOTSUPP` for siw's ABI,
    /// in which it could not be bound, `ENOMEM` above the limit of windows or without memory.
    pub(crate) fn window(pd: &Pd<Riw>, kind: MwKind) -> Result<impl PinInit<Self>> {
        if pd.device().provider != Provider::Own {
            return Err(EOPNOTSUPP);
        }
        let charge = pd.device().limits.mw.charge()?;
        let window = KBox::pin_init(Window::new(kind), GFP_KERNEL_ACCOUNT)?;

        Ok(Self::of(pd, MrMemory::Window(window), charge))
    }

    /// Keeps windows from being bound to the region. Process context; does not sleep. Fails with
    /// `EBUSY` if there is one. Takes time for each region of the device if it finds any.
    pub(crate) fn retire(&self, dev: &Device<Riw>) -> Result {
        self.windows.retire().or_else(|_| {
            // A binding that has ended with its stream is counted until it is dropped.
            for_each_window(dev, |window| window.drop_ended_binding_to(self));
            self.windows.retire()
        })
    }

    /// Undoes [`Self::retire`]. Any context.
    pub(crate) fn keep(&self) {
        self.windows.keep();
    }

    /// Keeps windows from being bound to the region, and ends the bindings that there are. Process
    /// context; does not sleep. Takes time for each region of the device if there are any.
    pub(crate) fn abandon(&self, dev: &Device<Riw>) {
        if self.windows.close() == 0 {
            return;
        }
        // A bind counts under the lock of its window. So from here on one fails, or is met.
        for_each_window(dev, |window| window.end_binding_to(self));
    }

    fn of(pd: &Pd<Riw>, memory: MrMemory, charge: ObjectCharge) -> impl PinInit<Self> {
        let pd = pd.id;

        pin_init!(Self {
            pd: pd,
            memory: memory,
            copies <- BhUses::new(),
            windows: WindowCount::new(),
            _charge: charge,
        })
    }

    /// Returns the details of a region. Process context or softirq.
    pub(crate) fn details(mr: &MrObject) -> MrDetails {
        match &mr.memory {
            MrMemory::User(region) => region.details(),
            MrMemory::Kernel => {
                let registration = mr.registrations().and_then(|region| region.details());
                let (access, pages) = registration.unwrap_or_default();

                MrDetails {
                    access: access & RIGHTS,
                    pages,
                    valid: registration.is_some(),
                }
            }
            MrMemory::Window(window) => window.details(),
        }
    }
}

/// Calls `f` with each window of the device. Process context.
fn for_each_window(dev: &Device<Riw>, f: impl Fn(&Window)) {
    dev.mrs().for_each(|mr| {
        if let MrMemory::Window(window) = &mr.memory {
            f(window);
        }
    });
}
