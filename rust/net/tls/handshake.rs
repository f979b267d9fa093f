// SPDX-License-Identifier: GPL-2.0

//! Handshakes, which a process makes.

use super::{callbacks::note_handshake, name::PeerName, psk::Psk};
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
    /// Sends the ClientHello. It checks the certificate of the peer, or offers a pre-shared key.
    Client,
    /// Waits for it. It requests a certificate of the peer, or finds the pre-shared key.
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
        psk: Option<Arc<Psk>>,
        timeout: u32,
        owner: Arc<dyn HandshakeDone>,
    ) -> Result<Self> {
        note_handshake();
        let state = KBox::pin_init(Handshake::new(role, psk, owner), GFP_KERNEL_ACCOUNT)?;
        let ctx: *const Handshake = &*state;

        // SAFETY: The caller promises a valid socket with a file. The key is null, or one that
        // `state` holds. `ctx` is a `Handshake`, as `done` requires, and valid until `done` has
        // been called or the handshake is canceled: see the drop.
        to_result(unsafe {
            bindings::tls_handshake(
                socket.sock().as_ptr(),
                role == TlsRole::Server,
                is_named,
                (state.psk.as_ref()).map_or(core::ptr::null(), |psk| psk.as_raw().cast_const()),
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

    /// Returns the result of a handshake that has ended: whether the peer is authentic.
    pub(super) fn result(&self) -> Result<bool> {
        match self.state.status.load(ordering::Relaxed) {
            0 => Ok(self.state.is_authentic.load(ordering::Relaxed)),
            // Any privileged process could report any status.
            status if (-4095..0).contains(&status) => Err(Error::from_errno(status)),
            _ => Err(EIO),
        }
    }

    /// Returns the name of an authentic peer after a handshake has ended, if it is known.
    pub(super) fn peer_name(&self) -> Option<PeerName> {
        self.state.peer.as_ref().copied()
    }
}

impl Drop for PendingHandshake {
    fn drop(&mut self) {
        // SAFETY: By the type's invariants the socket is alive.
        if !unsafe { bindings::tls_handshake_cancel(self.sk.as_ptr()) } {
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
    role: TlsRole,
    /// The pre-shared key, or a keyring; `None`: certificates authenticate.
    psk: Option<Arc<Psk>>,
    status: Atomic<i32>,
    /// The peer has a certificate that is valid, or has used a pre-shared key that is accepted.
    is_authentic: Atomic<bool>,
    /// The name of an authentic peer, if the key has it.
    peer: SetOnce<PeerName>,
    /// All of the above have been set.
    has_ended: Atomic<bool>,
    /// The callback is over.
    #[pin]
    done: Completion,
}

impl Handshake {
    fn new(
        role: TlsRole,
        psk: Option<Arc<Psk>>,
        owner: Arc<dyn HandshakeDone>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            owner,
            role,
            psk,
            status: Atomic::new(0),
            is_authentic: Atomic::new(false),
            peer: SetOnce::new(),
            has_ended: Atomic::new(false),
            done <- Completion::new(),
        })
    }

    /// Notes the end of the handshake. `key` is that of the peer's certificate, or the pre-shared
    /// key that it has used; otherwise 0. May sleep, but waits for no peer.
    ///
    /// # Safety
    ///
    /// Only the kernel may call it, once, as the callback of the request that `ctx` was given to.
    unsafe extern "C" fn done(ctx: *mut c_void, status: c_int, key: c_int) {
        // SAFETY: `ctx` is a `Handshake`. It is freed by the drop of its `PendingHandshake`, which
        // waits for `done` below, as this call shows that the request was not canceled.
        let this = unsafe { &*ctx.cast::<Self>() };
        // The name now: a key that the process makes for another peer of the same address replaces
        // that of the certificate. A client has checked the certificate, also if there is no key
        // for it. A server only requests one.
        let (is_authentic, peer) = match &this.psk {
            None => (
                key != 0 || this.role == TlsRole::Client,
                PeerName::of_certificate(key),
            ),
            Some(psk) if psk.accepts(key) => (true, PeerName::of_psk(key)),
            Some(_) => (false, None),
        };

        this.status.store(status, ordering::Relaxed);
        this.is_authentic.store(is_authentic, ordering::Relaxed);
        if let Some(peer) = peer {
            // It is empty: this is called once.
            this.peer.populate(peer);
        }
        this.has_ended.store(true, ordering::Release);
        this.owner.as_arc_borrow().handshake_done();
        // `this` may be freed as soon as this has woken the drop. C code does that, and does not
        // use it afterwards.
        this.done.complete_all();
    }
}
