// SPDX-License-Identifier: GPL-2.0

//! The verbs that ib_core calls. They pass each call to the object that implements it.

use crate::{
    abi,
    counters::Counters,
    device::RiwDevice,
    limits::{self, ObjectCharge},
    mr,
    qp::Qp,
    queue::{
        completion::Cq,
        details::{CqDetails, SrqDetails},
        receive::RecvQueue,
        QpObject,
    },
    Riw,
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::{aref::ARef, Arc},
};
use rdma::{
    attr::Attributes,
    cq::CqInitAttr,
    device::DeviceAttr,
    mr::MrRequest,
    page_list::PageList,
    pd::Pd as PdHandle,
    port::{self, PortAttr},
    qp::{QpAttr, QpInitAttr},
    restrack::Details,
    srq::SrqAttr,
    stats::StatDesc,
    wc::WcRoom,
    wr::{RecvWrs, SendWrs},
    Device, Exchange, Udata,
};

/// The model number of the only model.
const PART_ID: u32 = 1;
/// The revision of the model.
const HW_VERSION: u32 = 1;
/// Maximum message length in bytes: lengths have 32 bits.
const MAX_MESSAGE: u32 = u32::MAX;

/// The driver's part of a protection domain.
pub(crate) struct Pd {
    /// A number that the device never reuses.
    pub(crate) id: u64,
    _charge: ObjectCharge,
}

/// The driver's part of a user context.
pub(crate) struct Ucontext {
    _charge: ObjectCharge,
}

impl rdma::Driver for Riw {
    type OwnerModule = crate::LocalModule;
    type Device = RiwDevice;
    type Ucontext = Ucontext;
    type Pd = Pd;
    type Cq = Cq;
    type Qp = Arc<Qp>;
    type Srq = RecvQueue;
    type Mr = mr::Mr;
    type Counter = Arc<Counters>;

    const DRIVER_ID: u32 = rdma::ops::DRIVER_SIW;
    const ABI_VERSION: u32 = abi::VERSION;
    const STATS: &'static [StatDesc] = Counters::DESCRIPTIONS;
    const COUNTER_STATS: usize = Counters::STREAM_COUNTERS;

    fn attributes() -> &'static Attributes<Self> {
        &crate::settings::DIRECTORY
    }

    fn query_device(dev: &Device<Self>, attr: &mut DeviceAttr) {
        attr.fw_ver = crate::VERSION.fw_ver();
        attr.sys_image_guid = u64::from_ne_bytes(dev.identity.system_guid);
        attr.vendor_id = u32::from_be_bytes(*b"\0riw");
        attr.vendor_part_id = PART_ID;
        attr.hw_ver = HW_VERSION;
        attr.max_mr_size = u64::MAX;
        attr.page_size_cap = kernel::page::PAGE_SIZE as u64;
        attr.max_qp = limits::MAX_QP;
        attr.max_qp_wr = limits::MAX_QP_WR;
        attr.max_send_sge = limits::MAX_SGE;
        attr.max_recv_sge = limits::MAX_SGE;
        attr.max_sge_rd = 1;
        attr.max_cq = limits::MAX_CQ;
        attr.max_cqe = limits::MAX_CQE;
        attr.max_mr = limits::MAX_MR;
        attr.max_pd = limits::MAX_PD;
        attr.max_qp_rd_atom = limits::MAX_READS;
        attr.max_qp_init_rd_atom = limits::MAX_READS;
        attr.max_res_rd_atom = limits::MAX_READS.saturating_mul(limits::MAX_QP);
        // Allow `rdma link delete`.
        attr.kernel_cap_flags = rdma::device::ALLOW_USER_UNREG | rdma::device::LOCAL_DMA_LKEY;
        attr.max_srq = limits::MAX_SRQ;
        attr.max_srq_wr = limits::MAX_SRQ_WR;
        attr.max_srq_sge = limits::MAX_SGE;
        attr.device_cap_flags = rdma::device::MEM_MGT_EXTENSIONS;
        attr.max_fast_reg_page_list_len = limits::MAX_MR_BLOCKS;
    }

    fn query_port(dev: &Device<Self>, attr: &mut PortAttr) -> Result {
        // The netdev is unregistered before the device. In between, the port is down.
        let netdev = port::netdev(dev);
        let netdev = netdev.as_deref();
        let (speed, width) = port::eth_speed(dev);

        port::set_state(
            attr,
            netdev.is_some_and(|netdev| netdev.is_up() && netdev.has_carrier()),
        );
        port::set_mtu(attr, netdev.map_or(0, net::NetDevice::mtu));
        attr.active_speed = speed;
        attr.active_width = width;
        attr.gid_tbl_len = 1;
        attr.pkey_tbl_len = 1;
        attr.max_msg_sz = MAX_MESSAGE;
        Ok(())
    }

    fn query_gid(dev: &Device<Self>) -> [u8; 16] {
        dev.identity.gid(port::netdev(dev).as_deref())
    }

    fn dealloc_device(dev: &Device<Self>) {
        dev.cm.shutdown();
    }

    fn alloc_ucontext(dev: &Device<Self>, udata: &Exchange<'_>) -> Result<impl PinInit<Ucontext>> {
        let () = udata.request()?;
        let charge = dev.limits.ucontext.charge()?;

        udata.respond(&abi::UcontextResponse { dev_id: 0, pad: 0 })?;
        Ok(Ucontext { _charge: charge })
    }

    fn alloc_pd(dev: &Device<Self>) -> Result<impl PinInit<Pd>> {
        Ok(Pd {
            id: dev.next_pd_id(),
            _charge: dev.limits.pd.charge()?,
        })
    }

    fn create_cq(
        dev: &Device<Self>,
        attr: &mut CqInitAttr,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Cq>> {
        Cq::new(dev, attr, udata)
    }

    fn poll_cq(cq: &rdma::cq::Cq<Self>, to: &mut WcRoom<'_, Self>) -> Result {
        cq.poll(to)
    }

    fn req_notify_cq(cq: &rdma::cq::Cq<Self>, solicited_only: bool) -> bool {
        trace::cq_arm(cq, solicited_only);
        cq.arm(solicited_only)
    }

    fn create_srq(
        pd: &PdHandle<Self>,
        attr: &mut SrqAttr,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Self::Srq>> {
        Self::Srq::shared(pd, attr, udata)
    }

    fn set_srq_limit(srq: &rdma::srq::Srq<Self>, limit: u32) -> Result {
        srq.set_limit(limit)
    }

    fn query_srq(srq: &rdma::srq::Srq<Self>) -> SrqAttr {
        srq.attr()
    }

    fn create_qp(
        pd: &PdHandle<Self>,
        attr: &mut QpInitAttr<'_, Self>,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Arc<Qp>>> {
        Qp::new(pd, attr, udata)
    }

    fn publish_qp(qp: &QpObject) -> u32 {
        qp.publish(qp);
        qp.number
    }

    fn modify_qp(qp: &QpObject, attr: &QpAttr<'_>) -> Result {
        qp.modify(attr)
    }

    fn query_qp(qp: &QpObject, attr: &mut QpAttr<'_>) {
        qp.query(attr);
    }

    fn destroy_qp(qp: &QpObject) {
        qp.destroy();
    }

    fn release_qp_number(dev: &Device<Self>, number: u32) {
        dev.qps.remove(number);
    }

    fn ring_doorbell(qp: &QpObject) -> Result {
        qp.ring_doorbell()
    }

    fn post_send(qp: &QpObject, wrs: &mut SendWrs<'_, Self>) -> Result {
        qp.post_send(wrs)
    }

    fn post_recv(qp: &QpObject, wrs: &mut RecvWrs<'_>) -> Result {
        qp.post_recv(wrs)
    }

    fn post_srq_recv(srq: &rdma::srq::Srq<Self>, wrs: &mut RecvWrs<'_>) -> Result {
        srq.post(wrs)
    }

    fn qp_by_number(dev: &Device<Self>, number: u32) -> Option<ARef<QpObject>> {
        dev.qps.with(number, |qp| qp.handle())
    }

    fn reg_user_mr(
        pd: &PdHandle<Self>,
        request: &MrRequest,
        udata: &Udata<'_, Self>,
    ) -> Result<impl PinInit<mr::Mr>> {
        mr::Mr::new(pd, request, udata)
    }

    fn alloc_mr(pd: &PdHandle<Self>, max: u32, stag: u32) -> Result<impl PinInit<mr::Mr>> {
        mr::Mr::for_kernel(pd, max, iwarp::Stag(stag))
    }

    fn map_mr(mr: &mr::MrObject, fill: impl FnOnce(&mut PageList) -> c_int) -> Result<c_int> {
        mr.map(fill)
    }

    fn stat(dev: &Device<Self>, index: usize) -> u64 {
        dev.counters().get(index)
    }

    fn new_counter(_dev: &Device<Self>) -> Result<Arc<Counters>> {
        Counters::new()
    }

    fn counter_stat(counter: &Arc<Counters>, index: usize) -> u64 {
        counter.get(index)
    }

    fn bind_counter(qp: &QpObject, counter: &Arc<Counters>) {
        qp.set_counters(counter);
    }

    fn unbind_counter(qp: &QpObject) {
        qp.set_counters(qp.device().counters());
    }

    fn qp_details(qp: &QpObject) -> impl Details {
        qp.details()
    }

    fn cq_details(cq: &rdma::cq::Cq<Self>) -> impl Details {
        CqDetails::new(cq)
    }

    fn srq_details(srq: &rdma::srq::Srq<Self>) -> impl Details {
        SrqDetails::new(srq)
    }

    fn mr_details(mr: &mr::MrObject) -> impl Details {
        mr.details()
    }
}
