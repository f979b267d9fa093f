// SPDX-License-Identifier: GPL-2.0

//! Creating a queue pair.

use super::{
    owner::Owner,
    state::{CurrentState, Status},
    sweep::{FreePlace, SweepPlace},
    Qp,
};
use crate::{
    abi::{self, siw, Provider, WrSizes},
    driver::Riw,
    limits::{self, ObjectCharge},
    mr::{Granting, Regions},
    queue::{
        counted::CountedRing,
        posted::PostedWrs,
        qp_receive::{QpRecvQueue, RecvSource},
        receive::{counted_ring, RecvQueue, RecvWrs, SrqObject},
        ring::Ring,
        send::SendQueue,
        wr::SendWr,
    },
    stream::Stream,
};
use kernel::{
    new_delayed_work, new_spinlock_irq, new_work,
    prelude::*,
    sync::{aref::ARef, atomic::Atomic, Arc},
    time::hrtimer::HrTimer,
};
use kernel_ext::{memcg::MemCgroup, runner::Runner, sync::new_bh_spinlock};
use rdma::{
    pd::Pd,
    qp::{QpCap, QpInitAttr},
    ucontext::Ucontext,
    ContextUdata, Device,
};
use riw_abi::{
    udata::{CreateQpResponse, RingMap},
    wr::Sqe,
};

/// A creation flag of riw's, for kernel users: the queue pair takes Immediate Data. No kernel user
/// of today takes any, and they look neither at the opcode nor at the flags of a receive: to them,
/// Immediate Data would be a message in their buffer.
const TAKES_IMMEDIATE: u32 = rdma::qp::FIRST_DRIVER_FLAG;

/// The queues of a new queue pair.
struct Queues {
    sends: SendWrs,
    receives: RecvSource,
    /// The place of the queue pair in the sweep of the device.
    sweep: SweepPlace,
    /// The sizes that the consumer gets.
    cap: QpCap,
    response: Response,
}

/// The response to a process, by which it maps the rings.
enum Response {
    /// A kernel user gets none.
    None,
    Siw(siw::QpResponse),
    Own(CreateQpResponse),
}

impl Response {
    /// Sends the response. Process context; may sleep. Fails as [`rdma::Udata::respond`] does.
    fn send(&self, udata: &ContextUdata<'_, Riw>) -> Result {
        match self {
            Self::None => Ok(()),
            Self::Siw(response) => udata.respond(response),
            Self::Own(response) => udata.respond(response),
        }
    }
}

/// Send WRs as they are posted.
type SendWrs = PostedWrs<SendWr, { siw::SQE_WORDS }>;

impl Queues {
    /// Creates the queues of queue pair `number`: of a process, or without `udata` of a kernel
    /// user. Process context; may sleep.
    fn new(
        provider: Provider,
        number: u32,
        cap: &QpCap,
        srq: Option<ARef<SrqObject>>,
        udata: Option<&ContextUdata<'_, Riw>>,
    ) -> Result<Self> {
        match (udata, provider) {
            (None, _) => Self::of_kernel(cap, srq),
            (Some(udata), Provider::Siw) => Self::of_siw(number, cap, srq, udata.ucontext()),
            (Some(udata), Provider::Own) => Self::of_own(cap, srq, udata),
        }
    }

    /// Creates the queues of a kernel user. Process context; may sleep.
    fn of_kernel(cap: &QpCap, srq: Option<ARef<SrqObject>>) -> Result<Self> {
        let sends = SendWrs::list(cap.max_send_wr)?;
        let receives = match srq {
            Some(srq) => RecvSource::Shared(srq),
            None => own(RecvWrs::list(cap.max_recv_wr)?, cap)?,
        };

        Ok(Self {
            sends,
            receives,
            sweep: SweepPlace::Away,
            // Not the free entries: consumers rely on the size that they have requested.
            cap: QpCap {
                max_inline_data: WrSizes::SIW.inline,
                ..*cap
            },
            response: Response::None,
        })
    }

    /// Creates the queues of a process with siw's ABI, and offers them for mmap(). Process context;
    /// may sleep.
    fn of_siw(
        number: u32,
        cap: &QpCap,
        srq: Option<ARef<SrqObject>>,
        context: &Ucontext<Riw>,
    ) -> Result<Self> {
        // libsiw maps the rings, so they must not be empty.
        // One place more, for a WR that has been taken (`PostedWrs::release_late`): the size is
        // rounded up to a power of two, so a ring may be twice as large as it was requested.
        let mut ring = Ring::new(cap.max_send_wr.max(1).saturating_add(1), 0)?;
        let (num_sqe, sq_key) = (ring.len(), ring.offer(context)?);
        let (receives, num_rqe, rq_key) = match srq {
            Some(srq) => (RecvSource::Shared(srq), 0, 0),
            None => {
                let mut ring = Ring::new(cap.max_recv_wr.max(1), 0)?;
                let (num_rqe, key) = (ring.len(), ring.offer(context)?);

                (own(RecvWrs::Ring(ring), cap)?, num_rqe, key)
            }
        };

        Ok(Self {
            sends: SendWrs::Ring(ring),
            sweep: match &receives {
                RecvSource::Own(_) => SweepPlace::Free(FreePlace::new()?),
                RecvSource::Shared(_) => SweepPlace::Away,
            },
            receives,
            cap: QpCap {
                // Without that place, a power of two if it was one.
                max_send_wr: (num_sqe / 2).max(cap.max_send_wr),
                max_recv_wr: num_rqe,
                max_inline_data: WrSizes::SIW.inline,
                ..*cap
            },
            response: Response::Siw(siw::QpResponse {
                qp_id: number,
                num_sqe,
                num_rqe,
                pad: 0,
                sq_key,
                rq_key,
            }),
        })
    }

    /// Creates the queues of a process with riw's own ABI, and offers them for mmap(). Process
    /// context; may sleep.
    fn of_own(
        cap: &QpCap,
        srq: Option<ARef<SrqObject>>,
        udata: &ContextUdata<'_, Riw>,
    ) -> Result<Self> {
        let mut cap = *cap;
        // CAST: 32-bit numbers fit.
        let stride = Sqe::stride(cap.max_send_sge as usize, cap.max_inline_data as usize);
        let mut ring = CountedRing::new(cap.max_send_wr.max(1), stride)?;
        let sq = ring.offer(udata.ucontext())?;
        let (receives, rq) = match srq {
            Some(srq) => (RecvSource::Shared(srq), RingMap::default()),
            None => {
                let (wrs, map) =
                    counted_ring(cap.max_recv_wr.max(1), &mut cap.max_recv_sge, udata)?;

                (own(wrs, &cap)?, map)
            }
        };

        // CAST: Small numbers.
        cap.max_send_sge = Sqe::max_sge(stride) as u32;
        cap.max_inline_data = Sqe::max_inline(stride) as u32;
        (cap.max_send_wr, cap.max_recv_wr) = (sq.entries, rq.entries);
        Ok(Self {
            sends: SendWrs::Counted(ring),
            receives,
            sweep: SweepPlace::Away,
            cap,
            response: Response::Own(CreateQpResponse {
                comp_mask: 0,
                sq,
                rq,
            }),
        })
    }
}

/// Creates a receive queue of the queue pair's own. Process context; may sleep.
fn own(wrs: RecvWrs, cap: &QpCap) -> Result<RecvSource> {
    let queue = RecvQueue::new(wrs, cap.max_recv_sge, 0, None);

    Ok(RecvSource::Own(Arc::pin_init(queue, GFP_KERNEL_ACCOUNT)?))
}

/// Checks the requested attributes of a queue pair, and clears the sizes that a shared receive
/// queue makes meaningless. Fails with `EOPNOTSUPP` and `EINVAL` as [`Qp::new`] does.
fn check_attr(
    dev: &Device<Riw>,
    attr: &mut QpInitAttr<'_, Riw>,
    udata: Option<&ContextUdata<'_, Riw>>,
) -> Result {
    let (sizes, flags) = match udata {
        None => (WrSizes::SIW, TAKES_IMMEDIATE),
        Some(udata) => {
            abi::check_request(dev.provider, udata)?;
            (WrSizes::of(dev.provider), 0)
        }
    };
    if !attr.is_connected() || attr.create_flags() & !flags != 0 {
        return Err(EOPNOTSUPP);
    }
    if attr.srq().is_some() {
        attr.cap().max_recv_wr = 0;
        attr.cap().max_recv_sge = 0;
    }
    check_cap(attr.cap(), sizes)
}

impl Qp {
    /// Creates a queue pair. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` for a type other than RC, or other creation flags; `EINVAL` for
    /// sizes that riw does not support or missing CQs; `ENOMEM` above the limit of queue pairs or
    /// without memory; `ENOSPC` or `EBUSY` if no free number is found; and with the errors of
    /// [`Ring::offer`], [`rdma::Udata::request`] and [`rdma::Udata::respond`].
    pub(crate) fn new(
        pd: &Pd<Riw>,
        attr: &mut QpInitAttr<'_, Riw>,
        udata: Option<ContextUdata<'_, Riw>>,
    ) -> Result<Arc<Self>> {
        let dev = pd.device();
        let srq = attr.srq();

        check_attr(dev, attr, udata.as_ref())?;
        let (Some(send_cq), Some(recv_cq)) = (attr.send_cq(), attr.recv_cq()) else {
            return Err(EINVAL);
        };

        let charge = dev.limits.qp.charge()?;
        let number = attr.number();
        let queues = Queues::new(dev.provider, number, attr.cap(), srq, udata.as_ref())?;
        let (owner, memcg) = match &udata {
            Some(_) => (Owner::current()?, MemCgroup::current()),
            // The calling process, if any, is not the one that uses it.
            None => (Owner::Kernel, MemCgroup::none()),
        };
        let (cap, response, status) = (queues.cap, queues.response, Status::new(queues.sweep));

        *attr.cap() = cap;
        let regions = Regions {
            mrs: dev.mrs().clone(),
            pd: pd.id,
            granting: Granting::new(attr.take_registrar())?,
        };
        let signal_all = attr.signal_all();
        let sq = SendQueue::new(queues.sends, cap.max_send_wr, send_cq, number, signal_all)?;
        let takes_immediate = udata.is_some() || attr.create_flags() & TAKES_IMMEDIATE != 0;
        let rq = QpRecvQueue::new(queues.receives, recv_cq, takes_immediate, number)?;
        let stream = Stream::new(regions, memcg, dev.counters().clone(), sq, rq);
        let this = Arc::pin_init(
            Self::with_stream(dev, number, owner, charge, cap, status, stream),
            GFP_KERNEL_ACCOUNT,
        )?;

        if let Some(udata) = &udata {
            response.send(udata)?;
        }
        Ok(this)
    }

    fn with_stream(
        dev: &Device<Riw>,
        number: u32,
        owner: Owner,
        charge: ObjectCharge,
        cap: QpCap,
        status: Status,
        stream: impl PinInit<Stream>,
    ) -> impl PinInit<Self> {
        let below_reclaim = owner.is_kernel();
        let queues = dev.queues.clone();
        let sweep = dev.flush_sweep.clone();

        pin_init!(Self {
            number,
            owner,
            cap,
            queues,
            sweep,
            _charge: charge,
            handle <- new_spinlock_irq!(None, "riw::Qp::handle"),
            status <- new_bh_spinlock!(status, "riw::Qp::status"),
            current: CurrentState::new(),
            below_reclaim: Atomic::new(below_reclaim),
            stream <- stream,
            runner: Runner::new(),
            transmit_work <- new_delayed_work!("riw::Qp::transmit_work"),
            push_work <- new_work!("riw::Qp::push_work"),
            push_timer <- HrTimer::new(),
            stay_work <- new_work!("riw::Qp::stay_work"),
            receive_work <- new_work!("riw::Qp::receive_work"),
            receive_timer <- new_delayed_work!("riw::Qp::receive_timer"),
            hold_work <- new_delayed_work!("riw::Qp::hold_work"),
        })
    }
}

/// Checks the sizes of the queues and of their WRs against the limits. Fails with `EINVAL`.
fn check_cap(cap: &QpCap, sizes: WrSizes) -> Result {
    if cap.max_send_wr > limits::MAX_QP_WR
        || cap.max_send_sge > sizes.sge
        || cap.max_inline_data > sizes.inline
        || cap.max_recv_wr > limits::MAX_QP_WR
        || cap.max_recv_sge > sizes.sge
    {
        return Err(EINVAL);
    }
    Ok(())
}
