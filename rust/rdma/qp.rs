// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.

use crate::{
    cq::Cq,
    device::{Callbacks, Device},
    event::{self, Event},
    object::Object,
    pd::Pd,
    srq::Srq,
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

/// A queue pair (`struct ib_qp`).
pub type Qp<T> = Object<bindings::ib_qp, T, <T as Driver>::Qp>;

/// Sizes of the queues of a queue pair (`struct ib_qp_cap`).
pub type QpCap = bindings::ib_qp_cap;

/// The state of a queue pair as verbs have it (`enum ib_qp_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpState {
    /// As made: nothing may be posted.
    Reset,
    /// Receives may be posted.
    Init,
    /// Ready to receive.
    ReadyToReceive,
    /// Ready to send.
    ReadyToSend,
    /// Draining its send queue, to be closed.
    Draining,
    /// The send queue is in error.
    SendError,
    /// In error: every request is flushed.
    Error,
}

impl QpState {
    fn from_raw(state: bindings::ib_qp_state) -> Option<Self> {
        Some(match state {
            bindings::ib_qp_state_IB_QPS_RESET => Self::Reset,
            bindings::ib_qp_state_IB_QPS_INIT => Self::Init,
            bindings::ib_qp_state_IB_QPS_RTR => Self::ReadyToReceive,
            bindings::ib_qp_state_IB_QPS_RTS => Self::ReadyToSend,
            bindings::ib_qp_state_IB_QPS_SQD => Self::Draining,
            bindings::ib_qp_state_IB_QPS_SQE => Self::SendError,
            bindings::ib_qp_state_IB_QPS_ERR => Self::Error,
            _ => return None,
        })
    }

    fn into_raw(self) -> bindings::ib_qp_state {
        match self {
            Self::Reset => bindings::ib_qp_state_IB_QPS_RESET,
            Self::Init => bindings::ib_qp_state_IB_QPS_INIT,
            Self::ReadyToReceive => bindings::ib_qp_state_IB_QPS_RTR,
            Self::ReadyToSend => bindings::ib_qp_state_IB_QPS_RTS,
            Self::Draining => bindings::ib_qp_state_IB_QPS_SQD,
            Self::SendError => bindings::ib_qp_state_IB_QPS_SQE,
            Self::Error => bindings::ib_qp_state_IB_QPS_ERR,
        }
    }
}

/// What is asked of a new queue pair (`struct ib_qp_init_attr`).
///
/// # Invariants
///
/// `raw` is ib_core's, valid for `'a`, with queues of driver `T`.
pub struct QpInitAttr<'a, T: Driver> {
    raw: &'a mut bindings::ib_qp_init_attr,
    _driver: PhantomData<T>,
}

impl<'a, T: Driver> QpInitAttr<'a, T> {
    /// The sizes asked for; to be overwritten with those given.
    pub fn cap(&mut self) -> &mut QpCap {
        &mut self.raw.cap
    }

    /// Whether the type is the reliable connection, the only one that iWARP has.
    pub fn is_connected(&self) -> bool {
        self.raw.qp_type == bindings::ib_qp_type_IB_QPT_RC
    }

    /// Flags of creation (`enum ib_qp_create_flags`).
    pub fn create_flags(&self) -> u32 {
        self.raw.create_flags
    }

    /// Whether every request is to give a completion.
    pub fn signal_all(&self) -> bool {
        self.raw.sq_sig_type == bindings::ib_sig_type_IB_SIGNAL_ALL_WR
    }

    /// Where completions of the send queue go.
    pub fn send_cq(&self) -> Option<ARef<Cq<T>>> {
        let raw = self.raw.send_cq;

        // SAFETY: ib_core holds the queue for the call.
        (!raw.is_null()).then(|| unsafe { Cq::<T>::from_base(raw) }.into())
    }

    /// Where completions of the receive queue go.
    pub fn recv_cq(&self) -> Option<ARef<Cq<T>>> {
        let raw = self.raw.recv_cq;

        // SAFETY: ib_core holds the queue for the call.
        (!raw.is_null()).then(|| unsafe { Cq::<T>::from_base(raw) }.into())
    }

    /// The shared receive queue to use, if any.
    pub fn srq(&self) -> Option<ARef<Srq<T>>> {
        let raw = self.raw.srq;

        // SAFETY: ib_core holds the queue for the call.
        (!raw.is_null()).then(|| unsafe { Srq::<T>::from_base(raw) }.into())
    }
}

/// Attributes of a queue pair that are changed or asked for (`struct ib_qp_attr` with its mask).
pub struct QpAttr<'a> {
    raw: &'a mut bindings::ib_qp_attr,
    mask: u32,
}

impl QpAttr<'_> {
    /// The attributes of an iWARP queue pair that can be changed. Its path is TCP's, and its read
    /// depths are negotiated when it is connected.
    const MODIFIABLE: bindings::ib_qp_attr_mask = bindings::ib_qp_attr_mask_IB_QP_STATE
        | bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS
        | bindings::ib_qp_attr_mask_IB_QP_PORT
        | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX;

    /// Copies the attributes that can be changed. Kernel users leave uninitialised what they do not
    /// change, so that there must be no reference to the whole.
    ///
    /// # Safety
    ///
    /// `raw` must be valid, with the attributes that `mask` names initialised.
    unsafe fn copy_modifiable(raw: *const bindings::ib_qp_attr, mask: u32) -> bindings::ib_qp_attr {
        let mut copy = bindings::ib_qp_attr::default();

        // SAFETY: By the caller's promise.
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

    /// Whether the queue pair can be given these attributes. Fails with `EOPNOTSUPP` for an
    /// attribute that cannot be changed, and with `EINVAL` for another port or partition than the
    /// one there is: rdma_cm always names the port, and consumers go to INIT as InfiniBand's do.
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

    /// The state to go to. Fails with `EINVAL` if there is no such state.
    pub fn state(&self) -> Result<Option<QpState>> {
        if !self.has(bindings::ib_qp_attr_mask_IB_QP_STATE) {
            return Ok(None);
        }
        QpState::from_raw(self.raw.qp_state).map(Some).ok_or(EINVAL)
    }

    /// What the peer shall be allowed (`enum ib_access_flags`).
    pub fn access(&self) -> Option<u32> {
        // CAST: A set of bits.
        self.has(bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS)
            .then_some(self.raw.qp_access_flags as u32)
    }

    /// Reports the state.
    pub fn set_state(&mut self, state: QpState) {
        self.raw.qp_state = state.into_raw();
        self.raw.cur_qp_state = self.raw.qp_state;
    }

    /// Reports what the peer is allowed.
    pub fn set_access(&mut self, access: u32) {
        // CAST: A set of bits.
        self.raw.qp_access_flags = access as c_int;
    }

    /// Reports the sizes of the queues.
    pub fn set_cap(&mut self, cap: QpCap) {
        self.raw.cap = cap;
    }

    /// Reports how many RDMA Reads may be outstanding: those of ours, and those of the peer.
    pub fn set_read_depths(&mut self, ord: u8, ird: u8) {
        self.raw.max_rd_atomic = ord;
        self.raw.max_dest_rd_atomic = ird;
    }

    /// Reports the port.
    pub fn set_port(&mut self) {
        self.raw.port_num = 1;
    }
}

impl<T: Driver> Qp<T> {
    /// The device of the queue pair.
    pub fn device(&self) -> &Device<T> {
        // SAFETY: ib_core sets the device before it calls the driver, and the device outlives its
        // objects.
        unsafe { Device::from_raw((*self.base()).device) }
    }

    /// Reports an event of the queue pair. Any context, under no lock.
    pub fn event(&self, event: Event) {
        let qp = self.base();

        // SAFETY: The queue pair is alive, so are its device and handler.
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

/// Attributes by which user space brings memory for the queues: see [`crate::cq`].
const BUFFER_ATTRS: [u32; 3] = [
    bindings::uverbs_attrs_create_qp_cmd_attr_ids_UVERBS_ATTR_CREATE_QP_BUF_UMEM,
    bindings::uverbs_attrs_create_qp_cmd_attr_ids_UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM,
    bindings::uverbs_attrs_create_qp_cmd_attr_ids_UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM,
];

/// Fills in the callbacks of this file.
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

impl<T: Driver> Callbacks<T> {
    unsafe extern "C" fn create_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core's pointers, valid for the call.
            let (attr, udata) = unsafe { (&mut *attr, Udata::<T>::from_raw(udata)) };

            if let Some(udata) = &udata {
                udata.refuse(&BUFFER_ATTRS)?;
            }
            // INVARIANT: As ib_core checked, the queues are of the same device as the domain.
            let mut attr = QpInitAttr {
                raw: attr,
                _driver: PhantomData,
            };

            // SAFETY: `qp` is new, of the size asked for; its domain is alive.
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
            // SAFETY: ib_core's pointer, valid for the call.
            unsafe { Exchange::check_empty(udata)? };
            // CAST: A set of bits.
            let mask = mask as u32;
            // SAFETY: ib_core passes attributes of which those in the mask are set.
            let mut modifiable = unsafe { QpAttr::copy_modifiable(attr, mask) };
            let attr = QpAttr {
                raw: &mut modifiable,
                mask,
            };

            attr.check_modifiable()?;
            // SAFETY: uverbs holds the queue pair during the call. So does iw_cm, as long as it has
            // its reference; iw_cm_disconnect() does not look whether it still has, which is a race
            // of its own with the destruction of the queue pair, for each driver.
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
        // SAFETY: All are valid for the call. ib_core has not cleared them, and hands to the process
        // what it finds in them afterwards.
        unsafe {
            attr.write(bindings::ib_qp_attr::default());
            init_attr.write(bindings::ib_qp_init_attr::default());
            // CAST: A set of bits.
            let mut attr = QpAttr {
                raw: &mut *attr,
                mask: mask as u32,
            };

            T::query_qp(Qp::<T>::from_base(qp), &mut attr);
            (*init_attr).qp_type = (*qp).qp_type;
            (*init_attr).send_cq = (*qp).send_cq;
            (*init_attr).recv_cq = (*qp).recv_cq;
            (*init_attr).srq = (*qp).srq;
            (*init_attr).cap = attr.raw.cap;
        }
        0
    }

    unsafe extern "C" fn destroy_qp(
        qp: *mut bindings::ib_qp,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core's pointer, valid for the call.
            unsafe { Exchange::check_empty(udata)? };
            // SAFETY: `create_qp` succeeded for it. uverbs calls no verb for it any more; whoever
            // else uses it holds a reference, which `destroy` waits for (as to iw_cm see
            // `modify_qp`). ib_core frees its own part, and lets the device go, only after this has
            // returned.
            unsafe {
                T::destroy_qp(Qp::<T>::from_base(qp));
                Qp::<T>::destroy(qp);
                T::release_qp_number(Device::from_raw((*qp).device), (*qp).qp_num);
            }
            Ok(0)
        })
    }

    /// The doorbell of a user process: no work request, they are in its ring. What a process hands
    /// to the kernel one by one is refused.
    unsafe extern "C" fn post_send(
        qp: *mut bindings::ib_qp,
        wr: *const bindings::ib_send_wr,
        bad_wr: *mut *const bindings::ib_send_wr,
    ) -> c_int {
        from_result(|| {
            if !wr.is_null() {
                // SAFETY: The caller's, to be set on error.
                unsafe { *bad_wr = wr };
                return Err(EOPNOTSUPP);
            }
            // SAFETY: The queue pair is alive during the call.
            T::ring_doorbell(unsafe { Qp::<T>::from_base(qp) })?;
            Ok(0)
        })
    }

    /// Only ib_core's check for the mandatory verbs sees this: queue pairs of kernel users are
    /// refused, and a user process writes to its memory.
    unsafe extern "C" fn post_recv(
        _qp: *mut bindings::ib_qp,
        wr: *const bindings::ib_recv_wr,
        bad_wr: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: The caller's, to be set on error.
        unsafe { *bad_wr = wr };
        EOPNOTSUPP.to_errno()
    }

    /// iw_cm takes its reference by `iw_add_ref` only after this has returned; a process that
    /// destroys the queue pair in between would leave it with a dangling pointer. So the reference
    /// is taken here. iw_cm always calls the two one after the other.
    unsafe extern "C" fn iw_get_qp(
        dev: *mut bindings::ib_device,
        number: c_int,
    ) -> *mut bindings::ib_qp {
        // SAFETY: The device has a connection identifier, so it is registered.
        let dev = unsafe { Device::<T>::from_raw(dev) };

        // CAST: A number of 24 bits.
        match T::qp_by_number(dev, number as c_uint) {
            Some(qp) => ARef::into_raw(qp).as_ptr().cast(),
            None => core::ptr::null_mut(),
        }
    }

    /// See [`Self::iw_get_qp`].
    unsafe extern "C" fn iw_add_ref(_qp: *mut bindings::ib_qp) {}

    unsafe extern "C" fn iw_rem_ref(qp: *mut bindings::ib_qp) {
        // SAFETY: iw_cm gives back what `iw_get_qp` gave it.
        drop(unsafe { ARef::<Qp<T>>::from_raw(NonNull::new_unchecked(qp.cast())) });
    }
}
