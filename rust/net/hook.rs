// SPDX-License-Identifier: GPL-2.0

//! The link from the callbacks of a socket to their owner: see [`callbacks`](crate::callbacks).

use crate::callbacks::{Callbacks, Listener, LockedSock};
use core::ptr::NonNull;
use kernel::{bindings::sock, prelude::*, sync::Arc};
use riw_bindings as bindings;

/// Receives the callbacks of a socket, under `sk_callback_lock`, for an owner of one kind.
pub(crate) trait Events: Send + Sync {
    /// The callback `sk_data_ready`.
    ///
    /// # Safety
    ///
    /// Only that callback may call it, for its socket `sk`.
    unsafe fn data_ready(&self, sk: NonNull<sock>);

    /// The callback `sk_state_change`.
    ///
    /// # Safety
    ///
    /// Only that callback may call it, for its socket `sk`.
    unsafe fn state_change(&self, sk: NonNull<sock>);

    /// The callback `sk_write_space`.
    ///
    /// # Safety
    ///
    /// Only that callback may call it, for its socket `sk`.
    unsafe fn write_space(&self, _sk: NonNull<sock>) {}

    /// The callback `sk_error_report`.
    ///
    /// # Safety
    ///
    /// Only that callback may call it, for its socket `sk`.
    unsafe fn error_report(&self, _sk: NonNull<sock>) {}
}

/// The target of `sk_user_data`, which the socket owns while it is installed.
///
/// The transport may load a callback pointer before the owner changes, and call it afterwards. So
/// all owners share the same callback functions, which find the owner here.
pub(crate) struct Hook(KBox<dyn Events>);

// The low bits of the pointer are for the flags of `sk_user_data`.
const _: () = assert!(align_of::<Hook>() >= 8);

impl Hook {
    /// Creates a hook. May sleep. `ENOMEM` if there is no memory.
    pub(crate) fn new(events: impl Events + 'static) -> Result<KBox<Self>> {
        let events = KBox::new(events, GFP_KERNEL_ACCOUNT)?;

        Ok(KBox::new(Self(events), GFP_KERNEL_ACCOUNT)?)
    }
}

/// Installs a hook. May sleep. `EBUSY` if the socket has user data.
///
/// # Safety
///
/// `sk` must be a valid socket, of the kind that the events of `hook` are for.
pub(crate) unsafe fn install(sk: NonNull<sock>, hook: KBox<Hook>) -> Result {
    let callbacks = bindings::riw_sk_callbacks {
        data_ready: Some(data_ready),
        write_space: Some(write_space),
        state_change: Some(state_change),
        error_report: Some(error_report),
    };
    let hook = KBox::into_raw(hook);

    // SAFETY: The caller promises a valid socket. On success the socket owns the hook until
    // `remove`, so the hook outlives its callbacks.
    let ret = unsafe { bindings::sk_hook(sk.as_ptr(), hook.cast(), &callbacks) };
    if ret != 0 {
        // SAFETY: The hook comes from `KBox::into_raw` above, and the socket did not take it.
        drop(unsafe { KBox::from_raw(hook) });
        return Err(Error::from_errno(ret));
    }
    Ok(())
}

/// Removes the callbacks and restores `original`. May sleep: it may drop the last reference to the
/// owner. No callback runs after it returns.
///
/// # Safety
///
/// `sk` must be valid, and `original` must be the callbacks that it had at first.
///
/// Must not be called from a callback. With SMP that deadlocks: a callback of the socket holds
/// `sk_callback_lock` as a reader, so sk_unhook() never gets it as the writer, and the hook stays.
/// A watch in a hook calls [`AnyEvent::room`](crate::AnyEvent::room) under the lock of a wait queue
/// instead. So the hook's own reference to the owner is dropped, and then the drop of the watch,
/// which has another one, never gets that lock.
pub(crate) unsafe fn remove(sk: NonNull<sock>, original: &bindings::riw_sk_callbacks) {
    // SAFETY: The caller promises a valid socket and its original callbacks.
    let hook = unsafe { bindings::sk_unhook(sk.as_ptr(), original) };

    if !hook.is_null() {
        // SAFETY: `install` has installed the hook. It is not in use: `sk_unhook()` waited for
        // running callbacks as the writer of `sk_callback_lock`, and later callbacks find no hook.
        // A callback of a watch in it uses only the watch, whose drop waits for the callback.
        drop(unsafe { KBox::from_raw(hook.cast::<Hook>()) });
    }
}

/// Defines a callback of the transport.
macro_rules! callback {
    ($name:ident) => {
        /// Calls the method of [`Events`] with this name, if the socket has a hook, under
        /// `sk_callback_lock`.
        ///
        /// # Safety
        ///
        /// Only the transport may call it, as this callback of a hooked socket, or of a child that
        /// inherited it from a hooked listener.
        unsafe extern "C" fn $name(sk: *mut sock) {
            // SAFETY: The transport passes a valid socket. `sk_callback_exit()` below releases the
            // lock.
            let hook: *mut Hook = unsafe { bindings::sk_callback_enter(sk) }.cast();

            if !hook.is_null() {
                // SAFETY: `remove` needs `sk_callback_lock` as the writer, so the hook is valid
                // while this function holds it as a reader. The method is for this callback. The
                // transport's socket is not null.
                unsafe { (*hook).0.$name(NonNull::new_unchecked(sk)) };
            }
            // SAFETY: `sk_callback_enter()` above took the lock on this socket.
            unsafe { bindings::sk_callback_exit(sk) };
        }
    };
}

callback!(data_ready);
callback!(state_change);
callback!(write_space);
callback!(error_report);

/// The owner of the callbacks of a TCP socket that does not listen.
struct ConnectionEvents<T>(Arc<T>);

impl<T: Callbacks> Events for ConnectionEvents<T> {
    unsafe fn data_ready(&self, sk: NonNull<sock>) {
        // SAFETY: TCP has locked `sk`, which does not listen, for this callback.
        self.0.data_ready(&mut unsafe { LockedSock::new(sk) });
    }

    unsafe fn state_change(&self, sk: NonNull<sock>) {
        // SAFETY: TCP has locked `sk`, which does not listen, for this callback.
        self.0.state_change(&mut unsafe { LockedSock::new(sk) });
    }

    unsafe fn write_space(&self, sk: NonNull<sock>) {
        // SAFETY: The caller promises a valid socket.
        if unsafe { bindings::sk_stream_writeable(sk.as_ptr()) } {
            self.0.write_space();
        }
    }

    unsafe fn error_report(&self, _sk: NonNull<sock>) {
        self.0.error_report();
    }
}

/// Installs the callbacks of a connection. May sleep. `ENOMEM` if there is no memory, `EBUSY` if
/// the socket has user data.
///
/// # Safety
///
/// `sk` must be a valid TCP socket, not listening.
pub(crate) unsafe fn install_callbacks<T: Callbacks>(sk: NonNull<sock>, owner: Arc<T>) -> Result {
    // SAFETY: The caller promises a valid TCP socket that does not listen.
    unsafe { install(sk, Hook::new(ConnectionEvents(owner))?) }
}

/// The owner of the callbacks of a listening socket. Some protocols report a connection as a change
/// of state.
struct ListenEvents<T>(Arc<T>);

impl<T: Listener> Events for ListenEvents<T> {
    unsafe fn data_ready(&self, _sk: NonNull<sock>) {
        self.0.connection_ready();
    }

    unsafe fn state_change(&self, _sk: NonNull<sock>) {
        self.0.connection_ready();
    }
}

/// The callback of a listening socket, not installed yet.
pub struct ListenerHook(KBox<Hook>);

impl ListenerHook {
    /// Creates a hook for `owner`. May sleep. `ENOMEM` if there is no memory.
    pub fn new<T: Listener>(owner: Arc<T>) -> Result<Self> {
        Hook::new(ListenEvents(owner)).map(Self)
    }

    /// Installs the callback. May sleep, but allocates nothing. `EBUSY` if the socket has user
    /// data.
    ///
    /// # Safety
    ///
    /// `sk` must be the valid socket of a [`Base`](crate::Base).
    pub(crate) unsafe fn install(self, sk: NonNull<sock>) -> Result {
        // SAFETY: The caller promises a valid socket. The events of a listener rely on no lock.
        unsafe { install(sk, self.0) }
    }
}
