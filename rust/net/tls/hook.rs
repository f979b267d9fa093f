// SPDX-License-Identifier: GPL-2.0

//! The callbacks of a socket.

use crate::{
    hook::{Hook, Operations},
    AnyEvent,
};
use core::ptr::NonNull;
use kernel::{bindings::sock, prelude::*, sync::Arc};
use riw_bindings as bindings;

/// The callback `sk_write_space` of TLS, if it is in use: TLS sends records that have waited.
type WriteSpace = Option<unsafe extern "C" fn(*mut sock)>;

impl<T: AnyEvent> Hook<T, WriteSpace> {
    /// The operations for a TLS socket, or one that will be one.
    const TLS: Operations = Operations {
        data_ready: Self::changed,
        state_change: Self::changed,
        write_space: Self::write_space,
        error_report: Self::changed,
        release: Self::release,
    };

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
            if let Some(below) = Self::attached(hook) {
                below(sk.as_ptr());
            }
            if bindings::sk_stream_writeable(sk.as_ptr()) {
                Self::owner(hook).room();
            }
        }
    }
}

/// Installs the callbacks of a TCP socket that has TLS or will have it, as
/// [`install`](crate::hook::install) does. `below` are the callbacks that it has.
///
/// # Safety
///
/// `sk` must be a valid TCP socket, not listening.
pub(super) unsafe fn install<T: AnyEvent>(
    sk: NonNull<sock>,
    owner: Arc<T>,
    below: &bindings::riw_sk_callbacks,
) -> Result {
    let hook = Hook::new(owner, &Hook::<T, WriteSpace>::TLS, below.write_space)?;

    // SAFETY: The caller promises a valid TCP socket that does not listen. `TLS` is for this type
    // of hook.
    unsafe { Hook::install(sk, hook) }
}
