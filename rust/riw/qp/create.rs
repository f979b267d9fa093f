// SPDX-License-Identifier: GPL-2.0

//! Creating a queue pair.

use super::{owner::Owner, post::Posting, runner::Runner, state::Status, Qp};
use crate::{
    abi,
    limits::{self, ObjectCharge},
    mr::Regions,
    queue::{
        posted::PostedWrs,
        qp_receive::{QpRecvQueue, RecvSource},
        receive::{RecvQueue, RecvWrs, SrqObject},
        ring::Ring,
        send::SendQueue,
        wr::SendWr,
    },
    stream::Stream,
    Riw,
};
use kernel::{
    new_delayed_work, new_spinlock_irq, new_work,
    prelude::*,
    sync::{aref::ARef, atomic::Atomic, Arc},
};
use kernel_ext::{memcg::MemCgroup, sync::new_bh_spinlock, workqueue::Queue};
use rdma::{
    pd::Pd,
    qp::{QpCap, QpInitAttr},
    ucontext::Ucontext,
    Udata,
};

/// The queues of a new queue pair, and what a process needs to map their rings.
struct Queues {
    sends: SendWrs,
    receives: RecvSource,
    /// Their sizes in WRs. 0 for a shared receive queue.
    sizes: (u32, u32),
    /// The mmap offsets. 0 for a shared receive queue, and for a kernel user.
    keys: (u64, u64),
}

/// Send WRs as they are posted.
type SendWrs = PostedWrs<SendWr, { abi::SQE_WORDS }>;

impl Queues {
    /// Creates the queues of a process, or those of a kernel user, who has no `udata`. Process context;
    /// may sleep.
    fn new(
        cap: &QpCap,
        srq: Option<ARef<SrqObject>>,
        udata: Option<&Udata<'_, Riw>>,
    ) -> Result<Self> {
        match udata {
            Some(udata) => Self::of_process(cap, srq, udata.ucontext()),
            None => Self::of_kernel(cap, srq),
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
            // Not the places that are left: consumers reckon with what they asked for.
            sizes: (cap.max_send_wr, cap.max_recv_wr),
            sends,
            receives,
            keys: (0, 0),
        })
    }

    /// Creates the queues of a process, and offers them for mmap(). Process context; may sleep.
    fn of_process(
        cap: &QpCap,
        srq: Option<ARef<SrqObject>>,
        context: &Ucontext<Riw>,
    ) -> Result<Self> {
        // libsiw maps the rings, so they must not be empty.
        let mut ring = Ring::new(cap.max_send_wr.max(1), 0)?;
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
            receives,
            sizes: (num_sqe, num_rqe),
            keys: (sq_key, rq_key),
        })
    }

    /// Returns the response to the process.
    fn response(&self, number: u32) -> abi::QpResponse {
        abi::QpResponse {
            qp_id: number,
            num_sqe: self.sizes.0,
            num_rqe: self.sizes.1,
            pad: 0,
            sq_key: self.keys.0,
            rq_key: self.keys.1,
        }
    }
}

/// Creates a receive queue of the queue pair's own. Process context; may sleep.
fn own(wrs: RecvWrs, cap: &QpCap) -> Result<RecvSource> {
    let queue = RecvQueue::new(wrs, cap.max_recv_sge, 0, None);

    Ok(RecvSource::Own(Arc::pin_init(queue, GFP_KERNEL)?))
}

impl Qp {
    /// Creates a queue pair. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` for a type other than RC, or creation flags; `EINVAL` for sizes that riw
    /// does not support or missing CQs; `ENOMEM` above the limit of queue pairs or
    /// without memory; `ENOSPC` or `EBUSY` if no free number is found; and with the errors of
    /// [`Ring::offer`], [`rdma::Exchange::request`] and [`rdma::Exchange::respond`].
    pub(crate) fn new(
        pd: &Pd<Riw>,
        attr: &mut QpInitAttr<'_, Riw>,
        udata: Option<Udata<'_, Riw>>,
    ) -> Result<Arc<Self>> {
        let dev = pd.device();
        let srq = attr.srq();

        if let Some(udata) = &udata {
            let () = udata.request()?;
        }
        if !attr.is_connected() || attr.create_flags() != 0 {
            return Err(EOPNOTSUPP);
        }
        if srq.is_some() {
            // Ignore sizes for a receive queue of its own.
            attr.cap().max_recv_wr = 0;
            attr.cap().max_recv_sge = 0;
        }
        check_cap(attr.cap())?;
        let (Some(send_cq), Some(recv_cq)) = (attr.send_cq(), attr.recv_cq()) else {
            return Err(EINVAL);
        };

        let charge = dev.limits.qp.charge()?;
        let number = dev.qps.free_number()?;
        let queues = Queues::new(attr.cap(), srq, udata.as_ref())?;
        let (owner, memcg) = match &udata {
            Some(_) => (Owner::current()?, MemCgroup::current()),
            // The calling process, if any, is not the one that uses it.
            None => (Owner::Kernel, MemCgroup::none()),
        };
        let response = queues.response(number);

        let cap = grant(attr.cap(), queues.sizes);
        let regions = Regions {
            mrs: dev.mrs().clone(),
            pd: pd.id,
            qp: number,
        };
        let sq = SendQueue::new(queues.sends, send_cq, number, attr.signal_all())?;
        let rq = QpRecvQueue::new(queues.receives, recv_cq, number);
        let stream = Stream::new(regions, memcg, dev.counters().clone(), sq, rq);
        let queue = dev.queue.clone();
        let this = Arc::pin_init(
            Self::with_stream(queue, number, owner, charge, cap, stream),
            GFP_KERNEL,
        )?;

        dev.qps.insert(number, this.clone())?;
        if let Some(udata) = &udata {
            udata
                .respond(&response)
                .inspect_err(|_| dev.qps.remove(number))?;
        }
        Ok(this)
    }

    fn with_stream(
        queue: Arc<Queue>,
        number: u32,
        owner: Owner,
        charge: ObjectCharge,
        cap: QpCap,
        stream: impl PinInit<Stream>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            number,
            owner,
            cap,
            queue,
            _charge: charge,
            handle <- new_spinlock_irq!(None, "riw::Qp::handle"),
            status <- new_bh_spinlock!(Status::new(), "riw::Qp::status"),
            stream_active: Atomic::new(false),
            // CAST: The value of an enum.
            posting: Atomic::new(Posting::Unconnected as u32),
            below_reclaim: Atomic::new(false),
            stream <- stream,
            runner: Runner::new(),
            transmit_work <- new_work!("riw::Qp::transmit_work"),
            flush_work <- new_delayed_work!("riw::Qp::flush_work"),
            hold_work <- new_work!("riw::Qp::hold_work"),
        })
    }
}

/// Sets the sizes that the consumer gets, and returns them.
fn grant(cap: &mut QpCap, sizes: (u32, u32)) -> QpCap {
    (cap.max_send_wr, cap.max_recv_wr) = sizes;
    cap.max_inline_data = limits::MAX_INLINE;
    *cap
}

/// Checks sizes against the limits. Fails with `EINVAL`.
fn check_cap(cap: &QpCap) -> Result {
    if cap.max_send_wr > limits::MAX_QP_WR
        || cap.max_send_sge > limits::MAX_SGE
        || cap.max_inline_data > limits::MAX_INLINE
        || cap.max_recv_wr > limits::MAX_QP_WR
        || cap.max_recv_sge > limits::MAX_SGE
    {
        return Err(EINVAL);
    }
    Ok(())
}
