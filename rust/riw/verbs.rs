// SPDX-License-Identifier: GPL-2.0

//! The verbs that ib_core calls. They pass each call to the object that implements it.

use crate::{
    abi::{self, Provider, WrSizes},
    counters::Counters,
    device::RiwDevice,
    driver::Riw,
    limits::{self, ObjectCharge},
    mr,
    qp::{receive_posted, Qp},
    queue::{
        completion::Cq,
        details::{CqDetails, SrqDetails},
        receive::RecvQueue,
        wr::RecvWr,
        QpObject,
    },
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::{aref::ARef, Arc},
};
use rdma::{
    abi::UserAbi,
    attr::Attributes,
    cq::CqInitAttr,
    device::{count, AtomicCap, DeviceAttr, Registered, ATOMIC_GLOB, ATOMIC_NONE},
    mr::{DmaBufRequest, MrChange, MrRequest},
    mw::MwKind,
    page_list::PageList,
    pd::Pd as PdHandle,
    pma::PortCounters,
    port::{self, PortAttr},
    qp::{QpAttr, QpInitAttr},
    restrack::Details,
    srq::SrqAttr,
    stats::StatDesc,
    umem::Umem,
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

/// The clock of timestamps, in kHz: they are in nanoseconds.
const CLOCK_KHZ: u64 = 1_000_000;

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

/// Returns the capabilities that a device announces for atomic operations, and for masked ones.
/// They are operations of the CPU on the memory itself, so they are atomic among all devices, and
/// with the consumers' own.
///
/// Processes see the first number, which promises that they can post such operations. The second
/// one is for kernel users only, which always can. Any peer can request operations on the memory of
/// either.
fn atomic_caps(dev: &Device<Riw>) -> (AtomicCap, AtomicCap) {
    let plain = match dev.provider {
        Provider::Own => ATOMIC_GLOB,
        Provider::Siw => ATOMIC_NONE,
    };

    (plain, ATOMIC_GLOB)
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

    const USER_ABIS: &'static [UserAbi] = abi::USER_ABIS;
    const STATS: &'static [StatDesc] = Counters::DESCRIPTIONS;
    const COUNTER_STATS: usize = Counters::STREAM_COUNTERS;

    fn attributes() -> [&'static Attributes<Self>; 2] {
        crate::settings::DIRECTORIES
    }

    fn query_device(dev: &Device<Self>, for_process: bool, attr: &mut DeviceAttr) {
        let sizes = match for_process {
            true => WrSizes::of(dev.provider),
            false => WrSizes::SIW,
        };

        attr.fw_ver = crate::VERSION.fw_ver();
        attr.sys_image_guid = u64::from_ne_bytes(dev.identity.system_guid);
        attr.vendor_id = u32::from_be_bytes(*b"\0riw");
        attr.vendor_part_id = PART_ID;
        attr.hw_ver = HW_VERSION;
        attr.max_mr_size = Umem::MAX_LEN;
        attr.page_size_cap = kernel::page::PAGE_SIZE as u64;
        attr.max_qp = count(limits::MAX_QP);
        attr.max_qp_wr = count(limits::MAX_QP_WR);
        attr.max_send_sge = count(sizes.sge);
        attr.max_recv_sge = count(sizes.sge);
        attr.max_sge_rd = 1;
        attr.max_cq = count(limits::MAX_CQ);
        attr.max_cqe = count(limits::MAX_CQE);
        attr.max_mr = count(limits::MAX_MR);
        attr.max_pd = count(limits::MAX_PD);
        attr.max_qp_rd_atom = count(limits::MAX_READS);
        attr.max_qp_init_rd_atom = count(limits::MAX_READS);
        attr.max_res_rd_atom = count(limits::MAX_READS.saturating_mul(limits::MAX_QP));
        // Allow `rdma link delete`.
        attr.kernel_cap_flags = rdma::device::ALLOW_USER_UNREG | rdma::device::LOCAL_DMA_LKEY;
        attr.max_srq = count(limits::MAX_SRQ);
        attr.max_srq_wr = count(limits::MAX_SRQ_WR);
        attr.max_srq_sge = count(sizes.sge);
        attr.device_cap_flags = rdma::device::MEM_MGT_EXTENSIONS;
        if for_process && dev.provider == Provider::Own {
            attr.device_cap_flags |= rdma::device::MEMORY_WINDOWS;
            attr.max_mw = count(limits::MAX_MW);
            attr.timestamp_mask = u64::MAX;
            attr.hca_core_clock = CLOCK_KHZ;
        }
        attr.max_fast_reg_page_list_len = limits::MAX_MR_BLOCKS;
        (attr.atomic_cap, attr.masked_atomic_cap) = atomic_caps(dev);
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

    fn enable_device(dev: &Registered<Self>) {
        // The netdev may have left its namespace when `NetdevNotifier` could not find the device.
        if dev.cm.is_shut_down() {
            dev.unregister_later();
        }
    }

    fn dealloc_device(dev: &Device<Self>) {
        dev.cm.shutdown();
    }

    fn alloc_ucontext(dev: &Device<Self>, udata: &Exchange<'_>) -> Result<impl PinInit<Ucontext>> {
        abi::check_request(dev.provider, udata)?;
        let charge = dev.limits.ucontext.charge()?;

        abi::respond_context(dev.provider, udata)?;
        Ok(Ucontext { _charge: charge })
    }

    fn alloc_pd(dev: &Device<Self>) -> Result<impl PinInit<Pd>> {
        Ok(Pd {
            id: dev.next_id(),
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

    fn resize_cq(cq: &rdma::cq::Cq<Self>, len: u32, udata: &Udata<'_, Self>) -> Result<u32> {
        cq.resize(len, udata)
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

    fn ring_recv_doorbell(qp: &QpObject) -> Result {
        qp.ring_recv_doorbell()
    }

    fn ring_srq_doorbell(srq: &rdma::srq::Srq<Self>) -> Result {
        trace::srq_doorbell(srq);
        receive_posted(srq.device(), srq);
        Ok(())
    }

    fn post_send(qp: &QpObject, wrs: &mut SendWrs<'_, Self>) -> Result {
        qp.post_send(wrs)
    }

    fn post_recv(qp: &QpObject, wrs: &mut RecvWrs<'_>) -> Result {
        qp.post_recv(wrs)
    }

    fn post_srq_recv(srq: &rdma::srq::Srq<Self>, wrs: &mut RecvWrs<'_>) -> Result {
        let posted = srq.post(wrs, |wr| trace::srq_wr_post(srq, || RecvWr::traced(wr)));

        // WRs before the one that failed are posted.
        receive_posted(srq.device(), srq);
        posted
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

    fn reg_dmabuf_mr(pd: &PdHandle<Self>, request: &DmaBufRequest) -> Result<impl PinInit<mr::Mr>> {
        mr::Mr::of_dmabuf(pd, request)
    }

    fn rereg_user_mr(
        old: &mr::MrObject,
        pd: &PdHandle<Self>,
        change: &MrChange,
    ) -> Result<impl PinInit<mr::Mr>> {
        old.replacement(pd, change)
    }

    fn retire_mr(dev: &Device<Self>, mr: &mr::MrObject) -> Result {
        mr.retire(dev)
    }

    fn keep_mr(mr: &mr::MrObject) {
        mr.keep();
    }

    fn abandon_mr(dev: &Device<Self>, mr: &mr::MrObject) {
        mr.abandon(dev);
    }

    fn alloc_mw(pd: &PdHandle<Self>, kind: MwKind) -> Result<impl PinInit<mr::Mr>> {
        mr::Mr::window(pd, kind)
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

    fn port_counters(dev: &Device<Self>) -> PortCounters {
        dev.port_counters()
    }

    fn new_counter(dev: &Device<Self>) -> Result<Arc<Counters>> {
        Counters::within(&dev.bound_counters)
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
