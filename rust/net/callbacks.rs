// SPDX-License-Identifier: GPL-2.0

//! Callbacks of a socket, and what they may do with it.
//!
//! # When callbacks run, and when not any more
//!
//! TCP calls them in a softirq with the socket's spin lock held (`bh_lock_sock()`), or, for what
//! came in while a task owned the socket, from that task as it gives the socket up (the backlog in
//! `release_sock()`). In both cases nobody else works on the socket: that is what [`LockedSock`]
//! stands for. Listening sockets are the exception: TCP tells them of a new connection without
//! holding their lock, which is why they have a trait of their own.
//!
//! Each callback runs below a reader's `sk_callback_lock` and looks for its owner there. Taking the
//! callbacks off is done as that lock's writer: it waits for those that run, and whoever comes
//! later finds no owner. Hence after [`Socket::clear_callbacks`] none runs any more, and the
//! owner's reference can be dropped. And hence a callback must not call that itself.
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

/// Who is told what happens to a connection.
///
/// All are called in atomic context, with softirqs disabled: they must not sleep, nor take what is
/// taken around `lock_sock()`.
pub trait Callbacks: Sized + Send + Sync + 'static {
    /// There is something to be read, or the peer has sent its FIN.
    fn data_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>);

    /// The connection's state changed: see [`LockedSock::state`].
    fn state_change(self: &Arc<Self>, sk: &mut LockedSock<'_>);

    /// There is room in the send buffer again, a third of it at least.
    ///
    /// Comes only after a [`Socket::send`](crate::Socket::send) that failed with `EAGAIN`, or a
    /// [`Socket::room`](crate::Socket::room) that found none.
    fn write_space(self: &Arc<Self>);

    /// The connection failed, or an ICMP error came. The socket's lock may or may not be held.
    fn error_report(self: &Arc<Self>);
}

/// Who is told of new connections to a listening socket.
pub trait Listener: Sized + Send + Sync + 'static {
    /// There may be a connection to be accepted. In atomic context, the socket is **not** locked.
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

/// A TCP socket whose lock is held.
///
/// # Invariants
///
/// `sk` is a TCP socket; for the lifetime of this object it lives, and is locked by `lock_sock()`
/// or `bh_lock_sock()` by the running context, which is not in the midst of reading from it.
pub struct LockedSock<'a> {
    sk: NonNull<sock>,
    _scope: PhantomData<&'a ()>,
    _here: NotThreadSafe,
}

impl LockedSock<'_> {
    /// # Safety
    ///
    /// `sk` must be as the type's invariant says until the result is dropped.
    pub(crate) unsafe fn new(sk: NonNull<sock>) -> Self {
        // INVARIANT: As the caller says.
        Self {
            sk,
            _scope: PhantomData,
            _here: NotThreadSafe,
        }
    }

    /// The connection's state.
    pub fn state(&self) -> TcpState {
        // SAFETY: By the type's invariant the socket is valid.
        unsafe { state_of(self.sk) }
    }

    /// The error that ended the connection, if one did.
    pub fn error(&self) -> Option<Error> {
        // SAFETY: By the type's invariant the socket is valid.
        unsafe { error_of(self.sk) }
    }

    /// Bytes sent that the peer has not acknowledged yet; this side's FIN counts as one.
    pub fn unacknowledged(&self) -> u32 {
        // SAFETY: By the type's invariant it is a TCP socket.
        unsafe { bindings::tcp_unacked(self.sk.as_ptr()) }
    }

    /// Bytes that the peer has acknowledged and that it has sent, since the connection was made.
    pub fn moved(&self) -> u64 {
        // SAFETY: By the type's invariant it is a TCP socket, and locked.
        unsafe { bindings::tcp_moved(self.sk.as_ptr()) }
    }

    /// The bytes received in order and not taken yet, up to urgent data.
    pub fn unread(&self) -> Unread<'_> {
        // SAFETY: By the type's invariant it is a locked TCP socket. Taking bytes from it needs
        // `self` mutably, and so not before the result is dropped.
        unsafe { Unread::new(self.sk.as_ptr()) }
    }

    /// Takes the first `count` bytes from the socket, or all there are up to urgent data. They are
    /// gone, and the peer is told in due course that there is room again.
    pub fn take(&mut self, count: usize) {
        if count != 0 {
            // SAFETY: By the type's invariant it is a locked TCP socket, and nobody is reading from
            // it.
            unsafe { bindings::tcp_take(self.sk.as_ptr(), count) }
        }
    }

    /// Takes whatever is there, and has [`Callbacks::data_ready`] called for every byte again.
    pub fn discard(&mut self) {
        self.wait_for(1);
        self.take(usize::MAX);
    }

    /// Whether urgent data has come or is announced. What lies behind them cannot be read.
    pub fn has_urgent(&self) -> bool {
        // SAFETY: By the type's invariant it is a locked TCP socket.
        unsafe { bindings::tcp_has_urgent(self.sk.as_ptr()) }
    }

    /// Has [`Callbacks::data_ready`] called when `count` bytes are unread, rather than for every
    /// byte. Less than that only after an end, or if TCP can queue no more before some is taken.
    ///
    /// Returns false if that is so now: no call may come then.
    pub fn wait_for(&mut self, count: u32) -> bool {
        // SAFETY: By the type's invariant it is a locked TCP socket.
        unsafe { bindings::tcp_wait_for(self.sk.as_ptr(), count) }
    }
}

/// The state of a socket.
///
/// # Safety
///
/// `sk` must be valid.
pub(crate) unsafe fn state_of(sk: NonNull<sock>) -> TcpState {
    // SAFETY: As the caller says.
    TcpState::from(unsafe { bindings::sk_state(sk.as_ptr()) } as u32)
}

/// The pending error of a socket.
///
/// # Safety
///
/// `sk` must be valid.
pub(crate) unsafe fn error_of(sk: NonNull<sock>) -> Option<Error> {
    // SAFETY: As the caller says.
    match unsafe { bindings::sk_err(sk.as_ptr()) } {
        0 => None,
        err => Some(Error::from_errno(-err)),
    }
}

/// What a callback does with its hook, whose type the hook alone knows.
///
/// # Safety
///
/// To be called from a callback of TCP, for the hook that it has found in `sk_user_data`, of which
/// this is one of the operations.
type Operation = unsafe fn(hook: *const c_void, sk: NonNull<sock>);

/// The operations of a type of hook.
struct Operations {
    data_ready: Operation,
    state_change: Operation,
    write_space: Operation,
    error_report: Operation,
    /// Drops the hook. Not to be called from a callback.
    release: unsafe fn(*mut c_void),
}

/// What `sk_user_data` points to.
///
/// TCP may have looked up a callback before the owner changes, and call it afterwards. So the
/// callbacks are the same functions for all owners, and which operations go with an owner is said
/// here, where it is found together with the owner.
///
/// The alignment is what the flags in that pointer need.
#[repr(C, align(8))]
struct Hook<T> {
    operations: &'static Operations,
    owner: Arc<T>,
}

impl<T: Send + Sync + 'static> Hook<T> {
    /// # Safety
    ///
    /// `sk` must be a valid TCP socket, and `operations` be for hooks of type `T`.
    unsafe fn install(sk: NonNull<sock>, owner: Arc<T>, operations: &'static Operations) -> Result {
        let callbacks = bindings::riw_sk_callbacks {
            data_ready: Some(data_ready),
            write_space: Some(write_space),
            state_change: Some(state_change),
            error_report: Some(error_report),
        };
        let hook = KBox::into_raw(KBox::new(Self { operations, owner }, GFP_KERNEL)?);

        // SAFETY: The socket is valid. On success it owns the hook, until `remove`.
        let ret = unsafe { bindings::sk_hook(sk.as_ptr(), hook.cast(), &callbacks) };
        if ret != 0 {
            // SAFETY: Nobody else has seen it.
            unsafe { Self::release(hook.cast()) };
            return Err(Error::from_errno(ret));
        }
        Ok(())
    }

    /// # Safety
    ///
    /// `hook` must come from [`KBox::into_raw`] of a `Hook<T>`, and not be used afterwards.
    unsafe fn release(hook: *mut c_void) {
        // SAFETY: As the caller says.
        drop(unsafe { KBox::from_raw(hook.cast::<Self>()) });
    }

    /// # Safety
    ///
    /// As an [`Operation`].
    unsafe fn ignore(_hook: *const c_void, _sk: NonNull<sock>) {}

    /// # Safety
    ///
    /// `hook` must be a `Hook<T>` that is there for `'a`.
    unsafe fn owner<'a>(hook: *const c_void) -> &'a Arc<T> {
        // SAFETY: As the caller says.
        unsafe { &(*hook.cast::<Self>()).owner }
    }
}

impl<T: Callbacks> Hook<T> {
    /// For the socket of a connection.
    const CONNECTION: Operations = Operations {
        data_ready: Self::data_ready,
        state_change: Self::state_change,
        write_space: Self::write_space,
        error_report: Self::error_report,
        release: Self::release,
    };

    /// # Safety
    ///
    /// As an [`Operation`].
    unsafe fn data_ready(hook: *const c_void, sk: NonNull<sock>) {
        // SAFETY: As the caller says. TCP holds the lock of a socket that is not listening.
        unsafe { Self::owner(hook).data_ready(&mut LockedSock::new(sk)) }
    }

    /// # Safety
    ///
    /// As an [`Operation`].
    unsafe fn state_change(hook: *const c_void, sk: NonNull<sock>) {
        // SAFETY: As for `data_ready`.
        unsafe { Self::owner(hook).state_change(&mut LockedSock::new(sk)) }
    }

    /// # Safety
    ///
    /// As an [`Operation`].
    unsafe fn write_space(hook: *const c_void, sk: NonNull<sock>) {
        // SAFETY: As the caller says; the socket is valid.
        unsafe {
            if bindings::sk_stream_writeable(sk.as_ptr()) {
                Self::owner(hook).write_space();
            }
        }
    }

    /// # Safety
    ///
    /// As an [`Operation`].
    unsafe fn error_report(hook: *const c_void, _sk: NonNull<sock>) {
        // SAFETY: As the caller says.
        unsafe { Self::owner(hook).error_report() }
    }
}

impl<T: Listener> Hook<T> {
    /// For a listening socket.
    const LISTENER: Operations = Operations {
        data_ready: Self::connection_ready,
        state_change: Self::ignore,
        write_space: Self::ignore,
        error_report: Self::ignore,
        release: Self::release,
    };

    /// # Safety
    ///
    /// As an [`Operation`].
    unsafe fn connection_ready(hook: *const c_void, _sk: NonNull<sock>) {
        // SAFETY: As the caller says.
        unsafe { Self::owner(hook).connection_ready() }
    }
}

/// Takes the callbacks off, and restores `original`.
///
/// When it returns none runs any more.
///
/// # Safety
///
/// `sk` must be valid, with `original` the callbacks it had at first. May sleep; not from a
/// callback.
pub(crate) unsafe fn remove(sk: NonNull<sock>, original: &bindings::riw_sk_callbacks) {
    // SAFETY: As the caller says.
    let hook = unsafe { bindings::sk_unhook(sk.as_ptr(), original) };

    if !hook.is_null() {
        // SAFETY: It was installed by `Hook::install`, and begins with its operations whatever its
        // type. Nobody uses it any more: callbacks find none from now on, and those that had found
        // it have returned, since we were the writer of the lock that they read.
        unsafe { ((*hook.cast::<&Operations>()).release)(hook) };
    }
}

/// Installs the callbacks of a connection.
///
/// # Safety
///
/// `sk` must be a valid TCP socket, not listening.
pub(crate) unsafe fn install<T: Callbacks>(sk: NonNull<sock>, owner: Arc<T>) -> Result {
    // SAFETY: As the caller says.
    unsafe { Hook::install(sk, owner, &Hook::<T>::CONNECTION) }
}

/// Installs the callback of a listening socket.
///
/// # Safety
///
/// `sk` must be a valid TCP socket.
pub(crate) unsafe fn install_listener<T: Listener>(sk: NonNull<sock>, owner: Arc<T>) -> Result {
    // SAFETY: As the caller says.
    unsafe { Hook::install(sk, owner, &Hook::<T>::LISTENER) }
}

/// Does what the socket's hook, if it has one, has for a callback.
///
/// # Safety
///
/// To be called by a callback, with TCP's socket.
unsafe fn enter(sk: *mut sock, operation: impl FnOnce(&Operations) -> Operation) {
    // SAFETY: TCP calls its callbacks with a valid socket.
    let hook = unsafe { bindings::sk_callback_enter(sk) };

    if !hook.is_null() {
        // SAFETY: It is there until `remove` has got the lock that we have as a reader, and begins
        // with its operations. The socket is not null.
        unsafe { operation(*hook.cast::<&Operations>())(hook, NonNull::new_unchecked(sk)) };
    }
    // SAFETY: Goes with the call above.
    unsafe { bindings::sk_callback_exit(sk) };
}

/// # Safety
///
/// To be called by TCP, as `sk_data_ready` of a socket or of a listening one's child.
unsafe extern "C" fn data_ready(sk: *mut sock) {
    // SAFETY: As the caller says.
    unsafe { enter(sk, |operations| operations.data_ready) }
}

/// # Safety
///
/// To be called by TCP, as `sk_state_change`.
unsafe extern "C" fn state_change(sk: *mut sock) {
    // SAFETY: As the caller says.
    unsafe { enter(sk, |operations| operations.state_change) }
}

/// # Safety
///
/// To be called by TCP, as `sk_write_space`.
unsafe extern "C" fn write_space(sk: *mut sock) {
    // SAFETY: As the caller says.
    unsafe { enter(sk, |operations| operations.write_space) }
}

/// # Safety
///
/// To be called by TCP, as `sk_error_report`.
unsafe extern "C" fn error_report(sk: *mut sock) {
    // SAFETY: As the caller says.
    unsafe { enter(sk, |operations| operations.error_report) }
}
