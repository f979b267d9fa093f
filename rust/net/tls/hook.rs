// SPDX-License-Identifier: GPL-2.0

//! The callbacks of a socket, and the bound of a read.

use crate::{
    hook::{Hook, Operations},
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

/// What the callbacks of a socket need.
struct TlsHook {
    /// The callback `sk_write_space` of TLS, if it is in use: TLS sends records that have waited.
    write_space: Option<unsafe extern "C" fn(*mut sock)>,
    limit: Arc<ReadLimit>,
}

impl<T: AnyEvent> Hook<T, TlsHook> {
    /// The operations for a TLS socket, or one that will be one.
    const TLS: Operations = Operations {
        data_ready: Self::data_ready,
        state_change: Self::changed,
        write_space: Self::write_space,
        error_report: Self::changed,
        release: Self::release,
    };

    /// Ends a read beyond its limit, and calls [`AnyEvent::changed`].
    ///
    /// # Safety
    ///
    /// As for an [`Operation`](crate::hook::Operation), of the callback `sk_data_ready`.
    unsafe fn data_ready(hook: *const c_void, sk: NonNull<sock>) {
        // SAFETY: The hook is of this type, as this is one of its operations, and is valid under
        // `sk_callback_lock`. TCP has locked `sk` for this callback.
        unsafe {
            let limit = Self::attached(hook).limit.0.load(ordering::Relaxed);

            bindings::tls_limit_read(sk.as_ptr(), limit);
            Self::changed(hook, sk);
        }
    }

    /// Calls TLS, and then [`AnyEvent::room`] if there is enough room.
    ///
    /// # Safety
    ///
    /// As for an [`Operation`](crate::hook::Operation), of the callback `sk_write_space`.
    unsafe fn write_space(hook: *const c_void, sk: NonNull<sock>) {
        // SAFETY: The hook is of this type, as this is one of its operations, and is valid under
        // `sk_callback_lock`. `below` is the callback that the socket had before, and is called as
        // that callback. It does not take `sk_callback_lock`.
        unsafe {
            if let Some(below) = Self::attached(hook).write_space {
                below(sk.as_ptr());
            }
            if bindings::sk_stream_writeable(sk.as_ptr()) {
                Self::owner(hook).room();
            }
        }
    }
}

/// Installs the callbacks of a TCP socket that has TLS or will have it, as
/// [`install`](crate::hook::install) does. `below` are the callbacks that it has, `limit` is that
/// of its reads.
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
    let attached = TlsHook {
        write_space: below.write_space,
        limit,
    };
    let hook = Hook::new(owner, &Hook::<T, TlsHook>::TLS, attached)?;

    // SAFETY: The caller promises a valid TCP socket that does not listen. `TLS` is for this type
    // of hook.
    unsafe { Hook::install(sk, hook) }
}
