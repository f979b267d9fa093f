// SPDX-License-Identifier: GPL-2.0

//! Kernel TCP sockets.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/tcp.h`](srctree/include/net/tcp.h)

use crate::{
    addr,
    callbacks::{self, Callbacks, Listener, LockedSock, TcpState},
    pernet::Counted,
    Netns, Pernet, SendBuf,
};
use core::{net::SocketAddr, ptr::NonNull};
use kernel::{
    bindings::{bio_vec, kvec, msghdr, sock, socket},
    error::to_result,
    prelude::*,
    sync::Arc,
};
use riw_bindings as bindings;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4
    V4,
    /// IPv6, and IPv4 by mapped addresses unless [`Socket::set_v6only`] turns it off
    V6,
}

impl From<&SocketAddr> for Family {
    fn from(addr: &SocketAddr) -> Self {
        match addr {
            SocketAddr::V4(_) => Self::V4,
            SocketAddr::V6(_) => Self::V6,
        }
    }
}

/// A kernel TCP socket.
///
/// It has no file and **holds no reference to its network namespace**. The teardown of the
/// namespace waits for its last socket ([`Pernet`]), without a timeout. So drop the socket when its
/// network device goes away, before the callback for
/// [`Event::Unregister`](crate::Event::Unregister) returns.
///
/// After the drop TCP retransmits nothing, not even a FIN. For an orderly close, first call
/// [`shutdown_write`](Self::shutdown_write) and wait for [`TcpState::Closed`].
///
/// A listening socket is a [`ListenSocket`].
///
/// All methods, and the drop, need process context. They may sleep to wait for other users of the
/// socket, but never wait for the peer. Several threads may call them at once.
///
/// # Invariants
///
/// This object owns `sock`, a TCP socket with a `struct sock`. `original` are the callbacks that it
/// had at first.
pub struct Socket {
    sock: NonNull<socket>,
    original: bindings::riw_sk_callbacks,
    /// A field, so that it is dropped after `drop` has released the socket.
    counted: Counted,
}

// SAFETY: A socket is not bound to a thread: any thread may use and release it.
unsafe impl Send for Socket {}
// SAFETY: The socket's functions take the socket lock where they need it, so that threads may call
// them at once.
unsafe impl Sync for Socket {}

impl Socket {
    /// Makes a socket in a network namespace. Process context, may sleep. `EAFNOSUPPORT` if the
    /// kernel lacks the address family; otherwise the errors of `sock_create_kern()`.
    pub fn new(pernet: &Arc<Pernet>, ns: &Netns, family: Family) -> Result<Self> {
        let counted = Counted::new(pernet, ns);
        let family = match family {
            Family::V4 => bindings::AF_INET,
            Family::V6 => bindings::AF_INET6,
        };
        let mut sock = core::ptr::null_mut();

        // SAFETY: `ns` keeps the namespace alive, and `counted` does after that. `sock` is valid
        // for the write of the result.
        to_result(unsafe {
            bindings::sock_create_kern(
                ns.as_raw(),
                family as c_int,
                bindings::sock_type_SOCK_STREAM as c_int,
                bindings::IPPROTO_TCP as c_int,
                &mut sock,
            )
        })?;

        let mut original = bindings::riw_sk_callbacks::default();
        let sock = NonNull::new(sock).ok_or(ENOMEM)?;
        // SAFETY: The socket is new, with a `struct sock`, and no other code uses it: its lock
        // class and settings may change.
        unsafe {
            let sk = (*sock.as_ptr()).sk;

            bindings::sk_reclassify(sk);
            bindings::sk_setup(sk);
            bindings::sk_callbacks(sk, &mut original);
        }
        // INVARIANT: The socket is new and owned, and its callbacks are still the first ones.
        Ok(Self {
            sock,
            original,
            counted,
        })
    }

    fn sk(&self) -> NonNull<sock> {
        // SAFETY: By the type's invariants the socket is valid, and its `struct sock` exists.
        unsafe { NonNull::new_unchecked((*self.sock.as_ptr()).sk) }
    }

    /// Allows binding to an address that old connections still use (`SO_REUSEADDR`).
    pub fn set_reuseaddr(&self) {
        // SAFETY: By the type's invariants the socket is valid. The function locks it.
        unsafe { bindings::sock_set_reuseaddr(self.sk().as_ptr()) }
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

    /// Restricts an IPv6 socket to IPv6, or not. Call it before [`bind`](Self::bind).
    pub fn set_v6only(&self, on: bool) {
        // SAFETY: By the type's invariants the socket is valid. The helper locks it.
        unsafe { bindings::sk_set_v6only(self.sk().as_ptr(), on) }
    }

    /// Sets the type of service (traffic class) of sent packets; ignores the two ECN bits.
    pub fn set_tos(&self, tos: u8) {
        // SAFETY: By the type's invariants the socket is valid, of IPv4 or IPv6. The helper locks
        // it.
        unsafe { bindings::sk_set_tos(self.sk().as_ptr(), tos.into()) }
    }

    /// Makes the receive buffer large enough for `count` unread bytes, within the namespace's
    /// `tcp_rmem`. Very small segments may need more. [`Callbacks::data_ready`] may be called
    /// before this returns.
    pub fn reserve(&self, count: u32) {
        // SAFETY: By the type's invariants it is a valid TCP socket. The helper locks it.
        unsafe { bindings::tcp_reserve(self.sock.as_ptr(), count) }
    }

    /// Lets no allocation for the socket start or await I/O, which may wait for what the socket sends.
    pub fn avoid_io(&self) {
        // SAFETY: By the type's invariants the socket is valid. The helper locks it.
        unsafe { bindings::sk_avoid_io(self.sk().as_ptr()) }
    }

    /// Binds the socket to the network device with this index. `EINVAL` if `ifindex` is no valid
    /// index; otherwise the errors of `sock_bindtoindex()`.
    pub fn bind_to(&self, ifindex: u32) -> Result {
        let ifindex = i32::try_from(ifindex).map_err(|_| EINVAL)?;
        // SAFETY: By the type's invariants the socket is valid. The function locks it: the last
        // argument is true.
        to_result(unsafe { bindings::sock_bindtoindex(self.sk().as_ptr(), ifindex, true) })
    }

    /// Binds the socket to a local address; port 0 chooses a free port. Fails as `bind()` does, for
    /// example with `EADDRINUSE` or `EADDRNOTAVAIL`.
    pub fn bind(&self, addr: &SocketAddr) -> Result {
        let mut storage = addr::to_storage(addr);
        // SAFETY: By the type's invariants the socket is valid. `storage` holds an address of the
        // length passed.
        to_result(unsafe {
            bindings::kernel_bind(
                self.sock.as_ptr(),
                (&raw mut storage).cast(),
                Self::addr_len(addr),
            )
        })
    }

    /// Starts to connect to a peer; does not wait for it.
    ///
    /// Normally returns `EINPROGRESS`. [`Callbacks::state_change`] then reports success, and
    /// failure together with [`Callbacks::error_report`]. Otherwise fails as `connect()` does.
    pub fn connect(&self, addr: &SocketAddr) -> Result {
        let mut storage = addr::to_storage(addr);
        // SAFETY: By the type's invariants the socket is valid. `storage` holds an address of the
        // length passed.
        to_result(unsafe {
            bindings::kernel_connect(
                self.sock.as_ptr(),
                (&raw mut storage).cast(),
                Self::addr_len(addr),
                bindings::SOCK_NONBLOCK as c_int,
            )
        })
    }

    fn addr_len(addr: &SocketAddr) -> c_int {
        match addr {
            SocketAddr::V4(_) => size_of::<bindings::sockaddr_in>() as c_int,
            SocketAddr::V6(_) => size_of::<bindings::sockaddr_in6>() as c_int,
        }
    }

    /// Returns the local address.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        // SAFETY: By the type's invariants the socket is valid, and the storage has room for every
        // address.
        let len =
            unsafe { bindings::kernel_getsockname(self.sock.as_ptr(), (&raw mut storage).cast()) };

        to_result(len.min(0))?;
        addr::from_storage(&storage).ok_or(EAFNOSUPPORT)
    }

    /// Returns the address of the peer. `ENOTCONN` if there is none.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        // SAFETY: By the type's invariants the socket is valid, and the storage has room for every
        // address.
        let len =
            unsafe { bindings::kernel_getpeername(self.sock.as_ptr(), (&raw mut storage).cast()) };

        to_result(len.min(0))?;
        addr::from_storage(&storage).ok_or(EAFNOSUPPORT)
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

    /// Returns the error that ended the connection, if any.
    pub fn error(&self) -> Option<Error> {
        // SAFETY: By the type's invariants the socket is valid.
        unsafe { callbacks::error_of(self.sk()) }
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
                self.sock.as_ptr(),
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
    /// `EAGAIN` if TCP has no room for the rest: [`Callbacks::write_space`] reports room later. No
    /// callback follows any other error: the rest cannot be sent. Such an error need not end the
    /// connection, for example if a security module refuses.
    pub fn send(&self, buf: &mut SendBuf) -> Result {
        while !buf.is_empty() {
            // TCP returns a short count if it fails midway. Ask again until it returns the error.
            self.splice(buf)?;
        }
        Ok(())
    }

    /// Sends at least one byte of `buf`, and as many as one `sendmsg` takes. Same errors as `send`;
    /// `EIO` if TCP takes nothing.
    fn splice(&self, buf: &mut SendBuf) -> Result {
        /// About as many fragments as one skb has room for (`MAX_SKB_FRAGS`).
        const VECS: usize = 16;
        /// `ITER_SOURCE`
        const SOURCE: u32 = 1;
        let mut vecs = [bio_vec::default(); VECS];
        let (count, offered) = buf.describe(&mut vecs);
        let more = if offered < buf.len() {
            bindings::MSG_MORE
        } else {
            0
        };
        let mut msg = msghdr {
            msg_flags: bindings::MSG_DONTWAIT
                | bindings::MSG_NOSIGNAL
                | bindings::MSG_SPLICE_PAGES
                | more,
            ..Default::default()
        };

        // SAFETY: By the type's invariants the socket is valid. The first `count` entries of `vecs`
        // describe pages that `buf` has references to; `buf` never writes these bytes again, so
        // that TCP may keep the pages.
        let ret = unsafe {
            bindings::iov_iter_bvec(&mut msg.msg_iter, SOURCE, vecs.as_ptr(), count, offered);
            bindings::sock_sendmsg(self.sock.as_ptr(), &mut msg)
        };
        match usize::try_from(ret).map_err(|_| Error::from_errno(ret))? {
            0 => Err(EIO),
            sent => {
                buf.consume(sent);
                Ok(())
            }
        }
    }

    /// Sends a FIN after all sent data (half-close). `ENOTCONN` if there is no connection.
    pub fn shutdown_write(&self) -> Result {
        // SAFETY: By the type's invariants the socket is valid.
        to_result(unsafe {
            bindings::kernel_sock_shutdown(self.sock.as_ptr(), bindings::sock_shutdown_cmd_SHUT_WR)
        })
    }

    /// Resets the connection (RST) and discards unsent data.
    pub fn abort(self) {
        // The drop of `self` then resets the connection.
        // SAFETY: By the type's invariants the socket is valid. The function locks it.
        unsafe { bindings::sock_no_linger(self.sk().as_ptr()) }
    }

    /// Calls `f` with the socket locked, and returns its result. Segments that arrive meanwhile,
    /// and the callbacks for them, are processed before this returns.
    pub fn with_locked<R>(&self, f: impl FnOnce(&mut LockedSock<'_>) -> R) -> R {
        let sk = self.sk();

        // SAFETY: By the type's invariants the socket is valid. `f` runs between lock and unlock,
        // outside any other read. It cannot unwind past the unlock: the kernel does not unwind.
        unsafe {
            bindings::lock_sock(sk.as_ptr());
            let result = f(&mut LockedSock::new(sk));
            bindings::release_sock(sk.as_ptr());
            result
        }
    }

    /// Installs `owner` for the callbacks of the connection.
    ///
    /// Earlier events are not reported: check the state once afterwards. The socket holds a
    /// reference to `owner` until [`clear_callbacks`](Self::clear_callbacks) or its drop. `EBUSY`
    /// if callbacks are installed or other code uses `sk_user_data`, `ENOMEM` if there is no
    /// memory.
    pub fn set_callbacks<T: Callbacks>(&self, owner: Arc<T>) -> Result {
        // SAFETY: By the type's invariants it is a valid TCP socket. It does not listen: only a
        // `ListenSocket` listens, and it does not lend its `Socket`.
        unsafe { callbacks::install(self.sk(), owner) }
    }

    /// Removes the callbacks. After it returns, no callback runs.
    ///
    /// Not from a callback, nor from [`with_locked`](Self::with_locked).
    pub fn clear_callbacks(&self) {
        // SAFETY: By the type's invariants the socket is valid, and `original` are its first
        // callbacks. A callback must not call this; it would deadlock before the hook is dropped.
        unsafe { callbacks::remove(self.sk(), &self.original) }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.clear_callbacks();
        // SAFETY: By the type's invariants this object owns the socket. It is not used after this.
        unsafe { bindings::sock_release(self.sock.as_ptr()) }
    }
}

/// A listening TCP socket.
///
/// The rules for namespace, drop and context of [`Socket`] apply.
pub struct ListenSocket(Socket);

impl ListenSocket {
    /// Makes `socket`, which must be bound, listen. Up to `backlog` connections may wait in the
    /// accept queue. Fails as `listen()` does, for example with `EADDRINUSE`.
    pub fn new(socket: Socket, backlog: u32) -> Result<Self> {
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);

        // TCP calls a listener's callbacks without the lock that `Callbacks` relies on.
        socket.clear_callbacks();
        // SAFETY: By the type's invariants of `Socket` the socket is valid.
        to_result(unsafe { bindings::kernel_listen(socket.sock.as_ptr(), backlog) })?;
        Ok(Self(socket))
    }

    /// Changes how many connections may wait in the accept queue.
    pub fn set_backlog(&self, backlog: u32) -> Result {
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        // SAFETY: By the type's invariants of `Socket` the socket is valid.
        to_result(unsafe { bindings::kernel_listen(self.0.sock.as_ptr(), backlog) })
    }

    /// Accepts a connection. `EAGAIN` if the accept queue is empty, `EBUSY` if other code uses the
    /// child's `sk_user_data`; otherwise the errors of `kernel_accept()`.
    pub fn accept(&self) -> Result<Socket> {
        let mut child = core::ptr::null_mut();

        // SAFETY: By the type's invariants of `Socket` the socket is valid. `child` is valid for
        // the write of the result.
        to_result(unsafe {
            bindings::kernel_accept(
                self.0.sock.as_ptr(),
                &mut child,
                bindings::SOCK_NONBLOCK as c_int,
            )
        })?;

        // INVARIANT: `kernel_accept()` passes ownership of the child. It inherited the listener's
        // callbacks; `sk_disinherit()` below gives it the original ones, or it is dropped.
        let child = Socket {
            sock: NonNull::new(child).ok_or(EAGAIN)?,
            original: self.0.original,
            counted: self.0.counted.clone(),
        };
        // SAFETY: By the type's invariants the child is valid. `original` are callbacks for a TCP
        // socket, installed under `sk_callback_lock`. `sk_setup()` changes a setting that only
        // senders read, and nothing sends on the child yet.
        unsafe {
            to_result(bindings::sk_disinherit(
                child.sk().as_ptr(),
                &child.original,
            ))?;
            bindings::sk_setup(child.sk().as_ptr());
        }
        Ok(child)
    }

    /// Returns the local address.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Installs `owner` for the callbacks of the accept queue.
    ///
    /// Earlier connections are not reported: call [`accept`](Self::accept) once afterwards. The
    /// socket holds a reference to `owner` until [`clear_listener`](Self::clear_listener) or its
    /// drop. `EBUSY` if an owner is installed or other code uses `sk_user_data`, `ENOMEM` if there
    /// is no memory.
    pub fn set_listener<T: Listener>(&self, owner: Arc<T>) -> Result {
        // SAFETY: By the type's invariants of `Socket` it is a valid TCP socket.
        unsafe { callbacks::install_listener(self.0.sk(), owner) }
    }

    /// Removes the owner. After it returns, the callback does not run. Not from the callback.
    pub fn clear_listener(&self) {
        self.0.clear_callbacks();
    }
}
