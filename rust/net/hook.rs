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
type Operation = unsafe fn(hook: *const c_void, sk: NonNull<sock>);

/// The operations of one type of hook.
struct Operations {
    data_ready: Operation,
    state_change: Operation,
    write_space: Operation,
    error_report: Operation,
    /// Drops the hook. May sleep; not from a callback.
    release: unsafe fn(*mut c_void),
}

/// The target of `sk_user_data`.
///
/// The transport may load a callback pointer before the owner changes, and call it afterwards. So
/// all owners share the same callback functions. The hook holds the owner together with the
/// operations for its type, so that one look-up finds both.
///
/// The alignment keeps the low bits of the pointer free for the flags of `sk_user_data`.
#[repr(C, align(8))]
struct Hook<T> {
    operations: &'static Operations,
    owner: Arc<T>,
    /// The callback `sk_write_space` of TLS, if it is in use: TLS sends records that have waited.
    below: WriteSpace,
    /// Dropped with the hook, before the socket is released.
    _watch: Option<RoomWatch<T>>,
}

/// A callback `sk_write_space`, or none.
type WriteSpace = Option<unsafe extern "C" fn(*mut sock)>;

/// An entry in the wait queue of an SCTP socket.
///
/// # Invariants
///
/// `raw` is registered with the address of the `Arc` in `owner`, and its socket is alive.
struct RoomWatch<T> {
    raw: NonNull<bindings::riw_sctp_watch>,
    owner: KBox<Arc<T>>,
}

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

impl<T: Send + Sync + 'static> Hook<T> {
    /// Creates a hook for `owner`. May sleep. `ENOMEM` if there is no memory.
    fn new(
        owner: Arc<T>,
        operations: &'static Operations,
        below: WriteSpace,
        watch: Option<RoomWatch<T>>,
    ) -> Result<KBox<Self>> {
        let hook = Self {
            operations,
            owner,
            below,
            _watch: watch,
        };

        Ok(KBox::new(hook, GFP_KERNEL_ACCOUNT)?)
    }

    /// Installs a hook. May sleep. `EBUSY` if the socket has user data.
    ///
    /// # Safety
    ///
    /// `sk` must be a valid socket, and the operations of `hook` must be for hooks of type `T` and
    /// for this kind of socket. Its watch must be of this socket.
    unsafe fn install(sk: NonNull<sock>, hook: KBox<Self>) -> Result {
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
    /// `hook` must come from [`KBox::into_raw`] of a `Hook<T>`, and must not be used afterwards.
    unsafe fn release(hook: *mut c_void) {
        // SAFETY: The caller promises a pointer from `KBox::into_raw`, and gives up its ownership.
        drop(unsafe { KBox::from_raw(hook.cast::<Self>()) });
    }

    /// Ignores a callback.
    ///
    /// # Safety
    ///
    /// As for an [`Operation`].
    unsafe fn ignore(_hook: *const c_void, _sk: NonNull<sock>) {}

    /// Returns the owner.
    ///
    /// # Safety
    ///
    /// `hook` must point to a `Hook<T>` that is valid for `'a`.
    unsafe fn owner<'a>(hook: *const c_void) -> &'a Arc<T> {
        // SAFETY: The caller promises a `Hook<T>` that is valid for `'a`.
        unsafe { &(*hook.cast::<Self>()).owner }
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
    /// The operations for a listening socket. SCTP reports a connection as a change of state.
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

impl<T: AnyEvent> Hook<T> {
    /// The operations for an SCTP socket that does not listen. It has no `write_space`: see
    /// [`RoomWatch`].
    const ANY_EVENT: Operations = Operations {
        data_ready: Self::changed,
        state_change: Self::changed,
        write_space: Self::ignore,
        error_report: Self::changed,
        release: Self::release,
    };

    /// The operations for a TLS socket, or one that will be one.
    const TLS: Operations = Operations {
        data_ready: Self::changed,
        state_change: Self::changed,
        write_space: Self::tls_write_space,
        error_report: Self::changed,
        release: Self::release,
    };

    /// Calls TLS, and then [`AnyEvent::room`] if there is enough room.
    ///
    /// # Safety
    ///
    /// As for an [`Operation`], of the callback `sk_write_space`.
    unsafe fn tls_write_space(hook: *const c_void, sk: NonNull<sock>) {
        // SAFETY: The hook is a `Hook<T>`, as this is one of its operations, and is valid under
        // `sk_callback_lock`. `below` is the callback that the socket had before, and is called as
        // that callback. It does not take `sk_callback_lock`.
        unsafe {
            if let Some(below) = (*hook.cast::<Self>()).below {
                below(sk.as_ptr());
            }
            if bindings::sk_stream_writeable(sk.as_ptr()) {
                Self::owner(hook).room();
            }
        }
    }

    /// Calls [`AnyEvent::changed`].
    ///
    /// # Safety
    ///
    /// As for an [`Operation`].
    unsafe fn changed(hook: *const c_void, _sk: NonNull<sock>) {
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
/// [`AnyEvent::room`] holds the lock of the wait queue instead. So the hook's own reference to the
/// owner is dropped, and then the drop of its [`RoomWatch`], which has another one, never gets that
/// lock.
pub(crate) unsafe fn remove(sk: NonNull<sock>, original: &bindings::riw_sk_callbacks) {
    // SAFETY: The caller promises a valid socket and its original callbacks.
    let hook = unsafe { bindings::sk_unhook(sk.as_ptr(), original) };

    if !hook.is_null() {
        // SAFETY: `Hook::install` installed the hook; whatever its type, it begins with its
        // operations. It is not in use: `sk_unhook()` waited for running callbacks as the writer of
        // `sk_callback_lock`, and later callbacks find no hook. `AnyEvent::room` uses only the
        // watch, whose drop waits for it.
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
    unsafe { Hook::install(sk, Hook::new(owner, &Hook::<T>::CONNECTION, None, None)?) }
}

/// The callback of a listening socket, not installed yet.
pub struct ListenerHook<T>(KBox<Hook<T>>);

impl<T: Listener> ListenerHook<T> {
    /// Creates a hook for `owner`. May sleep. `ENOMEM` if there is no memory.
    pub fn new(owner: Arc<T>) -> Result<Self> {
        Ok(Self(Hook::new(owner, &Hook::<T>::LISTENER, None, None)?))
    }

    /// Installs the callback. May sleep, but allocates nothing. `EBUSY` if the socket has user
    /// data.
    ///
    /// # Safety
    ///
    /// `sk` must be a valid socket of TCP or SCTP.
    pub(crate) unsafe fn install(self, sk: NonNull<sock>) -> Result {
        // SAFETY: The caller promises a valid socket. `LISTENER` is for `T`, and relies on no lock.
        unsafe { Hook::install(sk, self.0) }
    }
}

/// Installs the callbacks of an SCTP socket that does not listen, as [`install`] does.
///
/// # Safety
///
/// `sk` must be a valid SCTP socket, and valid until [`remove`] is called for it.
pub(crate) unsafe fn install_any_event<T: AnyEvent>(sk: NonNull<sock>, owner: Arc<T>) -> Result {
    // SAFETY: The caller promises a valid SCTP socket, until the hook is removed. The watch is of
    // this socket, and `ANY_EVENT` is for `T` and relies on no lock.
    unsafe {
        let watch = RoomWatch::new(sk, owner.clone())?;

        Hook::install(
            sk,
            Hook::new(owner, &Hook::<T>::ANY_EVENT, None, Some(watch))?,
        )
    }
}

/// Installs the callbacks of a TCP socket that has TLS or will have it, as [`install`] does.
/// `below` are the callbacks that it has.
///
/// # Safety
///
/// `sk` must be a valid TCP socket, not listening.
pub(crate) unsafe fn install_tls<T: AnyEvent>(
    sk: NonNull<sock>,
    owner: Arc<T>,
    below: &bindings::riw_sk_callbacks,
) -> Result {
    let hook = Hook::new(owner, &Hook::<T>::TLS, below.write_space, None)?;

    // SAFETY: The caller promises a valid TCP socket that does not listen. `TLS` is for `T`.
    unsafe { Hook::install(sk, hook) }
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
