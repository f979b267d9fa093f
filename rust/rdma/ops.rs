// SPDX-License-Identifier: GPL-2.0

//! The verbs that a driver provides.

use crate::{
    attr::Attributes,
    cq::{Cq, CqInitAttr},
    device::{Device, DeviceAttr},
    mr::MrRequest,
    pd::Pd,
    port::PortAttr,
    qp::{Qp, QpAttr, QpInitAttr},
    srq::{Srq, SrqAttr},
    Exchange, Udata,
};
use kernel::{prelude::*, sync::aref::ARef, ModuleMetadata};

/// The driver id of siw (`RDMA_DRIVER_SIW`), by which rdma-core chooses its libsiw.
pub const DRIVER_SIW: u32 = riw_bindings::rdma_driver_id_RDMA_DRIVER_SIW;

/// A verbs provider.
///
/// The methods are called by ib_core. Unless said otherwise they run in process context and may
/// sleep, several at a time for one object; destruction of an object excludes every other call for
/// it, but iw_cm may modify a queue pair until [`Driver::destroy_qp`] returns. `udata` is `None` for a kernel user.
pub trait Driver: Sized + Send + Sync + 'static {
    /// The module that must stay while an object is in use.
    type OwnerModule: ModuleMetadata;

    /// What [`Device`] carries for the driver.
    type Device: Send + Sync;
    /// What a user context carries for the driver.
    type Ucontext: Send + Sync;
    /// What a protection domain carries for the driver.
    type Pd: Send + Sync;
    /// What a completion queue carries for the driver.
    type Cq: Send + Sync;
    /// What a queue pair carries for the driver.
    type Qp: Send + Sync;
    /// What a shared receive queue carries for the driver.
    type Srq: Send + Sync;
    /// What a memory region carries for the driver.
    type Mr: Send + Sync;

    /// The id by which user space finds its driver (`enum rdma_driver_id`).
    const DRIVER_ID: u32;
    /// The version of the ABI between this driver and its user-space part.
    const ABI_VERSION: u32;

    /// What can be set in sysfs.
    fn attributes() -> &'static Attributes<Self>;
    /// What the device can do. Must not sleep.
    fn query_device(dev: &Device<Self>, attr: &mut DeviceAttr);
    /// The state of the device's port. `attr` comes with what ib_core knows of the netdev.
    fn query_port(dev: &Device<Self>, attr: &mut PortAttr) -> Result;
    /// The address of the device's port.
    fn query_gid(dev: &Device<Self>) -> [u8; 16];
    /// The device has been unregistered: all its objects are gone, nothing calls it any more.
    fn dealloc_device(dev: &Device<Self>);

    /// Opens a user context.
    fn alloc_ucontext(
        dev: &Device<Self>,
        udata: &Exchange<'_>,
    ) -> Result<impl PinInit<Self::Ucontext>>;
    /// Makes a protection domain.
    fn alloc_pd(dev: &Device<Self>) -> Result<impl PinInit<Self::Pd>>;

    /// Makes a completion queue, and writes its true size to `attr`.
    fn create_cq(
        dev: &Device<Self>,
        attr: &mut CqInitAttr,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Self::Cq>>;
    /// A consumer wants an event for the next completion, or the next solicited one. Returns
    /// whether there are completions already. Any context.
    fn req_notify_cq(cq: &Cq<Self>, solicited_only: bool) -> bool;

    /// Makes a shared receive queue, and writes its true size to `attr`.
    fn create_srq(
        pd: &Pd<Self>,
        attr: &mut SrqAttr,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Self::Srq>>;
    /// Sets the limit of a shared receive queue, and arms its event.
    fn set_srq_limit(srq: &Srq<Self>, limit: u32) -> Result;
    /// Reads the attributes of a shared receive queue.
    fn query_srq(srq: &Srq<Self>) -> SrqAttr;

    /// Makes a queue pair, and writes its true sizes to `attr`.
    fn create_qp(
        pd: &Pd<Self>,
        attr: &mut QpInitAttr<'_, Self>,
        udata: Option<Udata<'_, Self>>,
    ) -> Result<impl PinInit<Self::Qp>>;
    /// The queue pair is complete and may be referenced. Returns its number.
    fn publish_qp(qp: &Qp<Self>) -> u32;
    /// Changes attributes of a queue pair.
    fn modify_qp(qp: &Qp<Self>, attr: &QpAttr<'_>) -> Result;
    /// Fills in the attributes of a queue pair.
    fn query_qp(qp: &Qp<Self>, attr: &mut QpAttr<'_>);
    /// Ends a queue pair: on return no one may keep a reference to it for longer than it takes to
    /// give it back. [`Self::qp_by_number`] finds it no more, nor another one by its number.
    fn destroy_qp(qp: &Qp<Self>);
    /// The last reference to a queue pair has been given back: its number may be another's.
    fn release_qp_number(dev: &Device<Self>, number: u32);
    /// A user process has put work requests into its send queue.
    fn ring_doorbell(qp: &Qp<Self>) -> Result;
    /// Finds a queue pair by its number, for the connection manager, on behalf of the calling
    /// process. Process context, with a spin lock held and interrupts off.
    fn qp_by_number(dev: &Device<Self>, number: u32) -> Option<ARef<Qp<Self>>>;

    /// Registers user memory.
    fn reg_user_mr(
        pd: &Pd<Self>,
        request: &MrRequest,
        udata: &Udata<'_, Self>,
    ) -> Result<impl PinInit<Self::Mr>>;
}
