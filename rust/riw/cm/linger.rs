// SPDX-License-Identifier: GPL-2.0

//! Sockets that have sent their FIN.
//!
//! TCP retransmits nothing for a kernel socket once it has been released. So a socket is kept until
//! the peer has got everything and closed its side as well, for a limited time, with no queue pair
//! and no id any more. What the peer sends meanwhile is thrown away.

use super::{CmDevice, Deadline, Member, LINGER_TIME};
use kernel::{
    impl_has_delayed_work, new_delayed_work, new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
    workqueue::{DelayedWork, WorkItem},
};
use net::{
    workqueue::{cancel_delayed_work, cancel_delayed_work_sync},
    Callbacks, LockedSock, Socket, TcpState,
};

/// A socket that waits for its peer to close.
#[pin_data]
pub(super) struct Linger {
    dev: Arc<CmDevice>,
    token: usize,
    deadline: Deadline,
    #[pin]
    socket: Mutex<Option<Socket>>,
    #[pin]
    work: DelayedWork<Linger>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Linger> for Linger { self.work }
}

impl Linger {
    /// Sends a FIN, and releases the socket when the peer has answered it. May sleep.
    ///
    /// The socket must have no callbacks. If anything stands in the way the connection is reset.
    pub(super) fn start(dev: &Arc<CmDevice>, socket: Socket) {
        if socket.state() == TcpState::Closed {
            return;
        }
        let token = dev.token();
        let made = Arc::pin_init(
            pin_init!(Self {
                dev: dev.clone(),
                token,
                deadline: Deadline::new(LINGER_TIME),
                socket <- new_mutex!(None, "riw::cm::Linger::socket"),
                work <- new_delayed_work!("riw::cm::Linger::work"),
            }),
            GFP_KERNEL,
        );
        let Ok(this) = made else {
            return socket.abort();
        };

        // From here on until the end `shutdown` may come at any time.
        let mut place = this.socket.lock();
        let ready = dev
            .add(token, Member::Linger(this.clone()))
            .and_then(|()| socket.set_callbacks(this.clone()))
            .and_then(|()| socket.shutdown_write());
        match ready {
            Ok(()) => {
                *place = Some(socket);
                drop(place);
                // For what came before there were callbacks.
                this.kick();
            }
            Err(_) => {
                socket.clear_callbacks();
                socket.abort();
                drop(place);
                dev.remove(token);
            }
        }
    }

    /// Has the work look at the socket. Any context.
    fn kick(self: &Arc<Self>) {
        self.dev.shared.queue.rearm::<Self, 0>(self.clone(), 0);
    }

    /// Releases the socket. May sleep.
    fn end(self: &Arc<Self>) {
        let socket = self.socket.lock().take();

        if let Some(socket) = socket {
            socket.clear_callbacks();
            // Does nothing more to one that is closed.
            socket.abort();
            self.dev.remove(self.token);
        }
    }

    /// Resets the connection. On return nothing of it is left. May sleep.
    pub(super) fn shutdown(self: &Arc<Self>) {
        self.end();
        cancel_delayed_work_sync::<Self, 0>(self);
    }
}

impl WorkItem for Linger {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let closed = match &*this.socket.lock() {
            Some(socket) => socket.with_locked(|sk| {
                discard(sk);
                sk.state() == TcpState::Closed
            }),
            None => return,
        };

        match this.deadline.left() {
            Some(left) if !closed => {
                // If it is queued already it runs at once, which is as well.
                let queue = &this.dev.shared.queue;
                let _ = queue.enqueue_delayed::<Arc<Self>, 0>(this.clone(), left);
            }
            _ => {
                this.end();
                cancel_delayed_work::<Self, 0>(&this);
            }
        }
    }
}

impl Callbacks for Linger {
    /// Softirq, the socket locked.
    fn data_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        discard(sk);
    }

    /// Softirq, the socket locked.
    fn state_change(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        if sk.state() == TcpState::Closed {
            self.kick();
        }
    }

    fn write_space(self: &Arc<Self>) {}

    fn error_report(self: &Arc<Self>) {}
}

/// Throws away what was received, so that the peer's FIN can come. Atomic context.
fn discard(sk: &mut LockedSock<'_>) {
    // What cannot be read is thrown away with the socket.
    let _ = sk.read(<[u8]>::len);
}
