// SPDX-License-Identifier: GPL-2.0

//! The verbs of memory regions and windows.

use crate::{
    driver::Riw,
    mr::{Mr, MrObject},
};
use kernel::prelude::*;
use rdma::{
    mr::{DmaBufRequest, MrChange, MrRequest},
    mw::MwKind,
    ops::MrVerbs,
    pd::Pd,
    restrack::Details,
    ContextUdata, Device,
};

#[vtable]
impl MrVerbs<Riw> for Mr {
    fn reg_user(
        pd: &Pd<Riw>,
        request: &MrRequest,
        udata: &ContextUdata<'_, Riw>,
    ) -> Result<impl PinInit<Self>> {
        Mr::new(pd, request, udata)
    }

    fn reg_dmabuf(pd: &Pd<Riw>, request: &DmaBufRequest) -> Result<impl PinInit<Self>> {
        Mr::of_dmabuf(pd, request)
    }

    fn rereg(old: &MrObject, pd: &Pd<Riw>, change: &MrChange) -> Result<impl PinInit<Self>> {
        old.replacement(pd, change)
    }

    fn retire(dev: &Device<Riw>, mr: &MrObject) -> Result {
        mr.retire(dev)
    }

    fn keep(mr: &MrObject) {
        mr.keep();
    }

    fn abandon(dev: &Device<Riw>, mr: &MrObject) {
        mr.abandon(dev);
    }

    fn alloc_window(pd: &Pd<Riw>, kind: MwKind) -> Result<impl PinInit<Self>> {
        Mr::window(pd, kind)
    }

    fn alloc(pd: &Pd<Riw>, max: u32) -> Result<impl PinInit<Self>> {
        Mr::for_kernel(pd, max)
    }

    fn details(mr: &MrObject) -> impl Details {
        Mr::details(mr)
    }
}
