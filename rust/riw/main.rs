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
use qp::{stay::Stays, WorkQueues};
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

/// Declares the module, with a parameter for each setting that is a number.
macro_rules! module_with_parameters {
    (
        llp words $words:tt
        llp others $others:tt
        $($directory:ident numbers {$(
            $(#[$doc:meta])*
            $name:ident {
                range: $range:expr,
                default: $default:tt,
                description: $description:tt,
            }
        )*})*
    ) => {
        module! {
            type: Module,
            name: "riw",
            authors: ["The riw developers"],
            description: "Software iWARP RDMA NIC",
            license: "GPL",
            alias: ["rdma-link-riw"],
            params: {
                $($($name: u32 {
                    default: $default,
                    description: $description,
                },)*)*
            },
        }
    };
}

settings::list::all_settings!(module_with_parameters);

rdma::module_version!("riw", VERSION: 0, 1, 0);

/// The resources of the loaded module. Unloading drops the fields in this order: first no device
/// can be added, then the devices go, then the events, the work items and the sockets. The timer of
/// a connection, an item of `riw_stream`, may queue the item that sets it up: so the queue of those
/// is drained later. A worker that stays may queue an item of `riw`.
struct Module {
    _link: Pin<KBox<Registration<RiwLink>>>,
    _devices: RemoveOnDrop,
    _watcher: Pin<KBox<net::Notifier<NetdevNotifier>>>,
    _stay_queue: DrainOnDrop,
    _queue: DrainOnDrop,
    _kernel_queue: DrainOnDrop,
    _server_queue: DrainOnDrop,
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

impl DrainOnDrop {
    /// May sleep. Fails with `ENOMEM` without memory.
    fn new(queue: Queue) -> Result<Self> {
        Ok(Self(Arc::new(queue, GFP_KERNEL)?))
    }
}

impl Drop for DrainOnDrop {
    fn drop(&mut self) {
        self.0.drain();
    }
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // Report an invalid parameter now, not when the first device is added.
        settings::Settings::new()?;
        let flags = Flags::UNBOUND | Flags::MEM_RECLAIM;
        // Normal priority: most items here transfer bulk data of unprivileged users.
        let queue = DrainOnDrop::new(Queue::new(c"riw", flags)?)?;
        let kernel_queue = DrainOnDrop::new(Queue::new(c"riw_kernel", flags)?)?;
        let server_queue = DrainOnDrop::new(Queue::new(c"riw_server", flags)?)?;
        let queues = WorkQueues {
            processes: queue.0.clone(),
            initiators: kernel_queue.0.clone(),
            servers: server_queue.0.clone(),
        };
        let stays = Arc::new(Stays::new()?, GFP_KERNEL)?;
        let stay_queue = DrainOnDrop(stays.queue().clone());
        let setup_queue = DrainOnDrop::new(Queue::ordered(c"riw_setup", Flags::MEM_RECLAIM)?)?;
        let stream_queue = DrainOnDrop::new(Queue::new(c"riw_stream", flags)?)?;
        let pernet = Pernet::register()?;
        let cm = cm::Shared::new(
            setup_queue.0.clone(),
            stream_queue.0.clone(),
            kernel_queue.0.clone(),
            pernet.clone(),
        )?;
        let watcher = KBox::pin_init(
            net::Notifier::register(NetdevNotifier(cm.clone())),
            GFP_KERNEL,
        )?;
        let devices = Arc::pin_init(
            Devices::new(Arc::new(queues, GFP_KERNEL)?, stays, cm),
            GFP_KERNEL,
        )?;
        let link = Registration::new(RiwLink(devices.clone()))?;

        Ok(Self {
            _link: link,
            _devices: RemoveOnDrop(devices),
            _watcher: watcher,
            _stay_queue: stay_queue,
            _queue: queue,
            _kernel_queue: kernel_queue,
            _server_queue: server_queue,
            _setup_queue: setup_queue,
            _stream_queue: stream_queue,
            _pernet: pernet,
        })
    }
}
