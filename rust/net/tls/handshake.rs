// SPDX-License-Identifier: GPL-2.0

//! Handshakes, which a process makes.

use super::{callbacks::note_handshake, subject::SubjectName};
use crate::Socket;
use core::ptr::NonNull;
use kernel::{
    bindings::sock,
    error::to_result,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc, ArcBorrow, Completion, SetOnce,
    },
};
use riw_bindings as bindings;

/// The side of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsRole {
    /// Sends the ClientHello, and checks the certificate of the peer.
    Client,
    /// Waits for it, and requests a certificate of the peer.
    Server,
}

/// Receives the end of a handshake.
pub trait HandshakeDone: Send + Sync + 'static {
    /// [`TlsSocket::poll_handshake`](super::TlsSocket::poll_handshake) is to be called. Process
    /// context. Must only mark and schedule: the drop of the socket may wait for it.
    fn handshake_done(self: ArcBorrow<'_, Self>);
}

/// A handshake that has been requested.
///
/// # Invariants
///
/// The request is of the socket `sk`, which outlives this object, and refers to `state`.
pub(super) struct PendingHandshake {
    sk: NonNull<sock>,
    state: Pin<KBox<Handshake>>,
}

// SAFETY: Any thread may cancel a handshake.
unsafe impl Send for PendingHandshake {}
// SAFETY: Shared access only reads atomics.
unsafe impl Sync for PendingHandshake {}

impl PendingHandshake {
    /// Requests a handshake, as [`TlsSocket::begin_handshake`](super::TlsSocket::begin_handshake)
    /// says. `is_named`: the file of the socket has the name that the certificate of the peer must
    /// have.
    ///
    /// # Safety
    ///
    /// `socket` must have a file, and must be valid until the result is dropped.
    pub(super) unsafe fn begin(
        socket: &Socket,
        role: TlsRole,
        is_named: bool,
        timeout: u32,
        owner: Arc<dyn HandshakeDone>,
    ) -> Result<Self> {
        note_handshake();
        let state = KBox::pin_init(Handshake::new(owner), GFP_KERNEL_ACCOUNT)?;
        let ctx: *const Handshake = &*state;

        // SAFETY: The caller promises a valid socket with a file. `ctx` is a `Handshake`, as `done`
        // requires, and valid until `done` has been called or the handshake is canceled: see the
        // drop.
        to_result(unsafe {
            bindings::tls_handshake(
                socket.sock().as_ptr(),
                role == TlsRole::Server,
                is_named,
                timeout,
                Some(Handshake::done),
                ctx.cast_mut().cast(),
            )
        })?;
        // INVARIANT: The handshake has been requested. The caller promises that the socket
        // outlives the result.
        Ok(Self {
            sk: socket.sk(),
            state,
        })
    }

    /// Whether it has ended. Its callback may still run.
    pub(super) fn has_ended(&self) -> bool {
        self.state.has_ended.load(ordering::Acquire)
    }

    /// Returns the result of a handshake that has ended: whether the peer has a certificate.
    pub(super) fn result(&self) -> Result<bool> {
        match self.state.status.load(ordering::Relaxed) {
            0 => Ok(self.state.certificate.load(ordering::Relaxed) != 0),
            // Any privileged process could report any status.
            status if (-4095..0).contains(&status) => Err(Error::from_errno(status)),
            _ => Err(EIO),
        }
    }

    /// Returns the subject of the peer's certificate after a handshake has ended, if it is known.
    pub(super) fn subject(&self) -> Option<SubjectName> {
        self.state.subject.as_ref().copied()
    }
}

impl Drop for PendingHandshake {
    fn drop(&mut self) {
        // SAFETY: By the type's invariants the socket is alive.
        if !unsafe { bindings::tls_cancel(self.sk.as_ptr()) } {
            // There is exactly one callback for a request that is not canceled, and it has begun.
            // It waits at most for another user of a key.
            self.state.done.wait_for_completion();
        }
    }
}

/// The state of a handshake, to which the kernel's request has a pointer.
#[pin_data]
struct Handshake {
    owner: Arc<dyn HandshakeDone>,
    status: Atomic<i32>,
    /// The key of the peer's certificate, or 0.
    certificate: Atomic<i32>,
    /// The subject of that certificate, if the key has it.
    subject: SetOnce<SubjectName>,
    /// All of the above have been set.
    has_ended: Atomic<bool>,
    /// The callback is over.
    #[pin]
    done: Completion,
}

impl Handshake {
    fn new(owner: Arc<dyn HandshakeDone>) -> impl PinInit<Self> {
        pin_init!(Self {
            owner,
            status: Atomic::new(0),
            certificate: Atomic::new(0),
            subject: SetOnce::new(),
            has_ended: Atomic::new(false),
            done <- Completion::new(),
        })
    }

    /// Notes the end of the handshake. May sleep, but waits for no peer.
    ///
    /// # Safety
    ///
    /// Only the kernel may call it, once, as the callback of the request that `ctx` was given to.
    unsafe extern "C" fn done(ctx: *mut c_void, status: c_int, certificate: c_int) {
        // SAFETY: `ctx` is a `Handshake`. It is freed by the drop of its `PendingHandshake`, which
        // waits for `done` below, as this call shows that the request was not canceled.
        let this = unsafe { &*ctx.cast::<Self>() };

        this.status.store(status, ordering::Relaxed);
        this.certificate.store(certificate, ordering::Relaxed);
        // Now: a key that the process makes for another peer of the same address replaces this one.
        if let Some(subject) = SubjectName::of_key(certificate) {
            // It is empty: this is called once.
            this.subject.populate(subject);
        }
        this.has_ended.store(true, ordering::Release);
        this.owner.as_arc_borrow().handshake_done();
        // `this` may be freed as soon as this has woken the drop. C code does that, and does not
        // use it afterwards.
        this.done.complete_all();
    }
}
