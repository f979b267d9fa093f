// SPDX-License-Identifier: GPL-2.0

//! A connection: its parts and its phases.
//!
//! A phase has the data of that phase only. A step takes the phase and leaves the next one.
//!
//! | phase | waits for | reported to iw_cm before | reported at the end |
//! |---|---|---|---|
//! | `New` | its connection | – | – |
//! | `Connecting` | the transport | – | connect reply with an error |
//! | `AwaitReply` | the answer of the peer | – | connect reply with an error |
//! | `AwaitRequest` | the request of the peer | – | – |
//! | `Queued` | room in the consumer's backlog, or the end of the call that listens | – | – |
//! | `Reported` | `accept` or `reject` | connect request | – |
//! | `AwaitFirst` | the first segment | connect request | established with an error, close |
//! | `Rdma` | the end | connect reply or established | close |
//! | `Closed` | – | all | – |
//!
//! The phase changes only under its lock, and riw reports to iw_cm under the same lock. So each
//! event is reported once, and in this order. Only a connect request is reported again: if the
//! backlog had no room for it, `Reported` goes back to `Queued`.

use super::{
    backlog::Report, device::CmDevice, pending::PendingEvents, phase_lock::PhaseLock,
    subscription::Subscription,
};
use crate::{
    link::{AddrPair, AwaitedRequest, Connection, Deadline, Link, Responder, Startup},
    qp::Qp,
    stream::StartRoom,
};
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_work,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
        Arc, SetOnce,
    },
    workqueue::{DelayedWork, Work},
};
use kernel_ext::workqueue::{HasQueue, Queue};
use rdma::iw::{CmId, Offer};
use trace::CmPhase;

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

impl HasQueue for Endpoint {
    fn queue(&self) -> &Queue {
        &self.stream_queue
    }
}

/// A phase: see the table above.
pub(super) enum Phase {
    New,
    Connecting(KBox<Opening>),
    AwaitReply(KBox<Opening>),
    AwaitRequest(KBox<Request>),
    Queued(KBox<Undecided>),
    Reported(KBox<Undecided>),
    AwaitFirst {
        id: ARef<CmId>,
        /// The agreed read depths.
        depths: Offer<'static>,
        deadline: Deadline,
    },
    Rdma {
        id: ARef<CmId>,
        /// The stream is about to end.
        ending: Option<Ending>,
        /// Ends the connection if the peer is silent.
        watch: Option<PeerWatch>,
    },
    Closed,
}

/// The end of a stream, which the queue pair has begun or has to begin.
pub(super) struct Ending {
    /// The bytes that had moved when the time was given.
    pub(super) moved: u64,
    pub(super) deadline: Deadline,
    /// The time when no more is given.
    pub(super) limit: Deadline,
}

/// The watch over a peer that may be gone, by the setting `keepalive`. TCP keeps it itself.
pub(super) struct PeerWatch {
    /// Milliseconds of silence, at most.
    pub(super) limit: i64,
    /// When to look next.
    pub(super) deadline: Deadline,
}

/// A connection that is being opened.
pub(super) struct Opening {
    /// iw_cm's id, which waits for the connect reply.
    pub(super) id: ARef<CmId>,
    /// The addresses; the local one as far as it is known.
    pub(super) addrs: AddrPair,
    pub(super) startup: Startup,
    /// To be tried if the first transport does not connect, and the connection for it.
    pub(super) fallback: Option<(Startup, Connection)>,
    /// Memory for the stream, until that starts.
    pub(super) room: Option<StartRoom>,
    /// The deadline of the phase.
    pub(super) deadline: Deadline,
    /// When the consumer, which may wait, gets the connect reply at the latest, over all attempts.
    pub(super) limit: Deadline,
}

/// A connection that a listener has accepted.
#[derive(Clone)]
pub(super) struct Incoming {
    pub(super) addrs: AddrPair,
    /// Gets the connect request.
    pub(super) subscription: Arc<Subscription>,
}

/// A connection whose Request has not arrived in full. It counts among the half-open ones of its
/// subscription.
pub(super) struct Request {
    pub(super) incoming: Incoming,
    pub(super) awaited: AwaitedRequest,
    pub(super) deadline: Deadline,
}

/// A connection with a valid Request on which no consumer has decided. While it is queued, it
/// counts among the half-open ones of its subscription.
pub(super) struct Undecided {
    pub(super) incoming: Incoming,
    pub(super) responder: Responder,
    pub(super) deadline: Deadline,
    /// The place in the queue of the backlog.
    pub(super) place: u64,
    /// The report, while the consumer has it.
    pub(super) report: Option<Report>,
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

impl Phase {
    /// Takes the phase out, and leaves `Closed`. For [`Endpoint::step`](super::Endpoint::step) and
    /// the end alone: `Closed` means that everything of the connection has been released.
    pub(super) fn take(&mut self) -> Self {
        core::mem::replace(self, Self::Closed)
    }

    /// The name of the phase, for trace events.
    pub(super) fn name(&self) -> CmPhase {
        match self {
            Self::New => CmPhase::New,
            Self::Connecting(_) => CmPhase::Connecting,
            Self::AwaitReply(_) => CmPhase::AwaitReply,
            Self::AwaitRequest(_) => CmPhase::AwaitRequest,
            Self::Queued(_) => CmPhase::Queued,
            Self::Reported(_) => CmPhase::Reported,
            Self::AwaitFirst { .. } => CmPhase::AwaitFirst,
            Self::Rdma { .. } => CmPhase::Rdma,
            Self::Closed => CmPhase::Closed,
        }
    }

    /// When the phase ends at the latest; `None` if it has no time limit.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        match self {
            Self::Connecting(opening) | Self::AwaitReply(opening) => Some(opening.deadline),
            Self::AwaitRequest(request) => Some(request.deadline),
            Self::Queued(undecided) | Self::Reported(undecided) => Some(undecided.deadline),
            Self::AwaitFirst { deadline, .. } => Some(*deadline),
            Self::Rdma { ending, watch, .. } => match ending {
                Some(ending) => Some(ending.deadline),
                None => watch.as_ref().map(|watch| watch.deadline),
            },
            Self::New | Self::Closed => None,
        }
    }
}
