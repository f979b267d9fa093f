// SPDX-License-Identifier: GPL-2.0

//! Queue pairs: their parts, their state, and the verbs on them.

mod owner;
pub(crate) mod table;

use crate::{
    abi,
    cm::{Closed, Endpoint, Role},
    limits::{self, Quota},
    queue::{
        completion::CqObject,
        receive::{RecvQueue, SrqObject},
        ring::Ring,
        send::SendQueue,
    },
    stream::{reads::Reads, receive::Rx, runner::Runner, transmit::Tx},
    Riw,
};
use iwarp::{
    qp::{next, Event, State},
    startup::Parameters,
    Error, Quote, Terminate,
};
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_mutex, new_spinlock_irq, new_work,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
        Arc, Mutex, SpinLockIrq,
    },
    workqueue::{DelayedWork, Work, WorkItem},
};
use kernel_ext::{
    memcg::MemCgroup,
    sync::{new_bh_spinlock, BhSpinLock},
    workqueue::{cancel_delayed_work, impl_has_queue, mod_delayed_work, Queue},
};
use rdma::{
    mr::MrTable,
    pd::Pd,
    qp::{QpAttr, QpCap, QpInitAttr, QpState},
    Device, Udata,
};

use owner::Owner;

/// A queue pair as the verbs have it.
pub(crate) type QpObject = rdma::qp::Qp<Riw>;

/// Where a queue pair takes its receive requests from.
pub(crate) enum Receives {
    /// A queue of its own.
    Own(Arc<RecvQueue>),
    /// A queue that it shares.
    Shared(ARef<SrqObject>),
}

/// A queue pair.
///
/// The verbs' object holds one reference, the table of numbers another, and whoever works for it
/// (endpoint, worker) one as long as that takes; so it can outlive the verbs' object by a moment,
/// but then does nothing any more ([`Qp::destroy`]).
#[pin_data]
pub(crate) struct Qp {
    pub(crate) number: u32,
    pub(crate) owner: Owner,
    /// Memory that workers allocate for the queue pair is charged to this cgroup.
    pub(crate) memcg: MemCgroup,
    pub(crate) pd: u64,
    pub(crate) mrs: Arc<MrTable<Riw>>,
    pub(crate) recv_cq: ARef<CqObject>,
    pub(crate) receives: Receives,
    cap: QpCap,
    queue: Arc<Queue>,
    _quota: Quota,

    /// The verbs' object, until it is destroyed. Interrupts are off while the lock is held, as
    /// they are for who looks for the queue pair by its number ([`Numbers`](crate::numbers)).
    #[pin]
    handle: SpinLockIrq<Option<ARef<QpObject>>>,
    #[pin]
    pub(crate) sq: SendQueue,
    #[pin]
    pub(crate) status: BhSpinLock<Status>,
    /// Whether the state is one in which data is taken. Changes under `status`, and may be looked
    /// at without it.
    pub(crate) live: Atomic<bool>,
    #[pin]
    pub(crate) reads: BhSpinLock<Reads>,
    /// Whether the peer waits for the answer to a read. Changes under `reads`, and may be looked at
    /// without it.
    pub(crate) asked: Atomic<bool>,
    #[pin]
    pub(crate) tx: Mutex<Tx>,
    #[pin]
    pub(crate) rx: BhSpinLock<Rx>,
    pub(crate) runner: Runner,
    #[pin]
    work: Work<Qp>,
    #[pin]
    watch: DelayedWork<Qp, 1>,
    #[pin]
    hold: Work<Qp, 2>,
}

/// The state of a queue pair and what goes with it.
pub(crate) struct Status {
    pub(crate) state: State,
    /// The state that the verbs report in IDLE: INIT, which is where receives may be posted, or
    /// RTR if the consumer has moved there. An RNIC has no RESET.
    unconnected: QpState,
    /// The access flags that the consumer has set. They are reported, not enforced: librdmacm
    /// sets none before it connects an iWARP queue pair, and none after. What a peer is allowed is
    /// said by each region.
    access: u32,
    pub(crate) endpoint: Option<Arc<Endpoint>>,
    /// The error that the peer is to be told.
    pub(crate) terminate: Option<Terminate>,
    /// The peer has to speak first (RFC 5044 §7.1.2), and has not.
    pub(crate) silent: bool,
    /// The event for the end of a shared receive queue's use has been given.
    last_wqe_told: bool,
    /// Milliseconds between looks for receive requests, in ERROR; 0 when some were found.
    pub(crate) watch_ms: u32,
    /// The queue pair is being destroyed.
    pub(crate) dead: bool,
    ord: u32,
    ird: u32,
}

impl_has_work! {
    impl HasWork<Qp, 0> for Qp { self.work }
    impl HasWork<Qp, 2> for Qp { self.hold }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Qp, 1> for Qp { self.watch }
}
impl_has_queue! {
    impl HasQueue for Qp { self.queue }
}

impl WorkItem<0> for Qp {
    type Pointer = Arc<Self>;

    /// A transmit run that was not for its caller's context to do.
    fn run(this: Arc<Self>) {
        this.transmit();
    }
}

impl WorkItem<1> for Qp {
    type Pointer = Arc<Self>;

    /// Looks for receive requests that came after the queue pair went to ERROR: see
    /// [`Qp::watch_receives`].
    fn run(this: Arc<Self>) {
        this.look_for_receives();
    }
}

impl WorkItem<2> for Qp {
    type Pointer = Arc<Self>;

    /// Makes room for an FPDU: see [`Qp::hold`].
    fn run(this: Arc<Self>) {
        this.hold();
    }
}

impl Qp {
    /// Makes a queue pair. May sleep.
    pub(crate) fn new(
        pd: &Pd<Riw>,
        attr: &mut QpInitAttr<'_, Riw>,
        udata: Option<Udata<'_, Riw>>,
    ) -> Result<Arc<Self>> {
        let udata = udata.ok_or(EOPNOTSUPP)?;
        let dev = pd.device();
        let receives = attr.srq();

        let () = udata.request()?;
        if !attr.is_connected() || attr.create_flags() != 0 {
            return Err(EOPNOTSUPP);
        }
        if receives.is_some() {
            // What is asked of a queue of its own is ignored.
            attr.cap().max_recv_wr = 0;
            attr.cap().max_recv_sge = 0;
        }
        check_cap(attr.cap())?;
        let (Some(send_cq), Some(recv_cq)) = (attr.send_cq(), attr.recv_cq()) else {
            return Err(EINVAL);
        };

        let owner = Owner::current()?;
        let memcg = MemCgroup::current();
        let quota = dev.limits.qp.take()?;
        let number = dev.qps.free_number()?;
        // libsiw maps both rings, so that they must not be empty.
        let mut sq_ring = Ring::new(attr.cap().max_send_wr.max(1), 0)?;
        let context = udata.ucontext();
        let sq_key = sq_ring.offer(context)?;
        let num_sqe = sq_ring.len();

        let (receives, num_rqe, rq_key) = match receives {
            Some(srq) => (Receives::Shared(srq), 0, 0),
            None => {
                let mut ring = Ring::new(attr.cap().max_recv_wr.max(1), 0)?;
                let (len, key) = (ring.len(), ring.offer(context)?);
                let own = RecvQueue::new(ring, attr.cap().max_recv_sge, 0, None);
                (Receives::Own(Arc::pin_init(own, GFP_KERNEL)?), len, key)
            }
        };

        let cap = attr.cap();
        cap.max_send_wr = num_sqe;
        cap.max_recv_wr = num_rqe;
        cap.max_inline_data = limits::MAX_INLINE;
        let cap = *cap;

        let response = abi::QpResponse {
            qp_id: number,
            num_sqe,
            num_rqe,
            pad: 0,
            sq_key,
            rq_key,
        };
        let sq = SendQueue::new(sq_ring, send_cq, number, attr.signal_all())?;
        let this = Arc::pin_init(
            try_pin_init!(Self {
                number: number,
                owner,
                memcg: memcg.clone(),
                pd: pd.id,
                mrs: dev.mrs().clone(),
                recv_cq,
                receives,
                cap,
                queue: dev.queue.clone(),
                _quota: quota,
                handle <- new_spinlock_irq!(None, "riw::Qp::handle"),
                sq <- sq,
                status <- new_bh_spinlock!(Status {
                    state: State::Idle,
                    unconnected: QpState::Init,
                    access: 0,
                    endpoint: None,
                    terminate: None,
                    silent: false,
                    last_wqe_told: false,
                    watch_ms: 0,
                    dead: false,
                    ord: 0,
                    ird: 0,
                }, "riw::Qp::status"),
                live: Atomic::new(false),
                asked: Atomic::new(false),
                reads <- new_bh_spinlock!(Reads::none(), "riw::Qp::reads"),
                tx <- new_mutex!(Tx::new(memcg.clone()), "riw::Qp::tx"),
                rx <- new_bh_spinlock!(Rx::new(), "riw::Qp::rx"),
                runner: Runner::new(),
                work <- new_work!("riw::Qp::work"),
                watch <- new_delayed_work!("riw::Qp::watch"),
                hold <- new_work!("riw::Qp::hold"),
            }? kernel::error::Error),
            GFP_KERNEL,
        )?;

        dev.qps.insert(number, this.clone())?;
        udata
            .respond(&response)
            .inspect_err(|_| dev.qps.remove(number))?;
        Ok(this)
    }

    /// The verbs' object is complete.
    pub(crate) fn publish(&self, handle: &QpObject) {
        *self.handle.lock() = Some(handle.into());
    }

    /// The verbs' object, unless it is being destroyed. Any context.
    pub(crate) fn handle(&self) -> Option<ARef<QpObject>> {
        self.handle.lock().clone()
    }

    /// Finds a queue pair of the calling process by its number. May sleep.
    pub(crate) fn lookup(dev: &Device<Riw>, number: u32) -> Option<Arc<Self>> {
        dev.qps.get(number)
    }

    /// Changes the state and does what goes with it. Process context or softirq; the caller holds
    /// none of the queue pair's locks but `tx`. `error` is what the peer is told if that is what
    /// the event leads to. Returns whether the stream was going on, this side's half of it not
    /// closed, or `None` if the event meant nothing in the state there was.
    pub(crate) fn event(self: &Arc<Self>, event: Event, error: Option<Terminate>) -> Option<bool> {
        let (open, ending, draining) = {
            let mut status = self.status.lock();
            let was = status.state;
            let transition = next(was, event)?;
            let open = matches!(was, State::Rts | State::Draining);

            self.enter(&mut status, transition.state);
            if transition.send_terminate && status.terminate.is_none() {
                status.terminate = error;
            }
            let ends = was == State::Rts && transition.state != State::Rts;
            let draining = ends && transition.state == State::Draining;
            if draining {
                self.reads.lock().close();
            }
            (
                open,
                status.endpoint.clone().filter(|_| ends),
                draining.then_some(event),
            )
        };

        match draining {
            // Nothing was outstanding.
            Some(Event::PeerClosed) => self.sq.end_now(),
            Some(_) => self.sq.end(),
            None => {}
        }
        if let Some(endpoint) = ending {
            endpoint.ending();
        }
        // The runner does the rest, as the state tells it.
        self.kick();
        Some(open)
    }

    /// As [`Self::event`], for what the consumer has not asked for: it is told, unless the stream had
    /// ended before, or this side of it. What comes then may as well come when nobody listens.
    fn unasked(self: &Arc<Self>, event: Event, error: Option<Terminate>, news: rdma::event::Event) {
        if self.event(event, error) == Some(true) {
            self.tell(news);
        }
    }

    /// Notes a new state.
    fn enter(&self, status: &mut Status, state: State) {
        status.state = state;
        self.live
            .store(is_live(state) && !status.dead, ordering::Relaxed);
    }

    /// Ends the stream for an error of the peer, or one on this side that the peer must know of.
    /// Process context or softirq; the caller holds none of the queue pair's locks but `tx`.
    pub(crate) fn fail(self: &Arc<Self>, error: Error, quote: Quote) {
        let terminate = Some(Terminate::new(error, quote));

        self.unasked(Event::Failed, terminate, fault(error));
    }

    /// The peer has ended the stream with a Terminate. Process context or softirq; the caller holds
    /// none of the queue pair's locks.
    pub(crate) fn terminated(self: &Arc<Self>) {
        let news = rdma::event::Event::QpFatal;

        self.unasked(Event::TerminateReceived, None, news);
    }

    /// Reports an asynchronous event. Any context, under no lock that a consumer could want.
    pub(crate) fn tell(&self, event: rdma::event::Event) {
        if let Some(handle) = self.handle() {
            handle.event(event);
        }
    }

    /// There is something to transmit, or the state has changed. Any context.
    pub(crate) fn kick(self: &Arc<Self>) {
        if self.runner.want() {
            self.schedule();
        }
    }

    /// Has a worker transmit; the caller has the right to.
    pub(crate) fn schedule(self: &Arc<Self>) {
        self.queue.kick::<_, 0>(self);
    }

    /// Has a worker give the FPDU at hand a buffer. Any context.
    pub(crate) fn schedule_hold(self: &Arc<Self>) {
        self.queue.kick::<_, 2>(self);
    }

    /// Looks for receive requests again in a moment. In ERROR each must be flushed, but a process
    /// rings no doorbell for them; it may wait for just that flush. Any context.
    pub(crate) fn watch_receives(self: &Arc<Self>, delay: kernel::time::Jiffies) {
        mod_delayed_work::<Self, 1>(self, delay);
    }

    /// Whether the event for the end of a shared receive queue's use is due; only once.
    pub(crate) fn take_last_wqe(&self) -> bool {
        let shared = matches!(self.receives, Receives::Shared(_));
        let mut status = self.status.lock();

        shared && !core::mem::replace(&mut status.last_wqe_told, true)
    }

    // The connection manager's side.

    /// Binds the queue pair to an endpoint. `EINVAL` if it cannot be connected. Process context or
    /// softirq.
    pub(crate) fn attach(self: &Arc<Self>, endpoint: Arc<Endpoint>) -> Result {
        let mut status = self.status.lock();

        if status.dead || status.state != State::Idle || status.endpoint.is_some() {
            return Err(EINVAL);
        }
        status.endpoint = Some(endpoint);
        Ok(())
    }

    /// MPA's startup has succeeded: the stream begins. Process context, may sleep.
    pub(crate) fn start(self: &Arc<Self>, parameters: &Parameters, role: Role) -> Result {
        let reads = Reads::new(parameters.ord, parameters.ird)?;
        let endpoint = self.status.lock().endpoint.clone().ok_or(ENOTCONN)?;
        let mss = endpoint.mss()?;
        let silent = role == Role::Responder;

        self.tx.lock().start(parameters, role, mss);
        self.replace_reads(reads);
        self.rx.lock().start(parameters);
        {
            let mut status = self.status.lock();
            status.ord = parameters.ord;
            status.ird = parameters.ird;
            status.silent = silent;
        }
        self.event(Event::Established, None).ok_or(ENOTCONN)?;
        Ok(())
    }

    /// Forgets the reads under way, and goes on with `reads`. May sleep.
    fn replace_reads(&self, reads: Reads) {
        let old = {
            let mut current = self.reads.lock();

            self.asked.store(false, ordering::Relaxed);
            core::mem::replace(&mut *current, reads)
        };
        // Not under the lock: this frees memory.
        drop(old);
    }

    /// The endpoint that the queue pair is bound to. Process context or softirq.
    pub(crate) fn endpoint(&self) -> Option<Arc<Endpoint>> {
        self.status.lock().endpoint.clone()
    }

    /// There is room in the socket's send buffer again. Any context.
    pub(crate) fn write_space(self: &Arc<Self>) {
        self.kick();
    }

    /// The connection has ended, or the peer's half of it. Process context or softirq.
    pub(crate) fn llp_closed(self: &Arc<Self>, how: Closed) {
        let fatal = rdma::event::Event::QpFatal;

        match how {
            Closed::Graceful => {
                let quiet = self.rx.lock().at_boundary()
                    && self.reads.lock().outbound.is_empty()
                    && self.sq.is_idle();
                if quiet {
                    self.event(Event::PeerClosed, None);
                } else {
                    let error = Terminate::new(iwarp::Mpa::Closed.into(), Quote::NONE);

                    self.unasked(Event::PeerClosedEarly, Some(error), fatal);
                }
            }
            Closed::Reset | Closed::Timeout => self.unasked(Event::Lost, None, fatal),
        }
    }

    /// The socket is gone. Process context.
    pub(crate) fn detach(self: &Arc<Self>) {
        let endpoint = self.status.lock().endpoint.take();

        // Also if it was closed as it should be: the verbs know no way back from a connection but
        // through ERROR.
        self.event(Event::Lost, None);
        drop(endpoint);
    }

    // The verbs' side.

    /// Transmits what is in the send queue, in the context of the process that asks for it unless
    /// somebody transmits already. `ENOTCONN` if there is no connection, and none has been: what is
    /// in the queue is dropped, for the process takes it as not posted. Process context, may sleep.
    pub(crate) fn ring_doorbell(self: &Arc<Self>) -> Result {
        if !self.live.load(ordering::Relaxed) && self.discard_unconnected() {
            return Err(ENOTCONN);
        }
        if self.runner.want() {
            self.transmit();
        }
        Ok(())
    }

    /// Drops what is in the send queue if there is no connection, and none has been. Returns whether
    /// it is so. Process context.
    fn discard_unconnected(&self) -> bool {
        for round in self.sq.chunks() {
            // Under the lock, so that the state stays meanwhile.
            let status = self.status.lock();

            if status.state != State::Idle {
                // What has been dropped was not posted, as far as the process knows.
                return round != 0;
            }
            if !self.sq.flush_some(true).1 {
                break;
            }
        }
        true
    }

    /// Changes attributes. May sleep.
    pub(crate) fn modify(self: &Arc<Self>, attr: &QpAttr<'_>) -> Result {
        if let Some(access) = attr.access() {
            self.status.lock().access = access;
        }
        let Some(state) = attr.state()? else {
            return Ok(());
        };

        match state {
            QpState::Init | QpState::ReadyToReceive => {
                let mut status = self.status.lock();

                match status.state {
                    State::Idle => status.unconnected = state,
                    State::Rts => {}
                    _ => return Err(EINVAL),
                }
                Ok(())
            }
            // Only the connection manager's work leads there.
            QpState::ReadyToSend => match self.status.lock().state {
                State::Rts => Ok(()),
                _ => Err(EINVAL),
            },
            QpState::Draining => match self.event(Event::Close, None) {
                None if self.status.lock().state == State::Idle => Err(EINVAL),
                // Who disconnects second finds it done.
                _ => Ok(()),
            },
            QpState::Error => self.event(Event::Abort, None).map(|_| ()).ok_or(EINVAL),
            QpState::Reset => self.reset(),
            QpState::SendError => Err(EINVAL),
        }
    }

    /// Goes back to the beginning, with empty queues.
    fn reset(self: &Arc<Self>) -> Result {
        // No pass of the runner goes on meanwhile, and the next one sees the new state.
        let mut tx = self.tx.lock();
        {
            let mut status = self.status.lock();
            let transition = next(status.state, Event::Reset).ok_or(EINVAL)?;

            if status.endpoint.is_some() {
                return Err(EINVAL);
            }
            self.enter(&mut status, transition.state);
            status.unconnected = QpState::Init;
            status.terminate = None;
            status.last_wqe_told = false;
            status.watch_ms = 0;
        }
        tx.stop();
        self.rx.lock().stop();
        self.replace_reads(Reads::none());
        self.discard_requests();
        Ok(())
    }

    /// Reports the attributes.
    pub(crate) fn query(&self, attr: &mut QpAttr<'_>) {
        let status = self.status.lock();

        attr.set_state(match status.state {
            State::Idle => status.unconnected,
            State::Rts => QpState::ReadyToSend,
            State::Draining | State::Closing => QpState::Draining,
            State::Terminate | State::Error => QpState::Error,
        });
        attr.set_access(status.access);
        attr.set_cap(self.cap);
        attr.set_port();
        attr.set_read_depths(
            status.ord.try_into().unwrap_or(u8::MAX),
            status.ird.try_into().unwrap_or(u8::MAX),
        );
    }

    /// Ends the queue pair: afterwards it gives no completion and no event, and touches no memory
    /// of its process. Process context, may sleep.
    ///
    /// The order: completions and events end; the endpoint is taken
    /// down, so that no callback of the socket comes; then the locks of both directions are taken
    /// once, after which whoever still holds a reference finds `dead`.
    /// Its number stays taken until iw_cm has given its references back, but leads nowhere.
    pub(crate) fn destroy(self: &Arc<Self>) {
        self.sq.kill();
        let endpoint = {
            let mut status = self.status.lock();

            status.dead = true;
            self.live.store(false, ordering::Relaxed);
            status.endpoint.clone()
        };
        // Dropped when the lock is not held any more: it may be the last reference.
        let handle = self.handle.lock().take();
        drop(handle);
        self.push_out();
        self.event(Event::Abort, None);
        if let Some(endpoint) = endpoint {
            endpoint.teardown();
        }
        self.rx.lock().stop();
        self.tx.lock().stop();
        cancel_delayed_work::<Self, 1>(self);
    }
}

/// Whether data is taken in a state.
fn is_live(state: State) -> bool {
    matches!(state, State::Rts | State::Draining | State::Closing)
}

/// Checks the sizes that are asked for.
fn check_cap(cap: &QpCap) -> Result {
    // CAST: A small constant.
    let max_sge = abi::MAX_SGE as u32;

    if cap.max_send_wr > limits::MAX_QP_WR
        || cap.max_send_sge > max_sge
        || cap.max_inline_data > limits::MAX_INLINE
        || cap.max_recv_wr > limits::MAX_QP_WR
        || cap.max_recv_sge > max_sge
    {
        return Err(EINVAL);
    }
    Ok(())
}

/// The event that tells of an error in what the peer has sent.
fn fault(error: Error) -> rdma::event::Event {
    use iwarp::{DdpTagged, Rdmap};

    match error {
        Error::DdpTagged(DdpTagged::InvalidVersion) | Error::Rdmap(Rdmap::InvalidVersion) => {
            rdma::event::Event::QpRequestError
        }
        Error::DdpTagged(_)
        | Error::Rdmap(
            Rdmap::InvalidStag
            | Rdmap::Bounds
            | Rdmap::AccessRights
            | Rdmap::StagNotAssociated
            | Rdmap::ToWrap
            | Rdmap::CannotInvalidate,
        ) => rdma::event::Event::QpAccessError,
        Error::DdpUntagged(_) | Error::Rdmap(Rdmap::UnexpectedOpcode) => {
            rdma::event::Event::QpRequestError
        }
        _ => rdma::event::Event::QpFatal,
    }
}
