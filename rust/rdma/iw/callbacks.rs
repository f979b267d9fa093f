// SPDX-License-Identifier: GPL-2.0

//! The C callbacks that call [`CmOperations`].

use super::{
    private_data,
    Backlog,
    CmId,
    CmOperations,
    ConnParam,
    ProviderData,
    Rejection,
    Setup, //
};
use crate::{
    device::Device,
    qp::{callbacks::qp_of_caller, Qp},
};
use core::ptr::{self, NonNull};
use kernel::{
    error::from_result,
    ffi::{c_int, c_void},
    prelude::*,
    sync::aref::ARef,
};
use kernel_ext::net::{addr, Netns};
use riw_bindings as bindings;

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: CmOperations>(
    mut ops: bindings::ib_device_ops,
) -> bindings::ib_device_ops {
    ops.iw_connect = Some(connect::<T>);
    ops.iw_accept = Some(accept::<T>);
    ops.iw_reject = Some(reject::<T>);
    ops.iw_create_listen = Some(create_listen::<T>);
    ops.iw_destroy_listen = Some(destroy_listen::<T>);
    ops
}

/// Returns the device of an id. Any context.
///
/// # Safety
///
/// `id` must be one that iw_cm passes to a callback of driver `T`, and only used during that
/// callback.
unsafe fn device<'a, T: CmOperations>(id: *mut bindings::iw_cm_id) -> &'a Device<T> {
    // SAFETY: By the caller's promise iw_cm passed `id` to a callback of `T`, so it is alive and
    // its device is one of `T`. iw_cm destroys ids before their device is unregistered, so the data
    // of the device is initialized.
    unsafe { Device::from_raw((*id).device) }
}

/// # Safety
///
/// Only iw_cm may call this, with a live id of a device of driver `T` and valid parameters.
unsafe extern "C" fn connect<T: CmOperations>(
    id: *mut bindings::iw_cm_id,
    param: *mut bindings::iw_cm_conn_param,
) -> c_int {
    from_result(|| {
        // SAFETY: iw_cm passes a live id of a device of `T`, whose addresses it does not change
        // during the call, and valid parameters. rdma_cm is calling for it, so its own part of the
        // id exists. `iw_cm_id_net` returns null or a namespace with a reference.
        unsafe {
            let setup = Setup::from_raw(id)?;
            let home = Netns::from_raw(bindings::iw_cm_id_net(id));
            let remote = addr::from_storage(&(*id).m_remote_addr).ok_or(EAFNOSUPPORT)?;
            let param = ConnParam::from_raw(id, param);
            let dev = device::<T>(id);
            let qp = qp_of_caller(dev, param.qpn).ok_or(EINVAL)?;

            T::connect(dev, &*id.cast(), &setup, home, &remote, &qp, &param)?;
        }
        Ok(0)
    })
}

/// # Safety
///
/// Only iw_cm may call this, with a live id that it made for an [`CmEvent::ConnectRequest`] of
/// driver `T`, and valid parameters.
unsafe extern "C" fn accept<T: CmOperations>(
    id: *mut bindings::iw_cm_id,
    param: *mut bindings::iw_cm_conn_param,
) -> c_int {
    from_result(|| {
        // SAFETY: iw_cm passes valid parameters and a live id that it made for a connect request of
        // `T`. rdma_cm lets one consumer at a time accept or reject it, so `provider_data` does not
        // change meanwhile. If an earlier accept has set it, iw_cm had a reference to that queue
        // pair, as `accept_again` requires: before it called this, iw_cm took one by the number in
        // `param`, and `qp_of_caller` finds no other queue pair by it meanwhile.
        unsafe {
            let param = ConnParam::from_raw(id, param);
            let dev = device::<T>(id);
            let cm_id = &*id.cast::<CmId>();

            let qp = match ProviderData::of(id) {
                ProviderData::Reported(token) => {
                    let qp = qp_of_caller(dev, param.qpn);

                    T::accept(dev, cm_id, token, qp.as_deref(), &param)?;
                    qp
                }
                ProviderData::Accepted(first) => {
                    // `accept_again` drops the reference to `first`, even if it fails.
                    (*id).provider_data = ProviderData::Accepted(None).into_raw();
                    accept_again::<T>(dev, cm_id, first, &param)?
                }
            };
            let qp = qp.as_ref().and_then(|qp| NonNull::new(qp.raw()));
            (*id).provider_data = ProviderData::Accepted(qp).into_raw();
        }
        Ok(0)
    })
}

/// Handles a second accept of an id whose connection belongs to `first`, and drops the id's
/// reference to `first`. Process context; may sleep.
///
/// Returns the second queue pair, if it is not being destroyed. Fails with `EINVAL` if no event of
/// the id is queued: then the error is no `BUG()` in iw_cm.
///
/// # Safety
///
/// Until this accept iw_cm must have had a reference to `first` on behalf of the id.
unsafe fn accept_again<T: CmOperations>(
    dev: &Device<T>,
    id: &CmId,
    first: Option<NonNull<bindings::ib_qp>>,
    param: &ConnParam<'_>,
) -> Result<Option<ARef<Qp<T>>>> {
    // SAFETY: By the caller's promise iw_cm had a reference to `first`. It has overwritten the
    // pointer by the second queue pair without dropping that reference, so the `ARef` owns it from
    // here on.
    let first = first.map(|first| unsafe { ARef::<Qp<T>>::from_raw(first.cast()) });

    if first.is_none_or(|first| T::abandon(id, &first)) {
        // iw_cm has a reference to it, also if it is being destroyed.
        Ok(dev.find_qp(param.qpn, true))
    } else {
        Err(EINVAL)
    }
}

/// # Safety
///
/// Only iw_cm may call this, with a live id that it made for an [`CmEvent::ConnectRequest`] of
/// driver `T`, and `data` that is null or valid for `len` bytes.
unsafe extern "C" fn reject<T: CmOperations>(
    id: *mut bindings::iw_cm_id,
    data: *const c_void,
    len: u8,
) -> c_int {
    from_result(|| {
        // SAFETY: iw_cm passes a live id that it made for a connect request of `T`, and `data` that
        // is null or valid for `len` bytes. rdma_cm lets one consumer at a time accept or reject
        // the id, so `provider_data` does not change meanwhile. If it is a queue pair, iw_cm keeps
        // its reference to it until the id is destroyed.
        unsafe {
            match ProviderData::of(id) {
                ProviderData::Reported(token) => {
                    let rejection = Rejection {
                        private_data: private_data(data, len.into()),
                        // rdma_ucm passes its own buffer, even if that is empty. iw_cm handles a
                        // connect request in a work item, and rejects it there if rdma_cm or the
                        // consumer's handler fails. A call of a process runs in none.
                        by_handler: data.is_null() && !bindings::current_work().is_null(),
                    };
                    T::reject(device(id), token, &rejection)?;
                }
                ProviderData::Accepted(qp) => {
                    if let Some(qp) = qp {
                        // iw_cm keeps its reference to `qp`.
                        T::abandon(&*id.cast(), Qp::<T>::from_raw(qp.as_ptr()));
                    }
                    return Err(EINVAL);
                }
            }
        }
        Ok(0)
    })
}

/// # Safety
///
/// Only iw_cm may call this, with a live id of a device of driver `T`.
unsafe extern "C" fn create_listen<T: CmOperations>(
    id: *mut bindings::iw_cm_id,
    backlog: c_int,
) -> c_int {
    from_result(|| {
        // SAFETY: iw_cm passes a live id of a device of `T`, whose addresses it does not change
        // during the call. rdma_cm is calling for it, so its own part of the id exists.
        // `iw_cm_id_net` returns null or a namespace with a reference. iw_cm leaves
        // `provider_data` of a listening id to the provider.
        unsafe {
            let setup = Setup::from_raw(id)?;
            let home = Netns::from_raw(bindings::iw_cm_id_net(id));
            let backlog = Backlog {
                consumer: bindings::iw_cm_id_consumer(id).addr(),
                size: u32::try_from(backlog).unwrap_or(0),
            };
            let token = T::create_listen(device(id), &*id.cast(), &setup, home, backlog)?;

            (*id).provider_data = ptr::without_provenance_mut(token);
        }
        Ok(0)
    })
}

/// # Safety
///
/// Only iw_cm may call this, with a live id for which [`create_listen`] has succeeded.
unsafe extern "C" fn destroy_listen<T: CmOperations>(id: *mut bindings::iw_cm_id) -> c_int {
    from_result(|| {
        // SAFETY: iw_cm passes a live id of a device of `T` for which `create_listen` has
        // succeeded, so `provider_data` is its token.
        unsafe { T::destroy_listen(device(id), (*id).provider_data.addr())? };
        Ok(0)
    })
}
