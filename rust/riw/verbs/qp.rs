// SPDX-License-Identifier: GPL-2.0

//! The verbs of queue pairs.

use crate::{counters::Counters, driver::Riw, qp::Qp, queue::QpObject};
use kernel::{prelude::*, sync::Arc};
use rdma::{
    ops::QpVerbs,
    pd::Pd,
    qp::{QpAttr, QpInitAttr},
    restrack::Details,
    wr::{RecvWrs, SendWrs},
    ContextUdata,
};

#[vtable]
impl QpVerbs<Riw> for Arc<Qp> {
    fn create(
        pd: &Pd<Riw>,
        attr: &mut QpInitAttr<'_, Riw>,
        udata: Option<ContextUdata<'_, Riw>>,
    ) -> Result<impl PinInit<Self>> {
        Qp::new(pd, attr, udata)
    }

    fn publish(qp: &QpObject) {
        Qp::publish(qp, qp);
    }

    fn modify(qp: &QpObject, attr: &QpAttr<'_>) -> Result {
        Qp::modify(qp, attr)
    }

    fn query(qp: &QpObject, attr: &mut QpAttr<'_>) {
        Qp::query(qp, attr);
    }

    fn destroy(qp: &QpObject) {
        Qp::destroy(qp);
    }

    fn is_of_caller(qp: &QpObject) -> bool {
        qp.is_of_caller()
    }

    fn user_post_send(qp: &QpObject) -> Result {
        Qp::ring_doorbell(qp)
    }

    fn user_post_recv(qp: &QpObject) -> Result {
        Qp::ring_recv_doorbell(qp)
    }

    fn post_send(qp: &QpObject, wrs: &mut SendWrs<'_, Riw>) -> Result {
        Qp::post_send(qp, wrs)
    }

    fn post_recv(qp: &QpObject, wrs: &mut RecvWrs<'_>) -> Result {
        Qp::post_recv(qp, wrs)
    }

    fn bind_counter(qp: &QpObject, counter: &Arc<Counters>) {
        qp.set_counters(counter);
    }

    fn unbind_counter(qp: &QpObject) {
        qp.set_counters(qp.device().counters());
    }

    fn details(qp: &QpObject) -> impl Details {
        Qp::details(qp)
    }
}
