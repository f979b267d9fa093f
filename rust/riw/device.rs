// SPDX-License-Identifier: GPL-2.0

//! Devices: creation and removal, and the events of their netdevs.
//!
//! # Removal
//!
//! `rdma link del` calls ib_core, not riw (`nldev_dellink()`, which unregisters the device):
//!
//! 1. ib_core removes its clients from the device. uverbs destroys the objects of each process that
//!    has the device open, by the usual verbs ([`Qp::destroy`](crate::qp::Qp::destroy) and so on),
//!    and later calls of the process fail. rdma_cm ends its connections and listeners, and waits
//!    for iw_cm's ids.
//! 2. ib_core waits for the references to the device ([`rdma::Registered`]), and removes it from
//!    sysfs.
//! 3. The last callback, `dealloc_driver`, shuts connection management down
//!    ([`CmDevice::shutdown`]): it resets connections that linger or are not accepted yet, ends the
//!    device's part in each listening socket, and drops the netdev.
//! 4. [`RiwDevice`] is dropped.
//!
//! [`DeviceEntry`] stays in the list until another device is added. If the netdev is unregistered,
//! step 3 comes first ([`NetdevNotifier`]): its sockets must be gone before its namespace. `rmmod`
//! unregisters every device in the list.
//!
//! # Move to another network namespace
//!
//! `rdma dev set … netns` also takes step 1, and waits for the references. Then ib_core informs its
//! clients of the device, as at its registration. [`RiwDevice`] stays as it is. So do connections
//! that linger, since sockets are in the namespace of the netdev. If the netdev has left that
//! meanwhile, ib_core may not have found the device for [`NetdevNotifier`], and
//! [`rdma::Driver::enable_device`] has it unregistered.

use crate::{
    abi::{self, Provider},
    cm::{self, CmDevice},
    counters::{Counter, Counters},
    driver::Riw,
    identity::Identity,
    limits::Limits,
    log::DeviceLog,
    qp::{stay::Stays, sweep::FlushSweep, WorkQueues},
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc, Mutex,
    },
};
use kernel_ext::vec;
use net::NetdevEvent;
use rdma::{
    device::{info::Info, register::DeviceRegistration},
    event::AsyncEvent,
    link::{LinkType, Slot},
    pma::PortCounters,
    Device,
};

/// Netdev types (`ARPHRD_*`) that carry IP: Ethernet, 802.2, PPP, raw IP, IP-in-IP tunnels,
/// loopback, SIT, GRE, and netdevs without a type, such as tun. InfiniBand is excluded: it is an
/// RDMA device already.
const CARRIES_IP: [u32; 11] = [1, 6, 512, 519, 768, 769, 772, 776, 778, 823, 0xfffe];

/// The driver's part of a device.
#[pin_data]
pub(crate) struct RiwDevice {
    pub(crate) limits: Limits,
    pub(crate) flush_sweep: Arc<FlushSweep>,
    pub(crate) cm: Arc<CmDevice>,
    /// Sums of the counters to which queue pairs are, or were, bound.
    pub(crate) bound_counters: Arc<Counters>,
    /// Run the work items of queue pairs.
    pub(crate) queues: Arc<WorkQueues>,
    /// The workers that stay with queue pairs of processes.
    pub(crate) stays: Arc<Stays>,
    pub(crate) identity: Identity,
    /// Its ABI with user space.
    pub(crate) provider: Provider,
    next_id: Atomic<u64>,
    next_cq: Atomic<u32>,
}

impl RiwDevice {
    fn new(
        queues: Arc<WorkQueues>,
        stays: Arc<Stays>,
        cm: Arc<CmDevice>,
        identity: Identity,
        provider: Provider,
    ) -> Result<impl PinInit<Self>> {
        let limits = Limits::new()?;
        let flush_sweep = FlushSweep::new(queues.processes.clone())?;
        let bound_counters = Counters::new(None)?;

        Ok(pin_init!(Self {
            limits,
            flush_sweep,
            cm,
            bound_counters,
            queues,
            stays,
            identity,
            provider,
            next_id: Atomic::new(1),
            next_cq: Atomic::new(1),
        }))
    }

    /// Returns the counters of the device. Connection management counts in them, too. Any context.
    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.cm.counters
    }

    /// Returns the counters of the port, of all queue pairs. An FPDU is a packet, and its payload
    /// the octets. Any context.
    pub(crate) fn port_counters(&self) -> PortCounters {
        let sum = |counter: Counter| {
            // CAST: The place in the list.
            let [own, bound] =
                [self.counters(), &self.bound_counters].map(|of| of.get(counter as usize));
            own.wrapping_add(bound)
        };

        PortCounters {
            xmit_octets: sum(Counter::TxCopiedBytes),
            rcv_octets: sum(Counter::RxCopiedBytes),
            xmit_packets: sum(Counter::TxFpdus),
            rcv_packets: sum(Counter::RxFpdus),
            rcv_errors: sum(Counter::StreamErrorsCrc)
                .wrapping_add(sum(Counter::StreamErrorsFraming)),
        }
    }

    /// Returns the log of the device. Any context.
    pub(crate) fn log(&self) -> &DeviceLog {
        &self.cm.log
    }

    /// Returns how long a message waits for a receive WR, in milliseconds. Any context.
    pub(crate) fn receive_wait(&self) -> i64 {
        self.cm.settings.receive_wait_time()
    }

    /// Returns how long a worker that sends for a process looks for WRs, in nanoseconds; 0: none
    /// does. Any context.
    pub(crate) fn handover(&self) -> i64 {
        self.cm.settings.handover_time()
    }

    /// Returns a number for a protection domain or a region of a kernel user. The device never
    /// reuses it. Any context.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1u64, ordering::Relaxed)
    }

    /// Returns a number for a completion queue, for diagnostics. Any context.
    pub(crate) fn next_cq_id(&self) -> u32 {
        self.next_cq.fetch_add(1u32, ordering::Relaxed)
    }
}

/// The devices that this module has created.
#[pin_data]
pub(crate) struct Devices {
    queues: Arc<WorkQueues>,
    stays: Arc<Stays>,
    cm: Arc<cm::Shared>,
    /// [`sweep`] removes entries of unregistered devices when another device is added.
    #[pin]
    entries: Mutex<KVec<DeviceEntry>>,
}

impl Devices {
    /// Creates an empty list. Work items of queue pairs run on `queues`, the workers that stay on
    /// `stays`; the connection managers of the devices share `cm`.
    pub(crate) fn new(
        queues: Arc<WorkQueues>,
        stays: Arc<Stays>,
        cm: Arc<cm::Shared>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            queues,
            stays,
            cm,
            entries <- new_mutex!(KVec::new(), "riw::Devices::entries"),
        })
    }

    /// Creates the device `name` on `netdev`. Process context; may sleep.
    ///
    /// Fails with `EOPNOTSUPP` for a netdev that does not carry IP, `EEXIST` if it has a riw device
    /// already or the name is taken, `EBUSY` if another driver's device serves it, `ENODEV` if it
    /// is being unregistered; and as [`CmDevice::load`] does.
    fn add(&self, name: &CStr, netdev: &net::NetDevice) -> Result {
        if !CARRIES_IP.contains(&netdev.kind()) {
            pr_err!(
                "{}: cannot serve {}: not a device that carries IP\n",
                name,
                netdev.name()
            );
            return Err(EOPNOTSUPP);
        }
        // Before a module is loaded for nothing.
        check_unserved(name, netdev)?;
        let identity = Identity::new(netdev)?;
        let provider = Provider::chosen();
        let info = Info {
            node_guid: identity.node_guid,
            description: c"Software iWARP, in Rust",
            completion_vectors: kernel_ext::cpu::num_possible().try_into()?,
            abi: abi::user_abi(provider),
        };
        let cm = CmDevice::new(netdev, self.cm.clone())?;
        // From here on `Shared` has a reference to it, until it is shut down.
        cm.load(cm.settings.transports())
            .and_then(|()| cm.load(cm.settings.secure_transports()))
            .and_then(|()| self.register(name, netdev, &info, &cm, identity, provider))
            .inspect_err(|_| cm.shutdown())
    }

    /// Registers a device, unless its netdev has one. Process context; may sleep. On an error, the
    /// caller must shut `cm` down.
    fn register(
        &self,
        name: &CStr,
        netdev: &net::NetDevice,
        info: &Info,
        cm: &Arc<CmDevice>,
        identity: Identity,
        provider: Provider,
    ) -> Result {
        let mut entries = self.entries.lock();
        sweep(&mut entries);
        // Under the lock, until the device is registered: another call may add one to the same
        // netdev.
        check_unserved(name, netdev)?;
        vec::reserve(&mut entries, 1, GFP_KERNEL)?;
        let data = RiwDevice::new(
            self.queues.clone(),
            self.stays.clone(),
            cm.clone(),
            identity,
            provider,
        )?;
        let registered = cm.while_registering(|| Device::<Riw>::register(name, netdev, info, data));
        let registration = registered.map_err(|e| {
            if e != ENFILE {
                return e;
            }
            // ib_core returns ENFILE for a name that is taken.
            pr_err!("{}: there is a device of that name\n", name);
            EEXIST
        })?;
        if cm.is_shut_down() {
            // The netdev was unregistered during the registration: its notifier found no device.
            // The return unregisters it.
            return Err(ENODEV);
        }
        let entry = DeviceEntry {
            cm: cm.clone(),
            _registration: registration,
        };
        vec::push(&mut entries, entry, GFP_KERNEL)?;
        Ok(())
    }

    /// Unregisters all devices, and waits for what they have started to load. No device may be
    /// added any more. Process context; may sleep.
    pub(crate) fn remove_all(&self) {
        let entries = core::mem::replace(&mut *self.entries.lock(), KVec::new());

        drop(entries);
        // With no device, nothing loads a module any more.
        self.cm.drain_loads();
    }
}

/// The handler of `rdma link add`, while the module is loaded.
static LINK: Slot<RiwLink> = Slot::new();

/// The link type of riw.
pub(crate) struct RiwLink(pub(crate) Arc<Devices>);

impl LinkType for RiwLink {
    const TYPE: &'static CStr = c"riw";

    fn slot() -> &'static Slot<Self> {
        &LINK
    }

    fn add(&self, name: &CStr, netdev: &net::NetDevice) -> Result {
        self.0.add(name, netdev)
    }
}

/// A device that this module has created.
struct DeviceEntry {
    cm: Arc<CmDevice>,
    _registration: DeviceRegistration<Riw>,
}

/// Checks that no device is on `netdev` that riw or siw has made. Process context; may sleep.
/// `EEXIST` if it is riw's, `EBUSY` if it is another driver's. `name` is for the kernel log.
fn check_unserved(name: &CStr, netdev: &net::NetDevice) -> Result {
    match Device::<Riw>::on(netdev) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => {
            pr_err!("{}: {} has a device already\n", name, netdev.name());
            Err(EEXIST)
        }
        Err(e) => {
            pr_err!(
                "{}: {} is served by another driver's device\n",
                name,
                netdev.name()
            );
            Err(e)
        }
    }
}

/// Removes devices whose connection management is shut down. Process context; may sleep.
///
/// ib_core's mark of registered devices is no test: it is also clear while a device moves between
/// namespaces.
fn sweep(entries: &mut KVec<DeviceEntry>) {
    let mut at = 0;

    while let Some(entry) = entries.get(at) {
        if !entry.cm.is_shut_down() {
            at = at.wrapping_add(1);
        } else {
            // Another thread has unregistered the device or is doing so: this waits for it.
            drop(entries.remove(at));
        }
    }
}

/// Applies netdev events to the device on the netdev.
pub(crate) struct NetdevNotifier(pub(crate) Arc<cm::Shared>);

impl net::Notify for NetdevNotifier {
    fn event(&self, netdev: &net::NetDevice, event: NetdevEvent) {
        if event == NetdevEvent::Unregister {
            // Close the sockets now: they must be gone before the netdev and its namespace. The
            // device itself must be unregistered later: the RTNL is held here.
            self.0.netdev_gone(netdev);
        }
        let Ok(Some(dev)) = Device::<Riw>::on(netdev) else {
            return;
        };

        match event {
            NetdevEvent::Unregister => dev.unregister_later(),
            NetdevEvent::ChangeAddress => dev.port_event(AsyncEvent::GidChange),
            NetdevEvent::Up | NetdevEvent::Down | NetdevEvent::Change => dev.port_changed(netdev),
            _ => {}
        }
    }
}
