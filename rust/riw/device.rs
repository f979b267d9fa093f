// SPDX-License-Identifier: GPL-2.0

//! Devices: capabilities, and creation and removal along with their netdevs.

use crate::{
    abi,
    cm::{self, CmDevice},
    identity::Identity,
    limit::Limit,
    mr,
    qp::{self, table::Numbers, Qp},
    queue::{completion::Cq, receive::RecvQueue},
    Riw,
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
        Arc, Mutex,
    },
};
use net::Event as NetEvent;
use rdma::{
    attr::Attributes,
    cq::CqInitAttr,
    device::{DeviceAttr, Handle, Info},
    event::Event,
    link::{Link, Slot},
    mr::MrRequest,
    pd::Pd as PdHandle,
    port::{self, PortAttr},
    qp::{QpAttr, QpInitAttr},
    srq::SrqAttr,
    Device, Exchange, Udata,
};

pub(crate) use crate::limit::Quota;

/// The model number of the only model.
const PART_ID: u32 = 1;
/// The revision of the model.
const HW_VERSION: u32 = 1;
/// Maximum WRs in a queue of a queue pair.
pub(crate) const MAX_QP_WR: u32 = 32 * 1024;
/// Maximum WRs in a shared receive queue.
pub(crate) const MAX_SRQ_WR: u32 = 320 * 1024;
/// Maximum CQEs in a completion queue.
pub(crate) const MAX_CQE: u32 = 4 * 1024 * 1024;
/// Maximum inline data, in bytes.
// CAST: A small constant.
pub(crate) const MAX_INLINE: u32 = abi::MAX_INLINE as u32;
/// Maximum RDMA Reads in flight on a connection, each way.
pub(crate) const MAX_READS: u32 = 128;
/// Maximum message length in bytes: lengths have 32 bits.
const MAX_MESSAGE: u32 = u32::MAX;
/// Maximum objects of each kind on a device.
const MAX_QP: u32 = 100 * 1024;
const MAX_CQ: u32 = 100 * 1024;
const MAX_SRQ: u32 = 100 * 1024;
const MAX_MR: u32 = 1000 * 1024;
const MAX_PD: u32 = 100 * 1024;
const MAX_UCONTEXT: u32 = 100 * 1024;

/// Netdev types (`ARPHRD_*`) that carry IP, and so TCP: Ethernet, 802.2, PPP, raw IP, IP-in-IP
/// tunnels, loopback, SIT, GRE, and those without a type, such as tun. InfiniBand is excluded: it
/// is an RDMA device already.
const CARRIES_IP: [u32; 11] = [1, 6, 512, 519, 768, 769, 772, 776, 778, 823, 0xfffe];

/// riw's data of a device.
#[pin_data]
pub(crate) struct RiwDevice {
    pub(crate) limits: Limits,
    #[pin]
    pub(crate) qps: Numbers,
    pub(crate) cm: Arc<CmDevice>,
    pub(crate) queue: Arc<net::workqueue::Queue>,
    identity: Identity,
    next_pd: Atomic<u64>,
    next_cq: Atomic<u32>,
}

/// The limits of a device.
pub(crate) struct Limits {
    pub(crate) qp: Limit,
    pub(crate) cq: Limit,
    pub(crate) srq: Limit,
    pub(crate) mr: Limit,
    pd: Limit,
    ucontext: Limit,
}

/// riw's data of a protection domain.
pub(crate) struct Pd {
    /// A number that the device never reuses.
    pub(crate) id: u64,
    _quota: Quota,
}

/// riw's data of a user context.
pub(crate) struct Ucontext {
    _quota: Quota,
}

impl RiwDevice {
    fn new(
        queue: Arc<net::workqueue::Queue>,
        cm: Arc<CmDevice>,
        identity: Identity,
    ) -> Result<impl PinInit<Self>> {
        let limits = Limits {
            qp: Limit::new(MAX_QP)?,
            cq: Limit::new(MAX_CQ)?,
            srq: Limit::new(MAX_SRQ)?,
            mr: Limit::new(MAX_MR)?,
            pd: Limit::new(MAX_PD)?,
            ucontext: Limit::new(MAX_UCONTEXT)?,
        };

        Ok(pin_init!(Self {
            limits,
            qps <- Numbers::new(),
            cm,
            queue,
            identity,
            next_pd: Atomic::new(1),
            next_cq: Atomic::new(1),
        }))
    }

    /// Returns a number for a completion queue, for diagnostics. Any context.
    pub(crate) fn next_cq_id(&self) -> u32 {
        self.next_cq.fetch_add(1u32, ordering::Relaxed)
    }
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

    const DRIVER_ID: u32 = rdma::ops::DRIVER_SIW;
    const ABI_VERSION: u32 = abi::VERSION;

    fn attributes() -> &'static Attributes<Self> {
        &crate::settings::DIRECTORY
    }

    fn query_device(dev: &Device<Self>, attr: &mut DeviceAttr) {
        // CAST: A small constant.
        let max_sge = abi::MAX_SGE as u32;

        attr.fw_ver = crate::VERSION.fw_ver();
        attr.sys_image_guid = u64::from_ne_bytes(dev.identity.system_guid);
        attr.vendor_id = u32::from_be_bytes(*b"\0riw");
        attr.vendor_part_id = PART_ID;
        attr.hw_ver = HW_VERSION;
        attr.max_mr_size = u64::MAX;
        attr.page_size_cap = kernel::page::PAGE_SIZE as u64;
        attr.max_qp = MAX_QP;
        attr.max_qp_wr = MAX_QP_WR;
        attr.max_send_sge = max_sge;
        attr.max_recv_sge = max_sge;
        attr.max_sge_rd = 1;
        attr.max_cq = MAX_CQ;
        attr.max_cqe = MAX_CQE;
        attr.max_mr = MAX_MR;
        attr.max_pd = MAX_PD;
        attr.max_qp_rd_atom = MAX_READS;
        attr.max_qp_init_rd_atom = MAX_READS;
        attr.max_res_rd_atom = MAX_READS.saturating_mul(MAX_QP);
        // Allow `rdma link delete`.
        attr.kernel_cap_flags = rdma::device::ALLOW_USER_UNREG;
        attr.max_srq = MAX_SRQ;
        attr.max_srq_wr = MAX_SRQ_WR;
        attr.max_srq_sge = max_sge;
    }

    fn query_port(dev: &Device<Self>, attr: &mut PortAttr) -> Result {
        // The netdev goes first; until the device follows, its port is down.
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
        let quota = dev.limits.ucontext.take()?;

        udata.respond(&abi::UcontextResponse { dev_id: 0, pad: 0 })?;
        Ok(Ucontext { _quota: quota })
    }

    fn alloc_pd(dev: &Device<Self>) -> Result<impl PinInit<Pd>> {
        Ok(Pd {
            id: dev.next_pd.fetch_add(1u64, ordering::Relaxed),
            _quota: dev.limits.pd.take()?,
        })
    }

    fn create_cq(
        dev: &Device<Self>,
        attr: &mut CqInitAttr,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Cq>> {
        Cq::new(dev, attr, udata)
    }

    fn req_notify_cq(cq: &rdma::cq::Cq<Self>, solicited_only: bool) -> bool {
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

    fn publish_qp(qp: &qp::QpObject) -> u32 {
        qp.publish(qp);
        qp.number
    }

    fn modify_qp(qp: &qp::QpObject, attr: &QpAttr<'_>) -> Result {
        qp.modify(attr)
    }

    fn query_qp(qp: &qp::QpObject, attr: &mut QpAttr<'_>) {
        qp.query(attr);
    }

    fn destroy_qp(qp: &qp::QpObject) {
        qp.destroy();
    }

    fn release_qp_number(dev: &Device<Self>, number: u32) {
        dev.qps.remove(number);
    }

    fn ring_doorbell(qp: &qp::QpObject) -> Result {
        qp.ring_doorbell()
    }

    fn qp_by_number(dev: &Device<Self>, number: u32) -> Option<ARef<qp::QpObject>> {
        dev.qps.with(number, |qp| qp.handle())
    }

    fn reg_user_mr(
        pd: &PdHandle<Self>,
        request: &MrRequest,
        udata: &Udata<'_, Self>,
    ) -> Result<impl PinInit<mr::Mr>> {
        mr::Mr::new(pd, request, udata)
    }
}

/// The devices that this module has created.
#[pin_data]
pub(crate) struct Devices {
    queue: Arc<net::workqueue::Queue>,
    cm: Arc<cm::Shared>,
    /// Removed devices are swept out when another one is added.
    #[pin]
    handles: Mutex<KVec<Made>>,
}

impl Devices {
    /// Creates an empty list. Work items of the devices run on `queue`; their connection managers
    /// share `cm`.
    pub(crate) fn new(
        queue: Arc<net::workqueue::Queue>,
        cm: Arc<cm::Shared>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            queue,
            cm,
            handles <- new_mutex!(KVec::new(), "riw::Devices::handles"),
        })
    }

    /// Creates the device `name` on `netdev`. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` for a netdev that does not carry IP, `EEXIST` if it has a riw device
    /// already or the name is taken, `EBUSY` if another driver's device serves it, `ENODEV` if it
    /// is being unregistered.
    fn add(&self, name: &CStr, netdev: &net::NetDevice) -> Result {
        if !CARRIES_IP.contains(&netdev.kind()) {
            pr_err!(
                "{}: cannot serve {}: not a device that carries IP\n",
                name,
                netdev.name()
            );
            return Err(EOPNOTSUPP);
        }
        sweep(&mut self.handles.lock());
        match Device::<Riw>::on(netdev) {
            Ok(None) => {}
            Ok(Some(_)) => {
                pr_err!("{}: {} has a device already\n", name, netdev.name());
                return Err(EEXIST);
            }
            Err(e) => {
                pr_err!(
                    "{}: {} is served by another driver's device\n",
                    name,
                    netdev.name()
                );
                return Err(e);
            }
        }

        let identity = Identity::new(netdev)?;
        let info = Info {
            node_guid: identity.node_guid,
            description: c"Software iWARP, in Rust",
            completion_vectors: rdma::device::possible_cpus(),
        };
        let cm = CmDevice::new(netdev, self.cm.clone())?;
        self.register(name, netdev, &info, &cm, identity)
            .inspect_err(|_| cm.shutdown())
    }

    fn register(
        &self,
        name: &CStr,
        netdev: &net::NetDevice,
        info: &Info,
        cm: &Arc<CmDevice>,
        identity: Identity,
    ) -> Result {
        let data = RiwDevice::new(self.queue.clone(), cm.clone(), identity)?;

        let mut handles = self.handles.lock();
        handles.reserve(1, GFP_KERNEL)?;
        let registered = cm.while_registering(|| Device::<Riw>::register(name, netdev, info, data));
        let handle = registered.map_err(|e| {
            if e != ENFILE {
                return e;
            }
            // ib_core returns ENFILE for a name that is taken.
            pr_err!("{}: there is a device of that name\n", name);
            EEXIST
        })?;
        if cm.is_shut_down() {
            // The netdev was unregistered meanwhile, and its notifier found no device.
            handle.unregister();
            return Err(ENODEV);
        }
        let cm = cm.clone();
        handles.push(Made { handle, cm }, GFP_KERNEL)?;
        Ok(())
    }

    /// Unregisters all devices. Process context; may sleep.
    pub(crate) fn remove_all(&self) {
        let handles = core::mem::replace(&mut *self.handles.lock(), KVec::new());

        for made in handles {
            made.handle.unregister();
        }
    }
}

/// The link type of riw.
pub(crate) struct Adder(pub(crate) Arc<Devices>);

impl Link for Adder {
    const TYPE: &'static CStr = c"riw";

    fn slot() -> &'static Slot<Self> {
        &crate::LINK
    }

    fn add(&self, name: &CStr, netdev: &net::NetDevice) -> Result {
        self.0.add(name, netdev)
    }
}

/// A device that this module has created.
struct Made {
    handle: Handle<Riw>,
    cm: Arc<CmDevice>,
}

/// Removes devices whose connection management is shut down. May sleep.
///
/// Registration is no test: it is also clear while a device moves between namespaces.
fn sweep(handles: &mut KVec<Made>) {
    let mut at = 0;

    while let Some(made) = handles.get(at) {
        if !made.cm.is_shut_down() {
            at = at.wrapping_add(1);
        } else if let Ok(made) = handles.remove(at) {
            // Another thread has unregistered the device or is doing so: this waits for it.
            made.handle.unregister();
        }
    }
}

/// Applies netdev events to the device on the netdev.
pub(crate) struct Watcher(pub(crate) Arc<cm::Shared>);

impl net::Notify for Watcher {
    fn event(&self, netdev: &net::NetDevice, event: NetEvent) {
        if event == NetEvent::Unregister {
            // Close the sockets now: they must be gone before the netdev and its namespace. The
            // rest needs to run without the RTNL, which is held here.
            self.0.netdev_gone(netdev);
        }
        let Ok(Some(dev)) = Device::<Riw>::on(netdev) else {
            return;
        };

        match event {
            NetEvent::Unregister => dev.unregister_later(),
            NetEvent::ChangeAddress => dev.port_event(Event::GidChange),
            NetEvent::Up | NetEvent::Down | NetEvent::Change => dev.port_changed(netdev),
            _ => {}
        }
    }
}
