// SPDX-License-Identifier: GPL-2.0

//! A connection: its parts, the calls of the queue pair and the events of its link.

use super::{
    device::CmDevice,
    member::CmConnection,
    pending::{PendingEvent, PendingEvents},
    phase::End,
    phase_lock::PhaseLock,
    reason::EndReason,
};
use crate::{
    link::{AddrPair, Connection, Inflow, Link, LinkEnd, LinkEvents, Terms},
    qp::{Closed, Qp, QpConnection},
};
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_work,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc, ArcBorrow, SetOnce,
    },
    workqueue::{DelayedWork, Work},
};
use kernel_ext::{
    memalloc::without_io,
    workqueue::{impl_has_queue, Queue},
};
use rdma::iw::{CmId, ConnParam, Rejection};

/// A connection, or one that is being set up.
#[pin_data]
pub(super) struct Endpoint {
    pub(super) dev: Arc<CmDevice>,
    pub(super) token: usize,
    /// The queue pair handles the stream: it gets the events of the link, and `stream_work` acts on
    /// `events` in place of `setup_work`. Set once, under `phase`.
    stream_active: Atomic<bool>,
    pub(super) events: PendingEvents,
    /// The queue pair, once it is attached.
    pub(super) qp: SetOnce<Arc<Qp>>,
    /// The addresses of the stream, once it starts.
    pub(super) addrs: SetOnce<AddrPair>,
    /// The setting `keepalive` when the first connection was made, in seconds: one value for the
    /// probes and for the watch over their answers.
    pub(super) keepalive: SetOnce<u16>,
    #[pin]
    pub(super) phase: PhaseLock,
    pub(super) link: Arc<Link>,
    /// Acts on events until the stream is active.
    #[pin]
    setup_work: Work<Endpoint, 0>,
    /// Acts on events from then on.
    #[pin]
    stream_work: Work<Endpoint, 1>,
    /// Kicks the endpoint at the deadline of its phase. Set and stopped under `phase`; runs only
    /// while there is a deadline.
    #[pin]
    timer: DelayedWork<Endpoint, 2>,
    stream_queue: Arc<Queue>,
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
    /// Creates an endpoint in phase `New`, without a connection. `below_reclaim`: reclaim may wait
    /// for it. May sleep.
    pub(super) fn new(dev: &Arc<CmDevice>, below_reclaim: bool) -> Result<Arc<Self>> {
        let stream_queue = match below_reclaim {
            true => &dev.shared.kernel_queue,
            false => &dev.shared.stream_queue,
        };

        let link = Arc::pin_init(Link::new(), GFP_KERNEL_ACCOUNT)?;

        Arc::pin_init(
            pin_init!(Self {
                dev: dev.clone(),
                token: dev.token(),
                stream_active: Atomic::new(false),
                events: PendingEvents::new(),
                qp: SetOnce::new(),
                addrs: SetOnce::new(),
                keepalive: SetOnce::new(),
                phase <- PhaseLock::new(),
                link,
                setup_work <- new_work!("riw::cm::Endpoint::setup_work"),
                stream_work <- new_work!("riw::cm::Endpoint::stream_work"),
                timer <- new_delayed_work!("riw::cm::Endpoint::timer"),
                stream_queue: stream_queue.clone(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Sends a Terminate, as the first and only segment. `crc` and `markers` are for MPA. May
    /// sleep. Fails as [`Link::send_terminate`].
    pub(super) fn send_terminate(&self, error: iwarp::Error, crc: bool, markers: bool) -> Result {
        self.link.send_terminate(error, crc, markers)?;
        if let Some(qp) = self.qp.as_ref() {
            qp.note_terminate(error.term());
        }
        Ok(())
    }

    /// Binds the endpoint and a queue pair to each other. `EINVAL` if the queue pair cannot be
    /// connected. May sleep.
    pub(super) fn attach(self: &Arc<Self>, qp: &Arc<Qp>) -> Result {
        qp.attach(self.clone())?;
        // It is empty: an endpoint attaches a queue pair once, under `phase`.
        self.qp.populate(qp.clone());
        Ok(())
    }

    /// From here on the attached queue pair handles the stream. Under `phase`. The caller queues
    /// the work item of the stream then: see [`Self::kick`] and
    /// `selftests/litmus/pending_events.litmus`.
    pub(super) fn set_stream_active(&self) {
        self.stream_active.store(true, ordering::Release);
    }

    /// Whether the queue pair handles the stream. Any context.
    pub(super) fn is_stream_active(&self) -> bool {
        self.stream_active.load(ordering::Acquire)
    }

    /// Returns the queue pair if it handles the stream. Any context.
    fn active_qp(&self) -> Option<&Arc<Qp>> {
        if self.is_stream_active() {
            self.qp.as_ref()
        } else {
            None
        }
    }

    /// Notes an event, and has a work item act on it. Any context.
    fn post_event(self: &Arc<Self>, event: PendingEvent) {
        if self.events.set(event) {
            self.kick();
        }
    }

    /// Queues the work item that acts on events at this time. Any context.
    ///
    /// A race with [`Self::start`] loses no event. A full barrier lies between the event and the
    /// load here ([`PendingEvents::set`]), and another between the store in `start` and the work
    /// item that `start` queues. So either this reads that the stream is active, or that work item
    /// sees the event. Data and changes of state come under the connection's lock, which that work
    /// item takes ([`Link::poll`]). The model is `selftests/litmus/pending_events.litmus`.
    pub(super) fn kick(self: &Arc<Self>) {
        if self.is_stream_active() {
            self.stream_queue.kick::<_, 1>(self);
        } else {
            self.dev.shared.setup_queue.kick::<_, 0>(self);
        }
    }

    /// Returns the seconds of silence after which the peer is probed, 0 for never. Any context.
    pub(super) fn keepalive_time(&self) -> u16 {
        self.keepalive.copy().unwrap_or(0)
    }

    /// Gives the link its connection. Resets the connection if that fails. May sleep.
    pub(super) fn set_connection(self: &Arc<Self>, connection: Connection) -> Result {
        // A connection that replaces this one, over another transport, has the same value.
        self.keepalive.populate(self.dev.settings.keepalive_time());
        self.link
            .attach(connection, self.keepalive_time(), self.clone())
    }
}

impl CmConnection for Endpoint {
    fn accept(self: ArcBorrow<'_, Self>, qp: &Arc<Qp>, id: &CmId, param: &ConnParam<'_>) -> Result {
        Arc::from(self).accept_by(qp, id, param)
    }

    fn reject(self: ArcBorrow<'_, Self>, rejection: &Rejection<'_>) -> Result {
        Arc::from(self).reject_by(rejection)
    }

    fn offer(self: ArcBorrow<'_, Self>) {
        Arc::from(self).offer_queued();
    }

    fn evict(self: ArcBorrow<'_, Self>) {
        Arc::from(self).post_event(PendingEvent::Evicted);
    }

    fn shutdown(self: ArcBorrow<'_, Self>) {
        let this = Arc::from(self);

        this.end(
            &mut this.lock_phase(),
            &End::abort(EndReason::Local(ENETDOWN)),
        );
    }
}

impl QpConnection for Endpoint {
    fn link(&self) -> &Arc<Link> {
        &self.link
    }

    fn addrs(&self) -> Option<&AddrPair> {
        self.addrs.as_ref()
    }

    fn first_fpdu(self: ArcBorrow<'_, Self>) {
        Arc::from(self).post_event(PendingEvent::FirstFpdu);
    }

    fn ending(self: ArcBorrow<'_, Self>) {
        Arc::from(self).post_event(PendingEvent::StreamEnding);
    }

    fn close(self: ArcBorrow<'_, Self>) {
        Arc::from(self).post_event(PendingEvent::CloseRequested);
    }

    fn catch_up(self: ArcBorrow<'_, Self>) {
        // A timer that an earlier stream of the queue pair has left may expire during the startup
        // of this one, whose frames are not the queue pair's.
        if self.is_stream_active() {
            self.link.poll(&Arc::from(self));
        }
    }

    fn teardown(self: ArcBorrow<'_, Self>) {
        let this = Arc::from(self);

        // It takes locks that connections share, also one that I/O waits for.
        without_io(|| {
            this.end(
                &mut this.lock_phase(),
                &End::graceful(EndReason::Local(ECONNABORTED)),
            );
        });
    }

    fn abandon(self: ArcBorrow<'_, Self>, id: &CmId) -> bool {
        Arc::from(self).abandon_accept(id)
    }
}

impl LinkEvents for Endpoint {
    /// Atomic or process context.
    fn changed(self: &Arc<Self>) {
        match self.active_qp() {
            Some(qp) => qp.retry_receive(),
            None => self.kick(),
        }
    }

    /// Atomic or process context, received data is locked.
    fn receive(self: &Arc<Self>, inflow: &mut impl Inflow) {
        match self.active_qp() {
            Some(qp) => qp.rx_ready(inflow),
            None => self.kick(),
        }
    }

    /// Atomic or process context, received data is locked.
    fn ended(self: &Arc<Self>, end: LinkEnd) {
        let Some(qp) = self.active_qp() else {
            return self.kick();
        };
        let how = match end {
            LinkEnd::Failed(error) => return qp.link_failed(error),
            LinkEnd::PeerClosed | LinkEnd::ShutDown => Closed::Graceful,
            LinkEnd::Closed(e) if e == ETIMEDOUT || self.events.has(PendingEvent::TimedOut) => {
                Closed::Timeout
            }
            LinkEnd::Closed(_) => Closed::Reset,
        };

        if qp.defers(how) {
            // The end is behind segments that have not been received: `catch_up` comes back here.
            // TCP tells the error only once, and a transmit run may take it meanwhile.
            if how == Closed::Timeout {
                self.events.set(PendingEvent::TimedOut);
            }
            return;
        }
        if end != LinkEnd::PeerClosed {
            self.events.set(PendingEvent::ConnectionLost);
        }
        if self.events.set(PendingEvent::LlpClosed) {
            qp.llp_closed(how);
        }
        self.kick();
    }

    /// Any context. The connection may be locked.
    fn room(self: &Arc<Self>) {
        if let Some(qp) = self.active_qp() {
            qp.kick();
        }
    }
}

impl<'a> From<&ConnParam<'a>> for Terms<'a> {
    fn from(param: &ConnParam<'a>) -> Self {
        Self {
            ird: param.ird,
            ord: param.ord,
            private_data: param.private_data,
        }
    }
}
