// SPDX-License-Identifier: GPL-2.0

//! The verbs that ib_core calls: here those of a device and of the objects that only hold others.
//! They pass each call to what implements it.

mod cq;
mod mr;
mod qp;
mod srq;

use crate::{
    abi::{self, Provider, WrSizes},
    counters::Counters,
    device::RiwDevice,
    driver::Riw,
    limits::{self, ObjectCharge},
    mr::Mr,
    qp::Qp,
    queue::{completion::Cq, receive::RecvQueue},
};
use kernel::{prelude::*, sync::Arc};
use rdma::{
    abi::UserAbi,
    attr::Attributes,
    device::{count, AtomicCap, DeviceAttr, Registered, ATOMIC_GLOB, ATOMIC_NONE},
    ops::{CounterVerbs, PdVerbs, UcontextVerbs},
    pma::PortCounters,
    port::{self, PortAttr},
    stats::StatDesc,
    umem::Umem,
    Device, Udata,
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

#[vtable]
impl rdma::Driver for Riw {
    type OwnerModule = crate::LocalModule;
    type Device = RiwDevice;
    type Ucontext = Ucontext;
    type Pd = Pd;
    type Cq = Cq;
    type Qp = Arc<Qp>;
    type Srq = RecvQueue;
    type Mr = Mr;
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

    fn stat(dev: &Device<Self>, index: usize) -> u64 {
        dev.counters().get(index)
    }

    fn port_counters(dev: &Device<Self>) -> PortCounters {
        dev.port_counters()
    }
}

#[vtable]
impl UcontextVerbs<Riw> for Ucontext {
    fn alloc(dev: &Device<Riw>, udata: &Udata<'_>) -> Result<impl PinInit<Self>> {
        abi::check_request(dev.provider, udata)?;
        let charge = dev.limits.ucontext.charge()?;

        abi::respond_context(dev.provider, udata)?;
        Ok(Self { _charge: charge })
    }
}

impl PdVerbs<Riw> for Pd {
    fn alloc(dev: &Device<Riw>) -> Result<impl PinInit<Self>> {
        Ok(Self {
            id: dev.next_id(),
            _charge: dev.limits.pd.charge()?,
        })
    }
}

#[vtable]
impl CounterVerbs<Riw> for Arc<Counters> {
    fn create(dev: &Device<Riw>) -> Result<Self> {
        Counters::new(Some(dev.bound_counters.clone()))
    }

    fn stat(&self, index: usize) -> u64 {
        self.get(index)
    }
}
