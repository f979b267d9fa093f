// SPDX-License-Identifier: GPL-2.0

//! Networking: sockets with callbacks, events of network devices and namespaces.
//!
//! For transport protocols over kernel TCP, such as iWARP, NVMe over TCP or RDS: a [`Socket`] in
//! the network namespace of a device, its [`Callbacks`], access to received data in place
//! ([`LockedSock::read`]), and a send buffer that hands its pages to TCP ([`SendBuf`]). The sockets
//! of [`sctp`] send and receive messages in process context. Those of [`tls`] are TCP sockets whose
//! octets the kernel encrypts.
//!
//! A connection, and the first bytes on it:
//!
//! ```
//! use core::net::SocketAddr;
//! use kernel::{
//!     prelude::*,
//!     sync::{Arc, Completion},
//! };
//! use net::{Callbacks, Family, LockedSock, Netns, Pernet, SendBuf, Socket, TcpState};
//!
//! #[pin_data]
//! struct Connection {
//!     #[pin]
//!     decided: Completion,
//! }
//!
//! impl Callbacks for Connection {
//!     fn data_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
//!         sk.discard();
//!     }
//!
//!     fn state_change(self: &Arc<Self>, _: &mut LockedSock<'_>) {
//!         self.decided.complete_all();
//!     }
//!
//!     fn write_space(self: &Arc<Self>) {}
//!
//!     fn error_report(self: &Arc<Self>) {
//!         self.decided.complete_all();
//!     }
//! }
//!
//! fn connect(pernet: &Arc<Pernet>, ns: &Netns, peer: &SocketAddr) -> Result<Socket> {
//!     let socket = Socket::new(pernet, ns, Family::from(peer))?;
//!     let connection = Arc::pin_init(
//!         pin_init!(Connection { decided <- Completion::new() }),
//!         GFP_KERNEL,
//!     )?;
//!
//!     socket.set_callbacks(connection.clone())?;
//!     if let Err(e) = socket.connect(peer) {
//!         if e != EINPROGRESS {
//!             return Err(e);
//!         }
//!         connection.decided.wait_for_completion();
//!     }
//!     match socket.state() {
//!         TcpState::Established => Ok(socket),
//!         _ => Err(socket.error().unwrap_or(ECONNREFUSED)),
//!     }
//! }
//!
//! fn greet(socket: &Socket) -> Result {
//!     let mut buf = SendBuf::new();
//!
//!     buf.append(b"hello")?;
//!     socket.send(&mut buf)
//! }
//! ```
//!
//! C headers: [`include/net/sock.h`](srctree/include/net/sock.h),
//! [`include/net/tcp.h`](srctree/include/net/tcp.h),
//! [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

#![crate_name = "net"]
#![deny(missing_docs)]
// Without one of the protocols, some functions have no user.
#![cfg_attr(not(all(CONFIG_RDMA_RIW_SCTP, CONFIG_RDMA_RIW_TLS)), allow(dead_code))]

pub mod base;
pub mod callbacks;
mod hook;
pub mod notifier;
pub mod pernet;
pub mod receive;
#[cfg(CONFIG_RDMA_RIW_SCTP)]
pub mod sctp;
pub mod sendbuf;
pub mod socket;
#[cfg(CONFIG_RDMA_RIW_TLS)]
pub mod tls;

pub use base::Base;
pub use callbacks::{AnyEvent, Callbacks, Listener, LockedSock, TcpState};
pub use hook::ListenerHook;
pub use kernel_ext::{
    net::{addr, netns, Family, NetDevice, Netns},
    octets::{Fragment, Room},
};
pub use notifier::{NetdevEvent, Notifier, Notify};
pub use pernet::Pernet;
pub use receive::{Finished, Reader, RecvBuf, Unread};
pub use sendbuf::SendBuf;
pub use socket::{ListenSocket, Socket};

/// The prefix of this crate's log messages.
const __LOG_PREFIX: &[u8] = b"net\0";
