// SPDX-License-Identifier: GPL-2.0

//! Connection management of iWARP devices.
//!
//! iw_cm calls a provider to connect, accept, reject and listen ([`CmOperations`]), and is told by
//! events what came of it ([`CmId::event`]). It trusts its providers: an event that its state does
//! not allow for is a `BUG()` there. The rules, which a provider has to keep:
//!
//! - An error returned by `connect` or `accept` precludes events, before and after.
//! - After `connect` has been called and unless it failed, one [`Event::ConnectReply`] must come,
//!   since destruction of the id waits for it. If its status is an error it is the last event.
//! - After `accept` has been called and unless it failed, one [`Event::Established`] must come, for
//!   the same reason, whatever happens to the connection.
//! - [`Event::Close`] is the last event of a connection, and comes at most once, after one of those.
//!   [`Event::Disconnect`] may come before it.
//! - iw_cm lets a consumer accept or reject an id again until it has processed that
//!   [`Event::Established`], which is a `BUG()` then or later if the second call fails and the event
//!   comes nevertheless, or is on its way: see [`CmOperations::abandon`].
//! - A [`Event::ConnectRequest`] that iw_cm has taken is answered by `accept` or `reject`; or not at
//!   all, if the listening id is destroyed or memory is short meanwhile: the provider is not told.
//!
//! C header: `include/rdma/iw_cm.h`

use crate::{device::Device, qp::Qp, Driver};
use core::{
    net::SocketAddr,
    ptr::{self, NonNull},
    slice,
};
use kernel::{
    error::{from_result, to_result},
    ffi::{c_char, c_int, c_void},
    prelude::*,
    sync::aref::{ARef, AlwaysRefCounted},
    types::Opaque,
};
use net::addr;
use riw_bindings as bindings;

/// Keeps iw_cm loaded: it is called by pointers that its ids carry ([`CmId`]), which make no
/// dependency of modules.
#[used]
static IW_CM: unsafe extern "C" fn(c_int) -> *const c_char = bindings::iwcm_reject_msg;

/// One end of a connection, or a listener, as iw_cm has it (`struct iw_cm_id`).
///
/// An [`ARef<CmId>`] keeps the memory and nothing else: iw_cm may have destroyed the id meanwhile,
/// and drops the events that come then.
#[repr(transparent)]
pub struct CmId(Opaque<bindings::iw_cm_id>);

// SAFETY: iw_cm locks its ids; what it does not lock is not reachable from here.
unsafe impl Send for CmId {}
// SAFETY: As above.
unsafe impl Sync for CmId {}

// SAFETY: iw_cm counts references by these functions, and frees the id with the last one.
unsafe impl AlwaysRefCounted for CmId {
    fn inc_ref(&self) {
        // SAFETY: The id is valid, and its functions are set when it is made, for good.
        unsafe {
            if let Some(add_ref) = (*self.0.get()).add_ref {
                add_ref(self.0.get());
            }
        }
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        let id = obj.as_ptr().cast::<bindings::iw_cm_id>();

        // SAFETY: As above; the caller owns a reference.
        unsafe {
            if let Some(rem_ref) = (*id).rem_ref {
                rem_ref(id);
            }
        }
    }
}

/// Something that happened to a connection.
pub enum Event<'a> {
    /// To a listener: a peer wants to connect.
    ConnectRequest {
        /// The address that the peer connects to.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
        /// Read depths and private data of the request.
        offer: Offer<'a>,
        /// What `accept` or `reject` is to be called with.
        token: usize,
    },
    /// The answer to `connect`.
    ConnectReply {
        /// `Err` if there is no connection: with `ECONNREFUSED` if the peer rejected it,
        /// `ECONNRESET` if the peer's TCP did, `ETIMEDOUT` if it did not answer.
        status: Result,
        /// This end's address.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
        /// Read depths and private data of the reply.
        offer: Offer<'a>,
    },
    /// The connection that `accept` has accepted is there.
    Established {
        /// `Err` if the connection was lost before.
        status: Result,
        /// The read depths.
        offer: Offer<'static>,
    },
    /// The connection is about to end: iw_cm need not end it any more.
    Disconnect,
    /// The connection has ended.
    Close,
}

/// What comes with a request or a reply.
#[derive(Clone, Copy, Default)]
pub struct Offer<'a> {
    /// Inbound read depth.
    pub ird: u32,
    /// Outbound read depth.
    pub ord: u32,
    /// Private data, 255 bytes at most.
    pub private_data: &'a [u8],
}

impl CmId {
    /// The longest private data that iw_cm can pass on.
    pub const PRIVATE_DATA_MAX: usize = u8::MAX as usize;

    /// Tells iw_cm of something that happened. See the rules above. Any context.
    ///
    /// `ENOMEM` if iw_cm could not take it: more connections wait than the backlog allows, or there
    /// is no memory to copy private data to. `EINVAL` if those are too long. Events without
    /// private data of a connection are always taken.
    pub fn event(&self, event: &Event<'_>) -> Result {
        let mut raw = bindings::iw_cm_event::default();

        match event {
            Event::ConnectRequest {
                local,
                remote,
                offer,
                token,
            } => {
                raw.event = bindings::iw_cm_event_type_IW_CM_EVENT_CONNECT_REQUEST;
                raw.local_addr = addr::to_storage(local);
                raw.remote_addr = addr::to_storage(remote);
                raw.provider_data = Provider::Reported(*token).into_raw();
                offer.fill(&mut raw)?;
            }
            Event::ConnectReply {
                status,
                local,
                remote,
                offer,
            } => {
                raw.event = bindings::iw_cm_event_type_IW_CM_EVENT_CONNECT_REPLY;
                raw.status = to_errno(*status);
                raw.local_addr = addr::to_storage(local);
                raw.remote_addr = addr::to_storage(remote);
                offer.fill(&mut raw)?;
            }
            Event::Established { status, offer } => {
                raw.event = bindings::iw_cm_event_type_IW_CM_EVENT_ESTABLISHED;
                raw.status = to_errno(*status);
                offer.fill(&mut raw)?;
            }
            Event::Disconnect => {
                raw.event = bindings::iw_cm_event_type_IW_CM_EVENT_DISCONNECT;
            }
            Event::Close => {
                raw.event = bindings::iw_cm_event_type_IW_CM_EVENT_CLOSE;
            }
        }

        // SAFETY: The id is valid. iw_cm copies the event, and its private data where it has some.
        unsafe {
            match (*self.0.get()).event_handler {
                Some(handler) => to_result(handler(self.0.get(), &mut raw)),
                None => Err(EINVAL),
            }
        }
    }
}

impl Offer<'_> {
    fn fill(&self, raw: &mut bindings::iw_cm_event) -> Result {
        raw.ird = u8::try_from(self.ird).unwrap_or(u8::MAX);
        raw.ord = u8::try_from(self.ord).unwrap_or(u8::MAX);
        raw.private_data_len = u8::try_from(self.private_data.len()).map_err(|_| EINVAL)?;
        if !self.private_data.is_empty() {
            // It is not written to.
            raw.private_data = self.private_data.as_ptr().cast_mut().cast();
        }
        Ok(())
    }
}

fn to_errno(status: Result) -> c_int {
    status.map_or_else(|err| err.to_errno(), |()| 0)
}

/// What the provider keeps with the id of a connection that was reported (`provider_data`).
enum Provider {
    /// It has not been accepted. The token of its report.
    Reported(usize),
    /// It has been accepted, for this queue pair: the one to which iw_cm has a reference on behalf of
    /// the id. `None`: not known.
    Accepted(Option<NonNull<bindings::ib_qp>>),
}

impl Provider {
    /// As a pointer: queue pairs are aligned, tokens are made odd.
    fn into_raw(self) -> *mut c_void {
        match self {
            Self::Reported(token) => ptr::without_provenance_mut(token << 1 | 1),
            Self::Accepted(qp) => qp.map_or(ptr::null_mut(), |qp| qp.as_ptr().cast()),
        }
    }

    /// # Safety
    ///
    /// `id` must be valid, and made by iw_cm for an [`Event::ConnectRequest`]; `provider_data` must
    /// not be changed meanwhile.
    unsafe fn of(id: *mut bindings::iw_cm_id) -> Self {
        // SAFETY: As the caller says.
        let raw = unsafe { (*id).provider_data };

        if raw.addr() & 1 != 0 {
            Self::Reported(raw.addr() >> 1)
        } else {
            Self::Accepted(NonNull::new(raw.cast()))
        }
    }
}

/// What a consumer wants of a connection (`struct iw_cm_conn_param`).
#[derive(Clone, Copy)]
pub struct ConnParam<'a> {
    /// To be sent to the peer.
    pub private_data: &'a [u8],
    /// Inbound read depth.
    pub ird: u32,
    /// Outbound read depth.
    pub ord: u32,
    /// The number of the queue pair.
    pub qpn: u32,
}

impl ConnParam<'_> {
    /// # Safety
    ///
    /// `raw` must be valid, and its private data too, for `'a`.
    unsafe fn from_raw<'a>(raw: *mut bindings::iw_cm_conn_param) -> ConnParam<'a> {
        // SAFETY: As the caller says.
        unsafe {
            ConnParam {
                private_data: private_data((*raw).private_data, (*raw).private_data_len.into()),
                ird: (*raw).ird,
                ord: (*raw).ord,
                qpn: (*raw).qpn,
            }
        }
    }
}

/// # Safety
///
/// `data` must be null, or valid for `len` bytes for `'a`.
unsafe fn private_data<'a>(data: *const c_void, len: usize) -> &'a [u8] {
    if data.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: As the caller says.
    unsafe { slice::from_raw_parts(data.cast(), len) }
}

/// What the consumer has set of an id before it is connected or listens.
#[derive(Clone, Copy)]
pub struct Setup {
    /// The address of this end.
    pub local: SocketAddr,
    /// The type of service, if it was set.
    pub tos: Option<u8>,
    /// A wildcard address of IPv6 is for that only, and not for IPv4.
    pub family_only: bool,
}

impl Setup {
    /// # Safety
    ///
    /// `id` must be valid, with its addresses not being changed.
    unsafe fn from_raw(id: *mut bindings::iw_cm_id) -> Result<Self> {
        // No reference to all of the id: iw_cm changes other fields of it meanwhile.
        // SAFETY: As the caller says.
        unsafe {
            Ok(Self {
                local: addr::from_storage(&(*id).m_local_addr).ok_or(EAFNOSUPPORT)?,
                tos: bindings::iw_cm_id::tos_set_raw(id).then_some((*id).tos),
                family_only: bindings::iw_cm_id::afonly_raw(id),
            })
        }
    }
}

/// The connection management that a provider offers.
///
/// All are called in process context and may sleep; but iw_cm's own consumers wait for them with
/// locks held, so they should not wait for a peer.
pub trait CmOperations: Driver {
    /// Connects the queue pair that `param` names to `remote`, and tells by
    /// [`Event::ConnectReply`] when that is done.
    fn connect(
        dev: &Device<Self>,
        id: &CmId,
        setup: &Setup,
        remote: &SocketAddr,
        param: &ConnParam<'_>,
    ) -> Result;

    /// Accepts the connection that was reported with `token`, for the queue pair that `param`
    /// names, and tells by [`Event::Established`] when that is done.
    ///
    /// Returns the queue pair, as [`Driver::qp_by_number`] does. If it fails the consumer cannot
    /// reject the connection any more.
    fn accept(
        dev: &Device<Self>,
        id: &CmId,
        token: usize,
        param: &ConnParam<'_>,
    ) -> Result<ARef<Qp<Self>>>;

    /// Ends the connection that was accepted by `id` for `qp`: the consumer accepts or rejects the
    /// id once more. If [`Event::Established`] has not been reported by now, it must not be, nor any
    /// other event.
    ///
    /// Returns whether it has been reported.
    fn abandon(id: &CmId, qp: &Qp<Self>) -> bool;

    /// Rejects the connection that was reported with `token`. No event follows.
    fn reject(dev: &Device<Self>, token: usize, private_data: &[u8]) -> Result;

    /// Begins to listen; each connection is reported to `id` by [`Event::ConnectRequest`].
    ///
    /// Returns a token for [`Self::destroy_listen`].
    fn create_listen(dev: &Device<Self>, id: &CmId, setup: &Setup, backlog: u32) -> Result<usize>;

    /// Ends listening. Afterwards no event comes to the id.
    fn destroy_listen(dev: &Device<Self>, token: usize) -> Result;
}

/// Adds the callbacks of `T` to a table of operations.
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

/// The device of an id.
///
/// # Safety
///
/// `id` must be one that iw_cm calls a provider's callbacks with, for a device of driver `T`.
unsafe fn device<'a, T: CmOperations>(id: *mut bindings::iw_cm_id) -> &'a Device<T> {
    // SAFETY: As the caller says. Ids are destroyed before their device is unregistered, and
    // callbacks called with living ones only.
    unsafe { Device::from_raw((*id).device) }
}

/// # Safety
///
/// To be called by iw_cm.
unsafe extern "C" fn connect<T: CmOperations>(
    id: *mut bindings::iw_cm_id,
    param: *mut bindings::iw_cm_conn_param,
) -> c_int {
    from_result(|| {
        // SAFETY: iw_cm passes a valid id, which it does not change meanwhile, and valid
        // parameters.
        unsafe {
            let setup = Setup::from_raw(id)?;
            let remote = addr::from_storage(&(*id).m_remote_addr).ok_or(EAFNOSUPPORT)?;
            let param = ConnParam::from_raw(param);

            T::connect(device(id), &*id.cast(), &setup, &remote, &param)?;
        }
        Ok(0)
    })
}

/// # Safety
///
/// To be called by iw_cm.
unsafe extern "C" fn accept<T: CmOperations>(
    id: *mut bindings::iw_cm_id,
    param: *mut bindings::iw_cm_conn_param,
) -> c_int {
    from_result(|| {
        // SAFETY: iw_cm passes a valid id and valid parameters. The id was made for a connection
        // that was reported. rdma_cm has one consumer at a time accept or reject it.
        unsafe {
            let param = ConnParam::from_raw(param);
            let dev = device::<T>(id);
            let cm_id = &*id.cast::<CmId>();

            let qp = match Provider::of(id) {
                Provider::Reported(token) => Some(T::accept(dev, cm_id, token, &param)?),
                Provider::Accepted(first) => accept_again::<T>(dev, cm_id, first, &param)?,
            };
            // iw_cm has a reference to the same: a number is not given to another queue pair while
            // there is one.
            let qp = qp.as_ref().and_then(|qp| NonNull::new(qp.base()));
            (*id).provider_data = Provider::Accepted(qp).into_raw();
        }
        Ok(0)
    })
}

/// A second accept of an id, whose connection `first` has. Returns the second one's queue pair, if it
/// is not being destroyed.
///
/// If iw_cm has an event of the id to process, an error would be a `BUG()`.
///
/// # Safety
///
/// iw_cm must have had a reference to `first` on behalf of the id until this accept.
unsafe fn accept_again<T: CmOperations>(
    dev: &Device<T>,
    id: &CmId,
    first: Option<NonNull<bindings::ib_qp>>,
    param: &ConnParam<'_>,
) -> Result<Option<ARef<Qp<T>>>> {
    // SAFETY: iw_cm has overwritten its reference by that to the second queue pair, and forgotten it.
    // As the caller says it had one, which is owned here now.
    let first = first.map(|first| unsafe { ARef::<Qp<T>>::from_raw(first.cast()) });

    if first.is_none_or(|first| T::abandon(id, &first)) {
        Ok(T::qp_by_number(dev, param.qpn))
    } else {
        Err(EINVAL)
    }
}

/// # Safety
///
/// To be called by iw_cm.
unsafe extern "C" fn reject<T: CmOperations>(
    id: *mut bindings::iw_cm_id,
    data: *const c_void,
    len: u8,
) -> c_int {
    from_result(|| {
        // SAFETY: iw_cm passes a valid id and valid data. The id was made for a connection that was
        // reported. rdma_cm has one consumer at a time accept or reject it.
        unsafe {
            match Provider::of(id) {
                Provider::Reported(token) => {
                    T::reject(device(id), token, private_data(data, len.into()))?;
                }
                Provider::Accepted(qp) => {
                    if let Some(qp) = qp {
                        // iw_cm keeps its reference to the queue pair until the id is destroyed.
                        T::abandon(&*id.cast(), Qp::<T>::from_base(qp.as_ptr()));
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
/// To be called by iw_cm.
unsafe extern "C" fn create_listen<T: CmOperations>(
    id: *mut bindings::iw_cm_id,
    backlog: c_int,
) -> c_int {
    from_result(|| {
        let backlog = u32::try_from(backlog).unwrap_or(0);

        // SAFETY: iw_cm passes a valid id, which it does not change meanwhile. `provider_data` is
        // for the provider only.
        unsafe {
            let setup = Setup::from_raw(id)?;
            let token = T::create_listen(device(id), &*id.cast(), &setup, backlog)?;

            (*id).provider_data = ptr::without_provenance_mut(token);
        }
        Ok(0)
    })
}

/// # Safety
///
/// To be called by iw_cm.
unsafe extern "C" fn destroy_listen<T: CmOperations>(id: *mut bindings::iw_cm_id) -> c_int {
    from_result(|| {
        // SAFETY: iw_cm passes a valid id, for which `create_listen` has succeeded.
        unsafe { T::destroy_listen(device(id), (*id).provider_data.addr())? };
        Ok(0)
    })
}

/// A counted reference to a [`CmId`].
pub type CmIdRef = ARef<CmId>;
