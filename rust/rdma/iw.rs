// SPDX-License-Identifier: GPL-2.0

//! Connection management of iWARP devices.
//!
//! iw_cm calls a provider to connect, accept, reject and listen ([`CmOperations`]). The provider
//! reports the results by events ([`CmId::event`]). iw_cm trusts its providers: an event that is
//! invalid in its state is a `BUG()`, and without an event that it expects it waits forever. No
//! event corrupts memory: iw_cm counts the references to an id and clears its pointer to the queue
//! pair under the lock of the id, drops events of an id that is destroyed, and copies what an event
//! borrows. A provider must keep these rules:
//!
//! - If `connect` or `accept` fails, no event may follow, nor precede the failure.
//! - If `connect` succeeds, exactly one [`CmEvent::ConnectReply`] must follow: destruction of the
//!   id waits for it. If its status is an error, it is the last event.
//! - If `accept` succeeds, exactly one [`CmEvent::Established`] must follow, whatever happens to
//!   the connection: destruction of the id waits for it.
//! - [`CmEvent::Close`] is the last event of a connection. It may follow one of those two, at most
//!   once. [`CmEvent::Disconnect`] may precede it.
//! - Until iw_cm has processed [`CmEvent::Established`], a consumer can accept or reject the id
//!   again. If that second call fails and the event still comes, or is already queued, iw_cm hits a
//!   `BUG()`: see [`CmOperations::abandon`].
//! - iw_cm answers a [`CmEvent::ConnectRequest`] that it has taken by `accept` or `reject`. If the
//!   listening id is destroyed or memory is short meanwhile, it does not answer, and the provider
//!   is not informed.
//!
//! C header: `include/rdma/iw_cm.h`. C source: `core/iwcm.c`

pub(crate) mod callbacks;

use crate::{device::Device, qp::Qp, Driver};
use core::{
    net::SocketAddr,
    ptr::{self, NonNull},
    slice,
};
use kernel::{
    error::to_result,
    ffi::{c_char, c_int, c_void},
    prelude::*,
    sync::aref::AlwaysRefCounted,
    types::Opaque,
};
use kernel_ext::net::{addr, Netns};
use riw_bindings as bindings;

/// Keeps iw_cm loaded. This crate calls it by function pointers in its ids ([`CmId`]), which create
/// no module dependency; a symbol of iw_cm does.
#[used(compiler)]
static IW_CM: unsafe extern "C" fn(c_int) -> *const c_char = bindings::iwcm_reject_msg;

/// A connection endpoint or a listener of iw_cm (`struct iw_cm_id`, `include/rdma/iw_cm.h`).
///
/// An [`ARef<CmId>`] keeps only the memory. iw_cm may have destroyed the id, and drops events for
/// it then.
#[repr(transparent)]
pub struct CmId(Opaque<bindings::iw_cm_id>);

// SAFETY: An id belongs to no thread: iw_cm locks it, and its reference count is atomic.
unsafe impl Send for CmId {}
// SAFETY: `&self` allows only events and references, which iw_cm accepts from any thread under its
// own lock. No other field is reachable.
unsafe impl Sync for CmId {}

// SAFETY: `add_ref` and `rem_ref` of the id count its references. iw_cm frees the id with the last
// one.
unsafe impl AlwaysRefCounted for CmId {
    fn inc_ref(&self) {
        // SAFETY: `self` is a live id. iw_cm sets `add_ref` when it creates an id, and does not
        // change it.
        unsafe {
            if let Some(add_ref) = (*self.0.get()).add_ref {
                add_ref(self.0.get());
            }
        }
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        let id = obj.as_ptr().cast::<bindings::iw_cm_id>();

        // SAFETY: The caller owns a reference, so the id is alive until `rem_ref` drops it. iw_cm
        // sets `rem_ref` when it creates an id, and does not change it.
        unsafe {
            if let Some(rem_ref) = (*id).rem_ref {
                rem_ref(id);
            }
        }
    }
}

/// An event of a connection (`struct iw_cm_event`, `include/rdma/iw_cm.h`).
pub enum CmEvent<'a> {
    /// For a listener: a peer requests a connection.
    ConnectRequest {
        /// The local address of the connection.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
        /// Read depths and private data of the request.
        offer: Offer<'a>,
        /// The provider's token for the request, which `accept` or `reject` gets. Its highest bit
        /// is lost.
        token: usize,
    },
    /// The result of `connect`.
    ConnectReply {
        /// `Err` if there is no connection: `ECONNREFUSED` if the peer rejected it, `ECONNRESET` if
        /// the peer's TCP reset it, `ETIMEDOUT` if the peer did not answer.
        status: Result,
        /// The local address of the connection.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
        /// Read depths and private data of the reply.
        offer: Offer<'a>,
    },
    /// The result of `accept`.
    Established {
        /// `Err` if the connection was lost before it was established.
        status: Result,
        /// The read depths of the connection.
        offer: Offer<'static>,
    },
    /// The connection is about to end; iw_cm need not end it.
    Disconnect,
    /// The connection has ended.
    Close,
}

/// Read depths and private data of a connect request or reply.
#[derive(Clone, Copy, Default)]
pub struct Offer<'a> {
    /// Inbound read depth, in RDMA Reads.
    pub ird: u32,
    /// Outbound read depth, in RDMA Reads.
    pub ord: u32,
    /// Private data, at most [`CmId::PRIVATE_DATA_MAX`] bytes.
    pub private_data: &'a [u8],
}

impl CmId {
    /// The maximum length of private data in an event, in bytes.
    pub const PRIVATE_DATA_MAX: usize = u8::MAX as usize;

    /// Reports an event to iw_cm (`cm_event_handler()`, `core/iwcm.c`). See the rules of this
    /// module. Any context.
    ///
    /// Fails with `ENOMEM` if more connect requests are pending than the backlog allows, or without
    /// memory for private data; `EINVAL` if the private data is too long. Other events of a
    /// connection do not fail: iw_cm preallocates them.
    pub fn event(&self, event: &CmEvent<'_>) -> Result {
        let mut raw = bindings::iw_cm_event::default();

        match event {
            CmEvent::ConnectRequest {
                local,
                remote,
                offer,
                token,
            } => {
                raw.event = bindings::iw_cm_event_type_IW_CM_EVENT_CONNECT_REQUEST;
                raw.local_addr = addr::to_storage(local);
                raw.remote_addr = addr::to_storage(remote);
                raw.provider_data = ProviderData::Reported(*token).into_raw();
                offer.fill(&mut raw)?;
            }
            CmEvent::ConnectReply {
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
            CmEvent::Established { status, offer } => {
                raw.event = bindings::iw_cm_event_type_IW_CM_EVENT_ESTABLISHED;
                raw.status = to_errno(*status);
                offer.fill(&mut raw)?;
            }
            CmEvent::Disconnect => {
                raw.event = bindings::iw_cm_event_type_IW_CM_EVENT_DISCONNECT;
            }
            CmEvent::Close => {
                raw.event = bindings::iw_cm_event_type_IW_CM_EVENT_CLOSE;
            }
        }

        // SAFETY: `self` is a live id. iw_cm copies the event, and the private data of a connect
        // request or reply, before the handler returns. It keeps a pointer to the private data of
        // an [`CmEvent::Established`], which is static.
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
            // iw_cm does not write to it.
            raw.private_data = self.private_data.as_ptr().cast_mut().cast();
        }
        Ok(())
    }
}

fn to_errno(status: Result) -> c_int {
    status.map_or_else(|err| err.to_errno(), |()| 0)
}

/// The `provider_data` of the id of a reported connection.
enum ProviderData {
    /// Not yet accepted. The token of the request.
    Reported(usize),
    /// Accepted for this queue pair. iw_cm holds a reference to it on behalf of the id. `None` if
    /// it is unknown.
    Accepted(Option<NonNull<bindings::ib_qp>>),
}

impl ProviderData {
    /// Encodes the value as a pointer. Queue pairs are aligned, so an odd pointer is a token.
    fn into_raw(self) -> *mut c_void {
        match self {
            Self::Reported(token) => ptr::without_provenance_mut(token << 1 | 1),
            Self::Accepted(qp) => qp.map_or(ptr::null_mut(), |qp| qp.as_ptr().cast()),
        }
    }

    /// # Safety
    ///
    /// `id` must be a live id that iw_cm made for an [`CmEvent::ConnectRequest`]. `provider_data`
    /// must not change during the call.
    unsafe fn of(id: *mut bindings::iw_cm_id) -> Self {
        // SAFETY: By the caller's promise the id is alive and `provider_data` does not change.
        let raw = unsafe { (*id).provider_data };

        if raw.addr() & 1 != 0 {
            Self::Reported(raw.addr() >> 1)
        } else {
            Self::Accepted(NonNull::new(raw.cast()))
        }
    }
}

/// The connection parameters of a consumer (`struct iw_cm_conn_param`, `include/rdma/iw_cm.h`).
#[derive(Clone, Copy)]
pub struct ConnParam<'a> {
    /// Private data to send to the peer, at most 255 bytes.
    pub private_data: &'a [u8],
    /// Inbound read depth, in RDMA Reads.
    pub ird: u32,
    /// Outbound read depth, in RDMA Reads.
    pub ord: u32,
    /// The number of the queue pair.
    pub qpn: u32,
    /// The consumer that supplies that number.
    pub consumer: Consumer,
}

/// The backlog of a consumer that listens.
#[derive(Clone, Copy)]
pub struct Backlog {
    /// Stands for the consumer: the same value for all devices on which rdma_cm listens for it. A
    /// number, not to be used as an address.
    pub consumer: usize,
    /// The number of connect requests for which iw_cm, for a listening id, and rdma_cm, for the
    /// consumer, have room.
    pub size: u32,
}

/// The rejection of a connect request.
#[derive(Clone, Copy)]
pub struct Rejection<'a> {
    /// Private data for the peer, at most 255 bytes.
    pub private_data: &'a [u8],
    /// The request is rejected from a work item, without private data. Often the consumer has not
    /// seen it: the backlog of a process is full (`ucma_connect_event_handler()`, `core/ucma.c`),
    /// memory is short, or a process has ended. But a kernel user may have decided so, in its
    /// handler or in a work item.
    pub by_handler: bool,
}

/// The consumer of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Consumer {
    /// A process. It supplies the number of a queue pair, which may be any.
    Process,
    /// A kernel user, for the queue pair at this address.
    Kernel(usize),
}

impl Consumer {
    /// # Safety
    ///
    /// `id` must be one that iw_cm passes to `iw_connect` or `iw_accept`, during that call.
    unsafe fn of(id: *mut bindings::iw_cm_id) -> Self {
        // SAFETY: By the caller's promise rdma_cm is calling for the id, so its own part exists.
        let qp = unsafe { bindings::iw_cm_id_qp(id) };

        match qp.is_null() {
            true => Self::Process,
            false => Self::Kernel(qp.addr()),
        }
    }

    /// Whether the running task may call rdma_cm for a kernel user: kernel threads and privileged
    /// processes do, which mount a file system or attach a device. Any context.
    ///
    /// iw_cm takes a reference to a queue pair before the provider learns its consumer, and an
    /// unprivileged process must not have one to a queue pair of a kernel user.
    pub fn may_be_kernel() -> bool {
        // SAFETY: The function has no preconditions.
        unsafe { bindings::may_be_kernel_user() }
    }

    /// Whether the consumer is the kernel user of `qp`. Any context.
    pub fn owns<T: Driver>(&self, qp: &Qp<T>) -> bool {
        matches!(self, Self::Kernel(addr) if *addr == qp.raw().addr())
    }
}

impl ConnParam<'_> {
    /// # Safety
    ///
    /// `raw` and its private data must be valid for `'a`. `id` must be one that iw_cm passes to
    /// `iw_connect` or `iw_accept`, during that call.
    unsafe fn from_raw<'a>(
        id: *mut bindings::iw_cm_id,
        raw: *mut bindings::iw_cm_conn_param,
    ) -> ConnParam<'a> {
        // SAFETY: By the caller's promise `raw` is valid to read, and its private data is null or
        // valid for its length for `'a`. The promise about `id` is the one that `Consumer::of`
        // requires.
        unsafe {
            ConnParam {
                consumer: Consumer::of(id),
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
    // SAFETY: `data` is not null, so by the caller's promise it is valid for `len` bytes for `'a`.
    unsafe { slice::from_raw_parts(data.cast(), len) }
}

/// The settings of an id before it connects or listens (`struct iw_cm_id`, `include/rdma/iw_cm.h`).
#[derive(Clone, Copy)]
pub struct Setup {
    /// The local address.
    pub local: SocketAddr,
    /// The type of service (the IPv4 TOS or IPv6 traffic class), if set.
    pub tos: Option<u8>,
    /// Whether an IPv6 wildcard address excludes IPv4 (`rdma_set_afonly()`).
    pub family_only: bool,
}

impl Setup {
    /// # Safety
    ///
    /// `id` must be valid, and its addresses must not change during the call.
    unsafe fn from_raw(id: *mut bindings::iw_cm_id) -> Result<Self> {
        // iw_cm may change other fields of the id meanwhile, so no reference covers all of it.
        // SAFETY: By the caller's promise `id` is valid and `m_local_addr` does not change, so it
        // may be borrowed. The flags are read from a raw pointer.
        unsafe {
            Ok(Self {
                local: addr::from_storage(&(*id).m_local_addr).ok_or(EAFNOSUPPORT)?,
                tos: bindings::iw_cm_id::tos_set_raw(id).then_some((*id).tos),
                family_only: bindings::iw_cm_id::afonly_raw(id),
            })
        }
    }
}

/// The connection management callbacks of a provider (`iw_*` of `struct ib_device_ops`,
/// `include/rdma/ib_verbs.h`).
///
/// iw_cm calls all of them in process context, and they may sleep. They should not wait for a peer:
/// consumers of iw_cm call it with locks held. iw_cm returns an error to its consumer as it is.
pub trait CmOperations: Driver {
    /// Connects `qp`, a queue pair [of the caller](crate::ops::QpVerbs::is_of_caller), to `remote`
    /// (`iw_connect`). [`CmEvent::ConnectReply`] reports the result. `home` is the network
    /// namespace of the consumer, unless that is being dismantled. For a loopback address rdma_cm
    /// takes any device, also one of another namespace.
    fn connect(
        dev: &Device<Self>,
        id: &CmId,
        setup: &Setup,
        home: Option<Netns>,
        remote: &SocketAddr,
        qp: &Qp<Self>,
        param: &ConnParam<'_>,
    ) -> Result;

    /// Accepts the connect request with `token` for `qp` (`iw_accept`), a queue pair
    /// [of the caller](crate::ops::QpVerbs::is_of_caller); `None` if the caller has none with the
    /// number that it gives. [`CmEvent::Established`] reports the result.
    ///
    /// After an error the consumer cannot reject the connection any more.
    fn accept(
        dev: &Device<Self>,
        id: &CmId,
        token: usize,
        qp: Option<&Qp<Self>>,
        param: &ConnParam<'_>,
    ) -> Result;

    /// Ends the connection that was accepted by `id` for `qp`, because the consumer accepts or
    /// rejects the id once more. If [`CmEvent::Established`] has not been reported yet, neither it
    /// nor any other event may be reported afterwards.
    ///
    /// Returns whether [`CmEvent::Established`] has been reported.
    fn abandon(id: &CmId, qp: &Qp<Self>) -> bool;

    /// Rejects the connect request with `token` (`iw_reject`). No event follows.
    fn reject(dev: &Device<Self>, token: usize, rejection: &Rejection<'_>) -> Result;

    /// Starts to listen (`iw_create_listen`). [`CmEvent::ConnectRequest`] reports each connection
    /// to `id`; none is reported if this fails: rdma_cm then destroys `id`, maybe with a lock held
    /// that its handler needs, and iw_cm waits for the handler. `home` is the network namespace of
    /// the consumer, unless that is being dismantled. For a wildcard or loopback address rdma_cm
    /// listens on all devices, also on those of other namespaces, where it would not let the
    /// consumer accept.
    ///
    /// Returns a token for [`Self::destroy_listen`].
    fn create_listen(
        dev: &Device<Self>,
        id: &CmId,
        setup: &Setup,
        home: Option<Netns>,
        backlog: Backlog,
    ) -> Result<usize>;

    /// Stops listening (`iw_destroy_listen`). No event may reach the id after it returns.
    fn destroy_listen(dev: &Device<Self>, token: usize) -> Result;
}
