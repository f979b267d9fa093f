// SPDX-License-Identifier: GPL-2.0

//! The callbacks of a socket, and room in its send buffer.

use crate::{
    hook::{self, Events, Hook},
    AnyEvent,
};
use core::ptr::NonNull;
use kernel::{bindings::sock, prelude::*, sync::Arc};
use riw_bindings as bindings;

/// An entry in the wait queue of an SCTP socket.
///
/// # Invariants
///
/// `raw` is registered with the address of the `Arc` in `owner`, and its socket is alive.
struct RoomWatch<T> {
    raw: NonNull<bindings::riw_sctp_watch>,
    owner: KBox<Arc<T>>,
}

// SAFETY: `sctp_unwatch()` locks the wait queue, so any thread may remove the entry. `owner` may be
// dropped by any thread.
unsafe impl<T: Send + Sync> Send for RoomWatch<T> {}
// SAFETY: A shared reference has no methods. The callback shares only the owner, which is `Sync`.
unsafe impl<T: Send + Sync> Sync for RoomWatch<T> {}

impl<T: AnyEvent> RoomWatch<T> {
    /// Calls [`AnyEvent::room`] of `owner` from now on. May sleep. `ENOMEM` if there is no memory.
    ///
    /// # Safety
    ///
    /// `sk` must be a valid socket until the result is dropped.
    unsafe fn new(sk: NonNull<sock>, owner: Arc<T>) -> Result<Self> {
        let owner = KBox::new(owner, GFP_KERNEL_ACCOUNT)?;
        let ctx: *const Arc<T> = &*owner;
        // SAFETY: The caller promises a valid socket. `Self::room` takes this type of context,
        // which lives as long as the watch: see the drop.
        let raw =
            unsafe { bindings::sctp_watch(sk.as_ptr(), Some(Self::room), ctx.cast_mut().cast()) };

        // INVARIANT: It is registered with that address, which a move of the box does not change.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            owner,
        })
    }

    /// Calls [`AnyEvent::room`].
    ///
    /// # Safety
    ///
    /// `ctx` must point to an `Arc<T>` that is valid for the call.
    unsafe extern "C" fn room(ctx: *mut c_void) {
        // SAFETY: The caller promises a valid `Arc<T>`.
        unsafe { &*ctx.cast::<Arc<T>>() }.room();
    }
}

impl<T> Drop for RoomWatch<T> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariants it is registered, and the socket is alive. It is not
        // used after this. `owner` is dropped later, when no callback runs any more.
        unsafe { bindings::sctp_unwatch(self.raw.as_ptr()) };
        let _ = &self.owner;
    }
}

/// The owner of the callbacks of a socket that does not listen. They have no `write_space`: see
/// [`RoomWatch`].
struct SctpEvents<T> {
    owner: Arc<T>,
    /// Dropped with the hook, before the socket is released.
    _watch: RoomWatch<T>,
}

impl<T: AnyEvent> Events for SctpEvents<T> {
    unsafe fn data_ready(&self, _sk: NonNull<sock>) {
        self.owner.changed();
    }

    unsafe fn state_change(&self, _sk: NonNull<sock>) {
        self.owner.changed();
    }

    unsafe fn error_report(&self, _sk: NonNull<sock>) {
        self.owner.changed();
    }
}

/// Installs the callbacks of an SCTP socket that does not listen, as
/// [`install_callbacks`](crate::hook::install_callbacks) does.
///
/// # Safety
///
/// `sk` must be a valid SCTP socket, and valid until [`remove`](crate::hook::remove) is called for
/// it.
pub(super) unsafe fn install<T: AnyEvent>(sk: NonNull<sock>, owner: Arc<T>) -> Result {
    // SAFETY: The caller promises a valid SCTP socket, until the hook is removed. The watch is of
    // this socket, and the events rely on no lock.
    unsafe {
        let events = SctpEvents {
            _watch: RoomWatch::new(sk, owner.clone())?,
            owner,
        };

        hook::install(sk, Hook::new(events)?)
    }
}
