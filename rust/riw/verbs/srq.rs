// SPDX-License-Identifier: GPL-2.0

//! The verbs of shared receive queues.

use crate::{
    driver::Riw,
    qp::receive_posted,
    queue::{
        receive::{RecvQueue, SrqObject},
        wr::RecvWr,
    },
};
use kernel::prelude::*;
use rdma::{ops::SrqVerbs, pd::Pd, restrack::Details, srq::SrqAttr, wr::RecvWrs, ContextUdata};

#[vtable]
impl SrqVerbs<Riw> for RecvQueue {
    fn create(
        pd: &Pd<Riw>,
        attr: &mut SrqAttr,
        udata: Option<ContextUdata<'_, Riw>>,
    ) -> Result<impl PinInit<Self>> {
        RecvQueue::shared(pd, attr, udata)
    }

    fn set_limit(srq: &SrqObject, limit: u32) -> Result {
        srq.set_limit(limit)
    }

    fn query(srq: &SrqObject) -> SrqAttr {
        srq.attr()
    }

    fn user_post_recv(srq: &SrqObject) -> Result {
        trace::srq_doorbell(srq);
        receive_posted(srq.device(), srq);
        Ok(())
    }

    fn post_recv(srq: &SrqObject, wrs: &mut RecvWrs<'_>) -> Result {
        let posted = srq.post(wrs, |wr| trace::srq_wr_post(srq, || RecvWr::traced(wr)));

        // WRs before the one that failed are posted.
        receive_posted(srq.device(), srq);
        posted
    }

    fn details(srq: &SrqObject) -> impl Details {
        srq.details()
    }
}
