// SPDX-License-Identifier: GPL-2.0

//! A connection.
//!
//! Its phases, and what iw_cm has been told in each of them:
//!
//! | phase | is waiting for | told iw_cm | at the end it is told |
//! |---|---|---|---|
//! | `Connecting` | TCP | – | connect reply with an error |
//! | `AwaitReply` | the MPA Reply | – | connect reply with an error |
//! | `AwaitRequest` | the MPA Request | – | – |
//! | `Reported` | `accept` or `reject` | connect request | – |
//! | `AwaitFirst` | the first FPDU | connect request | established with an error, close |
//! | `Rdma` | the end | reply or established | close |
//! | `Closed` | – | all | – |
//!
//! The phase changes under `inner` only, and with it iw_cm is told; so it is told each thing once
//! and in that order.

use super::{
    accept::Request,
    connect::Opening,
    deadline::Deadline,
    linger::Linger,
    pending::{PendingEvent, PendingEvents},
    Closed, CmDevice, Disconnect, Role, CLOSE_TIME, ENDING_TIME, LINGER_TIME_MAX, PROBES,
};
use crate::{qp::Qp, stream::receive::ROOM as RX_ROOM};
use core::net::SocketAddr;
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_mutex, new_work,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, AtomicFlag},
        Arc, Mutex, MutexGuard, SetOnce,
    },
    workqueue::{DelayedWork, Work, WorkItem},
};
use net::{
    workqueue::{cancel_delayed_work, impl_has_queue, mod_delayed_work, Queue},
    Callbacks, LockedSock, SendBuf, Socket, TcpState,
};
use rdma::iw::{CmId, Event, Offer};

/// A connection, or one to be.
#[pin_data]
pub(crate) struct Endpoint {
    pub(super) dev: Arc<CmDevice>,
    pub(super) token: usize,
    role: Role,
    /// The queue pair handles the stream: callbacks go there, and `stream_work` does what is left.
    /// Set once, under `inner`.
    stream_active: AtomicFlag,
    pub(super) events: PendingEvents,
    /// The queue pair, from the time when it is attached.
    qp: SetOnce<Arc<Qp>>,
    #[pin]
    pub(super) inner: Mutex<Inner>,
    /// `None` before the connection begins and after it has ended.
    #[pin]
    socket: Mutex<Option<Socket>>,
    /// Sets the connection up.
    #[pin]
    setup_work: Work<Endpoint, 0>,
    /// Ends the stream, and the connection with it.
    #[pin]
    stream_work: Work<Endpoint, 1>,
    /// Kicks the endpoint at its deadline. Set and stopped under `inner`; it waits only if there is
    /// a deadline.
    #[pin]
    timer: DelayedWork<Endpoint, 2>,
    stream_queue: Arc<Queue>,
}

/// The state of a connection.
pub(super) struct Inner {
    pub(super) phase: Phase,
    /// iw_cm's id, once there is one that waits for events.
    pub(super) id: Option<ARef<CmId>>,
    pub(super) deadline: Option<Deadline>,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// The read depths that were agreed upon, for a responder.
    pub(super) depths: Offer<'static>,
    /// What an initiator needs until it is connected.
    pub(super) opening: Option<KBox<Opening>>,
    /// What a responder needs until it is connected.
    pub(super) request: Option<KBox<Request>>,
    /// Once the stream is about to end.
    pub(super) ending: Option<Ending>,
}

/// A stream that its queue pair is about to end.
pub(super) struct Ending {
    /// Bytes that had moved when its time was given.
    moved: u64,
    /// There is no more time then, whatever moves.
    limit: Deadline,
}

/// See the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    AwaitReply,
    AwaitRequest,
    Reported,
    AwaitFirst,
    Rdma,
    Closed,
}

/// How a connection ends.
pub(super) struct End<'a> {
    pub(super) how: Disconnect,
    /// Why, as iw_cm is told if the connection never came about.
    pub(super) error: Error,
    /// What came with the peer's rejection.
    pub(super) offer: Offer<'a>,
}

impl End<'_> {
    pub(super) fn abort(error: Error) -> Self {
        Self {
            how: Disconnect::Abort,
            error,
            offer: Offer::default(),
        }
    }

    pub(super) fn graceful(error: Error) -> Self {
        Self {
            how: Disconnect::Graceful,
            error,
            offer: Offer::default(),
        }
    }
}

impl_has_work! {
    impl HasWork<Endpoint, 0> for Endpoint { self.setup_work }
    impl HasWork<Endpoint, 1> for Endpoint { self.stream_work }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Endpoint, 2> for Endpoint { self.timer }
}
impl_has_queue! {
    impl HasQueue for Endpoint { self.stream_queue }
}

impl Endpoint {
    /// Makes an endpoint without a socket. May sleep.
    pub(super) fn new(dev: &Arc<CmDevice>, role: Role, inner: Inner) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                dev: dev.clone(),
                token: dev.token(),
                role,
                stream_active: AtomicFlag::new(false),
                events: PendingEvents::new(),
                qp: SetOnce::new(),
                inner <- new_mutex!(inner, "riw::cm::Endpoint::inner"),
                socket <- new_mutex!(None, "riw::cm::Endpoint::socket"),
                setup_work <- new_work!("riw::cm::Endpoint::setup_work"),
                stream_work <- new_work!("riw::cm::Endpoint::stream_work"),
                timer <- new_delayed_work!("riw::cm::Endpoint::timer"),
                stream_queue: dev.shared.stream_queue.clone(),
            }),
            GFP_KERNEL,
        )
    }

    // For the queue pair.

    /// Calls `f` with the socket. `ENOTCONN` if the connection has ended. Process context, may
    /// sleep; `f` may too, but not for the peer: who ends the connection waits for it.
    pub(crate) fn with_socket<R>(&self, f: impl FnOnce(&Socket) -> Result<R>) -> Result<R> {
        f(self.socket.lock().as_ref().ok_or(ENOTCONN)?)
    }

    /// Sends what `buf` has, as [`Socket::send`] does. Process context, may sleep.
    ///
    /// `ENOTCONN` if the connection has ended.
    pub(crate) fn send(&self, buf: &mut SendBuf) -> Result {
        self.with_socket(|socket| socket.send(buf))
    }

    /// Whether TCP has a connection. If not, the queue pair is told so, or has been. Process context,
    /// may sleep.
    pub(crate) fn is_connected(&self) -> bool {
        self.with_socket(|socket| Ok(socket.state() != TcpState::Closed))
            .unwrap_or(false)
    }

    /// Bytes that the socket has room for, as [`Socket::room`], and the most that a segment carries.
    /// Process context, may sleep.
    ///
    /// `ENOTCONN` if the connection has ended.
    pub(crate) fn room_and_mss(&self) -> Result<(usize, u32)> {
        self.with_socket(|socket| Ok((socket.room(), socket.mss())))
    }

    /// The most bytes that a segment carries. Process context, may sleep.
    ///
    /// `ENOTCONN` if the connection has ended.
    pub(crate) fn mss(&self) -> Result<u32> {
        self.with_socket(|socket| Ok(socket.mss()))
    }

    /// Notes that the peer's first FPDU has arrived. Any context.
    pub(crate) fn first_fpdu(self: &Arc<Self>) {
        self.post_event(PendingEvent::FirstFpdu);
    }

    /// Requests the close of the connection; a work item does it. Any context.
    pub(crate) fn close(self: &Arc<Self>) {
        self.post_event(PendingEvent::CloseRequested);
    }

    /// Notes that the queue pair has begun to end the stream. It calls [`Self::close`] when it is
    /// done. The peer may not take the rest, so the time for that is limited: [`ENDING_TIME`] from
    /// the last byte that has moved. Any context.
    pub(crate) fn ending(self: &Arc<Self>) {
        self.post_event(PendingEvent::StreamEnding);
    }

    /// Closes the connection. Process context, may sleep.
    ///
    /// On return no callback and no work of the endpoint touches the queue pair any more, and
    /// [`Qp::detach`] has been called: work that runs now had to wait for `inner`, and finds the
    /// end.
    pub(crate) fn teardown(self: &Arc<Self>) {
        self.end(&mut self.inner.lock(), &End::graceful(ECONNABORTED));
    }

    // For the rest of connection management.

    /// Resets the connection to make room for others, unless it has been accepted. A work item does
    /// it. Any context.
    pub(super) fn evict(self: &Arc<Self>) {
        self.post_event(PendingEvent::Evicted);
    }

    /// Notes an event, and has a work item act on it. Any context.
    fn post_event(self: &Arc<Self>, event: PendingEvent) {
        if self.events.set(event) {
            self.kick();
        }
    }

    /// Whether the queue pair handles the stream. Any context. If so, the caller sees the queue pair.
    fn is_stream_active(&self) -> bool {
        self.stream_active.load(ordering::Acquire)
    }

    /// Resets the connection. On return no callback of it runs, and the socket is gone. May sleep.
    pub(super) fn shutdown(self: &Arc<Self>) {
        self.end(&mut self.inner.lock(), &End::abort(ENETDOWN));
    }

    /// Runs the work item that acts on events now. Any context.
    ///
    /// A race with [`Self::start`] loses no event. A full barrier lies between the event and the load
    /// here ([`PendingEvents::set`]), and another between the store in `start` and the work item that
    /// `start` queues. So either this reads that the stream is active, or that work item sees the
    /// event. What happens to the socket is noted under its lock, which that work item takes
    /// ([`Self::catch_up`]).
    pub(super) fn kick(self: &Arc<Self>) {
        if self.is_stream_active() {
            self.stream_queue.kick::<_, 1>(self);
        } else {
            self.dev.shared.setup_queue.kick::<_, 0>(self);
        }
    }

    /// Sets the timer to the deadline. If that is past, does first what is due then. May sleep.
    fn set_timer(self: &Arc<Self>, inner: &mut Inner) {
        if inner
            .deadline
            .is_some_and(|deadline| deadline.left().is_none())
        {
            self.expire(inner);
        }
        match inner.deadline {
            // A deadline that has passed since then is seen at once.
            Some(deadline) => mod_delayed_work::<Self, 2>(self, deadline.left().unwrap_or(0)),
            None => cancel_delayed_work::<Self, 2>(self),
        }
    }

    /// Goes on with a connection that has `begun`, or ends it if that has failed. May sleep.
    pub(super) fn proceed(
        self: &Arc<Self>,
        mut inner: MutexGuard<'_, Inner>,
        begun: Result,
    ) -> Result {
        match begun {
            Ok(()) => {
                drop(inner);
                // What is waited for may be there already.
                self.kick();
            }
            Err(e) => self.end(&mut inner, &End::abort(e)),
        }
        begun
    }

    /// Gives the endpoint its socket, with the options of a connection, and has it called back. May
    /// sleep.
    pub(super) fn set_socket(self: &Arc<Self>, socket: Socket) -> Result {
        let idle = self.dev.settings.keepalive_time();

        socket.set_nodelay();
        let ready = match idle {
            0 => Ok(()),
            _ => socket.set_keepalive(idle, (idle / PROBES).max(1), PROBES),
        };
        if let Err(e) = ready.and_then(|()| socket.set_callbacks(self.clone())) {
            socket.abort();
            return Err(e);
        }
        *self.socket.lock() = Some(socket);
        Ok(())
    }

    /// Takes the socket away; no callback comes on return.
    pub(super) fn take_socket(&self) -> Option<Socket> {
        let socket = self.socket.lock().take()?;

        socket.clear_callbacks();
        Some(socket)
    }

    /// Binds the endpoint and a queue pair to each other.
    pub(super) fn attach(self: &Arc<Self>, qp: &Arc<Qp>) -> Result {
        qp.attach(self.clone())?;
        // Nobody else does this: it is done under `inner`, and once.
        self.qp.populate(qp.clone());
        Ok(())
    }

    /// Hands the stream over to the queue pair.
    pub(super) fn start(self: &Arc<Self>, parameters: &iwarp::startup::Parameters) -> Result {
        let qp = self.qp.as_ref().ok_or(ENOTCONN)?;

        self.with_socket(|socket| {
            socket.reserve(RX_ROOM);
            Ok(())
        })?;
        qp.start(parameters, self.role)?;
        self.stream_active.store(true, ordering::Release);
        // The queue pair may have filled the socket by now, and the socket have told of its room in
        // vain.
        qp.write_space();
        // Nor has it been told what has come before.
        self.kick();
        Ok(())
    }

    /// Lets the queue pair read the socket: data may have come before the queue pair was started,
    /// or before it had a buffer for the data. Process context, may sleep.
    pub(crate) fn catch_up(self: &Arc<Self>) {
        // If the socket is gone there is nothing to look at.
        let _ = self.with_socket(|socket| {
            socket.with_locked(|sk| self.look(sk));
            Ok(())
        });
    }

    /// Tells iw_cm, if it waits for events.
    pub(super) fn tell(inner: &Inner, event: &Event<'_>) -> Result {
        inner.id.as_ref().map_or(Ok(()), |id| id.event(event))
    }

    /// Tells iw_cm that there is no connection.
    fn tell_failure(inner: &Inner, end: &End<'_>) {
        let reply = |offer| {
            Self::tell(
                inner,
                &Event::ConnectReply {
                    status: Err(end.error),
                    local: inner.local,
                    remote: inner.remote,
                    offer,
                },
            )
        };

        if reply(end.offer).is_err() {
            // There is no memory for the private data, or too much of them. Without any it is
            // always taken, and it must be: the consumer waits for it.
            let _ = reply(Offer::default());
        }
    }

    /// Ends the connection, if it has not ended; by a reset if not everything can be sent that is
    /// as good as sent for the consumer: a FIN would tell the peer that this was all. May sleep.
    pub(super) fn end(self: &Arc<Self>, inner: &mut Inner, end: &End<'_>) {
        let phase = core::mem::replace(&mut inner.phase, Phase::Closed);

        if phase == Phase::Closed {
            return;
        }
        inner.deadline = None;
        inner.opening = None;
        if let Some(request) = inner.request.take() {
            request.leave(inner.remote.ip().into(), self);
        }

        if let Some(socket) = self.take_socket() {
            // Without the socket nobody sends what is left, so that this does not change. It waits for
            // a transmit pass, which a reset need not.
            let cut = || self.qp.as_ref().is_some_and(|qp| qp.has_unsent());

            match end.how {
                Disconnect::Graceful if !cut() => {
                    let refused = matches!(phase, Phase::AwaitRequest | Phase::Reported);

                    Linger::start(&self.dev, socket, refused);
                }
                _ => socket.abort(),
            }
        }
        if let Some(qp) = self.qp.as_ref() {
            // If the queue pair is about to end, it knows why.
            let ending = self.events.has(PendingEvent::StreamEnding)
                || self.events.has(PendingEvent::CloseRequested);

            if self.is_stream_active() && !ending && self.events.set(PendingEvent::LlpClosed) {
                qp.llp_closed(if end.error == ETIMEDOUT {
                    Closed::Timeout
                } else {
                    Closed::Reset
                });
            }
            qp.detach();
        }

        // These are always taken: iw_cm has set room for each of them aside.
        match phase {
            Phase::Connecting | Phase::AwaitReply => Self::tell_failure(inner, end),
            Phase::AwaitFirst => {
                let _ = Self::tell(
                    inner,
                    &Event::Established {
                        status: Err(end.error),
                        offer: Offer::default(),
                    },
                );
                let _ = Self::tell(inner, &Event::Close);
            }
            Phase::Rdma => {
                let _ = Self::tell(inner, &Event::Close);
            }
            Phase::AwaitRequest | Phase::Reported | Phase::Closed => {}
        }
        inner.id = None;
        self.dev.remove(self.token);
        cancel_delayed_work::<Self, 2>(self);
    }

    /// Does what there is to be done for a connection of a queue pair. May sleep.
    fn step_rdma(self: &Arc<Self>, inner: &mut Inner) {
        if !self.events.has(PendingEvent::LlpClosed) {
            // Needed the first time only, and harmless later.
            self.catch_up();
        }
        if inner.phase == Phase::AwaitFirst && self.events.has(PendingEvent::FirstFpdu) {
            self.established(inner);
        }

        let closed = self.events.has(PendingEvent::LlpClosed);
        if self.events.has(PendingEvent::CloseRequested)
            || self.events.has(PendingEvent::ConnectionLost)
        {
            self.end(inner, &End::graceful(ECONNRESET));
        } else if inner.phase == Phase::Rdma
            && (closed || self.events.has(PendingEvent::StreamEnding))
        {
            // The queue pair will close this side when it has said what it has to say.
            let limit = Deadline::new(if closed { CLOSE_TIME } else { ENDING_TIME });

            inner.ending.get_or_insert_with(|| Ending {
                moved: self.moved(),
                limit: Deadline::new(LINGER_TIME_MAX),
            });
            inner.deadline = Some(inner.deadline.map_or(limit, |earlier| earlier.min(limit)));
        }
    }

    /// Bytes that have moved either way. May sleep.
    fn moved(&self) -> u64 {
        // Without a socket nothing does.
        self.with_socket(|socket| Ok(socket.with_locked(|sk| sk.moved())))
            .unwrap_or(0)
    }

    /// Whether a stream that is about to end may have more time: bytes have moved since it was given
    /// some, and the peer has not closed its side. May sleep.
    fn may_go_on(&self, inner: &mut Inner) -> bool {
        let Some(ending) = &mut inner.ending else {
            return false;
        };
        let moved = self.moved();
        let before = core::mem::replace(&mut ending.moved, moved);

        moved != before
            && !self.events.has(PendingEvent::LlpClosed)
            && ending.limit.left().is_some()
    }

    /// Time is up. May sleep.
    fn expire(self: &Arc<Self>, inner: &mut Inner) {
        inner.deadline = None;
        match inner.phase {
            Phase::Reported => self.reject_with(inner, &[]),
            Phase::Rdma => {
                if self.may_go_on(inner) {
                    inner.deadline = Some(Deadline::new(ENDING_TIME));
                } else {
                    self.end(inner, &End::graceful(ECONNRESET));
                }
            }
            _ => self.end(inner, &End::abort(ETIMEDOUT)),
        }
    }

    /// Looks at the socket, for the queue pair. The socket is locked; atomic context.
    fn look(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        let Some(qp) = self.qp.as_ref() else {
            return;
        };

        // What has come before the end counts.
        qp.rx_ready(sk);
        let how = match sk.state() {
            TcpState::Closed if sk.error() == Some(ETIMEDOUT) => Closed::Timeout,
            TcpState::Closed => Closed::Reset,
            // This side has not sent its FIN: there would be other callbacks then.
            TcpState::CloseWait => Closed::Graceful,
            _ => return,
        };

        if how != Closed::Graceful {
            self.events.set(PendingEvent::ConnectionLost);
        }
        if self.events.set(PendingEvent::LlpClosed) {
            qp.llp_closed(how);
        }
        self.kick();
    }
}

impl WorkItem<0> for Endpoint {
    type Pointer = Arc<Self>;

    /// May sleep, but not for the peer, nor for a stream.
    fn run(this: Arc<Self>) {
        // Whoever handed the stream over has kicked the other work, which may be holding `inner`
        // for long.
        if this.is_stream_active() {
            return;
        }
        let mut inner = this.inner.lock();

        match inner.phase {
            Phase::Connecting | Phase::AwaitReply => this.step_connect(&mut inner),
            Phase::AwaitRequest | Phase::Reported => this.step_accept(&mut inner),
            Phase::AwaitFirst | Phase::Rdma | Phase::Closed => return,
        }
        this.set_timer(&mut inner);
    }
}

impl WorkItem<1> for Endpoint {
    type Pointer = Arc<Self>;

    /// May sleep, but not for the peer.
    fn run(this: Arc<Self>) {
        let mut inner = this.inner.lock();

        if !matches!(inner.phase, Phase::AwaitFirst | Phase::Rdma) {
            return;
        }
        this.step_rdma(&mut inner);
        this.set_timer(&mut inner);
    }
}

impl WorkItem<2> for Endpoint {
    type Pointer = Arc<Self>;

    /// The deadline may be past.
    fn run(this: Arc<Self>) {
        this.kick();
    }
}

impl Callbacks for Endpoint {
    /// Atomic context, the socket is locked.
    fn data_ready(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        match self.qp.as_ref() {
            Some(qp) if self.is_stream_active() => qp.rx_ready(sk),
            _ => self.kick(),
        }
    }

    /// Atomic context, the socket is locked.
    fn state_change(self: &Arc<Self>, sk: &mut LockedSock<'_>) {
        if self.is_stream_active() {
            self.look(sk);
        } else {
            self.kick();
        }
    }

    /// Atomic context, the socket is locked.
    fn write_space(self: &Arc<Self>) {
        if let Some(qp) = self.qp.as_ref() {
            if self.is_stream_active() {
                qp.write_space();
            }
        }
    }

    /// Atomic context.
    fn error_report(self: &Arc<Self>) {
        // An established connection ends by a change of its state.
        if !self.is_stream_active() {
            self.kick();
        }
    }
}
