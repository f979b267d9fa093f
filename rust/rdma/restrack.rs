// SPDX-License-Identifier: GPL-2.0

//! Details of objects, which `rdma resource show -dd` shows beside ib_core's own details.
//!
//! C sources: `core/nldev.c`, `core/restrack.c`
//!
//! # When details are collected
//!
//! nldev looks an object up in ib_core's table of tracked objects. During the callback it holds a
//! reference to the object's entry (`rdma_restrack_get()`) and one that keeps the device registered
//! (`ib_device_get_by_index()`). An object enters the table when the driver has created it
//! (`rdma_restrack_add()`). Before ib_core calls the driver to destroy it, ib_core takes it out of
//! the table and waits for the references (`rdma_restrack_begin_del()`; for a region
//! `rdma_restrack_del()`). So the object is created and not destroyed while its callback runs, and
//! its destruction waits for the callback.
//!
//! The callbacks run in process context. nldev holds a mutex of the netlink socket and a
//! read-write semaphore, but no spin lock, so they may sleep.
//!
//! # Visibility
//!
//! Every user: nldev requires no capability, and shows only keys to administrators alone. So
//! details have no keys and no addresses of memory.
//!
//! # No details of connection identifiers
//!
//! `fill_res_cm_id_entry` is not offered. Its `struct rdma_cm_id` belongs to rdma_cm. The driver's
//! part is an iw_cm id, which rdma_cm destroys on some error paths while the `rdma_cm_id` is
//! tracked, so a callback could find it freed. Nothing is lost: an identifier is shown with the
//! number of its queue pair, whose details have all that is known of the connection.

use crate::{
    cq::Cq,
    device::Callbacks,
    mr::{Mr, MrBase},
    ops::{CqVerbs, Driver, MrVerbs, QpVerbs, SrqVerbs},
    qp::Qp,
    srq::Srq,
};
use core::{
    convert::Infallible,
    fmt::{Display, Write},
    marker::PhantomData,
    ptr::NonNull,
};
use kernel::{ffi::c_int, prelude::*, str::NullTerminatedFormatter};
use riw_bindings as bindings;

/// Details of an object, as they were at one moment. They hold no lock of the object, so that none
/// is held while the message is written.
pub trait Details: 'static {
    /// Writes the details. Keep them to a few hundred bytes: ib_core has filled part of the message
    /// already. Process context; may sleep.
    ///
    /// Fails if `to` does.
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull>;
}

/// For a driver that has none.
impl Details for Infallible {
    fn write(&self, _to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        match *self {}
    }
}

/// The netlink message has no room. ib_core puts the object into the next message, unless it is the
/// first of this one: then the dump never ends.
pub struct MessageFull;

/// Maximum length of a formatted value in bytes, with its NUL.
const TEXT_MAX: usize = 80;

/// Writes details, each a name and a value, to a netlink message (`struct sk_buff`). All methods:
/// process context; do not sleep. They fail if the message has no room.
///
/// `rdma` shows each name with `drv_` in front.
pub struct DetailsWriter<'a> {
    msg: NonNull<bindings::sk_buff>,
    _msg: PhantomData<&'a mut bindings::sk_buff>,
}

impl DetailsWriter<'_> {
    /// Writes a number (`rdma_nl_put_driver_u32()`, `core/nldev.c`).
    pub fn u32(&mut self, name: &CStr, value: u32) -> Result<(), MessageFull> {
        let (msg, name) = (self.msg.as_ptr(), name.as_char_ptr());

        // SAFETY: `add` lends the message to `self` alone. `name` is a NUL-terminated string, and
        // the function copies it.
        Self::check(unsafe { bindings::rdma_nl_put_driver_u32(msg, name, value) })
    }

    /// Writes a number that is shown in hexadecimal digits (`rdma_nl_put_driver_u32_hex()`,
    /// `core/nldev.c`).
    pub fn u32_hex(&mut self, name: &CStr, value: u32) -> Result<(), MessageFull> {
        let (msg, name) = (self.msg.as_ptr(), name.as_char_ptr());

        // SAFETY: `add` lends the message to `self` alone. `name` is a NUL-terminated string, and
        // the function copies it.
        Self::check(unsafe { bindings::rdma_nl_put_driver_u32_hex(msg, name, value) })
    }

    /// Writes a number (`rdma_nl_put_driver_u64()`, `core/nldev.c`).
    pub fn u64(&mut self, name: &CStr, value: u64) -> Result<(), MessageFull> {
        let (msg, name) = (self.msg.as_ptr(), name.as_char_ptr());

        // SAFETY: `add` lends the message to `self` alone. `name` is a NUL-terminated string, and
        // the function copies it.
        Self::check(unsafe { bindings::rdma_nl_put_driver_u64(msg, name, value) })
    }

    /// Writes a text (`rdma_nl_put_driver_string()`, `core/nldev.c`).
    pub fn text(&mut self, name: &CStr, value: &CStr) -> Result<(), MessageFull> {
        let (msg, name) = (self.msg.as_ptr(), name.as_char_ptr());

        // SAFETY: `add` lends the message to `self` alone. `name` and `value` are NUL-terminated
        // strings, and the function copies them.
        Self::check(unsafe { bindings::rdma_nl_put_driver_string(msg, name, value.as_char_ptr()) })
    }

    /// Writes a value as a text. A value longer than 79 bytes loses its parts from the first that
    /// does not fit.
    pub fn display(&mut self, name: &CStr, value: &impl Display) -> Result<(), MessageFull> {
        let mut text = [0u8; TEXT_MAX];

        if let Some(mut text) = NullTerminatedFormatter::new(&mut text) {
            // The parts that fit are left if it fails.
            let _ = core::write!(text, "{value}");
        }
        match CStr::from_bytes_until_nul(&text) {
            Ok(text) => self.text(name, text),
            // The formatter has written a NUL.
            Err(_) => Ok(()),
        }
    }

    /// The functions of nldev fail only if the message has no room.
    fn check(ret: c_int) -> Result<(), MessageFull> {
        match ret {
            0 => Ok(()),
            _ => Err(MessageFull),
        }
    }
}

/// Adds details to `msg`, in a nest of their own. Returns 0, or `EMSGSIZE` with nothing added.
///
/// # Safety
///
/// `msg` must be a valid message that nothing else accesses during the call.
unsafe fn add(msg: *mut bindings::sk_buff, details: &impl Details) -> c_int {
    let Some(mut writer) = NonNull::new(msg).map(|msg| DetailsWriter {
        msg,
        _msg: PhantomData,
    }) else {
        return EINVAL.to_errno();
    };
    // SAFETY: By the caller's promise only this call accesses the message.
    let Some(nest) = NonNull::new(unsafe { bindings::nldev_driver_nest(msg) }) else {
        return EMSGSIZE.to_errno();
    };

    match details.write(&mut writer) {
        // SAFETY: `nest` was started above in this message, and is neither ended nor cancelled.
        Ok(()) => unsafe {
            bindings::nla_nest_end(msg, nest.as_ptr());
            0
        },
        // SAFETY: `nest` was started above in this message, and is neither ended nor cancelled. The
        // function cuts off the message at its start.
        Err(MessageFull) => unsafe {
            bindings::nla_nest_cancel(msg, nest.as_ptr());
            EMSGSIZE.to_errno()
        },
    }
}

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    if T::Qp::HAS_DETAILS {
        ops.fill_res_qp_entry = Some(Callbacks::<T>::fill_res_qp_entry);
    }
    if T::Cq::HAS_DETAILS {
        ops.fill_res_cq_entry = Some(Callbacks::<T>::fill_res_cq_entry);
    }
    if T::Srq::HAS_DETAILS {
        ops.fill_res_srq_entry = Some(Callbacks::<T>::fill_res_srq_entry);
    }
    if T::Mr::HAS_DETAILS {
        ops.fill_res_mr_entry = Some(Callbacks::<T>::fill_res_mr_entry);
    }
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only ib_core may call it, as `fill_res_qp_entry` of a device of driver `T`.
    unsafe extern "C" fn fill_res_qp_entry(
        msg: *mut bindings::sk_buff,
        qp: *mut bindings::ib_qp,
    ) -> c_int {
        // SAFETY: nldev holds a reference to the entry of a queue pair that was created.
        // ib_destroy_qp_user() waits for it in rdma_restrack_begin_del(), before `destroy_qp`.
        // nldev lends its message.
        unsafe { add(msg, &T::Qp::details(Qp::<T>::from_raw(qp))) }
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `fill_res_cq_entry` of a device of driver `T`.
    unsafe extern "C" fn fill_res_cq_entry(
        msg: *mut bindings::sk_buff,
        cq: *mut bindings::ib_cq,
    ) -> c_int {
        // SAFETY: nldev holds a reference to the entry of a completion queue that was created.
        // ib_destroy_cq_user() waits for it in rdma_restrack_begin_del(), before `destroy_cq`.
        // nldev lends its message.
        unsafe { add(msg, &T::Cq::details(Cq::<T>::from_raw(cq))) }
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `fill_res_srq_entry` of a device of driver `T`.
    unsafe extern "C" fn fill_res_srq_entry(
        msg: *mut bindings::sk_buff,
        srq: *mut bindings::ib_srq,
    ) -> c_int {
        // SAFETY: nldev holds a reference to the entry of a shared receive queue that was created.
        // ib_destroy_srq_user() waits for it in rdma_restrack_begin_del(), before `destroy_srq`.
        // nldev lends its message.
        unsafe { add(msg, &T::Srq::details(Srq::<T>::from_raw(srq))) }
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `fill_res_mr_entry` of a device of driver `T`.
    unsafe extern "C" fn fill_res_mr_entry(
        msg: *mut bindings::sk_buff,
        mr: *mut bindings::ib_mr,
    ) -> c_int {
        // SAFETY: nldev holds a reference to the entry of a region that `reg_user_mr` created; its
        // ib_mr is the start of an `MrBase`. ib_dereg_mr_user() waits for the reference in
        // rdma_restrack_del(), before `dereg_mr`. nldev lends its message.
        unsafe {
            add(
                msg,
                &T::Mr::details(Mr::<T>::from_base(mr.cast::<MrBase>())),
            )
        }
    }
}
