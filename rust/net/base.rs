// SPDX-License-Identifier: GPL-2.0

//! The common part of kernel sockets of all protocols.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/sock.h`](srctree/include/net/sock.h)

use crate::{callbacks, hook, pernet::Counted, Pernet};
use core::{mem::ManuallyDrop, net::SocketAddr, ptr::NonNull};
use kernel::{
    bindings::{sock, socket},
    error::to_result,
    prelude::*,
    sync::Arc,
};
use kernel_ext::net::{addr, Family, Netns};
use riw_bindings as bindings;

/// A kernel socket.
///
/// It has no file, and **holds no reference to its network namespace**, unless it gets TLS
/// ([`Self::share`]). The teardown of the namespace waits for its last socket ([`Pernet`]), without
/// a timeout. So drop the socket when its network device goes away, before the callback for
/// [`NetdevEvent::Unregister`](crate::NetdevEvent::Unregister) returns.
///
/// All methods, and the drop, need process context. They may sleep to wait for other users of the
/// socket, but never wait for the peer. Several threads may call them at once.
///
/// # Invariants
///
/// This object owns `sock`, a socket of the protocol that it was made for, with a `struct sock`.
/// `original` are the callbacks that it had at first, or has had since TLS is in use.
pub struct Base {
    sock: NonNull<socket>,
    original: bindings::riw_sk_callbacks,
    /// A field, so that it is dropped after `drop` has released the socket.
    counted: Counted,
}

// SAFETY: A socket is not bound to a thread: any thread may use and release it.
unsafe impl Send for Base {}
// SAFETY: The socket's functions take the socket lock where they need it, so that threads may call
// them at once.
unsafe impl Sync for Base {}

impl Base {
    /// Makes a socket of `protocol` (`IPPROTO_*`) in a network namespace. Process context, may
    /// sleep; may load the module of the protocol. `EAFNOSUPPORT` if the kernel lacks the address
    /// family, `EPROTONOSUPPORT` or `ESOCKTNOSUPPORT` if it lacks the protocol; otherwise the
    /// errors of `sock_create_kern()`.
    pub(crate) fn new(
        pernet: &Arc<Pernet>,
        ns: &Netns,
        family: Family,
        protocol: u32,
    ) -> Result<Self> {
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
                protocol as c_int,
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

    pub(crate) fn sock(&self) -> NonNull<socket> {
        self.sock
    }

    pub(crate) fn sk(&self) -> NonNull<sock> {
        // SAFETY: By the type's invariants the socket is valid, and its `struct sock` exists.
        unsafe { NonNull::new_unchecked((*self.sock.as_ptr()).sk) }
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

    /// Lets no allocation for the socket start or await I/O, which may wait for data that the
    /// socket sends.
    pub fn avoid_io(&self) {
        // SAFETY: By the type's invariants the socket is valid. The helper locks it.
        unsafe { bindings::sk_avoid_io(self.sk().as_ptr()) }
    }

    /// Lets the socket send and receive with memory from the reserves (`SOCK_MEMALLOC`), as reclaim
    /// may wait for it. Without that, TCP drops packets that were received into the reserves.
    ///
    /// This cannot be undone, and connections that a listening socket accepts inherit it.
    pub fn use_reserves(&self) {
        // SAFETY: By the type's invariants the socket is valid. The helper locks it.
        unsafe { bindings::sk_use_reserves(self.sk().as_ptr()) }
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
    /// Normally returns `EINPROGRESS`; callbacks then report the result. Otherwise fails as
    /// `connect()` does.
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

    pub(crate) fn addr_len(addr: &SocketAddr) -> c_int {
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

    /// Returns the error that ended the connection, if any.
    pub fn error(&self) -> Option<Error> {
        // SAFETY: By the type's invariants the socket is valid.
        unsafe { callbacks::error_of(self.sk()) }
    }

    /// Ends the sending side after all sent data (half-close); both sides if the protocol knows no
    /// half-close. `ENOTCONN` if there is no connection.
    pub fn shutdown_write(&self) -> Result {
        // SAFETY: By the type's invariants the socket is valid.
        to_result(unsafe {
            bindings::kernel_sock_shutdown(self.sock.as_ptr(), bindings::sock_shutdown_cmd_SHUT_WR)
        })
    }

    /// Lets the drop reset the connection, and discard unsent data.
    pub(crate) fn set_no_linger(&self) {
        // SAFETY: By the type's invariants the socket is valid. The function locks it.
        unsafe { bindings::sock_no_linger(self.sk().as_ptr()) }
    }

    /// Removes the callbacks. After it returns, no callback runs.
    ///
    /// Not from a callback, nor with the socket locked: it would deadlock.
    pub fn clear_callbacks(&self) {
        // SAFETY: By the type's invariants the socket is valid, and `original` are its first
        // callbacks. A callback cannot call this: it runs in atomic context, and no method of this
        // type may be called there. See `remove` for what would happen.
        unsafe { hook::remove(self.sk(), &self.original) }
    }

    /// Gives the socket a file, so that a process can get it, and a reference to its namespace. The
    /// file has `name`, if there is one. Removes the callbacks. May sleep. `ENONET` if the
    /// namespace is being dismantled, `ENOMEM` without memory, `ENFILE` at the limit of open files;
    /// the socket is released then.
    ///
    /// The drop of such a socket ends the connection at once. The socket itself may last until the
    /// process closes its file, and keeps its namespace until then.
    pub(crate) fn share(self, name: Option<&CStr>) -> Result<Self> {
        self.clear_callbacks();
        // Nobody holds the namespace for an orderly end of a socket that fails to get a file.
        self.set_no_linger();
        // SAFETY: By the type's invariants the socket is valid, and this object owns it. It has no
        // file yet: only this function gives it one, and takes the object. The name is null or a
        // string.
        let shared = to_result(unsafe {
            bindings::socket_share(
                self.sock.as_ptr(),
                name.map_or(core::ptr::null(), |name| name.as_char_ptr()),
            )
        });
        match shared {
            Ok(()) => Ok(self),
            Err(e) => {
                let this = ManuallyDrop::new(self);

                // The socket has been released, so only the count is left.
                // SAFETY: `this` is not used after this, nor dropped.
                drop(unsafe { core::ptr::read(&this.counted) });
                Err(e)
            }
        }
    }

    /// Takes the callbacks that the socket has as those that [`Self::clear_callbacks`] restores.
    ///
    /// # Safety
    ///
    /// The callbacks must have been removed, and be those of the transport or of TLS.
    pub(crate) unsafe fn note_callbacks(&mut self) {
        // SAFETY: By the type's invariants the socket is valid.
        unsafe { bindings::sk_callbacks(self.sk().as_ptr(), &mut self.original) }
    }

    /// Returns the callbacks that [`Self::clear_callbacks`] restores.
    pub(crate) fn original(&self) -> &bindings::riw_sk_callbacks {
        &self.original
    }

    /// Makes the socket listen, with up to `backlog` connections in the accept queue. Fails as
    /// `listen()` does.
    pub(crate) fn listen(&self, backlog: u32) -> Result {
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);

        // SAFETY: By the type's invariants the socket is valid.
        to_result(unsafe { bindings::kernel_listen(self.sock.as_ptr(), backlog) })
    }

    /// Accepts a connection, which belongs to the user of this socket. The socket must listen.
    /// `EAGAIN` if the accept queue is empty, `EBUSY` if other code uses the child's
    /// `sk_user_data`; otherwise the errors of `kernel_accept()`.
    pub(crate) fn accept(&self) -> Result<Self> {
        let mut child = core::ptr::null_mut();

        // SAFETY: By the type's invariants the socket is valid. `child` is valid for the write of
        // the result.
        to_result(unsafe {
            bindings::kernel_accept(
                self.sock.as_ptr(),
                &mut child,
                bindings::SOCK_NONBLOCK as c_int,
            )
        })?;

        // INVARIANT: `kernel_accept()` passes ownership of the child. It inherited the listener's
        // callbacks; `sk_disinherit()` below gives it the original ones, or it is dropped.
        let child = Self {
            sock: NonNull::new(child).ok_or(EAGAIN)?,
            original: self.original,
            counted: self.counted.clone(),
        };
        // SAFETY: By the type's invariants the child is valid. It is new, so its use of the
        // reserves is not counted yet; the drop takes one count back. `original` are callbacks for
        // a socket of its protocol, installed under `sk_callback_lock`. `sk_setup()` changes a
        // setting that only senders read, and nothing sends on the child yet. This socket is valid,
        // too, and no other code changes the user of either.
        unsafe {
            bindings::sk_inherit_user(child.sock().as_ptr(), self.sk().as_ptr());
            bindings::sk_count_reserves(child.sk().as_ptr());
            to_result(bindings::sk_disinherit(
                child.sk().as_ptr(),
                &child.original,
            ))
            // An orderly end takes time, for which nobody holds the namespace.
            .inspect_err(|_| child.set_no_linger())?;
            bindings::sk_setup(child.sk().as_ptr());
        }
        Ok(child)
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        self.clear_callbacks();
        // SAFETY: By the type's invariants this object owns the socket. It is not used after this.
        unsafe { bindings::socket_release(self.sock.as_ptr()) }
    }
}
