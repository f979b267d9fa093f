// SPDX-License-Identifier: GPL-2.0

//! The callbacks of a socket, and the bound of a read.

use crate::{
    hook::{self, Events, Hook},
    AnyEvent,
};
use core::ptr::NonNull;
use kernel::{
    bindings::sock,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use riw_bindings as bindings;

/// How many bytes a socket may have received in all until the read ends that is under way.
///
/// A read takes records without content for nothing, and goes on while there are more. So the
/// callback of the socket, which tells of each segment, ends it.
pub(super) struct ReadLimit(Atomic<u64>);

impl ReadLimit {
    /// The limit while nothing is read.
    pub(super) fn none() -> Result<Arc<Self>> {
        Ok(Arc::new(Self(Atomic::new(u64::MAX)), GFP_KERNEL_ACCOUNT)?)
    }

    /// Calls `read` with the limit `bytes`.
    pub(super) fn during<R>(&self, bytes: u64, read: impl FnOnce() -> R) -> R {
        self.0.store(bytes, ordering::Relaxed);
        let result = read();

        self.0.store(u64::MAX, ordering::Relaxed);
        result
    }
}

/// The owner of the callbacks of a TLS socket, or of one that will be one.
struct TlsEvents<T> {
    owner: Arc<T>,
    /// The callback `sk_write_space` of TLS, if it is in use: TLS sends records that have waited.
    below: Option<unsafe extern "C" fn(*mut sock)>,
    limit: Arc<ReadLimit>,
}

impl<T: AnyEvent> Events for TlsEvents<T> {
    /// Ends a read beyond its limit, and calls [`AnyEvent::changed`].
    unsafe fn data_ready(&self, sk: NonNull<sock>) {
        let limit = self.limit.0.load(ordering::Relaxed);

        // SAFETY: TCP has locked `sk` for this callback.
        unsafe { bindings::tls_limit_read(sk.as_ptr(), limit) };
        self.owner.changed();
    }

    unsafe fn state_change(&self, _sk: NonNull<sock>) {
        self.owner.changed();
    }

    /// Calls TLS, and then [`AnyEvent::room`] if there is enough room.
    unsafe fn write_space(&self, sk: NonNull<sock>) {
        if let Some(below) = self.below {
            // SAFETY: It is the callback that the socket had before, and is called as that
            // callback. It does not take `sk_callback_lock`.
            unsafe { below(sk.as_ptr()) };
        }
        // SAFETY: The caller promises a valid socket.
        if unsafe { bindings::sk_stream_writeable(sk.as_ptr()) } {
            self.owner.room();
        }
    }

    unsafe fn error_report(&self, _sk: NonNull<sock>) {
        self.owner.changed();
    }
}

/// Installs the callbacks of a TCP socket that has TLS or will have it, as
/// [`install_callbacks`](crate::hook::install_callbacks) does. `below` are the callbacks that it
/// has, `limit` is that of its reads.
///
/// # Safety
///
/// `sk` must be a valid TCP socket, not listening.
pub(super) unsafe fn install<T: AnyEvent>(
    sk: NonNull<sock>,
    owner: Arc<T>,
    below: &bindings::riw_sk_callbacks,
    limit: Arc<ReadLimit>,
) -> Result {
    let hook = Hook::new(TlsEvents {
        owner,
        below: below.write_space,
        limit,
    })?;

    // SAFETY: The caller promises a valid TCP socket that does not listen, and its callbacks.
    unsafe { hook::install(sk, hook) }
}
