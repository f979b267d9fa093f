// SPDX-License-Identifier: GPL-2.0

//! Sockets that have sent their FIN.
//!
//! TCP retransmits nothing for a kernel socket once it has been released. So a socket is kept until
//! the peer has got everything and closed its side as well, with no queue pair and no id any more;
//! but not if the peer does nothing of that for a while. What it sends is thrown away.

use super::{CmDevice, Deadline, Member, LINGER_LOOK, LINGER_TIME, LINGER_TIME_MAX};
use kernel::{
    impl_has_delayed_work, new_delayed_work, new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
    time::Jiffies,
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
    /// The connection never came about.
    pub(super) refused: bool,
    /// The end of all patience.
    limit: Deadline,
    /// `None` once the end has come.
    #[pin]
    state: Mutex<Option<State>>,
    #[pin]
    work: DelayedWork<Linger>,
}

struct State {
    socket: Socket,
    /// When the peer must have acknowledged something more than `unacknowledged` leaves.
    deadline: Deadline,
    unacknowledged: u32,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Linger> for Linger { self.work }
}

impl Linger {
    /// Sends a FIN, and releases the socket when the peer has answered it. May sleep.
    ///
    /// The socket must have no callbacks. If anything stands in the way the connection is reset; as
    /// it is if it was `refused`, and too many are.
    pub(super) fn start(dev: &Arc<CmDevice>, socket: Socket, refused: bool) {
        if socket.state() == TcpState::Closed {
            return;
        }
        let token = dev.token();
        let made = Arc::pin_init(
            pin_init!(Self {
                dev: dev.clone(),
                token,
                refused,
                limit: Deadline::new(LINGER_TIME_MAX),
                state <- new_mutex!(None, "riw::cm::Linger::state"),
                work <- new_delayed_work!("riw::cm::Linger::work"),
            }),
            GFP_KERNEL,
        );
        let Ok(this) = made else {
            return socket.abort();
        };

        // From here on until the end `shutdown` may come at any time.
        let mut place = this.state.lock();
        let ready = dev
            .add(token, Member::Linger(this.clone()))
            .and_then(|()| socket.set_callbacks(this.clone()))
            .and_then(|()| socket.shutdown_write());
        match ready {
            Ok(()) => {
                *place = Some(State {
                    socket,
                    deadline: Deadline::new(LINGER_TIME),
                    unacknowledged: u32::MAX,
                });
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
        self.dev.shared.stream_queue.kick::<Self, 0>(self.clone());
    }

    /// Releases the socket. May sleep.
    fn end(self: &Arc<Self>) {
        let state = self.state.lock().take();

        if let Some(state) = state {
            state.socket.clear_callbacks();
            // Does nothing more to one that is closed.
            state.socket.abort();
            self.dev.remove(self.token);
        }
    }

    /// How long to go on waiting; `None` if there is nothing to wait for. May sleep.
    fn look(&self) -> Option<Jiffies> {
        let mut guard = self.state.lock();
        let state = Option::as_mut(&mut guard)?;
        let unacknowledged = state.socket.with_locked(|sk| {
            sk.discard();
            (sk.state() != TcpState::Closed).then(|| sk.unacknowledged())
        })?;

        if unacknowledged < state.unacknowledged {
            state.unacknowledged = unacknowledged;
            state.deadline = Deadline::new(LINGER_TIME);
        }
        // What the peer acknowledges is not told, so it is looked for.
        let next = Deadline::new(LINGER_LOOK).left().unwrap_or(1);
        Some(next.min(state.deadline.left()?).min(self.limit.left()?))
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
        match this.look() {
            Some(left) => {
                // If it is queued already it runs at once, which is as well.
                let queue = &this.dev.shared.stream_queue;
                let _ = queue.enqueue_delayed::<Arc<Self>, 0>(this.clone(), left);
            }
            None => {
                this.end();
                cancel_delayed_work::<Self, 0>(&this);
            }
        }
    }
}

impl Callbacks for Linger {
    /// Takes what comes, so that the peer's FIN can come. Softirq, the socket locked.
    fn data_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        sk.discard();
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
