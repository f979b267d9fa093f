// SPDX-License-Identifier: GPL-2.0

//! The link from the callbacks of a socket to their owner: see [`callbacks`](crate::callbacks).

use crate::callbacks::{AnyEvent, Callbacks, Listener, LockedSock};
use core::ptr::NonNull;
use kernel::{bindings::sock, prelude::*, sync::Arc};
use riw_bindings as bindings;

/// An operation of a callback on its hook. The operation knows the hook's type.
///
/// # Safety
///
/// Only a socket's callback may call it, under `sk_callback_lock`, for its socket `sk` and the hook
/// found in `sk_user_data`. It must be one of that hook's operations, for this callback.
pub(crate) type Operation = unsafe fn(hook: *const c_void, sk: NonNull<sock>);

/// The operations of one type of hook.
pub(crate) struct Operations {
    pub(crate) data_ready: Operation,
    pub(crate) state_change: Operation,
    pub(crate) write_space: Operation,
    pub(crate) error_report: Operation,
    /// Drops the hook. May sleep; not from a callback.
    pub(crate) release: unsafe fn(*mut c_void),
}

/// The target of `sk_user_data`.
///
/// The transport may load a callback pointer before the owner changes, and call it afterwards. So
/// all owners share the same callback functions. The hook holds the owner together with the
/// operations for its type, so that one look-up finds both.
///
/// The alignment keeps the low bits of the pointer free for the flags of `sk_user_data`.
#[repr(C, align(8))]
pub(crate) struct Hook<T, A = ()> {
    operations: &'static Operations,
    owner: Arc<T>,
    /// Data of the protocol. Dropped with the hook, before the socket is released.
    attached: A,
}

impl<T: Send + Sync + 'static, A: Send + Sync + 'static> Hook<T, A> {
    /// Creates a hook for `owner`. May sleep. `ENOMEM` if there is no memory.
    pub(crate) fn new(
        owner: Arc<T>,
        operations: &'static Operations,
        attached: A,
    ) -> Result<KBox<Self>> {
        let hook = Self {
            operations,
            owner,
            attached,
        };

        Ok(KBox::new(hook, GFP_KERNEL_ACCOUNT)?)
    }

    /// Installs a hook. May sleep. `EBUSY` if the socket has user data.
    ///
    /// # Safety
    ///
    /// `sk` must be a valid socket. The operations of `hook` must be for this type of hook and this
    /// kind of socket, and its attached data for this socket.
    pub(crate) unsafe fn install(sk: NonNull<sock>, hook: KBox<Self>) -> Result {
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
            unsafe { Self::release(hook.cast()) };
            return Err(Error::from_errno(ret));
        }
        Ok(())
    }

    /// Drops a hook. May sleep: it may drop the last reference to the owner.
    ///
    /// # Safety
    ///
    /// `hook` must come from [`KBox::into_raw`] of this type, and must not be used afterwards.
    pub(crate) unsafe fn release(hook: *mut c_void) {
        // SAFETY: The caller promises a pointer from `KBox::into_raw`, and gives up its ownership.
        drop(unsafe { KBox::from_raw(hook.cast::<Self>()) });
    }

    /// Ignores a callback.
    ///
    /// # Safety
    ///
    /// As for an [`Operation`].
    pub(crate) unsafe fn ignore(_hook: *const c_void, _sk: NonNull<sock>) {}

    /// Returns the owner.
    ///
    /// # Safety
    ///
    /// `hook` must point to a hook of this type that is valid for `'a`.
    pub(crate) unsafe fn owner<'a>(hook: *const c_void) -> &'a Arc<T> {
        // SAFETY: The caller promises a hook of this type that is valid for `'a`.
        unsafe { &(*hook.cast::<Self>()).owner }
    }

    /// Returns the attached data.
    ///
    /// # Safety
    ///
    /// `hook` must point to a hook of this type that is valid for `'a`.
    pub(crate) unsafe fn attached<'a>(hook: *const c_void) -> &'a A {
        // SAFETY: The caller promises a hook of this type that is valid for `'a`.
        unsafe { &(*hook.cast::<Self>()).attached }
    }
}

impl<T: Callbacks> Hook<T> {
    /// The operations for the socket of a connection.
    const CONNECTION: Operations = Operations {
        data_ready: Self::data_ready,
        state_change: Self::state_change,
        write_space: Self::write_space,
        error_report: Self::error_report,
        release: Self::release,
    };

    /// Calls [`Callbacks::data_ready`].
    ///
    /// # Safety
    ///
    /// As for an [`Operation`], of the callback `sk_data_ready`.
    unsafe fn data_ready(hook: *const c_void, sk: NonNull<sock>) {
        // SAFETY: The hook is a `Hook<T>`, as this is one of its operations, and is valid under
        // `sk_callback_lock`. TCP has locked `sk`, which does not listen, for the callback
        // `sk_data_ready`.
        unsafe { Self::owner(hook).data_ready(&mut LockedSock::new(sk)) }
    }

    /// Calls [`Callbacks::state_change`].
    ///
    /// # Safety
    ///
    /// As for an [`Operation`], of the callback `sk_state_change`.
    unsafe fn state_change(hook: *const c_void, sk: NonNull<sock>) {
        // SAFETY: The hook is a `Hook<T>`, as this is one of its operations, and is valid under
        // `sk_callback_lock`. TCP has locked `sk`, which does not listen, for the callback
        // `sk_state_change`.
        unsafe { Self::owner(hook).state_change(&mut LockedSock::new(sk)) }
    }

    /// Calls [`Callbacks::write_space`] if there is enough room.
    ///
    /// # Safety
    ///
    /// As for an [`Operation`].
    unsafe fn write_space(hook: *const c_void, sk: NonNull<sock>) {
        // SAFETY: The caller promises a valid socket. The hook is a `Hook<T>`, as this is one of
        // its operations, and is valid under `sk_callback_lock`.
        unsafe {
            if bindings::sk_stream_writeable(sk.as_ptr()) {
                Self::owner(hook).write_space();
            }
        }
    }

    /// Calls [`Callbacks::error_report`].
    ///
    /// # Safety
    ///
    /// As for an [`Operation`].
    unsafe fn error_report(hook: *const c_void, _sk: NonNull<sock>) {
        // SAFETY: The hook is a `Hook<T>`, as this is one of its operations, and is valid under
        // `sk_callback_lock`.
        unsafe { Self::owner(hook).error_report() }
    }
}

impl<T: Listener> Hook<T> {
    /// The operations for a listening socket. Some protocols report a connection as a change of
    /// state.
    const LISTENER: Operations = Operations {
        data_ready: Self::connection_ready,
        state_change: Self::connection_ready,
        write_space: Self::ignore,
        error_report: Self::ignore,
        release: Self::release,
    };

    /// Calls [`Listener::connection_ready`].
    ///
    /// # Safety
    ///
    /// As for an [`Operation`].
    unsafe fn connection_ready(hook: *const c_void, _sk: NonNull<sock>) {
        // SAFETY: The hook is a `Hook<T>`, as this is one of its operations, and is valid under
        // `sk_callback_lock`.
        unsafe { Self::owner(hook).connection_ready() }
    }
}

impl<T: AnyEvent, A: Send + Sync + 'static> Hook<T, A> {
    /// Calls [`AnyEvent::changed`].
    ///
    /// # Safety
    ///
    /// As for an [`Operation`].
    pub(crate) unsafe fn changed(hook: *const c_void, _sk: NonNull<sock>) {
        // SAFETY: The hook is a `Hook<T>`, as this is one of its operations, and is valid under
        // `sk_callback_lock`.
        unsafe { Self::owner(hook).changed() }
    }
}

/// Removes the callbacks and restores `original`. May sleep. No callback runs after it returns.
///
/// # Safety
///
/// `sk` must be valid, and `original` must be the callbacks that it had at first.
///
/// Must not be called from a callback. With SMP that deadlocks: a callback of the socket holds
/// `sk_callback_lock` as a reader, so sk_unhook() never gets it as the writer, and the hook stays.
/// A watch that is attached to a hook calls [`AnyEvent::room`] under the lock of a wait queue
/// instead. So the hook's own reference to the owner is dropped, and then the drop of the watch,
/// which has another one, never gets that lock.
pub(crate) unsafe fn remove(sk: NonNull<sock>, original: &bindings::riw_sk_callbacks) {
    // SAFETY: The caller promises a valid socket and its original callbacks.
    let hook = unsafe { bindings::sk_unhook(sk.as_ptr(), original) };

    if !hook.is_null() {
        // SAFETY: `Hook::install` installed the hook; whatever its type, it begins with its
        // operations. It is not in use: `sk_unhook()` waited for running callbacks as the writer of
        // `sk_callback_lock`, and later callbacks find no hook. A callback of an attached watch
        // uses only the watch, whose drop waits for the callback.
        unsafe { ((*hook.cast::<&Operations>()).release)(hook) };
    }
}

/// Installs the callbacks of a connection. May sleep. `ENOMEM` if there is no memory, `EBUSY` if
/// the socket has user data.
///
/// # Safety
///
/// `sk` must be a valid TCP socket, not listening.
pub(crate) unsafe fn install<T: Callbacks>(sk: NonNull<sock>, owner: Arc<T>) -> Result {
    // SAFETY: The caller promises a valid TCP socket that does not listen. `CONNECTION` is for `T`.
    unsafe { Hook::install(sk, Hook::new(owner, &Hook::<T>::CONNECTION, ())?) }
}

/// The callback of a listening socket, not installed yet.
pub struct ListenerHook<T>(KBox<Hook<T>>);

impl<T: Listener> ListenerHook<T> {
    /// Creates a hook for `owner`. May sleep. `ENOMEM` if there is no memory.
    pub fn new(owner: Arc<T>) -> Result<Self> {
        Ok(Self(Hook::new(owner, &Hook::<T>::LISTENER, ())?))
    }

    /// Installs the callback. May sleep, but allocates nothing. `EBUSY` if the socket has user
    /// data.
    ///
    /// # Safety
    ///
    /// `sk` must be the valid socket of a [`Base`](crate::Base).
    pub(crate) unsafe fn install(self, sk: NonNull<sock>) -> Result {
        // SAFETY: The caller promises a valid socket. `LISTENER` is for `T`, and relies on no lock.
        unsafe { Hook::install(sk, self.0) }
    }
}

/// Runs an operation of the socket's hook, if it has a hook, under `sk_callback_lock`.
///
/// # Safety
///
/// Only a callback of the transport may call it, with the socket that the transport passed and the
/// operation for this callback.
unsafe fn enter(sk: *mut sock, operation: impl FnOnce(&Operations) -> Operation) {
    // SAFETY: The caller promises the socket that the transport passed, which is valid.
    // `sk_callback_exit()` below releases the lock.
    let hook = unsafe { bindings::sk_callback_enter(sk) };

    if !hook.is_null() {
        // SAFETY: `remove` needs `sk_callback_lock` as the writer, so the hook is valid while this
        // function holds it as a reader. The hook begins with its operations. The
        // transport's socket is not null.
        unsafe { operation(*hook.cast::<&Operations>())(hook, NonNull::new_unchecked(sk)) };
    }
    // SAFETY: `sk_callback_enter()` above took the lock on this socket.
    unsafe { bindings::sk_callback_exit(sk) };
}

/// The callback `sk_data_ready`.
///
/// # Safety
///
/// Only the transport may call it, as `sk_data_ready` of a hooked socket, or of a child that
/// inherited it from a hooked listener.
unsafe extern "C" fn data_ready(sk: *mut sock) {
    // SAFETY: Only the transport calls this callback, with a valid socket. The operation is for
    // this callback.
    unsafe { enter(sk, |operations| operations.data_ready) }
}

/// The callback `sk_state_change`.
///
/// # Safety
///
/// Only the transport may call it, as `sk_state_change`.
unsafe extern "C" fn state_change(sk: *mut sock) {
    // SAFETY: Only the transport calls this callback, with a valid socket. The operation is for
    // this callback.
    unsafe { enter(sk, |operations| operations.state_change) }
}

/// The callback `sk_write_space`.
///
/// # Safety
///
/// Only the transport may call it, as `sk_write_space`.
unsafe extern "C" fn write_space(sk: *mut sock) {
    // SAFETY: Only the transport calls this callback, with a valid socket. The operation is for
    // this callback.
    unsafe { enter(sk, |operations| operations.write_space) }
}

/// The callback `sk_error_report`.
///
/// # Safety
///
/// Only the transport may call it, as `sk_error_report`.
unsafe extern "C" fn error_report(sk: *mut sock) {
    // SAFETY: Only the transport calls this callback, with a valid socket. The operation is for
    // this callback.
    unsafe { enter(sk, |operations| operations.error_report) }
}
