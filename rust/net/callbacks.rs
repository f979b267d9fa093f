// SPDX-License-Identifier: GPL-2.0

//! Socket callbacks, and the operations that they may do on the socket.
//!
//! # When callbacks run
//!
//! TCP calls them in a softirq with the socket's spin lock held (`bh_lock_sock()`). For segments
//! that arrive while a task owns the socket, that task calls them when it releases the socket (the
//! backlog in `release_sock()`). In both cases the caller has exclusive use of the socket;
//! [`LockedSock`] stands for that. Listening sockets are the exception: TCP reports a new
//! connection without holding the listener's lock. So they have their own trait, [`Listener`].
//!
//! Each callback takes `sk_callback_lock` as a reader and looks up its owner under it.
//! [`Socket::clear_callbacks`] removes the owner as the writer: it waits for running callbacks, and
//! later callbacks find no owner. So the reference to the owner can be dropped after it. For the
//! same reason a callback must not call it.
//!
//! [`Socket::clear_callbacks`]: crate::Socket::clear_callbacks

use crate::Unread;
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{
    bindings::sock,
    prelude::*,
    sync::Arc,
    types::NotThreadSafe, //
};
use riw_bindings as bindings;

/// Receives the events of a connection.
///
/// All methods are called in atomic context, with softirqs disabled. They must not sleep, and must
/// not take a lock under which `lock_sock()` is called.
pub trait Callbacks: Sized + Send + Sync + 'static {
    /// Data can be read, or the peer has sent its FIN.
    fn data_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>);

    /// The state of the connection has changed: see [`LockedSock::state`].
    fn state_change(self: &Arc<Self>, sk: &mut LockedSock<'_>);

    /// At least a third of the send buffer is free again.
    ///
    /// Called only after [`Socket::send`](crate::Socket::send) has failed with `EAGAIN`, or
    /// [`Socket::room`](crate::Socket::room) has returned 0.
    fn write_space(self: &Arc<Self>);

    /// The connection has failed, or an ICMP error has arrived. The socket's lock may or may not be
    /// held.
    fn error_report(self: &Arc<Self>);
}

/// Receives the events of a listening socket.
pub trait Listener: Sized + Send + Sync + 'static {
    /// The accept queue may have a connection. Atomic context, must not sleep; the socket is
    /// **not** locked.
    fn connection_ready(self: &Arc<Self>);
}

/// The state of a TCP connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TcpState {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Closed,
    CloseWait,
    LastAck,
    Listen,
    Closing,
}

impl From<u32> for TcpState {
    fn from(state: u32) -> Self {
        match state {
            bindings::TCP_ESTABLISHED => Self::Established,
            bindings::TCP_SYN_SENT => Self::SynSent,
            bindings::TCP_SYN_RECV | bindings::TCP_NEW_SYN_RECV => Self::SynReceived,
            bindings::TCP_FIN_WAIT1 => Self::FinWait1,
            bindings::TCP_FIN_WAIT2 => Self::FinWait2,
            bindings::TCP_TIME_WAIT => Self::TimeWait,
            bindings::TCP_CLOSE_WAIT => Self::CloseWait,
            bindings::TCP_LAST_ACK => Self::LastAck,
            bindings::TCP_LISTEN => Self::Listen,
            bindings::TCP_CLOSING => Self::Closing,
            _ => Self::Closed,
        }
    }
}

/// A TCP socket whose lock is held. Its methods may be called in any such context; none sleeps.
///
/// # Invariants
///
/// `sk` is a TCP socket. For the lifetime of this object it is alive, and the current context has
/// locked it by `lock_sock()` or `bh_lock_sock()`, not inside `tcp_read_sock()` or the like.
pub struct LockedSock<'a> {
    sk: NonNull<sock>,
    _scope: PhantomData<&'a ()>,
    _here: NotThreadSafe,
}

impl LockedSock<'_> {
    /// Wraps a locked socket.
    ///
    /// # Safety
    ///
    /// `sk` must fulfil the type's invariant until the result is dropped.
    pub(crate) unsafe fn new(sk: NonNull<sock>) -> Self {
        // INVARIANT: The caller promises a socket that fulfils it.
        Self {
            sk,
            _scope: PhantomData,
            _here: NotThreadSafe,
        }
    }

    /// Returns the state of the connection.
    pub fn state(&self) -> TcpState {
        // SAFETY: By the type's invariant the socket is alive.
        unsafe { state_of(self.sk) }
    }

    /// Returns the error that ended the connection, if any.
    pub fn error(&self) -> Option<Error> {
        // SAFETY: By the type's invariant the socket is alive.
        unsafe { error_of(self.sk) }
    }

    /// Returns the number of bytes queued or sent that the peer has not acknowledged. The local FIN
    /// counts as one byte.
    pub fn unacknowledged(&self) -> u32 {
        // SAFETY: By the type's invariant it is a TCP socket, and alive.
        unsafe { bindings::tcp_unacked(self.sk.as_ptr()) }
    }

    /// Returns the number of bytes queued that TCP has not sent yet. The local FIN counts as one
    /// byte.
    pub fn unsent(&self) -> u32 {
        // SAFETY: By the type's invariant it is a TCP socket, alive, and locked, so the sequence
        // numbers are stable.
        unsafe { bindings::tcp_unsent(self.sk.as_ptr()) }
    }

    /// Returns the number of bytes acknowledged by the peer plus bytes received from it, since the
    /// connection was made. It grows while the connection makes progress.
    pub fn moved(&self) -> u64 {
        // SAFETY: By the type's invariant it is a TCP socket, alive, and locked, so the counters
        // are stable.
        unsafe { bindings::tcp_moved(self.sk.as_ptr()) }
    }

    /// Returns a cursor over the bytes received in order and not taken yet, up to urgent data.
    pub fn unread(&self) -> Unread<'_> {
        // SAFETY: By the type's invariant it is a locked TCP socket. Taking bytes needs a mutable
        // borrow of `self`, which the borrow in the result excludes.
        unsafe { Unread::new(self.sk.as_ptr()) }
    }

    /// Takes (frees) the first `count` bytes of the receive queue, or all up to urgent data if
    /// there are fewer. TCP opens the receive window accordingly.
    pub fn take(&mut self, count: usize) {
        if count != 0 {
            // SAFETY: By the type's invariant it is a locked TCP socket, and this is not inside
            // another read. `&mut self` excludes an `Unread`.
            unsafe { bindings::tcp_take(self.sk.as_ptr(), count) }
        }
    }

    /// Takes all bytes up to urgent data, and asks for [`Callbacks::data_ready`] at every byte, as
    /// `wait_for(1)` does.
    pub fn discard(&mut self) {
        self.wait_for(1);
        self.take(usize::MAX);
    }

    /// Whether urgent data was received or announced and not taken. Later bytes cannot be read.
    pub fn has_urgent(&self) -> bool {
        // SAFETY: By the type's invariant it is a TCP socket, alive and locked.
        unsafe { bindings::tcp_has_urgent(self.sk.as_ptr()) }
    }

    /// Delays [`Callbacks::data_ready`] until `count` bytes are unread. It is called earlier only
    /// if the connection ends, or if TCP cannot queue more before some bytes are taken.
    ///
    /// Returns false if there is no need to wait: `count` bytes are unread, or TCP cannot queue
    /// more. The callback may not be called then.
    pub fn wait_for(&mut self, count: u32) -> bool {
        // SAFETY: By the type's invariant it is a TCP socket, alive and locked, so that this
        // context may change its low-water mark.
        unsafe { bindings::tcp_wait_for(self.sk.as_ptr(), count) }
    }
}

/// Returns the state of a socket. Any context.
///
/// # Safety
///
/// `sk` must be valid.
pub(crate) unsafe fn state_of(sk: NonNull<sock>) -> TcpState {
    // SAFETY: The caller promises a valid socket; the state is read atomically, without a lock.
    TcpState::from(unsafe { bindings::sk_state(sk.as_ptr()) } as u32)
}

/// Returns the pending error of a socket, and keeps it pending. Any context.
///
/// # Safety
///
/// `sk` must be valid.
pub(crate) unsafe fn error_of(sk: NonNull<sock>) -> Option<Error> {
    // SAFETY: The caller promises a valid socket; the error is read atomically, without a lock.
    match unsafe { bindings::sk_err(sk.as_ptr()) } {
        0 => None,
        err => Some(Error::from_errno(-err)),
    }
}

/// An operation of a callback on its hook. The operation knows the hook's type.
///
/// # Safety
///
/// Only a TCP callback may call it, under `sk_callback_lock`, for its socket `sk` and the hook
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
/// TCP may load a callback pointer before the owner changes, and call it afterwards. So all owners
/// share the same callback functions. The hook holds the owner together with the operations for its
/// type, so that one look-up finds both.
///
/// The alignment keeps the low bits of the pointer free for the flags of `sk_user_data`.
#[repr(C, align(8))]
struct Hook<T> {
    operations: &'static Operations,
    owner: Arc<T>,
}

impl<T: Send + Sync + 'static> Hook<T> {
    /// Installs a new hook for `owner`. May sleep. `ENOMEM` if there is no memory, `EBUSY` if the
    /// socket has user data.
    ///
    /// # Safety
    ///
    /// `sk` must be a valid TCP socket, and `operations` must be for hooks of type `T` and for this
    /// kind of socket.
    unsafe fn install(sk: NonNull<sock>, owner: Arc<T>, operations: &'static Operations) -> Result {
        let callbacks = bindings::riw_sk_callbacks {
            data_ready: Some(data_ready),
            write_space: Some(write_space),
            state_change: Some(state_change),
            error_report: Some(error_report),
        };
        let hook = KBox::into_raw(KBox::new(Self { operations, owner }, GFP_KERNEL)?);

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
    /// The operations for a listening socket.
    const LISTENER: Operations = Operations {
        data_ready: Self::connection_ready,
        state_change: Self::ignore,
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

/// Removes the callbacks and restores `original`. May sleep. No callback runs after it returns.
///
/// # Safety
///
/// `sk` must be valid, and `original` must be the callbacks that it had at first. Must not be
/// called from a callback.
pub(crate) unsafe fn remove(sk: NonNull<sock>, original: &bindings::riw_sk_callbacks) {
    // SAFETY: The caller promises a valid socket and its original callbacks.
    let hook = unsafe { bindings::sk_unhook(sk.as_ptr(), original) };

    if !hook.is_null() {
        // SAFETY: `Hook::install` installed the hook; whatever its type, it begins with its
        // operations. It is not in use: `sk_unhook()` waited for running callbacks as the writer of
        // `sk_callback_lock`, and later callbacks find no hook.
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
    unsafe { Hook::install(sk, owner, &Hook::<T>::CONNECTION) }
}

/// Installs the callback of a listening socket. May sleep. `ENOMEM` if there is no memory, `EBUSY`
/// if the socket has user data.
///
/// # Safety
///
/// `sk` must be a valid TCP socket.
pub(crate) unsafe fn install_listener<T: Listener>(sk: NonNull<sock>, owner: Arc<T>) -> Result {
    // SAFETY: The caller promises a valid TCP socket. `LISTENER` is for `T`, and relies on no lock.
    unsafe { Hook::install(sk, owner, &Hook::<T>::LISTENER) }
}

/// Runs an operation of the socket's hook, if it has a hook, under `sk_callback_lock`.
///
/// # Safety
///
/// Only a TCP callback may call it, with the socket that TCP passed and the operation for this
/// callback.
unsafe fn enter(sk: *mut sock, operation: impl FnOnce(&Operations) -> Operation) {
    // SAFETY: The caller promises the socket that TCP passed, which is valid. `sk_callback_exit()`
    // below releases the lock.
    let hook = unsafe { bindings::sk_callback_enter(sk) };

    if !hook.is_null() {
        // SAFETY: `remove` needs `sk_callback_lock` as the writer, so the hook is valid while this
        // function holds it as a reader. The hook begins with its operations. TCP's socket is not
        // null.
        unsafe { operation(*hook.cast::<&Operations>())(hook, NonNull::new_unchecked(sk)) };
    }
    // SAFETY: `sk_callback_enter()` above took the lock on this socket.
    unsafe { bindings::sk_callback_exit(sk) };
}

/// The callback `sk_data_ready`.
///
/// # Safety
///
/// Only TCP may call it, as `sk_data_ready` of a hooked socket, or of a child that inherited it
/// from a hooked listener.
unsafe extern "C" fn data_ready(sk: *mut sock) {
    // SAFETY: Only TCP calls this callback, with a valid socket. The operation is for this
    // callback.
    unsafe { enter(sk, |operations| operations.data_ready) }
}

/// The callback `sk_state_change`.
///
/// # Safety
///
/// Only TCP may call it, as `sk_state_change`.
unsafe extern "C" fn state_change(sk: *mut sock) {
    // SAFETY: Only TCP calls this callback, with a valid socket. The operation is for this
    // callback.
    unsafe { enter(sk, |operations| operations.state_change) }
}

/// The callback `sk_write_space`.
///
/// # Safety
///
/// Only TCP may call it, as `sk_write_space`.
unsafe extern "C" fn write_space(sk: *mut sock) {
    // SAFETY: Only TCP calls this callback, with a valid socket. The operation is for this
    // callback.
    unsafe { enter(sk, |operations| operations.write_space) }
}

/// The callback `sk_error_report`.
///
/// # Safety
///
/// Only TCP may call it, as `sk_error_report`.
unsafe extern "C" fn error_report(sk: *mut sock) {
    // SAFETY: Only TCP calls this callback, with a valid socket. The operation is for this
    // callback.
    unsafe { enter(sk, |operations| operations.error_report) }
}
