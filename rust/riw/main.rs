// SPDX-License-Identifier: GPL-2.0

//! riw: a software RDMA NIC. Any network interface becomes an iWARP RNIC:
//! `rdma link add riw0 type riw netdev eth0`.

#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
// Without one of the transports, some functions have no user.
#![cfg_attr(not(all(CONFIG_RDMA_RIW_SCTP, CONFIG_RDMA_RIW_TLS)), allow(dead_code))]

use device::{Devices, NetdevNotifier, RiwLink};
use kernel::{prelude::*, sync::Arc};
use kernel_ext::workqueue::{Flags, Queue};
use net::Pernet;
use qp::stay::Stays;
use rdma::link::Registration;

mod abi;
mod bounds;
mod cm;
mod counters;
mod device;
mod driver;
mod identity;
mod limits;
mod link;
mod log;
mod members;
mod mr;
mod qp;
mod queue;
mod settings;
mod stream;
mod verbs;

module! {
    type: Module,
    name: "riw",
    authors: ["The riw developers"],
    description: "Software iWARP RDMA NIC",
    license: "GPL",
    alias: ["rdma-link-riw"],
    params: {
        // The initial settings of a device; see settings.rs.
        crc: u32 {
            // RFC 5044, section 4.4: on, unless the administrator turns them off.
            default: 2,
            description: "0: no CRCs, 1: CRCs if the peer requires them, 2: always CRCs",
        },
        markers: u32 {
            default: 0,
            description: "1: require markers from the peer",
        },
        // RFC 5044, section 5.1: an FPDU should fit in a TCP segment.
        fpdu_max: u32 {
            default: 0,
            description: "bytes of the longest FPDU to send over TCP; 0: as long as a TCP segment",
        },
        mpa_revision: u32 {
            default: 2,
            description: "highest MPA revision: 1 or 2",
        },
        peer_to_peer: u32 {
            default: 1,
            description: "1: request the peer-to-peer model",
        },
        rtr: u32 {
            default: 6,
            description: "allowed RTR messages, a sum: 1 Send, 2 RDMA Write, 4 RDMA Read",
        },
        connect_timeout: u32 {
            default: 10_000,
            description: "ms for TCP or SCTP to connect",
        },
        startup_timeout: u32 {
            default: 10_000,
            description: "ms for the peer's part of the startup",
        },
        accept_timeout: u32 {
            default: 120_000,
            description: "ms for the consumer to accept or reject",
        },
        // About the longest finite budget of InfiniBand's RNR retries: 6 times 655 ms.
        receive_wait: u32 {
            default: 4_000,
            description: "ms that a message waits for a receive to be posted; 0: it does not wait",
        },
        handover: u32 {
            default: 50,
            description: "us that a worker which sends for a process looks for more; 0: none does",
        },
        // TCP gives up an idle peer after twice this time, 10 minutes. By default, it gives up
        // unacknowledged data after about 15 minutes.
        keepalive: u32 {
            default: 300,
            description: "s of silence before an idle peer is probed; 0: never",
        },
        // Programs that poll the last octet of a Write take it for the end of all of it, which RFC
        // 5040, section 5.5, does not allow; ib_write_lat is one. Over TCP they work.
        early_placement: u32 {
            default: 0,
            description: "1: over SCTP, place RDMA Writes before missing segments have arrived",
        },
        // RFC 5043, section 7.2: by default, an endpoint has one address.
        multihoming: u32 {
            default: 0,
            description: "1: over SCTP, use all addresses of the netdev",
        },
    },
}

rdma::module_version!("riw", VERSION: 0, 1, 0);

/// The resources of the loaded module. Unloading drops the fields in this order: first no device
/// can be added, then the devices go, then the events, the work items and the sockets. The timer of
/// a connection, an item of `riw_stream`, may queue the item that sets it up: so the queue of those
/// is drained later. A worker that stays may queue an item of `riw`.
struct Module {
    _link: Pin<KBox<Registration<RiwLink>>>,
    _devices: RemoveOnDrop,
    _watcher: Pin<KBox<net::Notifier<NetdevNotifier>>>,
    _stays: DrainOnDrop,
    _queue: DrainOnDrop,
    _kernel_queue: DrainOnDrop,
    _stream_queue: DrainOnDrop,
    _setup_queue: DrainOnDrop,
    _pernet: Arc<Pernet>,
}

/// The devices. Dropping this unregisters all of them. May sleep.
struct RemoveOnDrop(Arc<Devices>);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        self.0.remove_all();
    }
}

/// A work queue. Dropping this drains it; may sleep. The objects of its work items hold references
/// to the queue, and its own worker must not drop the last one: destroying the queue would wait
/// for that worker.
struct DrainOnDrop(Arc<Queue>);

impl Drop for DrainOnDrop {
    fn drop(&mut self) {
        self.0.drain();
    }
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // Report an invalid parameter now, not when the first device is added.
        settings::Settings::new()?;
        let queue = Arc::new(
            // Normal priority: most items here transfer bulk data of unprivileged users.
            Queue::new(c"riw", Flags::UNBOUND | Flags::MEM_RECLAIM)?,
            GFP_KERNEL,
        )?;
        let drained = DrainOnDrop(queue.clone());
        // Of its own: an item of a process may wait for reclaim, which may wait for a kernel user's
        // item.
        let kernel_queue = Arc::new(
            Queue::new(c"riw_kernel", Flags::UNBOUND | Flags::MEM_RECLAIM)?,
            GFP_KERNEL,
        )?;
        let kernel_drained = DrainOnDrop(kernel_queue.clone());
        let stays = Arc::new(Stays::new()?, GFP_KERNEL)?;
        let stays_drained = DrainOnDrop(stays.queue().clone());
        let setup_queue = Arc::new(
            Queue::ordered(c"riw_setup", Flags::MEM_RECLAIM)?,
            GFP_KERNEL,
        )?;
        let setup_drained = DrainOnDrop(setup_queue.clone());
        let stream_queue = Arc::new(
            Queue::new(c"riw_stream", Flags::UNBOUND | Flags::MEM_RECLAIM)?,
            GFP_KERNEL,
        )?;
        let stream_drained = DrainOnDrop(stream_queue.clone());
        let pernet = Pernet::register()?;
        let cm = cm::Shared::new(
            setup_queue,
            stream_queue,
            kernel_queue.clone(),
            pernet.clone(),
        )?;
        let watcher = KBox::pin_init(
            net::Notifier::register(NetdevNotifier(cm.clone())),
            GFP_KERNEL,
        )?;
        let devices = Arc::pin_init(Devices::new(queue, kernel_queue, stays, cm), GFP_KERNEL)?;
        let link = Registration::new(RiwLink(devices.clone()))?;

        Ok(Self {
            _link: link,
            _devices: RemoveOnDrop(devices),
            _watcher: watcher,
            _stays: stays_drained,
            _queue: drained,
            _kernel_queue: kernel_drained,
            _setup_queue: setup_drained,
            _stream_queue: stream_drained,
            _pernet: pernet,
        })
    }
}
