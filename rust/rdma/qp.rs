// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.
//!
//! C sources: `core/uverbs_cmd.c`, `core/uverbs_std_types_qp.c`, `core/verbs.c`, `core/iwcm.c`

pub(crate) mod callbacks;
mod state;
pub(crate) mod table;

pub use state::QpState;

use crate::{
    cq::Cq,
    device::Device,
    event::{self, AsyncEvent},
    mr::{Grant, Registrar},
    object::Object,
    srq::Srq,
    wr::PostedQueues,
    Driver,
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::{aref::ARef, Arc},
    types::Opaque,
};
use riw_bindings as bindings;

/// ib_core's part of a queue pair (`struct ib_qp`, `include/rdma/ib_verbs.h`), and what a kernel
/// user lends by it.
#[repr(C)]
pub struct QpBase {
    ib: Opaque<bindings::ib_qp>,
    /// `None` for a process. Does not change after the creation, and until the data is dropped.
    lent: Option<Lent>,
}

/// The memory that a kernel user lends to a driver by a queue pair: of WRs, and registered by WRs.
pub(crate) struct Lent {
    pub(crate) queues: PostedQueues,
    pub(crate) grant: Arc<Grant>,
}

/// A queue pair (`struct ib_qp`, `include/rdma/ib_verbs.h`).
pub type Qp<T> = Object<QpBase, T, <T as Driver>::Qp>;

/// Sizes of the queues of a queue pair, in WRs, SGEs and bytes of inline data (`struct ib_qp_cap`,
/// `include/rdma/ib_verbs.h`).
pub type QpCap = bindings::ib_qp_cap;

/// The first of the creation flags that a driver defines for its kernel users
/// (`IB_QP_CREATE_RESERVED_START`). ib_core lets no process pass it.
// CAST: A bit.
pub const FIRST_DRIVER_FLAG: u32 = bindings::ib_qp_create_flags_IB_QP_CREATE_RESERVED_START as u32;

/// The attributes of a new queue pair (`struct ib_qp_init_attr`, `include/rdma/ib_verbs.h`). All
/// methods: any context.
///
/// # Invariants
///
/// ib_core owns `raw`, which is valid for `'a`. Its queues belong to a device of driver `T`.
pub struct QpInitAttr<'a, T: Driver> {
    raw: &'a mut bindings::ib_qp_init_attr,
    number: u32,
    registrar: Option<Registrar<T>>,
}

impl<'a, T: Driver> QpInitAttr<'a, T> {
    /// Returns the number of the queue pair, which no other one of the device has.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the owner of what the queue pair registers, as [`Qp::registrar`] does when there is
    /// a queue pair; `None` for a process.
    pub fn take_registrar(&mut self) -> Option<Registrar<T>> {
        self.registrar.take()
    }

    /// Returns the requested sizes, to be overwritten with the actual ones.
    pub fn cap(&mut self) -> &mut QpCap {
        &mut self.raw.cap
    }

    /// Whether the type is RC (`IB_QPT_RC`), the only one that iWARP has.
    pub fn is_connected(&self) -> bool {
        self.raw.qp_type == bindings::ib_qp_type_IB_QPT_RC
    }

    /// Returns the creation flags (`enum ib_qp_create_flags`).
    pub fn create_flags(&self) -> u32 {
        self.raw.create_flags
    }

    /// Whether every send WR is signaled (`IB_SIGNAL_ALL_WR`).
    pub fn signal_all(&self) -> bool {
        self.raw.sq_sig_type == bindings::ib_sig_type_IB_SIGNAL_ALL_WR
    }

    /// Returns the completion queue of the send queue.
    pub fn send_cq(&self) -> Option<ARef<Cq<T>>> {
        let raw = self.raw.send_cq;

        // SAFETY: `raw` is not null, so by the type invariant it is a queue of driver `T`. ib_core
        // holds it during the `create_qp` call, which `'a` does not outlive.
        (!raw.is_null()).then(|| unsafe { Cq::<T>::from_raw(raw) }.into())
    }

    /// Returns the completion queue of the receive queue.
    pub fn recv_cq(&self) -> Option<ARef<Cq<T>>> {
        let raw = self.raw.recv_cq;

        // SAFETY: `raw` is not null, so by the type invariant it is a queue of driver `T`. ib_core
        // holds it during the `create_qp` call, which `'a` does not outlive.
        (!raw.is_null()).then(|| unsafe { Cq::<T>::from_raw(raw) }.into())
    }

    /// Returns the shared receive queue, if any.
    pub fn srq(&self) -> Option<ARef<Srq<T>>> {
        let raw = self.raw.srq;

        // SAFETY: `raw` is not null, so by the type invariant it is a queue of driver `T`. ib_core
        // holds it during the `create_qp` call, which `'a` does not outlive.
        (!raw.is_null()).then(|| unsafe { Srq::<T>::from_raw(raw) }.into())
    }
}

/// Attributes of a queue pair to modify or to query (`struct ib_qp_attr` and its mask,
/// `include/rdma/ib_verbs.h`). All methods: any context.
pub struct QpAttr<'a> {
    raw: &'a mut bindings::ib_qp_attr,
    mask: u32,
    /// To be reported.
    signal_all: bool,
}

impl QpAttr<'_> {
    /// The attributes of an iWARP queue pair that can be modified. TCP has the path, and MPA
    /// negotiates the read depths.
    const MODIFIABLE: bindings::ib_qp_attr_mask = bindings::ib_qp_attr_mask_IB_QP_STATE
        | bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS
        | bindings::ib_qp_attr_mask_IB_QP_PORT
        | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX;

    /// Copies the attributes that can be modified. Kernel users leave the others uninitialized, so
    /// there must be no reference to the whole struct.
    ///
    /// # Safety
    ///
    /// `raw` must be valid, and the attributes in `mask` initialized.
    unsafe fn copy_modifiable(raw: *const bindings::ib_qp_attr, mask: u32) -> bindings::ib_qp_attr {
        let mut copy = bindings::ib_qp_attr::default();

        // SAFETY: By the caller's promise `raw` is valid and each attribute in `mask` is
        // initialized. Only these are read.
        unsafe {
            if mask & bindings::ib_qp_attr_mask_IB_QP_STATE != 0 {
                copy.qp_state = (*raw).qp_state;
            }
            if mask & bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS != 0 {
                copy.qp_access_flags = (*raw).qp_access_flags;
            }
            if mask & bindings::ib_qp_attr_mask_IB_QP_PORT != 0 {
                copy.port_num = (*raw).port_num;
            }
            if mask & bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX != 0 {
                copy.pkey_index = (*raw).pkey_index;
            }
        }
        copy
    }

    /// Checks whether these attributes can be modified.
    ///
    /// Fails with `EOPNOTSUPP` for an attribute that cannot be modified, `EINVAL` for a port or a
    /// partition that does not exist: rdma_cm always sets the port, and consumers go to INIT as on
    /// InfiniBand.
    fn check_modifiable(&self) -> Result {
        if self.mask & !Self::MODIFIABLE != 0 {
            return Err(EOPNOTSUPP);
        }
        let port = self.has(bindings::ib_qp_attr_mask_IB_QP_PORT);
        let pkey = self.has(bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX);
        if port && self.raw.port_num != 1 || pkey && self.raw.pkey_index != 0 {
            return Err(EINVAL);
        }
        Ok(())
    }

    fn has(&self, mask: bindings::ib_qp_attr_mask) -> bool {
        self.mask & mask != 0
    }

    /// Returns the requested state, if the mask has one. Fails with `EINVAL` for an unknown state.
    pub fn state(&self) -> Result<Option<QpState>> {
        if !self.has(bindings::ib_qp_attr_mask_IB_QP_STATE) {
            return Ok(None);
        }
        QpState::from_raw(self.raw.qp_state).map(Some).ok_or(EINVAL)
    }

    /// Returns the requested rights of the peer (`enum ib_access_flags`), if the mask has them.
    pub fn access(&self) -> Option<u32> {
        // CAST: A bit mask.
        self.has(bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS)
            .then_some(self.raw.qp_access_flags as u32)
    }

    /// Sets the state to report.
    pub fn set_state(&mut self, state: QpState) {
        self.raw.qp_state = state.into_raw();
        self.raw.cur_qp_state = self.raw.qp_state;
    }

    /// Sets the rights of the peer to report (`enum ib_access_flags`).
    pub fn set_access(&mut self, access: u32) {
        // CAST: A bit mask.
        self.raw.qp_access_flags = access as c_int;
    }

    /// Sets the queue sizes to report.
    pub fn set_cap(&mut self, cap: QpCap) {
        self.raw.cap = cap;
    }

    /// Sets whether to report that every send WR is signaled, as in
    /// [`QpInitAttr::signal_all`].
    pub fn set_signal_all(&mut self, signal_all: bool) {
        self.signal_all = signal_all;
    }

    /// Sets the read depths to report, in RDMA Reads: `ord` outbound, `ird` inbound.
    pub fn set_read_depths(&mut self, ord: u8, ird: u8) {
        self.raw.max_rd_atomic = ord;
        self.raw.max_dest_rd_atomic = ird;
    }

    /// Sets the port to report.
    pub fn set_port(&mut self) {
        self.raw.port_num = 1;
    }
}

impl<T: Driver> Device<T> {
    /// Finds a queue pair by its number, unless it is being destroyed. Any context.
    ///
    /// Any user can read the number of a queue pair (`rdma resource show qp`) or guess it.
    pub fn qp(&self, number: u32) -> Option<ARef<Qp<T>>> {
        self.find_qp(number, false)
    }

    /// As [`Self::qp`]; `hidden`: also a queue pair whose destruction has begun, as long as it has
    /// references.
    pub(crate) fn find_qp(&self, number: u32, hidden: bool) -> Option<ARef<Qp<T>>> {
        // SAFETY: The table has only created queue pairs of this device, so of driver `T`. During
        // the call it keeps the memory of this one from being freed.
        let get = |qp: NonNull<_>| unsafe { Qp::<T>::try_get(qp.cast()) };

        self.qps().with(number, hidden, get)
    }
}

impl<T: Driver> Qp<T> {
    /// Returns the device of the queue pair. Any context.
    pub fn device(&self) -> &Device<T> {
        // SAFETY: ib_core sets `device` before it calls `create_qp`, and unregisters the device
        // only after all its objects are destroyed. So it points to a `Device<T>` that outlives
        // `self`.
        unsafe { Device::from_raw((*self.raw()).device) }
    }

    /// Borrows a queue pair from ib_core's pointer to it. Any context.
    ///
    /// # Safety
    ///
    /// As for [`Object::from_base`].
    pub(crate) unsafe fn from_raw<'a>(qp: *mut bindings::ib_qp) -> &'a Self {
        // SAFETY: The caller promises it. ib_core's struct is at the start.
        unsafe { Self::from_base(qp.cast()) }
    }

    /// Returns ib_core's struct. Any context.
    pub(crate) fn raw(&self) -> *mut bindings::ib_qp {
        // It is at the start.
        self.base().cast()
    }

    /// Returns what a kernel user lends; `None` for a process. Any context.
    pub(crate) fn lent(&self) -> Option<&Lent> {
        // SAFETY: `self` is alive, and so is this part of it. `create_qp` has initialized the
        // field, and nothing changes it before `destroy_qp`, after the last reference.
        unsafe { (*self.base()).lent.as_ref() }
    }

    /// Returns the owner of what the queue pair registers; `None` for a process. Any context.
    pub fn registrar(&self) -> Option<Registrar<T>> {
        let lent = self.lent()?;

        Some(Registrar::new(self.device().mrs(), &lent.grant))
    }

    /// Reports an event to the consumer (`ib_qp::event_handler`). Any context; the caller holds no
    /// lock that a verb could take.
    pub fn event(&self, event: AsyncEvent) {
        let qp = self.raw();

        // SAFETY: `self` is alive, and so is its device, which ib_core unregisters after its
        // objects are destroyed. Handler, context and element are of this queue pair.
        unsafe {
            event::raise(
                (*qp).event_handler,
                (*qp).qp_context,
                (*qp).device,
                event,
                bindings::ib_event__bindgen_ty_1 { qp },
            );
        }
    }
}
