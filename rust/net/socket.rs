// SPDX-License-Identifier: GPL-2.0

//! Kernel TCP sockets.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/tcp.h`](srctree/include/net/tcp.h)

use crate::{
    base::Base,
    callbacks::{self, Callbacks, LockedSock, TcpState},
    hook::{self, ListenerHook},
    Pernet, SendBuf,
};
use core::{mem::MaybeUninit, net::SocketAddr, ops::Deref};
use kernel::{
    bindings::{bio_vec, kvec, msghdr},
    error::to_result,
    prelude::*,
    sync::Arc,
};
use kernel_ext::net::{Family, Netns};
use riw_bindings as bindings;

/// A kernel TCP socket: [`Base`] has the part that all protocols share.
///
/// After the drop TCP retransmits nothing, not even a FIN. For an orderly close, first call
/// [`shutdown_write`](Base::shutdown_write) and wait for [`TcpState::Closed`].
///
/// A listening socket is a [`ListenSocket`].
///
/// # Invariants
///
/// It is a TCP socket.
pub struct Socket(Base);

impl Deref for Socket {
    type Target = Base;

    fn deref(&self) -> &Base {
        &self.0
    }
}

impl Socket {
    /// Makes a socket in a network namespace. Process context, may sleep. `EAFNOSUPPORT` if the
    /// kernel lacks the address family; otherwise the errors of `sock_create_kern()`.
    pub fn new(pernet: &Arc<Pernet>, ns: &Netns, family: Family) -> Result<Self> {
        // INVARIANT: It is new, of TCP.
        Base::new(pernet, ns, family, bindings::IPPROTO_TCP).map(Self)
    }

    /// Allows binding to an address that old connections still use (`SO_REUSEADDR`).
    pub fn set_reuseaddr(&self) {
        // SAFETY: By the type's invariants the socket is valid. The function locks it.
        unsafe { bindings::sock_set_reuseaddr(self.sk().as_ptr()) }
    }

    /// Gives the socket a file, as [`Base::share`] does.
    pub(crate) fn share(self, name: Option<&CStr>) -> Result<Self> {
        // INVARIANT: It is the same socket.
        self.0.share(name).map(Self)
    }

    /// Takes the present callbacks, as [`Base::note_callbacks`] does.
    ///
    /// # Safety
    ///
    /// The callbacks must have been removed, and be those of TCP or of TLS.
    pub(crate) unsafe fn note_callbacks(&mut self) {
        // SAFETY: The caller promises the same.
        unsafe { self.0.note_callbacks() }
    }

    /// Turns Nagle's algorithm off: every `send` goes out at once.
    pub fn set_nodelay(&self) {
        // SAFETY: By the type's invariants it is a valid TCP socket. The function locks it.
        unsafe { bindings::tcp_sock_set_nodelay(self.sk().as_ptr()) }
    }

    /// Turns keepalive on. After `idle` seconds without a segment from the peer, TCP sends up to
    /// `probes` probes, `interval` seconds apart; if all stay unanswered, the connection ends with
    /// `ETIMEDOUT`. May sleep. `EINVAL` if a value is 0 or above TCP's limit: 32767 s, 127 probes.
    pub fn set_keepalive(&self, idle: u16, interval: u16, probes: u16) -> Result {
        let sk = self.sk().as_ptr();

        // SAFETY: By the type's invariants it is a valid TCP socket. Each of these functions takes
        // the socket lock where it needs it.
        unsafe {
            to_result(bindings::tcp_sock_set_keepidle(sk, idle.into()))?;
            to_result(bindings::tcp_sock_set_keepintvl(sk, interval.into()))?;
            to_result(bindings::tcp_sock_set_keepcnt(sk, probes.into()))?;
            bindings::sock_set_keepalive(sk);
        }
        Ok(())
    }

    /// Resets the connection, or gives up to connect, and discards all data. The socket can connect
    /// again, from the port that it was bound to, or from another one if it was bound to none. May
    /// sleep. First remove the callbacks: they would report this end.
    pub fn disconnect(&self) -> Result {
        // SAFETY: By the type's invariants it is a valid TCP socket. The helper locks it.
        to_result(unsafe { bindings::tcp_disconnect(self.sock().as_ptr()) })
    }

    /// Gives up the local port, if it is an ephemeral one, and keeps the address: the next connect
    /// chooses another port. Returns whether it has done so. The socket must not be connected. May
    /// sleep.
    pub fn release_ephemeral_port(&self) -> bool {
        // SAFETY: By the type's invariants it is a valid TCP socket. The helper locks it.
        unsafe { bindings::tcp_release_ephemeral_port(self.sk().as_ptr()) }
    }

    /// Makes the receive buffer large enough for `count` unread bytes, within the namespace's
    /// `tcp_rmem`. Very small segments may need more. [`Callbacks::data_ready`] may be called
    /// before this returns.
    pub fn reserve(&self, count: u32) {
        // SAFETY: By the type's invariants it is a valid TCP socket. The helper locks it.
        unsafe { bindings::tcp_reserve(self.sock().as_ptr(), count) }
    }

    /// Returns the current state of the connection.
    pub fn state(&self) -> TcpState {
        // SAFETY: By the type's invariants the socket is valid.
        unsafe { callbacks::state_of(self.sk()) }
    }

    /// Returns the current maximum payload of a segment in bytes, without headers and without the
    /// options that every segment has.
    pub fn mss(&self) -> u32 {
        // SAFETY: By the type's invariants it is a valid TCP socket.
        unsafe { bindings::tcp_mss(self.sk().as_ptr()) }
    }

    /// Returns the free space in the send buffer in bytes, if at least a third is free; a
    /// [`send`](Self::send) may take a little more or less. Otherwise returns 0, and
    /// [`Callbacks::write_space`] reports when a third is free.
    pub fn room(&self) -> usize {
        // SAFETY: By the type's invariants it is a valid TCP socket, with its `struct socket`.
        unsafe { bindings::tcp_room(self.sk().as_ptr()) }
    }

    /// Lets [`Callbacks::write_space`] report the next acknowledgment, as if there had been no
    /// room. TCP enlarges the send buffer only when it reports room, as far as the congestion
    /// window and `tcp_wmem` allow. Any context.
    pub fn notify_room(&self) {
        // SAFETY: By the type's invariants it is a valid TCP socket, with its `struct socket`.
        unsafe { bindings::sk_notify_room(self.sk().as_ptr()) }
    }

    /// Receives available bytes, as many as fit into `buf`.
    ///
    /// Returns the number of bytes; 0 after the peer's FIN. `EAGAIN` if no bytes are available;
    /// otherwise the error that ended the connection.
    pub fn recv(&self, buf: &mut [u8]) -> Result<usize> {
        let mut msg = msghdr::default();
        let mut vec = kvec {
            iov_base: buf.as_mut_ptr().cast(),
            iov_len: buf.len(),
        };

        // SAFETY: By the type's invariants the socket is valid. `vec` describes `buf`, which is
        // borrowed exclusively and so valid for writes.
        let ret = unsafe {
            bindings::kernel_recvmsg(
                self.sock().as_ptr(),
                &mut msg,
                &mut vec,
                1,
                buf.len(),
                bindings::MSG_DONTWAIT as c_int,
            )
        };

        usize::try_from(ret).map_err(|_| Error::from_errno(ret))
    }

    /// Sends the bytes of `buf`, as many as TCP takes now, and removes them from `buf`. TCP gets
    /// the pages without a copy if the network device supports scatter-gather.
    ///
    /// `EAGAIN` if TCP has no room for the rest: [`Callbacks::write_space`] reports room later.
    /// `ENOBUFS` if TCP has no memory, and nothing is in flight whose acknowledgment would report
    /// room: try again later. No callback follows any other error: the rest cannot be sent. Such an
    /// error need not end the connection, for example if a security module refuses.
    // A struct with `..Default::default()` would be copied.
    #[allow(clippy::field_reassign_with_default)]
    pub fn send(&self, buf: &mut SendBuf) -> Result {
        /// `ITER_SOURCE`
        const SOURCE: u32 = 1;
        /// About as many fragments as one skb has room for (`MAX_SKB_FRAGS`).
        const VECS: usize = 16;
        let mut was_idle = false;

        // TCP returns a short count if it fails midway. Send again until it returns the error.
        while !buf.is_empty() {
            let mut vecs = [const { MaybeUninit::<bio_vec>::uninit() }; VECS];
            let (vecs, offered) = buf.describe(&mut vecs);
            let more = if offered < buf.len() {
                bindings::MSG_MORE
            } else {
                0
            };
            let mut msg = msghdr::default();

            msg.msg_flags =
                bindings::MSG_DONTWAIT | bindings::MSG_NOSIGNAL | bindings::MSG_SPLICE_PAGES | more;
            // SAFETY: By the type's invariants the socket is valid. `vecs` describes pages that
            // `buf` has references to; `buf` never writes these bytes again, so that TCP may keep
            // the pages.
            let sent = unsafe {
                bindings::iov_iter_bvec(
                    &mut msg.msg_iter,
                    SOURCE,
                    vecs.as_ptr(),
                    vecs.len(),
                    offered,
                );
                bindings::sock_sendmsg(self.sock().as_ptr(), &mut msg)
            };
            match usize::try_from(sent).map_err(|_| Error::from_errno(sent)) {
                Ok(0) => return Err(EIO),
                Ok(sent) => {
                    buf.consume(sent);
                    was_idle = false;
                }
                // All may have been acknowledged between the attempt and the look. So only an
                // attempt that began with nothing in flight shows a lack of memory: nobody else
                // sends.
                Err(e) if e == EAGAIN => match (self.is_acknowledged(), was_idle) {
                    (false, _) => return Err(EAGAIN),
                    (true, false) => was_idle = true,
                    (true, true) => return Err(ENOBUFS),
                },
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Whether the peer has acknowledged all that TCP has taken.
    #[cold]
    fn is_acknowledged(&self) -> bool {
        // SAFETY: By the type's invariants it is a valid TCP socket.
        unsafe { bindings::tcp_unacked(self.sk().as_ptr()) == 0 }
    }

    /// Resets the connection (RST) and discards unsent data.
    pub fn abort(self) {
        // The drop of `self` then resets the connection.
        self.0.set_no_linger();
    }

    /// Calls `f` with the socket locked, and returns its result. Segments that arrive meanwhile,
    /// and the callbacks for them, are processed before this returns.
    pub fn with_locked<R>(&self, f: impl FnOnce(&mut LockedSock<'_>) -> R) -> R {
        let sk = self.sk();

        // SAFETY: By the type's invariants the socket is valid. `f` runs between lock and unlock,
        // outside any other read. It cannot unwind past the unlock: the kernel does not unwind.
        unsafe {
            bindings::lock_sock_nested(sk.as_ptr(), 0);
            let result = f(&mut LockedSock::new(sk));
            bindings::release_sock(sk.as_ptr());
            result
        }
    }

    /// Installs `owner` for the callbacks of the connection.
    ///
    /// Earlier events are not reported: check the state once afterwards. The socket holds a
    /// reference to `owner` until [`clear_callbacks`](crate::Base::clear_callbacks) or its drop.
    /// `EBUSY` if callbacks are installed or other code uses `sk_user_data`, `ENOMEM` if there is
    /// no memory.
    pub fn set_callbacks<T: Callbacks>(&self, owner: Arc<T>) -> Result {
        // SAFETY: By the type's invariants it is a valid TCP socket. It does not listen: only a
        // `ListenSocket` listens, and it does not lend its `Socket`.
        unsafe { hook::install_callbacks(self.sk(), owner) }
    }
}

/// A listening TCP socket.
///
/// The rules for namespace, drop and context of [`Socket`] apply.
///
/// ```
/// use core::net::SocketAddr;
/// use kernel::{prelude::*, sync::Arc};
/// use net::{Family, ListenSocket, Listener, ListenerHook, Netns, Pernet, Socket};
///
/// fn listen<T: Listener>(
///     pernet: &Arc<Pernet>,
///     ns: &Netns,
///     addr: &SocketAddr,
///     owner: Arc<T>,
/// ) -> Result<ListenSocket> {
///     let hook = ListenerHook::new(owner)?;
///     let socket = Socket::new(pernet, ns, Family::from(addr))?;
///
///     socket.set_reuseaddr();
///     socket.bind(addr)?;
///     let listener = ListenSocket::new(socket, 16)?;
///     listener.set_listener(hook)?;
///     Ok(listener)
/// }
/// ```
///
/// TCP calls a listening socket without its lock, so it cannot have the callbacks of a connection:
///
/// ```compile_fail,E0599
/// fn watch<T: net::Callbacks>(socket: &net::ListenSocket, owner: kernel::sync::Arc<T>) {
///     let _ = socket.set_callbacks(owner);
/// }
/// ```
pub struct ListenSocket(Socket);

impl ListenSocket {
    /// Makes `socket`, which must be bound, listen. Up to `backlog` connections may wait in the
    /// accept queue. Fails as `listen()` does, for example with `EADDRINUSE`.
    pub fn new(socket: Socket, backlog: u32) -> Result<Self> {
        // TCP calls a listener's callbacks without the lock that `Callbacks` relies on.
        socket.clear_callbacks();
        socket.listen(backlog)?;
        Ok(Self(socket))
    }

    /// Accepts a connection. `EAGAIN` if the accept queue is empty, `EBUSY` if other code uses the
    /// child's `sk_user_data`; otherwise the errors of `kernel_accept()`.
    pub fn accept(&self) -> Result<Socket> {
        // INVARIANT: A child of a TCP socket is one.
        self.0.accept().map(Socket)
    }

    /// Returns the local address.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Installs `hook` for the callbacks of the accept queue.
    ///
    /// Earlier connections are not reported: call [`accept`](Self::accept) once afterwards. The
    /// socket holds a reference to the owner until its drop. `EBUSY` if an owner is installed or
    /// other code uses `sk_user_data`. Allocates nothing.
    pub fn set_listener(&self, hook: ListenerHook) -> Result {
        // SAFETY: By the type's invariants of `Socket` it is a valid TCP socket.
        unsafe { hook.install(self.0.sk()) }
    }
}
