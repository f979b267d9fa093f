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

use device::{Adder, Devices, Watcher};
use kernel::{prelude::*, sync::Arc};
use net::{
    workqueue::{Flags, Queue},
    Pernet,
};
use rdma::link::{Registration, Slot};

mod abi;
mod cm;
mod device;
mod identity;
mod limits;
mod link;
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
        // What a device's settings are at first; see settings.rs.
        crc: u32 {
            // RFC 5044, section 4.4: on, unless an administrator has turned them off.
            default: 2,
            description: "0: no CRCs, 1: if the peer asks for them, 2: always",
        },
        markers: u32 {
            default: 0,
            description: "1: the peer has to send markers",
        },
        mpa_revision: u32 {
            default: 2,
            description: "highest revision of MPA: 1 or 2",
        },
        peer_to_peer: u32 {
            default: 1,
            description: "1: ask for the peer-to-peer model",
        },
        rtr: u32 {
            default: 6,
            description: "ready to receive by Send (1), RDMA Write (2), RDMA Read (4); a sum",
        },
        connect_timeout: u32 {
            default: 10_000,
            description: "ms for TCP to connect",
        },
        startup_timeout: u32 {
            default: 10_000,
            description: "ms for the peer's startup frame",
        },
        accept_timeout: u32 {
            default: 120_000,
            description: "ms for the consumer to accept or reject",
        },
        // About as long as TCP with its defaults goes on to retransmit data.
        keepalive: u32 {
            default: 300,
            description: "s of silence until an idle peer is probed; 0: never",
        },
    },
}

rdma::module_version!(VERSION: 0, 1, 0);

/// The driver, as ib_core sees it.
pub(crate) struct Riw;

/// What `rdma link add` leads to.
static LINK: Slot<Adder> = Slot::new();

/// What the module holds while it is loaded. The order of the fields is that of taking down: no
/// new devices, then none, then no events, then no work, then no sockets.
struct Module {
    _link: Pin<KBox<Registration<Adder>>>,
    _devices: Present,
    _watcher: Pin<KBox<net::Notifier<Watcher>>>,
    _queue: Drained,
    _setup_queue: Drained,
    _stream_queue: Drained,
    _pernet: Arc<Pernet>,
}

/// The devices, which go when the module lets go of them.
struct Present(Arc<Devices>);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.remove_all();
    }
}

/// A work queue, which is empty when the module lets go of it. What has been on it may hold the
/// queue itself: its last reference must not go in one of its own workers.
struct Drained(Arc<Queue>);

impl Drop for Drained {
    fn drop(&mut self) {
        self.0.drain();
    }
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // Better told now than when the first device is made.
        settings::Settings::new()?;
        let queue = Arc::new(
            // Normal priority: most of what runs here is bulk data of unprivileged users.
            Queue::new(c"riw", Flags::UNBOUND | Flags::MEM_RECLAIM)?,
            GFP_KERNEL,
        )?;
        let drained = Drained(queue.clone());
        let setup_queue = Arc::new(
            Queue::ordered(c"riw_setup", Flags::MEM_RECLAIM)?,
            GFP_KERNEL,
        )?;
        let setup_drained = Drained(setup_queue.clone());
        let stream_queue = Arc::new(
            Queue::new(c"riw_stream", Flags::UNBOUND | Flags::MEM_RECLAIM)?,
            GFP_KERNEL,
        )?;
        let stream_drained = Drained(stream_queue.clone());
        let pernet = Pernet::register()?;
        let cm = cm::Shared::new(setup_queue, stream_queue, pernet.clone())?;
        let watcher = KBox::pin_init(net::Notifier::register(Watcher(cm.clone())), GFP_KERNEL)?;
        let devices = Arc::pin_init(Devices::new(queue, cm), GFP_KERNEL)?;
        let link = Registration::new(Adder(devices.clone()))?;

        Ok(Self {
            _link: link,
            _devices: Present(devices),
            _watcher: watcher,
            _queue: drained,
            _setup_queue: setup_drained,
            _stream_queue: stream_drained,
            _pernet: pernet,
        })
    }
}
