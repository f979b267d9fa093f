// SPDX-License-Identifier: GPL-2.0

//! TCP sockets of the kernel's own.
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
    /// IPv6, and IPv4 by mapped addresses unless that is turned off
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

/// A TCP socket that belongs to the kernel.
///
/// It has no file, and **keeps no reference to its network namespace**: that can begin to go, but
/// then waits for the last socket in it ([`Pernet`]), for ever if need be. So a socket is to be
/// dropped when its network device goes, before the callback for
/// [`Event::Unregister`](crate::Event::Unregister) returns.
///
/// TCP retransmits nothing once the socket has been dropped, a FIN neither. To close a connection so
/// that the peer learns of it, call [`shutdown_write`](Self::shutdown_write) and wait for
/// [`TcpState::Closed`] first.
///
/// A socket that listens is a [`ListenSocket`].
///
/// All methods are for process context and may sleep, for other users of the socket only: none
/// waits for the peer. They may be called from several threads at once.
///
/// # Invariants
///
/// `sock` is a TCP socket that is ours, and has a `struct sock`. `original` are the callbacks that
/// it had when it was made.
pub struct Socket {
    sock: NonNull<socket>,
    original: bindings::riw_sk_callbacks,
    /// Dropped when the socket has been released.
    counted: Counted,
}

// SAFETY: A socket may be used from any thread; what it needs locks for it locks itself.
unsafe impl Send for Socket {}
// SAFETY: As above.
unsafe impl Sync for Socket {}

impl Socket {
    /// Makes a socket in a network namespace.
    pub fn new(pernet: &Arc<Pernet>, ns: &Netns, family: Family) -> Result<Self> {
        let counted = Counted::new(pernet, ns);
        let family = match family {
            Family::V4 => bindings::AF_INET,
            Family::V6 => bindings::AF_INET6,
        };
        let mut sock = core::ptr::null_mut();

        // SAFETY: The namespace is valid, and `sock` takes the result.
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
        // SAFETY: The socket is new, and has its `struct sock`.
        unsafe {
            let sk = (*sock.as_ptr()).sk;

            bindings::sk_reclassify(sk);
            bindings::sk_setup(sk);
            bindings::sk_callbacks(sk, &mut original);
        }
        // INVARIANT: It was created for us, and nobody has changed its callbacks.
        Ok(Self {
            sock,
            original,
            counted,
        })
    }

    fn sk(&self) -> NonNull<sock> {
        // SAFETY: By the type's invariant the socket is valid, and this pointer is not null.
        unsafe { NonNull::new_unchecked((*self.sock.as_ptr()).sk) }
    }

    /// Lets the address be used although old connections of it linger.
    pub fn set_reuseaddr(&self) {
        // SAFETY: The socket is valid.
        unsafe { bindings::sock_set_reuseaddr(self.sk().as_ptr()) }
    }

    /// Has every `send` go out at once (no Nagle).
    pub fn set_nodelay(&self) {
        // SAFETY: It is a valid TCP socket.
        unsafe { bindings::tcp_sock_set_nodelay(self.sk().as_ptr()) }
    }

    /// Has TCP probe a peer from which nothing has come for `idle` seconds, up to `probes` times,
    /// `interval` seconds apart; if none is answered the connection ends with `ETIMEDOUT`. `EINVAL`
    /// if a value is 0, or too large for TCP: 32767 s, 127 probes. May sleep.
    pub fn set_keepalive(&self, idle: u16, interval: u16, probes: u16) -> Result {
        let sk = self.sk().as_ptr();

        // SAFETY: It is a valid TCP socket. Each of these locks it.
        unsafe {
            to_result(bindings::tcp_sock_set_keepidle(sk, idle.into()))?;
            to_result(bindings::tcp_sock_set_keepintvl(sk, interval.into()))?;
            to_result(bindings::tcp_sock_set_keepcnt(sk, probes.into()))?;
            bindings::sock_set_keepalive(sk);
        }
        Ok(())
    }

    /// Whether an IPv6 socket is for IPv6 only. To be set before it is bound.
    pub fn set_v6only(&self, on: bool) {
        // SAFETY: The socket is valid.
        unsafe { bindings::sk_set_v6only(self.sk().as_ptr(), on) }
    }

    /// The type of service (or traffic class) of what is sent; the two ECN bits are ignored.
    pub fn set_tos(&self, tos: u8) {
        // SAFETY: It is a valid socket, of IPv4 or IPv6.
        unsafe { bindings::sk_set_tos(self.sk().as_ptr(), tos.into()) }
    }

    /// Makes the receive buffer large enough for `count` unread bytes, whatever the size of segments
    /// (but for very small ones), as far as the namespace's `tcp_rmem` allows.
    /// [`Callbacks::data_ready`] may be called before this returns.
    pub fn reserve(&self, count: u32) {
        // SAFETY: It is a valid TCP socket.
        unsafe { bindings::tcp_reserve(self.sock.as_ptr(), count) }
    }

    /// Restricts the socket to the network device with that index.
    pub fn bind_to(&self, ifindex: u32) -> Result {
        let ifindex = i32::try_from(ifindex).map_err(|_| EINVAL)?;
        // SAFETY: The socket is valid.
        to_result(unsafe { bindings::sock_bindtoindex(self.sk().as_ptr(), ifindex, true) })
    }

    /// Gives the socket a local address; with port 0 one is chosen.
    pub fn bind(&self, addr: &SocketAddr) -> Result {
        let mut storage = addr::to_storage(addr);
        // SAFETY: The address is as long as its family says.
        to_result(unsafe {
            bindings::kernel_bind(
                self.sock.as_ptr(),
                (&raw mut storage).cast(),
                Self::addr_len(addr),
            )
        })
    }

    /// Connects to a peer.
    ///
    /// As a rule that fails with `EINPROGRESS`, and [`Callbacks::state_change`] tells when the
    /// connection is there. Failure is told by that and by [`Callbacks::error_report`].
    pub fn connect(&self, addr: &SocketAddr) -> Result {
        let mut storage = addr::to_storage(addr);
        // SAFETY: The address is as long as its family says.
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

    /// The address of this end.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        // SAFETY: The storage has room for every address.
        let len =
            unsafe { bindings::kernel_getsockname(self.sock.as_ptr(), (&raw mut storage).cast()) };

        to_result(len.min(0))?;
        addr::from_storage(&storage).ok_or(EAFNOSUPPORT)
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        // SAFETY: The storage has room for every address.
        let len =
            unsafe { bindings::kernel_getpeername(self.sock.as_ptr(), (&raw mut storage).cast()) };

        to_result(len.min(0))?;
        addr::from_storage(&storage).ok_or(EAFNOSUPPORT)
    }

    /// The connection's state, at the moment.
    pub fn state(&self) -> TcpState {
        // SAFETY: The socket is valid.
        unsafe { callbacks::state_of(self.sk()) }
    }

    /// The most payload that a segment carries at the moment, in bytes: less the headers with the
    /// options that every segment has.
    pub fn mss(&self) -> u32 {
        // SAFETY: It is a valid TCP socket.
        unsafe { bindings::tcp_mss(self.sk().as_ptr()) }
    }

    /// Bytes that the send buffer has room for, if that is a third of it at least; a
    /// [`send`](Self::send) may take some more or less. Otherwise 0, and [`Callbacks::write_space`]
    /// tells when there is as much.
    pub fn room(&self) -> usize {
        // SAFETY: It is a valid TCP socket, and has its `struct socket`.
        unsafe { bindings::tcp_room(self.sk().as_ptr()) }
    }

    /// The error that ended the connection, if one did.
    pub fn error(&self) -> Option<Error> {
        // SAFETY: The socket is valid.
        unsafe { callbacks::error_of(self.sk()) }
    }

    /// Receives what there is, as much of it as fits.
    ///
    /// Returns 0 after the peer's FIN. `EAGAIN` if there is nothing.
    pub fn recv(&self, buf: &mut [u8]) -> Result<usize> {
        let mut msg = msghdr::default();
        let mut vec = kvec {
            iov_base: buf.as_mut_ptr().cast(),
            iov_len: buf.len(),
        };

        // SAFETY: The socket is valid, and the buffer valid for writes.
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

    /// Sends what is in `buf`, as much of it as TCP takes now; what is sent has gone from the buffer.
    /// The pages are handed to TCP and not copied, if the network device can gather.
    ///
    /// `EAGAIN` if TCP has no room for what is left: [`Callbacks::write_space`] tells when it has.
    /// No callback follows any other error: what is left cannot be sent. That need not be the end of
    /// the connection: a security module may refuse, too.
    pub fn send(&self, buf: &mut SendBuf) -> Result {
        while !buf.is_empty() {
            // TCP takes less than it could and says no more if it fails in midway. So it is asked
            // until it has said why.
            self.splice(buf)?;
        }
        Ok(())
    }

    /// Sends some of `buf`, at least a byte.
    fn splice(&self, buf: &mut SendBuf) -> Result {
        /// As many as a socket buffer has room for, or nearly.
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

        // SAFETY: The first `count` entries describe pages that `buf` has references to, and
        // bytes in them that are not written again.
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

    /// Sends a FIN behind all that was sent.
    pub fn shutdown_write(&self) -> Result {
        // SAFETY: The socket is valid.
        to_result(unsafe {
            bindings::kernel_sock_shutdown(self.sock.as_ptr(), bindings::sock_shutdown_cmd_SHUT_WR)
        })
    }

    /// Drops the connection with a RST, and what was not sent with it.
    pub fn abort(self) {
        // SAFETY: The socket is valid.
        unsafe { bindings::sock_no_linger(self.sk().as_ptr()) }
    }

    /// Calls `f` with the socket locked. What comes in meanwhile is processed afterwards, before
    /// this returns; callbacks are called for it then.
    pub fn with_locked<R>(&self, f: impl FnOnce(&mut LockedSock<'_>) -> R) -> R {
        let sk = self.sk();

        // SAFETY: The socket is valid; a closure does not unwind in the kernel, so that the lock
        // is given back.
        unsafe {
            bindings::lock_sock(sk.as_ptr());
            let result = f(&mut LockedSock::new(sk));
            bindings::release_sock(sk.as_ptr());
            result
        }
    }

    /// Has `owner` called from now on for what happens to the connection.
    ///
    /// What has happened already it is not told: look once afterwards. The socket has a reference
    /// to `owner` until [`clear_callbacks`](Self::clear_callbacks), or until it is dropped. `EBUSY`
    /// if there are callbacks, or someone else uses the socket.
    pub fn set_callbacks<T: Callbacks>(&self, owner: Arc<T>) -> Result {
        // SAFETY: The socket is valid. It does not listen: what does is a `ListenSocket`, which
        // does not lend its `Socket`.
        unsafe { callbacks::install(self.sk(), owner) }
    }

    /// Takes the callbacks off. When it returns none runs, and none will.
    ///
    /// Not from a callback, nor from [`with_locked`](Self::with_locked).
    pub fn clear_callbacks(&self) {
        // SAFETY: The socket is valid, and `original` its own by the type's invariant.
        unsafe { callbacks::remove(self.sk(), &self.original) }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.clear_callbacks();
        // SAFETY: The socket is ours, and not used any more.
        unsafe { bindings::sock_release(self.sock.as_ptr()) }
    }
}

/// A TCP socket that takes connections.
///
/// What is said of [`Socket`] holds for it as well.
pub struct ListenSocket(Socket);

impl ListenSocket {
    /// Has `socket`, which must have a local address, take connections. `backlog` of them may wait
    /// to be accepted.
    pub fn new(socket: Socket, backlog: u32) -> Result<Self> {
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);

        // They would be called without the socket's lock.
        socket.clear_callbacks();
        // SAFETY: The socket is valid.
        to_result(unsafe { bindings::kernel_listen(socket.sock.as_ptr(), backlog) })?;
        Ok(Self(socket))
    }

    /// Changes how many connections may wait to be accepted.
    pub fn set_backlog(&self, backlog: u32) -> Result {
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        // SAFETY: The socket is valid.
        to_result(unsafe { bindings::kernel_listen(self.0.sock.as_ptr(), backlog) })
    }

    /// Accepts a connection. `EAGAIN` if there is none.
    pub fn accept(&self) -> Result<Socket> {
        let mut child = core::ptr::null_mut();

        // SAFETY: The socket is valid, and `child` takes the result.
        to_result(unsafe {
            bindings::kernel_accept(
                self.0.sock.as_ptr(),
                &mut child,
                bindings::SOCK_NONBLOCK as c_int,
            )
        })?;

        // INVARIANT: The child is ours now. Its callbacks are those that its listener would have
        // if it were not for ours, or it is dropped with what it has.
        let child = Socket {
            sock: NonNull::new(child).ok_or(EAGAIN)?,
            original: self.0.original,
            counted: self.0.counted.clone(),
        };
        // SAFETY: The socket is valid.
        unsafe {
            to_result(bindings::sk_disinherit(
                child.sk().as_ptr(),
                &child.original,
            ))?;
            bindings::sk_setup(child.sk().as_ptr());
        }
        Ok(child)
    }

    /// The address it takes connections at.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Has `owner` called from now on when a connection can be accepted.
    ///
    /// Of those that are there already it is not told: look once afterwards. The socket has a
    /// reference to `owner` until [`clear_listener`](Self::clear_listener), or until it is
    /// dropped. `EBUSY` if there is one, or someone else uses the socket.
    pub fn set_listener<T: Listener>(&self, owner: Arc<T>) -> Result {
        // SAFETY: The socket is valid.
        unsafe { callbacks::install_listener(self.0.sk(), owner) }
    }

    /// Takes the owner off. When it returns it is not being called, and will not be.
    ///
    /// Not from the callback.
    pub fn clear_listener(&self) {
        self.0.clear_callbacks();
    }
}
