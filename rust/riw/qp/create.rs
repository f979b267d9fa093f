// SPDX-License-Identifier: GPL-2.0

//! Creating a queue pair.

use super::{owner::Owner, runner::Runner, state::Status, Qp};
use crate::{
    abi,
    limits::{self, ObjectCharge},
    mr::Regions,
    queue::{
        qp_receive::{QpRecvQueue, RecvSource},
        receive::{RecvQueue, SrqObject},
        ring::Ring,
        send::SendQueue,
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

/// The source of the receive WRs, and what the process needs to map its ring.
struct RecvRing {
    source: RecvSource,
    /// Size in WRs; 0 for a shared queue.
    len: u32,
    /// The mmap offset; 0 for a shared queue.
    key: u64,
}

impl RecvRing {
    /// A queue pair with an SRQ has no receive queue of its own.
    fn shared(srq: ARef<SrqObject>) -> Self {
        Self {
            source: RecvSource::Shared(srq),
            len: 0,
            key: 0,
        }
    }

    fn own(cap: &QpCap, context: &Ucontext<Riw>) -> Result<Self> {
        // libsiw maps the ring, so it must not be empty.
        let mut ring = Ring::new(cap.max_recv_wr.max(1), 0)?;
        let (len, key) = (ring.len(), ring.offer(context)?);
        let queue = RecvQueue::new(ring, cap.max_recv_sge, 0, None);

        Ok(Self {
            source: RecvSource::Own(Arc::pin_init(queue, GFP_KERNEL)?),
            len,
            key,
        })
    }
}

impl Qp {
    /// Creates a queue pair. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` for a kernel user, a type other than RC, or creation flags; `EINVAL`
    /// for sizes that riw does not support or missing CQs; `ENOMEM` above the limit of queue pairs or
    /// without memory; `ENOSPC` or `EBUSY` if no free number is found; and with the errors of
    /// [`Ring::offer`], [`rdma::Exchange::request`] and [`rdma::Exchange::respond`].
    pub(crate) fn new(
        pd: &Pd<Riw>,
        attr: &mut QpInitAttr<'_, Riw>,
        udata: Option<Udata<'_, Riw>>,
    ) -> Result<Arc<Self>> {
        let udata = udata.ok_or(EOPNOTSUPP)?;
        let dev = pd.device();
        let srq = attr.srq();

        let () = udata.request()?;
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

        let owner = Owner::current()?;
        let charge = dev.limits.qp.charge()?;
        let number = dev.qps.free_number()?;
        let mut sq_ring = Ring::new(attr.cap().max_send_wr.max(1), 0)?;
        let sq_key = sq_ring.offer(udata.ucontext())?;
        let num_sqe = sq_ring.len();
        let recv = match srq {
            Some(srq) => RecvRing::shared(srq),
            None => RecvRing::own(attr.cap(), udata.ucontext())?,
        };
        let response = abi::QpResponse {
            qp_id: number,
            num_sqe,
            num_rqe: recv.len,
            pad: 0,
            sq_key,
            rq_key: recv.key,
        };

        let cap = grant(attr.cap(), num_sqe, recv.len);
        let regions = Regions {
            mrs: dev.mrs().clone(),
            pd: pd.id,
        };
        let sq = SendQueue::new(sq_ring, send_cq, number, attr.signal_all())?;
        let rq = QpRecvQueue::new(recv.source, recv_cq, number);
        let stream = Stream::new(
            regions,
            MemCgroup::current(),
            dev.counters().clone(),
            sq,
            rq,
        );
        let queue = dev.queue.clone();
        let this = Arc::pin_init(
            Self::with_stream(queue, number, owner, charge, cap, stream),
            GFP_KERNEL,
        )?;

        dev.qps.insert(number, this.clone())?;
        udata
            .respond(&response)
            .inspect_err(|_| dev.qps.remove(number))?;
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
            stream <- stream,
            runner: Runner::new(),
            transmit_work <- new_work!("riw::Qp::transmit_work"),
            flush_work <- new_delayed_work!("riw::Qp::flush_work"),
            hold_work <- new_work!("riw::Qp::hold_work"),
        })
    }
}

/// Sets the sizes that the consumer gets, and returns them.
fn grant(cap: &mut QpCap, send_wr: u32, recv_wr: u32) -> QpCap {
    cap.max_send_wr = send_wr;
    cap.max_recv_wr = recv_wr;
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
