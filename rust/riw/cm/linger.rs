// SPDX-License-Identifier: GPL-2.0

//! Sockets that have sent their FIN.
//!
//! TCP retransmits nothing for a kernel socket once it has been released. So a socket is kept until
//! the peer has got everything and closed its side as well, with no queue pair and no id any more;
//! but not if the peer does nothing of that for a while. What it sends is thrown away.

use super::{
    deadline::Deadline,
    device::{CmDevice, Member},
};
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_mutex, new_work,
    prelude::*,
    sync::{Arc, Mutex},
    time::Jiffies,
    workqueue::{DelayedWork, Work, WorkItem},
};
use kernel_ext::workqueue::{cancel_delayed_work, impl_has_queue, mod_delayed_work, Queue};
use net::{Callbacks, LockedSock, Socket, TcpState};

/// Milliseconds that the peer has to answer a FIN, or to acknowledge something before it.
const LINGER_TIME: i64 = 10_000;
/// Milliseconds after which a lingering connection is looked at again.
const LINGER_LOOK: i64 = 1_000;
/// Milliseconds after which a connection lingers no more, whatever the peer does.
const LINGER_TIME_MAX: i64 = 300_000;

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
    /// Looks at the socket.
    #[pin]
    work: Work<Linger, 0>,
    /// Kicks the linger when it is time to look. Set and stopped under `state`; it waits only as
    /// long as there is a socket.
    #[pin]
    timer: DelayedWork<Linger, 1>,
    queue: Arc<Queue>,
}

struct State {
    socket: Socket,
    /// When the peer must have acknowledged something more than `unacknowledged` leaves.
    deadline: Deadline,
    unacknowledged: u32,
}

impl_has_work! {
    impl HasWork<Linger, 0> for Linger { self.work }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Linger, 1> for Linger { self.timer }
}
impl_has_queue! {
    impl HasQueue for Linger { self.queue }
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
                work <- new_work!("riw::cm::Linger::work"),
                timer <- new_delayed_work!("riw::cm::Linger::timer"),
                queue: dev.shared.stream_queue.clone(),
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
        self.queue.kick::<_, 0>(self);
    }

    /// Releases the socket: resets the connection, if there still is one. On return no callback of
    /// it runs. May sleep.
    pub(super) fn end(self: &Arc<Self>) {
        let state = {
            let mut state = self.state.lock();
            cancel_delayed_work::<Self, 1>(self);
            state.take()
        };

        if let Some(state) = state {
            state.socket.clear_callbacks();
            // Does nothing more to one that is closed.
            state.socket.abort();
            self.dev.remove(self.token);
        }
    }

    /// Sets the timer for the next look. Returns false if there is nothing to wait for. May sleep.
    fn look(self: &Arc<Self>) -> bool {
        let mut state = self.state.lock();

        let left = Option::as_mut(&mut state).and_then(|state| self.time_left(state));
        if let Some(left) = left {
            mod_delayed_work::<Self, 1>(self, left);
        }
        left.is_some()
    }

    /// How long to go on waiting; `None` if there is nothing to wait for. May sleep.
    fn time_left(&self, state: &mut State) -> Option<Jiffies> {
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
}

impl WorkItem<0> for Linger {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if !this.look() {
            this.end();
        }
    }
}

impl WorkItem<1> for Linger {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.kick();
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
