// SPDX-License-Identifier: GPL-2.0

//! The verbs of completion queues.

use crate::{
    driver::Riw,
    queue::completion::{Cq, CqObject},
};
use kernel::prelude::*;
use rdma::{cq::CqInitAttr, ops::CqVerbs, restrack::Details, wc::WcRoom, ContextUdata, Device};

#[vtable]
impl CqVerbs<Riw> for Cq {
    fn create(
        dev: &Device<Riw>,
        attr: &mut CqInitAttr,
        udata: Option<ContextUdata<'_, Riw>>,
    ) -> Result<impl PinInit<Self>> {
        Cq::new(dev, attr, udata)
    }

    fn resize(cq: &CqObject, len: u32, udata: &ContextUdata<'_, Riw>) -> Result<u32> {
        cq.resize(len, udata)
    }

    fn req_notify(cq: &CqObject, solicited_only: bool) -> bool {
        trace::cq_arm(cq, solicited_only);
        cq.arm(solicited_only)
    }

    fn poll(cq: &CqObject, to: &mut WcRoom<'_, Riw>) -> Result {
        cq.poll(to)
    }

    fn details(cq: &CqObject) -> impl Details {
        cq.fill_level()
    }
}
