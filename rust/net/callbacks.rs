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
//! Protocols that call with or without the socket's lock have [`AnyEvent`]. SCTP reports room in
//! the send buffer under the lock of a wait queue.
//!
//! Each callback takes `sk_callback_lock` as a reader and looks up its owner under it.
//! [`Base::clear_callbacks`] removes the owner as the writer: it waits for running callbacks, and
//! later callbacks find no owner. So the reference to the owner can be dropped after it. For the
//! same reason a callback must not call it. [`AnyEvent::room`] runs under the lock of the wait
//! queue instead, which [`Base::clear_callbacks`] also takes to remove it.
//!
//! [`Base::clear_callbacks`]: crate::Base::clear_callbacks

use crate::Reader;
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
    /// Called only after [`Socket::send`](crate::Socket::send) has failed with `EAGAIN`,
    /// [`Socket::room`](crate::Socket::room) has returned 0, or
    /// [`Socket::notify_room`](crate::Socket::notify_room) was called.
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

/// Receives the events of a connection that is looked at in process context only.
pub trait AnyEvent: Sized + Send + Sync + 'static {
    /// Data or an event can be read, or the state has changed. Atomic context, with softirqs
    /// disabled: must not sleep. The socket's lock may or may not be held.
    fn changed(self: &Arc<Self>);

    /// There is room in the send buffer again. Any context: over SCTP with interrupts disabled,
    /// under the lock of a wait queue; over TLS with `sk_callback_lock` held. Must only mark and
    /// schedule.
    ///
    /// Called only after a send on the socket has failed with `EAGAIN`, its `room()` has returned
    /// 0, or its `notify_room()` was called.
    fn room(self: &Arc<Self>);
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

    /// Returns a reader of the bytes received in order and not taken yet, up to urgent data.
    #[inline]
    pub fn read(&mut self) -> Reader<'_> {
        // SAFETY: By the type's invariant it is a TCP socket, alive and locked. The borrow of
        // `self` excludes another use of it.
        unsafe { Reader::new(self.sk) }
    }

    /// Takes all bytes up to urgent data, and requests [`Callbacks::data_ready`] at every byte.
    pub fn discard(&mut self) {
        // SAFETY: By the type's invariant it is a TCP socket, alive and locked, so that this
        // context may change its low-water mark, and this is not inside another read. `&mut self`
        // excludes a `Reader`.
        unsafe { bindings::tcp_discard(self.sk.as_ptr()) }
    }

    /// Whether urgent data was received or announced and not taken. Later bytes cannot be read.
    pub fn has_urgent(&self) -> bool {
        // SAFETY: By the type's invariant it is a TCP socket, alive and locked.
        unsafe { bindings::tcp_has_urgent(self.sk.as_ptr()) }
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
        err => Some(Error::from_errno(err.saturating_neg())),
    }
}
