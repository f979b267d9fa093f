// SPDX-License-Identifier: GPL-2.0

//! Sockets.

use super::watch;
use crate::{AnyEvent, Base, ListenerHook, Pernet, SendBuf};
use core::{mem::MaybeUninit, net::SocketAddr, ops::Deref};
use kernel::{
    bindings::bio_vec,
    error::to_result,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::net::{addr, Family, Netns};
use riw_bindings as bindings;

/// The state of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is not established yet.
    Connecting,
    /// Both sides may send.
    Established,
    /// Either side shuts it down: no message can be sent any more. Messages that were sent before
    /// still arrive.
    ShuttingDown,
    /// There is none, or none any more. Messages that were received before can still be read.
    Gone,
}

/// An association, at one moment. Without an association, the numbers are 0.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Its state.
    pub phase: Phase,
    /// The error that ended it, if any.
    pub error: Option<Error>,
    /// The peer's adaptation indication (RFC 5061, section 4.2.6); 0 if it has sent none.
    pub adaptation: u32,
    /// The user data of the largest message that is not fragmented, in bytes.
    pub chunk: u32,
    /// Bytes of user data that were queued and that the peer has not acknowledged.
    pub unacknowledged: u32,
    /// The part of `unacknowledged` that SCTP has not sent.
    pub unsent: u32,
    /// There is something to read, other than the event that the association is up. False if it is
    /// gone.
    pub has_received: bool,
    /// The number of the peer's addresses.
    pub addrs: u32,
    /// Milliseconds since the last packet of the peer; `u32::MAX` if there has been none.
    pub silence: u32,
    /// A number that changes when either side has received something new.
    pub moved: u64,
}

/// A received part of a message.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its length in bytes; not 0.
    pub len: usize,
    /// The message ends here.
    pub last: bool,
    /// The kind of the message.
    pub kind: PartKind,
}

/// The kind of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// User data of the peer, with this payload protocol identifier.
    Data(u32),
    /// A notification of the socket: see [`is_restart`].
    Event,
}

/// A kernel SCTP socket: [`Base`] has the part that all protocols share.
///
/// It never has `SO_REUSEADDR`. With that, any user could bind another socket to its port and
/// addresses. An association of the other socket whose peer lists the address of this one's peer
/// would take its packets.
///
/// Its drop aborts the association, if there is one: SCTP would go on to shut it down, in a network
/// namespace that nobody holds. For an orderly close, first call
/// [`shutdown_write`](Base::shutdown_write) and wait for [`Phase::Gone`].
///
/// # Invariants
///
/// It is an SCTP socket in the one-to-one style.
pub struct SctpSocket {
    base: Base,
    /// The tags of the association when it was first seen established; before, 0.
    tags: Atomic<u64>,
}

impl Deref for SctpSocket {
    type Target = Base;

    fn deref(&self) -> &Base {
        &self.base
    }
}

impl Drop for SctpSocket {
    fn drop(&mut self) {
        self.base.set_no_linger();
    }
}

impl SctpSocket {
    /// Makes a socket in a network namespace, which will send this adaptation indication and have
    /// `send` bytes to send from, and `receive` bytes to receive into, half of which the peer may
    /// use for its data. Children of a listener have the same. Process context, may sleep.
    /// `EPROTONOSUPPORT` before [`Pernet::load_sctp`], `EAFNOSUPPORT` if the kernel lacks the
    /// address family; otherwise the errors of `sock_create_kern()`.
    pub fn new(
        pernet: &Arc<Pernet>,
        ns: &Netns,
        family: Family,
        adaptation: u32,
        send: u32,
        receive: u32,
    ) -> Result<Self> {
        // Creating a socket would load the module, under whatever locks the caller is called.
        if !pernet.has_sctp() {
            return Err(EPROTONOSUPPORT);
        }
        // INVARIANT: It is new, of SCTP and SOCK_STREAM.
        let this = Self {
            base: Base::new(pernet, ns, family, bindings::IPPROTO_SCTP)?,
            tags: Atomic::new(0),
        };

        // SAFETY: By the type's invariants it is a valid SCTP socket. The helper locks it.
        to_result(unsafe {
            bindings::sctp_setup(this.sock().as_ptr(), adaptation, send, receive)
        })?;
        Ok(this)
    }

    /// Makes the receive buffer larger, to `receive` bytes. May sleep. Without an association,
    /// nothing changes.
    pub fn widen(&self, receive: u32) {
        // SAFETY: By the type's invariants it is a valid SCTP socket. The helper locks it.
        unsafe { bindings::sctp_widen(self.sk().as_ptr(), receive) }
    }

    /// Binds the socket, which must be bound, to one more address: an association then uses each
    /// path that the peer's addresses give, one at a time. The port of `addr` must be 0, or the
    /// port of the socket. Call it before the socket listens or connects. Process context; may
    /// sleep. Fails as `bind()` does.
    pub fn bind_more(&self, addr: &SocketAddr) -> Result {
        let mut storage = addr::to_storage(addr);

        // SAFETY: By the type's invariants it is a valid SCTP socket. `storage` holds an address of
        // the length passed. SCTP locks the socket.
        to_result(unsafe {
            bindings::sctp_bind_more(self.sock().as_ptr(), &mut storage, Base::addr_len(addr))
        })
    }

    /// Binds the socket, which will listen, to a local address, as [`bind`](Base::bind) does; also
    /// if associations of an earlier listener of the same user still use it. May sleep.
    pub fn bind_listener(&self, addr: &SocketAddr) -> Result {
        match self.bind(addr) {
            Err(e) if e == EADDRINUSE => {
                self.share_port(true);
                self.bind(addr)
            }
            other => other,
        }
    }

    /// Lets the socket share its port with sockets of the same user that do so, too, or not. May
    /// sleep.
    fn share_port(&self, on: bool) {
        // SAFETY: By the type's invariants it is a valid SCTP socket. The helper locks it.
        unsafe { bindings::sk_share_port(self.sk().as_ptr(), on) }
    }

    /// Sets the options that depend on the association, which must be established: when it
    /// acknowledges packets and, with several paths, when it changes to another path. May sleep.
    pub fn tune(&self) -> Result {
        // SAFETY: By the type's invariants it is a valid SCTP socket. The helper locks it.
        to_result(unsafe { bindings::sctp_tune(self.sock().as_ptr()) })
    }

    /// Sets the time between the heartbeats on an idle association, in milliseconds; 0: there are
    /// none. Without an association, sets it for those to come. May sleep.
    pub fn set_heartbeat(&self, ms: u32) -> Result {
        // SAFETY: By the type's invariants it is a valid SCTP socket. SCTP locks it.
        to_result(unsafe { bindings::sctp_set_heartbeat(self.sock().as_ptr(), ms) })
    }

    /// Returns the state of the association. May sleep.
    ///
    /// One that the peer has restarted is gone, by `ECONNRESET`; the numbers are those of the new
    /// one, which the drop of the socket aborts. SCTP queues an event for each restart, without a
    /// limit, behind the messages that are not read yet: so this does not wait for the event. Nor
    /// does a peer get around it that restarts until the tags are those of the first association
    /// again: one with too many events is gone, too.
    pub fn look(&self) -> Look {
        let mut look = bindings::riw_sctp_look::default();

        // SAFETY: By the type's invariants it is a valid SCTP socket. The helper locks it.
        unsafe { bindings::sctp_look(self.sk().as_ptr(), &mut look) };
        let phase = match look.phase {
            bindings::riw_sctp_phase_RIW_SCTP_CONNECTING => Phase::Connecting,
            bindings::riw_sctp_phase_RIW_SCTP_ESTABLISHED => Phase::Established,
            bindings::riw_sctp_phase_RIW_SCTP_SHUTDOWN => Phase::ShuttingDown,
            _ => Phase::Gone,
        };
        let error = (look.err != 0).then(|| Error::from_errno(look.err.saturating_neg()));
        let (phase, error) = match look.flooded || self.is_restarted(phase, look.tags) {
            true => (Phase::Gone, error.or(Some(ECONNRESET))),
            false => (phase, error),
        };

        Look {
            phase,
            error,
            adaptation: look.adaptation,
            chunk: look.chunk,
            unacknowledged: look.unacked,
            unsent: look.unsent,
            has_received: look.received,
            addrs: look.addrs,
            silence: look.silence,
            moved: look.moved,
        }
    }

    /// Whether an association in `phase`, with these tags, is not the one that was established
    /// first.
    fn is_restarted(&self, phase: Phase, tags: u64) -> bool {
        match phase {
            Phase::Connecting | Phase::Gone => false,
            // Whoever notes them first: a restart in between changes them for the other one.
            Phase::Established | Phase::ShuttingDown => self
                .tags
                .cmpxchg(0, tags, ordering::Relaxed)
                .is_err_and(|noted| noted != tags),
        }
    }

    /// Returns the local and the peer's address of the primary path. May sleep. `ENOTCONN` if there
    /// is no association.
    pub fn addrs(&self) -> Result<(SocketAddr, SocketAddr)> {
        let mut local = bindings::__kernel_sockaddr_storage::default();
        let mut remote = bindings::__kernel_sockaddr_storage::default();

        // SAFETY: By the type's invariants it is a valid SCTP socket. The helper locks it. Each
        // storage has room for every address.
        if !unsafe { bindings::sctp_addrs(self.sk().as_ptr(), &mut local, &mut remote) } {
            return Err(ENOTCONN);
        }
        let read = |storage| addr::from_storage(storage).ok_or(EAFNOSUPPORT);
        Ok((read(&local)?, read(&remote)?))
    }

    /// Returns the free space in the send buffer, which also holds SCTP's overhead for each
    /// message, and the user data of the largest message that is not fragmented, both in bytes. If
    /// there is no space, [`AnyEvent::room`] reports space later. May sleep. Without an association
    /// there is space: sending then fails.
    pub fn room(&self) -> (usize, u32) {
        let mut chunk = 0;

        // SAFETY: By the type's invariants it is a valid SCTP socket. The helper locks it.
        let room = unsafe { bindings::sctp_room(self.sk().as_ptr(), &mut chunk) };
        (room, chunk)
    }

    /// Lets [`AnyEvent::room`] report the next acknowledgment of data, as if there had been no
    /// room. May sleep.
    pub fn notify_room(&self) {
        // SAFETY: By the type's invariants it is a valid SCTP socket, with its `struct socket`.
        unsafe { bindings::sk_notify_room(self.sk().as_ptr()) }
    }

    /// Sends the first `len` bytes of `buf` as one message, all or nothing, and removes them from
    /// `buf`. May sleep.
    ///
    /// `EAGAIN` if there is no room: [`AnyEvent::room`] reports room later. `EINVAL` if `buf` has
    /// fewer bytes, or in too many pieces. No callback follows any other error.
    pub fn send_from(&self, buf: &mut SendBuf, len: usize, ppid: u32) -> Result {
        /// Pieces of 64 KiB in single pages that begin anywhere, and some more.
        const VECS: usize = 20;
        let mut vecs = [const { MaybeUninit::<bio_vec>::uninit() }; VECS];
        let (vecs, offered) = buf.describe(&mut vecs);

        if offered < len {
            return Err(EINVAL);
        }
        // SAFETY: By the type's invariants it is a valid SCTP socket. `vecs` describes pages that
        // `buf` has references to, with at least `len` bytes.
        let ret = unsafe {
            bindings::sctp_send_pages(self.sock().as_ptr(), vecs.as_ptr(), vecs.len(), len, ppid)
        };
        to_result(ret.min(0))?;
        buf.consume(len);
        Ok(())
    }

    /// Sends both parts as one message, all or nothing. May sleep. Fails as
    /// [`send_from`](Self::send_from) does.
    pub fn send(&self, parts: [&[u8]; 2], ppid: u32) -> Result {
        let [first, second] = parts;

        // SAFETY: By the type's invariants it is a valid SCTP socket. The slices are valid for
        // reads of their lengths; SCTP copies them.
        let ret = unsafe {
            bindings::sctp_send(
                self.sock().as_ptr(),
                first.as_ptr(),
                first.len(),
                second.as_ptr(),
                second.len(),
                ppid,
            )
        };
        to_result(ret.min(0))
    }

    /// Receives the next message, or its next part, into `to`, which must not be empty. May sleep.
    ///
    /// `EAGAIN` if there is none now, `ENOTCONN` if none will come; otherwise the error that ended
    /// the association.
    pub fn recv(&self, to: &mut [u8]) -> Result<Part> {
        let mut part = bindings::riw_sctp_part::default();

        // SAFETY: By the type's invariants it is a valid SCTP socket. `to` is borrowed exclusively
        // and so valid for writes of its length.
        let ret = unsafe {
            bindings::sctp_recv(self.sock().as_ptr(), to.as_mut_ptr(), to.len(), &mut part)
        };
        let len = usize::try_from(ret).map_err(|_| Error::from_errno(ret))?;

        if len == 0 {
            return Err(ENOTCONN);
        }
        Ok(Part {
            len,
            last: part.last,
            kind: if part.event {
                PartKind::Event
            } else {
                PartKind::Data(part.ppid)
            },
        })
    }

    /// Installs `owner` for the callbacks of the socket.
    ///
    /// Earlier events are not reported: look once afterwards. The socket holds references to
    /// `owner` until [`clear_callbacks`](Base::clear_callbacks) or its drop. `EBUSY` if callbacks
    /// are installed or other code uses `sk_user_data`, `ENOMEM` if there is no memory.
    pub fn set_callbacks<T: AnyEvent>(&self, owner: Arc<T>) -> Result {
        // SAFETY: By the type's invariants it is a valid SCTP socket; the drop of `Base` removes
        // the callbacks before it releases the socket.
        unsafe { watch::install(self.sk(), owner) }
    }
}

/// Whether a notification reports that the peer has restarted the association: the peer has lost
/// the messages that it had not acknowledged, and knows no earlier ones. Any context.
pub fn is_restart(event: &[u8]) -> bool {
    // SAFETY: The slice is valid for reads of its length.
    unsafe { bindings::sctp_restarted(event.as_ptr(), event.len()) }
}

/// A listening SCTP socket.
///
/// The rules for namespace, drop and context of [`Base`] apply.
pub struct SctpListenSocket(SctpSocket);

impl SctpListenSocket {
    /// Makes `socket`, which must be bound, listen. Up to `backlog` associations may wait in the
    /// accept queue. Fails as `listen()` does, for example with `EADDRINUSE`.
    pub fn new(socket: SctpSocket, backlog: u32) -> Result<Self> {
        socket.clear_callbacks();
        socket.listen(backlog)?;
        // Not with another listener.
        socket.share_port(false);
        Ok(Self(socket))
    }

    /// Accepts an association, which may be gone already. `EAGAIN` if the accept queue is empty,
    /// `EBUSY` if other code uses the child's `sk_user_data`; otherwise the errors of
    /// `kernel_accept()`.
    pub fn accept(&self) -> Result<SctpSocket> {
        // INVARIANT: A child of an SCTP socket is one.
        let child = SctpSocket {
            base: self.0.accept()?,
            tags: Atomic::new(0),
        };

        // With a later listener.
        child.share_port(true);
        // SAFETY: By the type's invariants both are valid SCTP sockets. The helper locks the child.
        unsafe {
            bindings::sctp_share_cookie_key(child.sk().as_ptr(), self.0.sk().as_ptr());
        }
        Ok(child)
    }

    /// Installs `hook` for the callbacks of the accept queue, as
    /// [`ListenSocket::set_listener`](crate::ListenSocket::set_listener) does.
    pub fn set_listener(&self, hook: ListenerHook) -> Result {
        // SAFETY: By the type's invariants of `SctpSocket` it is a valid SCTP socket.
        unsafe { hook.install(self.0.sk()) }
    }
}
