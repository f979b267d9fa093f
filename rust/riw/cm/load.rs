// SPDX-License-Identifier: GPL-2.0

//! Loading the module of a transport for a device.
//!
//! A module registers with all network namespaces, and so waits while one is dismantled. The
//! dismantling waits until nobody has a reference to the netdevs of that namespace. `rdma link add`
//! has one. So has ib_core until the device is unregistered, which waits for writes to `transport`.
//! The caller may be in another namespace: if one end of a veth pair is in the dying one, both ends
//! go.
//!
//! So a work item loads the module. The caller waits for that only until the netdev notifier shuts
//! the device down, which precedes those waits. No shutdown ends two rarer ones, only a signal: if
//! a process writes to `transport` by the sysfs of another namespace, which dies; and if another
//! link type is being registered (`link_ops_rwsem`), behind which a second `rdma link add` waits
//! with a netdev that goes.

use super::device::CmDevice;
use crate::link::Transport;
use kernel::{
    impl_has_work, new_work,
    prelude::*,
    sync::{Arc, SetOnce},
    workqueue::{Work, WorkItem},
};

/// Returns the beginning of a log line about a transport that is missing.
fn lacks(transport: Transport) -> &'static str {
    match transport.is_built() {
        true => "the kernel has no",
        false => "riw is built without",
    }
}

/// One attempt to load the module.
#[pin_data]
struct ModuleLoad {
    dev: Arc<CmDevice>,
    transport: Transport,
    result: SetOnce<Result>,
    #[pin]
    work: Work<ModuleLoad>,
}

impl_has_work! {
    impl HasWork<Self> for ModuleLoad { self.work }
}

impl CmDevice {
    /// Loads the module of the first transport, if it has one. Process context; waits for
    /// `modprobe`, but not longer than until the device is shut down. The caller may hold locks
    /// that its unregistration takes, but none that its shutdown takes.
    ///
    /// `EPROTONOSUPPORT` if riw or the kernel lacks the first transport, and TCP is not among them;
    /// `ENODEV` if the device is shut down, `EINTR` after a signal: the work item goes on in both
    /// cases. `ENOMEM`, or another error of [`Transport::load`].
    pub(crate) fn load(self: &Arc<Self>, transports: &[Transport]) -> Result {
        let Some(&first) = transports.first() else {
            return Ok(());
        };

        match self.load_one(first) {
            Err(e) if Transport::is_missing(e) && transports.contains(&Transport::Tcp) => {
                pr_warn!(
                    "{} {}: the transport is TCP alone\n",
                    lacks(first),
                    first.protocol()
                );
                Ok(())
            }
            Err(e) if Transport::is_missing(e) => {
                pr_err!("{} {}\n", lacks(first), first.protocol());
                Err(EPROTONOSUPPORT)
            }
            other => other,
        }
    }

    fn load_one(self: &Arc<Self>, transport: Transport) -> Result {
        if !transport.is_built() {
            return Err(EPROTONOSUPPORT);
        }
        if !transport.has_module() {
            return Ok(());
        }
        let load = Arc::pin_init(
            pin_init!(ModuleLoad {
                dev: self.clone(),
                transport,
                result: SetOnce::new(),
                work <- new_work!("riw::cm::ModuleLoad::work"),
            }),
            GFP_KERNEL,
        )?;

        self.shared.load_queue.kick::<_, 0>(&load);
        self.wait_for(|| load.result.copy())?
    }
}

impl WorkItem for ModuleLoad {
    type Pointer = Arc<Self>;

    /// Loads the module. Waits for `modprobe`.
    fn run(this: Arc<Self>) {
        this.result
            .populate(this.transport.load(&this.dev.shared.pernet));
        this.dev.notify();
    }
}
