// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.
//!
//! C sources: `core/uverbs_cmd.c`, `core/uverbs_std_types_qp.c`, `core/verbs.c`, `core/iwcm.c`

mod state;

pub use state::QpState;

use crate::{
    cq::Cq,
    device::{Callbacks, Device},
    event::{self, AsyncEvent},
    object::Object,
    pd::Pd,
    srq::Srq,
    wr::{RecvWrs, SendWrs},
    Driver, Exchange, Udata,
};
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{
    error::from_result,
    ffi::{c_int, c_uint},
    prelude::*,
    sync::aref::ARef,
};
use riw_bindings as bindings;

/// A queue pair (`struct ib_qp`, `include/rdma/ib_verbs.h`).
pub type Qp<T> = Object<bindings::ib_qp, T, <T as Driver>::Qp>;

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
    _driver: PhantomData<T>,
}

impl<'a, T: Driver> QpInitAttr<'a, T> {
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
        (!raw.is_null()).then(|| unsafe { Cq::<T>::from_base(raw) }.into())
    }

    /// Returns the completion queue of the receive queue.
    pub fn recv_cq(&self) -> Option<ARef<Cq<T>>> {
        let raw = self.raw.recv_cq;

        // SAFETY: `raw` is not null, so by the type invariant it is a queue of driver `T`. ib_core
        // holds it during the `create_qp` call, which `'a` does not outlive.
        (!raw.is_null()).then(|| unsafe { Cq::<T>::from_base(raw) }.into())
    }

    /// Returns the shared receive queue, if any.
    pub fn srq(&self) -> Option<ARef<Srq<T>>> {
        let raw = self.raw.srq;

        // SAFETY: `raw` is not null, so by the type invariant it is a queue of driver `T`. ib_core
        // holds it during the `create_qp` call, which `'a` does not outlive.
        (!raw.is_null()).then(|| unsafe { Srq::<T>::from_base(raw) }.into())
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

impl<T: Driver> Qp<T> {
    /// Returns the device of the queue pair. Any context.
    pub fn device(&self) -> &Device<T> {
        // SAFETY: ib_core sets `device` before it calls `create_qp`, and unregisters the device
        // only after all its objects are destroyed. So it points to a `Device<T>` that outlives
        // `self`.
        unsafe { Device::from_raw((*self.base()).device) }
    }

    /// Reports an event to the consumer (`ib_qp::event_handler`). Any context; the caller holds no
    /// lock that a verb could take.
    pub fn event(&self, event: AsyncEvent) {
        let qp = self.base();

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

/// Attributes by which user space passes its own memory for the queues. They are refused: see
/// [`crate::cq`].
const BUFFER_ATTRS: [u32; 3] = [
    bindings::uverbs_attrs_create_qp_cmd_attr_ids_UVERBS_ATTR_CREATE_QP_BUF_UMEM,
    bindings::uverbs_attrs_create_qp_cmd_attr_ids_UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM,
    bindings::uverbs_attrs_create_qp_cmd_attr_ids_UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM,
];

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.size_ib_qp = Qp::<T>::SIZE;
    ops.create_qp = Some(Callbacks::<T>::create_qp);
    ops.modify_qp = Some(Callbacks::<T>::modify_qp);
    ops.query_qp = Some(Callbacks::<T>::query_qp);
    ops.destroy_qp = Some(Callbacks::<T>::destroy_qp);
    ops.post_send = Some(Callbacks::<T>::post_send);
    ops.post_recv = Some(Callbacks::<T>::post_recv);
    ops.iw_get_qp = Some(Callbacks::<T>::iw_get_qp);
    ops.iw_add_ref = Some(Callbacks::<T>::iw_add_ref);
    ops.iw_rem_ref = Some(Callbacks::<T>::iw_rem_ref);
    ops
}

/// Whether a process has created the queue pair.
///
/// # Safety
///
/// `qp` must be a created queue pair.
unsafe fn is_of_process(qp: *mut bindings::ib_qp) -> bool {
    // SAFETY: By the caller's promise `qp` is valid. ib_core sets the field before it creates the
    // queue pair, and does not change it.
    unsafe { !(*qp).uobject.is_null() }
}

impl<T: Driver> Callbacks<T> {
    unsafe extern "C" fn create_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core passes attributes that only this call accesses, and null or the
            // `udata` of a bundle with a context of this driver. Both are valid during the call.
            let (attr, udata) = unsafe { (&mut *attr, Udata::<T>::from_raw(udata)) };

            if let Some(udata) = &udata {
                udata.refuse(&BUFFER_ATTRS)?;
            }
            // INVARIANT: `raw` is valid during the call. uverbs takes the queues from the context
            // of the domain, and a kernel user from the same device, so they belong to driver `T`.
            let mut attr = QpInitAttr {
                raw: attr,
                _driver: PhantomData,
            };

            // SAFETY: ib_core passes a new object of `size_ib_qp` bytes, and holds its domain
            // during the call. It frees the object after an error, or after `destroy_qp`, which
            // calls `destroy`. Nothing after `create` fails.
            unsafe {
                let pd = Pd::<T>::from_base((*qp).pd);
                Qp::<T>::create(qp, T::create_qp(pd, &mut attr, udata)?);
                (*qp).qp_num = T::publish_qp(Qp::<T>::from_base(qp));
            }
            Ok(0)
        })
    }

    unsafe extern "C" fn modify_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        mask: c_int,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core passes null or a `udata` that is valid during the call.
            unsafe { Exchange::check_empty(udata)? };
            // CAST: A bit mask.
            let mask = mask as u32;
            // SAFETY: ib_core passes a valid struct in which the attributes of the mask are
            // initialized.
            let mut modifiable = unsafe { QpAttr::copy_modifiable(attr, mask) };
            let attr = QpAttr {
                raw: &mut modifiable,
                mask,
                signal_all: false,
            };

            attr.check_modifiable()?;
            // SAFETY: uverbs holds the queue pair during the call. iw_cm holds a reference, except
            // in iw_cm_disconnect(): there it does not check that it still has one, and races with
            // the destruction of the queue pair. That is a bug of iw_cm, which affects every
            // driver.
            T::modify_qp(unsafe { Qp::<T>::from_base(qp) }, &attr)?;
            Ok(0)
        })
    }

    unsafe extern "C" fn query_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        mask: c_int,
        init_attr: *mut bindings::ib_qp_init_attr,
    ) -> c_int {
        // SAFETY: ib_core passes valid pointers, of which only this call accesses `attr` and
        // `init_attr`, and a created queue pair. ib_core has not cleared the two, and copies them
        // to user space afterwards, so they are initialized whole before references to them exist.
        unsafe {
            attr.write(bindings::ib_qp_attr::default());
            init_attr.write(bindings::ib_qp_init_attr::default());
            // CAST: A bit mask.
            let mut attr = QpAttr {
                raw: &mut *attr,
                mask: mask as u32,
                signal_all: false,
            };

            T::query_qp(Qp::<T>::from_base(qp), &mut attr);
            (*init_attr).qp_type = (*qp).qp_type;
            (*init_attr).send_cq = (*qp).send_cq;
            (*init_attr).recv_cq = (*qp).recv_cq;
            (*init_attr).srq = (*qp).srq;
            (*init_attr).cap = attr.raw.cap;
            (*init_attr).sq_sig_type = match attr.signal_all {
                true => bindings::ib_sig_type_IB_SIGNAL_ALL_WR,
                false => bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            };
        }
        0
    }

    unsafe extern "C" fn destroy_qp(
        qp: *mut bindings::ib_qp,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: ib_core calls this once for a queue pair that was created, and calls no other
        // verb for it. All other users hold an `ARef`, which `destroy` waits for, except iw_cm
        // in the race that `modify_qp` describes. ib_core's part stays valid until this
        // function returns, and so does the device.
        unsafe {
            T::destroy_qp(Qp::<T>::from_base(qp));
            Qp::<T>::destroy(qp);
            T::release_qp_number(Device::from_raw((*qp).device), (*qp).qp_num);
        }
        0
    }

    /// The doorbell of a user process, whose WRs are in its ring, if `wr` is null. Otherwise WRs of
    /// a kernel user: WRs of a process could name any memory of the kernel, and are refused.
    unsafe extern "C" fn post_send(
        qp: *mut bindings::ib_qp,
        wr: *const bindings::ib_send_wr,
        bad_wr: *mut *const bindings::ib_send_wr,
    ) -> c_int {
        // SAFETY: ib_core passes a created queue pair, and does not destroy it while a verb for it
        // runs.
        let (this, of_process) = unsafe { (Qp::<T>::from_base(qp), is_of_process(qp)) };

        from_result(|| {
            if of_process && wr.is_null() {
                T::ring_doorbell(this)?;
                return Ok(0);
            }
            // SAFETY: The consumer passes a list of valid WRs, and keeps the memory that they name
            // until they are complete. The list is used only if the consumer is in the kernel.
            let mut wrs = unsafe { SendWrs::<T>::new(wr) };
            let posted = match of_process {
                true => Err(EOPNOTSUPP),
                false => T::post_send(this, &mut wrs),
            };

            // SAFETY: The consumer passes a valid pointer for the WR that failed.
            posted.inspect_err(|_| unsafe { *bad_wr = wrs.taken_last() })?;
            Ok(0)
        })
    }

    /// The doorbell of a user process, or WRs of a kernel user, as for `post_send`.
    unsafe extern "C" fn post_recv(
        qp: *mut bindings::ib_qp,
        wr: *const bindings::ib_recv_wr,
        bad_wr: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: ib_core passes a created queue pair, and does not destroy it while a verb for it
        // runs.
        let (this, of_process) = unsafe { (Qp::<T>::from_base(qp), is_of_process(qp)) };

        from_result(|| {
            if of_process && wr.is_null() {
                T::ring_recv_doorbell(this)?;
                return Ok(0);
            }
            // SAFETY: The consumer passes a list of valid WRs and a valid pointer for the one that
            // fails, and keeps the memory that the WRs name until they are complete. The list is
            // used only if the consumer is in the kernel.
            unsafe {
                RecvWrs::post(wr, bad_wr, |wrs| match of_process {
                    true => Err(EOPNOTSUPP),
                    false => T::post_recv(this, wrs),
                })
            }
        })
    }

    /// Finds a queue pair and takes iw_cm's reference. iw_cm takes it by `iw_add_ref` only after
    /// this has returned: a process that destroys the queue pair in between would leave iw_cm with
    /// a dangling pointer. iw_cm calls `iw_add_ref` once after each successful `iw_get_qp`, so that
    /// one does nothing.
    unsafe extern "C" fn iw_get_qp(
        dev: *mut bindings::ib_device,
        number: c_int,
    ) -> *mut bindings::ib_qp {
        // SAFETY: iw_cm passes the device of a live id. Ids are destroyed before their device is
        // unregistered, so its data is initialized.
        let dev = unsafe { Device::<T>::from_raw(dev) };

        // CAST: Queue pair numbers have 24 bits.
        match T::qp_by_number(dev, number as c_uint) {
            Some(qp) => ARef::into_raw(qp).as_ptr().cast(),
            None => core::ptr::null_mut(),
        }
    }

    /// Does nothing: `iw_get_qp` has taken the reference.
    unsafe extern "C" fn iw_add_ref(_qp: *mut bindings::ib_qp) {}

    unsafe extern "C" fn iw_rem_ref(qp: *mut bindings::ib_qp) {
        // SAFETY: iw_cm drops a reference that `iw_get_qp` took from an `ARef`, so `qp` is not null
        // and owns one count.
        drop(unsafe { ARef::<Qp<T>>::from_raw(NonNull::new_unchecked(qp.cast())) });
    }
}
