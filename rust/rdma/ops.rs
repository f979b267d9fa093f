// SPDX-License-Identifier: GPL-2.0

//! The verbs that a driver provides.
//!
//! C header: `include/rdma/ib_verbs.h` (`struct ib_device_ops`)

use crate::{
    abi::UserAbi,
    attr::Attributes,
    cq::{Cq, CqInitAttr},
    device::{Device, DeviceAttr, Registered},
    mr::{DmaBufRequest, Mr, MrChange, MrRequest},
    mw::MwKind,
    page_list::PageList,
    pd::Pd,
    pma::PortCounters,
    port::PortAttr,
    qp::{Qp, QpAttr, QpInitAttr},
    restrack::Details,
    srq::{Srq, SrqAttr},
    stats::StatDesc,
    wc::WcRoom,
    wr::{RecvWrs, SendWrs},
    Exchange, Udata,
};
use kernel::{ffi::c_int, prelude::*, sync::aref::ARef, ModuleMetadata};

/// A driver that keeps the [duties](crate#duties-of-a-driver). Implemented by
/// [`unsafe_keeps_duties`](crate::unsafe_keeps_duties).
///
/// # Safety
///
/// The driver must keep each of them.
pub unsafe trait KeepsDuties {}

/// States that a driver keeps the [duties](crate#duties-of-a-driver):
/// `unsafe_keeps_duties!(Thing)`. The statement is an `unsafe impl` that nothing checks, so review
/// it as one. It is a macro, since a driver may forbid unsafe code otherwise.
#[macro_export]
macro_rules! unsafe_keeps_duties {
    ($driver:ty) => {
        // SAFETY: By using the macro the driver states it.
        unsafe impl $crate::KeepsDuties for $driver {}
    };
}

/// A verbs provider. Each method implements the callback of the same name in `struct ib_device_ops`
/// (`include/rdma/ib_verbs.h`), if its comment names no other.
///
/// ib_core calls the methods. Unless their comments say otherwise, they run in process context and
/// may sleep, and several may run concurrently for one object. Destruction of an object excludes
/// all other calls for it, except that iw_cm may modify a queue pair until [`Driver::destroy_qp`]
/// returns.
///
/// `udata` is `None` for a kernel user. ib_core returns an error to the consumer as it is.
pub trait Driver: KeepsDuties + Sized + Send + Sync + 'static {
    /// The module that must stay loaded while an object is in use.
    type OwnerModule: ModuleMetadata;

    /// The driver's data of a [`Device`].
    type Device: Send + Sync;
    /// The driver's data of a user context.
    type Ucontext: Send + Sync;
    /// The driver's data of a protection domain.
    type Pd: Send + Sync;
    /// The driver's data of a completion queue.
    type Cq: Send + Sync;
    /// The driver's data of a queue pair.
    type Qp: Send + Sync;
    /// The driver's data of a shared receive queue.
    type Srq: Send + Sync;
    /// The driver's data of a memory region.
    type Mr: Send + Sync;
    /// The driver's data of a counter that queue pairs are bound to.
    type Counter: Send + Sync;

    /// The ABIs with user space that a device can have.
    const USER_ABIS: &'static [UserAbi];
    /// The statistics of a device (`alloc_hw_port_stats`).
    const STATS: &'static [StatDesc];
    /// The number of statistics that a counter has: the first ones of [`Self::STATS`]
    /// (`counter_alloc_stats`).
    const COUNTER_STATS: usize;

    /// Returns the settings in sysfs, in two directories. Called once, at registration.
    fn attributes() -> [&'static Attributes<Self>; 2];
    /// Fills in the capabilities of the device, as they are for a process or for kernel users.
    /// Process context; must not sleep.
    fn query_device(dev: &Device<Self>, for_process: bool, attr: &mut DeviceAttr);
    /// Fills in the state of the port. `attr` comes with the values that ib_core takes from the
    /// netdev.
    fn query_port(dev: &Device<Self>, attr: &mut PortAttr) -> Result;
    /// Returns the GID of the port, in network byte order.
    fn query_gid(dev: &Device<Self>) -> [u8; 16];
    /// Called before ib_core shows the device to its clients (`enable_driver`): when it is
    /// registered, and after each move to another network namespace.
    fn enable_device(dev: &Registered<Self>);
    /// Called last (`ib_device_ops::dealloc_driver`): all objects of the device are destroyed and
    /// no other method runs, or the device could not be registered.
    fn dealloc_device(dev: &Device<Self>);

    /// Creates a user context.
    fn alloc_ucontext(
        dev: &Device<Self>,
        udata: &Exchange<'_>,
    ) -> Result<impl PinInit<Self::Ucontext>>;
    /// Creates a protection domain.
    fn alloc_pd(dev: &Device<Self>) -> Result<impl PinInit<Self::Pd>>;

    /// Creates a completion queue, and sets `attr.cqe` to its size in entries (`create_cq`,
    /// `create_user_cq`).
    fn create_cq(
        dev: &Device<Self>,
        attr: &mut CqInitAttr,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Self::Cq>>;
    /// Resizes the queue of a process to at least `len` entries, with the completions that are in
    /// it (`resize_user_cq`). It stays as it was if this fails.
    ///
    /// Returns the new size.
    fn resize_cq(cq: &Cq<Self>, len: u32, udata: &Udata<'_, Self>) -> Result<u32>;
    /// Arms the queue: the next completion, or the next solicited one, triggers an event. Any
    /// context; must not sleep.
    ///
    /// Returns whether completions are in the queue already.
    fn req_notify_cq(cq: &Cq<Self>, solicited_only: bool) -> bool;
    /// Moves completions to a kernel user, as far as there is room. Any context; must not sleep.
    ///
    /// Fails with `EOPNOTSUPP` for the queue of a user process.
    fn poll_cq(cq: &Cq<Self>, to: &mut WcRoom<'_, Self>) -> Result;

    /// Creates a shared receive queue, and sets `attr` to its size in WRs.
    fn create_srq(
        pd: &Pd<Self>,
        attr: &mut SrqAttr,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Self::Srq>>;
    /// Sets the limit of a shared receive queue, in WRs, and arms its event (`modify_srq`).
    fn set_srq_limit(srq: &Srq<Self>, limit: u32) -> Result;
    /// Returns the attributes of a shared receive queue.
    fn query_srq(srq: &Srq<Self>) -> SrqAttr;

    /// Creates a queue pair, and sets `attr` to the sizes of its queues.
    fn create_qp(
        pd: &Pd<Self>,
        attr: &mut QpInitAttr<'_, Self>,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Self::Qp>>;
    /// Publishes a queue pair that is complete: references to it may be taken from now on
    /// (`create_qp`).
    ///
    /// Returns its number.
    fn publish_qp(qp: &Qp<Self>) -> u32;
    /// Changes attributes of a queue pair.
    fn modify_qp(qp: &Qp<Self>, attr: &QpAttr<'_>) -> Result;
    /// Fills in the attributes of a queue pair.
    fn query_qp(qp: &Qp<Self>, attr: &mut QpAttr<'_>);
    /// Ends a queue pair. On return each reference to it must be about to be dropped, and
    /// [`Self::qp_by_number`] must find neither it nor another queue pair with its number. So no
    /// completion queue has a completion that holds one.
    fn destroy_qp(qp: &Qp<Self>);
    /// Releases the number of a queue pair, after its last reference is dropped (`destroy_qp`).
    fn release_qp_number(dev: &Device<Self>, number: u32);
    /// Handles the doorbell: a user process has posted WRs to its send queue (`post_send` without a
    /// WR).
    fn ring_doorbell(qp: &Qp<Self>) -> Result;
    /// Handles the doorbell of a queue pair's own receive queue (`post_recv` without a WR), with an
    /// ABI that has [`UserAbi::recv_doorbell`]. Fails with `EINVAL` if the receive queue is shared.
    fn ring_recv_doorbell(qp: &Qp<Self>) -> Result;
    /// Handles the doorbell of a shared receive queue (`post_srq_recv` without a WR), as
    /// [`Self::ring_recv_doorbell`] does.
    fn ring_srq_doorbell(srq: &Srq<Self>) -> Result;
    /// Takes WRs that a kernel user posts to the send queue (`post_send`), in order. Any context;
    /// must not sleep, and must not call the consumer.
    ///
    /// If it fails, the WR that was taken last counts as not posted, and so do those after it.
    fn post_send(qp: &Qp<Self>, wrs: &mut SendWrs<'_, Self>) -> Result;
    /// Takes WRs that a kernel user posts to the receive queue, as [`Self::post_send`] does.
    fn post_recv(qp: &Qp<Self>, wrs: &mut RecvWrs<'_>) -> Result;
    /// Takes WRs that a kernel user posts to a shared receive queue, as [`Self::post_send`] does.
    fn post_srq_recv(srq: &Srq<Self>, wrs: &mut RecvWrs<'_>) -> Result;
    /// Looks up a queue pair by its number, for iw_cm (`iw_get_qp`): one of the calling process, or
    /// of a kernel user. Process context, maybe with a spin lock held and interrupts off; must not
    /// sleep.
    fn qp_by_number(dev: &Device<Self>, number: u32) -> Option<ARef<Qp<Self>>>;

    /// Registers user memory.
    fn reg_user_mr(
        pd: &Pd<Self>,
        request: &MrRequest,
        udata: &Udata<'_, Self>,
    ) -> Result<impl PinInit<Self::Mr>>;
    /// Registers memory of a dma-buf (`reg_user_mr_dmabuf`).
    fn reg_dmabuf_mr(pd: &Pd<Self>, request: &DmaBufRequest) -> Result<impl PinInit<Self::Mr>>;
    /// Creates a region in domain `pd` that differs from `old` as `change` says, and has the same
    /// STag. It replaces `old` unless this fails.
    fn rereg_user_mr(
        old: &Mr<Self>,
        pd: &Pd<Self>,
        change: &MrChange,
    ) -> Result<impl PinInit<Self::Mr>>;
    /// Prepares a region for its end (`dereg_mr`), or for being replaced (`rereg_user_mr`). It
    /// stays as it was if this fails.
    fn retire_mr(dev: &Device<Self>, mr: &Mr<Self>) -> Result;
    /// Undoes [`Self::retire_mr`]: the region could not be replaced.
    fn keep_mr(mr: &Mr<Self>);
    /// Prepares the region of a process for its end (`dereg_mr`), as uverbs undoes its creation.
    /// The process may use it already. This cannot fail.
    fn abandon_mr(dev: &Device<Self>, mr: &Mr<Self>);
    /// Creates a memory window that is not bound.
    fn alloc_mw(pd: &Pd<Self>, kind: MwKind) -> Result<impl PinInit<Self::Mr>>;
    /// Creates a region for memory of a kernel user, of at most `max` blocks. It is invalid at
    /// first. `stag` gives the upper 24 bits of its STag.
    fn alloc_mr(pd: &Pd<Self>, max: u32, stag: u32) -> Result<impl PinInit<Self::Mr>>;
    /// Calls `fill` with the list to map memory to (`map_mr_sg`), and returns its result. The list
    /// must not belong to a registration in force. Any context; must not sleep.
    fn map_mr(mr: &Mr<Self>, fill: impl FnOnce(&mut PageList) -> c_int) -> Result<c_int>;

    /// Returns the value of statistic `index` of the device, without the values of counters
    /// (`get_hw_stats`).
    fn stat(dev: &Device<Self>, index: usize) -> u64;
    /// Returns the counters of the port that InfiniBand defines, with what queue pairs count that
    /// are, or were, bound to a counter (`process_mad`).
    fn port_counters(dev: &Device<Self>) -> PortCounters;
    /// Creates a counter (`counter_bind_qp`).
    fn new_counter(dev: &Device<Self>) -> Result<Self::Counter>;
    /// Returns the value of statistic `index` of a counter (`counter_update_stats`).
    fn counter_stat(counter: &Self::Counter, index: usize) -> u64;
    /// Makes a queue pair count in `counter` instead of the device (`counter_bind_qp`). It counts
    /// in the device when it is created.
    fn bind_counter(qp: &Qp<Self>, counter: &Self::Counter);
    /// Makes a queue pair count in the device again (`counter_unbind_qp`). After the return the
    /// queue pair does not use its old counter.
    fn unbind_counter(qp: &Qp<Self>);
    /// Returns the details of a queue pair for any user to see (`fill_res_qp_entry`).
    fn qp_details(qp: &Qp<Self>) -> impl Details;
    /// Returns the details of a completion queue for any user to see (`fill_res_cq_entry`).
    fn cq_details(cq: &Cq<Self>) -> impl Details;
    /// Returns the details of a shared receive queue for any user to see (`fill_res_srq_entry`).
    fn srq_details(srq: &Srq<Self>) -> impl Details;
    /// Returns the details of a memory region for any user to see (`fill_res_mr_entry`).
    fn mr_details(mr: &Mr<Self>) -> impl Details;
}
