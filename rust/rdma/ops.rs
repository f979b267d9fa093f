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
    pd::Pd,
    pma::PortCounters,
    port::PortAttr,
    qp::{Qp, QpAttr, QpInitAttr},
    restrack::Details,
    srq::{Srq, SrqAttr},
    stats::StatDesc,
    wc::WcRoom,
    wr::{RecvWrs, SendWrs},
    ContextUdata, Udata,
};
use core::convert::Infallible;
use kernel::{error::VTABLE_DEFAULT_ERROR, prelude::*, ModuleMetadata};

/// The body of a verb that a driver does not provide. It is never called, and the compiler drops
/// it.
#[inline(always)]
fn unprovided<R>() -> R {
    build_error!(VTABLE_DEFAULT_ERROR)
}

/// A verbs provider: the types of its objects, which have their verbs, and the verbs of a device.
///
/// Each method, also of the objects' traits, implements the callback of `struct ib_device_ops`
/// (`include/rdma/ib_verbs.h`) that its comment names. A method with a default is optional: unless
/// its comment says what the default does, ib_core has no callback without it, and returns
/// `EOPNOTSUPP`. The data of user contexts, shared receive queues and counters may be `()`, with
/// no method, for a driver without them.
///
/// ib_core calls the methods. Unless their comments say otherwise, they run in process context and
/// may sleep, and several may run concurrently for one object. Destruction of an object excludes
/// all other calls for it, except that iw_cm may modify a queue pair until [`QpVerbs::destroy`]
/// returns.
///
/// `udata` is `None` for a kernel user. ib_core returns an error to the consumer as it is.
///
/// # Examples
///
/// A driver with the verbs that each driver has, and no others:
///
/// ```
/// use kernel::prelude::*;
/// use rdma::{
///     abi::UserAbi,
///     cq::{Cq, CqInitAttr},
///     device::DeviceAttr,
///     mr::MrRequest,
///     ops::*,
///     pd::Pd,
///     port::PortAttr,
///     qp::{Qp, QpAttr, QpInitAttr},
///     wc::WcRoom,
///     wr::{RecvWrs, SendWrs},
///     ContextUdata, Device,
/// };
///
/// // `module!` defines it.
/// struct LocalModule;
/// impl kernel::ModuleMetadata for LocalModule {
///     const NAME: &'static CStr = c"minimal";
///     // SAFETY: Code of the kernel image has no `struct module`.
///     const THIS_MODULE: ThisModule = unsafe { ThisModule::from_ptr(core::ptr::null_mut()) };
/// }
///
/// struct Minimal;
/// struct Object;
///
/// #[vtable]
/// impl Driver for Minimal {
///     type OwnerModule = LocalModule;
///     type Device = ();
///     type Ucontext = ();
///     type Pd = Object;
///     type Cq = Object;
///     type Qp = Object;
///     type Srq = ();
///     type Mr = Object;
///     type Counter = ();
///
///     const USER_ABIS: &'static [UserAbi] = &[];
///
///     fn query_device(_: &Device<Self>, _for_process: bool, attr: &mut DeviceAttr) {
///         attr.max_qp = rdma::device::count(1);
///     }
///     fn query_port(_: &Device<Self>, attr: &mut PortAttr) -> Result {
///         attr.gid_tbl_len = 1;
///         Ok(())
///     }
///     fn query_gid(_: &Device<Self>) -> [u8; 16] {
///         [0; 16]
///     }
/// }
///
/// #[vtable]
/// impl UcontextVerbs<Minimal> for () {}
///
/// #[vtable]
/// impl SrqVerbs<Minimal> for () {}
///
/// #[vtable]
/// impl CounterVerbs<Minimal> for () {}
///
/// impl PdVerbs<Minimal> for Object {
///     fn alloc(_: &Device<Minimal>) -> Result<impl PinInit<Self>> {
///         Ok(Object)
///     }
/// }
///
/// #[vtable]
/// impl CqVerbs<Minimal> for Object {
///     fn create(
///         _: &Device<Minimal>,
///         _: &mut CqInitAttr,
///         _: Option<ContextUdata<'_, Minimal>>,
///     ) -> Result<impl PinInit<Self>> {
///         Ok(Object)
///     }
///     fn req_notify(_: &Cq<Minimal>, _solicited_only: bool) -> bool {
///         false
///     }
///     fn poll(_: &Cq<Minimal>, _: &mut WcRoom<'_, Minimal>) -> Result {
///         Ok(())
///     }
/// }
///
/// #[vtable]
/// impl QpVerbs<Minimal> for Object {
///     fn create(
///         _: &Pd<Minimal>,
///         _: &mut QpInitAttr<'_, Minimal>,
///         _: Option<ContextUdata<'_, Minimal>>,
///     ) -> Result<impl PinInit<Self>> {
///         Ok(Object)
///     }
///     fn modify(_: &Qp<Minimal>, _: &QpAttr<'_>) -> Result {
///         Ok(())
///     }
///     fn destroy(_: &Qp<Minimal>) {}
///     fn is_of_caller(_: &Qp<Minimal>) -> bool {
///         true
///     }
///     fn post_send(_: &Qp<Minimal>, _: &mut SendWrs<'_, Minimal>) -> Result {
///         Err(ENOMEM)
///     }
///     fn post_recv(_: &Qp<Minimal>, _: &mut RecvWrs<'_>) -> Result {
///         Err(ENOMEM)
///     }
/// }
///
/// #[vtable]
/// impl MrVerbs<Minimal> for Object {
///     fn reg_user(
///         _: &Pd<Minimal>,
///         _: &MrRequest,
///         _: &ContextUdata<'_, Minimal>,
///     ) -> Result<impl PinInit<Self>> {
///         Ok(Object)
///     }
/// }
/// ```
#[vtable]
pub trait Driver: Sized + Send + Sync + 'static {
    /// The module that must stay loaded while an object is in use.
    type OwnerModule: ModuleMetadata;

    /// The driver's data of a [`Device`].
    type Device: Send + Sync;
    /// The driver's data of a user context.
    type Ucontext: UcontextVerbs<Self>;
    /// The driver's data of a protection domain.
    type Pd: PdVerbs<Self>;
    /// The driver's data of a completion queue.
    type Cq: CqVerbs<Self>;
    /// The driver's data of a queue pair.
    type Qp: QpVerbs<Self>;
    /// The driver's data of a shared receive queue.
    type Srq: SrqVerbs<Self>;
    /// The driver's data of a memory region, or of a memory window.
    type Mr: MrVerbs<Self>;
    /// The driver's data of a counter that queue pairs are bound to.
    type Counter: CounterVerbs<Self>;

    /// The ABIs with user space that a device can have.
    const USER_ABIS: &'static [UserAbi];
    /// The statistics of a device (`alloc_hw_port_stats`), with [`Self::stat`].
    const STATS: &'static [StatDesc] = &[];
    /// The number of statistics that a counter has: the first ones of [`Self::STATS`]
    /// (`counter_alloc_stats`).
    const COUNTER_STATS: usize = 0;

    /// Returns the settings in sysfs, in two directories (`device_group`). Called once, at
    /// registration.
    fn attributes() -> [&'static Attributes<Self>; 2] {
        unprovided()
    }
    /// Fills in the capabilities of the device (`query_device`), as they are for a process or for
    /// kernel users. Process context; must not sleep.
    fn query_device(dev: &Device<Self>, for_process: bool, attr: &mut DeviceAttr);
    /// Fills in the state of the port (`query_port`). `attr` comes with the values that ib_core
    /// takes from the netdev.
    fn query_port(dev: &Device<Self>, attr: &mut PortAttr) -> Result;
    /// Returns the GID of the port (`query_gid`), in network byte order.
    fn query_gid(dev: &Device<Self>) -> [u8; 16];
    /// Called before ib_core shows the device to its clients (`enable_driver`): when it is
    /// registered, and after each move to another network namespace.
    fn enable_device(_dev: &Registered<Self>) {
        unprovided()
    }
    /// Called last (`dealloc_driver`): all objects of the device are destroyed and no other method
    /// runs, or the device could not be registered. Does nothing by default.
    fn dealloc_device(_dev: &Device<Self>) {}
    /// Returns the value of statistic `index` of the device, without the values of counters
    /// (`get_hw_stats`).
    fn stat(_dev: &Device<Self>, _index: usize) -> u64 {
        unprovided()
    }
    /// Returns the counters of the port that InfiniBand defines, with what queue pairs count that
    /// are, or were, bound to a counter (`process_mad`).
    fn port_counters(_dev: &Device<Self>) -> PortCounters {
        unprovided()
    }
}

/// The verbs of user contexts. The driver's data implements them; without [`Self::alloc`] processes
/// cannot use devices.
#[vtable]
pub trait UcontextVerbs<T: Driver>: Sized + Send + Sync {
    /// Creates a user context (`alloc_ucontext`).
    fn alloc(_dev: &Device<T>, _udata: &Udata<'_>) -> Result<impl PinInit<Self>> {
        unprovided::<Result<Self>>()
    }
}

/// The verbs of protection domains. The driver's data implements them.
pub trait PdVerbs<T: Driver>: Sized + Send + Sync {
    /// Creates a protection domain (`alloc_pd`).
    fn alloc(dev: &Device<T>) -> Result<impl PinInit<Self>>;
}

/// The verbs of completion queues. The driver's data implements them.
#[vtable]
pub trait CqVerbs<T: Driver>: Sized + Send + Sync {
    /// Creates a completion queue, and sets `attr.cqe` to its size in entries (`create_cq`,
    /// `create_user_cq`).
    fn create(
        dev: &Device<T>,
        attr: &mut CqInitAttr,
        udata: Option<ContextUdata<'_, T>>,
    ) -> Result<impl PinInit<Self>>;
    /// Resizes the queue of a process to at least `len` entries, with the completions that are in
    /// it (`resize_user_cq`). It stays as it was if this fails.
    ///
    /// Returns the new size.
    fn resize(_cq: &Cq<T>, _len: u32, _udata: &ContextUdata<'_, T>) -> Result<u32> {
        unprovided()
    }
    /// Arms the queue (`req_notify_cq`): the next completion, or the next solicited one, triggers
    /// an event. Any context; must not sleep.
    ///
    /// Returns whether completions are in the queue already.
    fn req_notify(cq: &Cq<T>, solicited_only: bool) -> bool;
    /// Moves completions to a kernel user (`poll_cq`), as far as there is room. Any context; must
    /// not sleep.
    ///
    /// Fails with `EOPNOTSUPP` for the queue of a user process.
    fn poll(cq: &Cq<T>, to: &mut WcRoom<'_, T>) -> Result;
    /// Returns the details of a completion queue for any user to see (`fill_res_cq_entry`).
    fn details(_cq: &Cq<T>) -> impl Details {
        unprovided::<Infallible>()
    }
}

/// The verbs of shared receive queues. The driver's data implements them; with [`Self::create`], it
/// must have [`Self::post_recv`].
#[vtable]
pub trait SrqVerbs<T: Driver>: Sized + Send + Sync {
    /// Creates a shared receive queue, and sets `attr` to its size in WRs (`create_srq`).
    fn create(
        _pd: &Pd<T>,
        _attr: &mut SrqAttr,
        _udata: Option<ContextUdata<'_, T>>,
    ) -> Result<impl PinInit<Self>> {
        unprovided::<Result<Self>>()
    }
    /// Sets the limit of a shared receive queue, in WRs, and arms its event (`modify_srq`).
    fn set_limit(_srq: &Srq<T>, _limit: u32) -> Result {
        unprovided()
    }
    /// Returns the attributes of a shared receive queue (`query_srq`).
    fn query(_srq: &Srq<T>) -> SrqAttr {
        unprovided()
    }
    /// Handles a call of a process that posts an empty list of WRs to a shared receive queue
    /// (`post_srq_recv`), as [`QpVerbs::user_post_send`] does.
    fn user_post_recv(_srq: &Srq<T>) -> Result {
        Err(EOPNOTSUPP)
    }
    /// Takes WRs that a kernel user posts to a shared receive queue (`post_srq_recv`), as
    /// [`QpVerbs::post_send`] does.
    fn post_recv(_srq: &Srq<T>, _wrs: &mut RecvWrs<'_>) -> Result {
        unprovided()
    }
    /// Returns the details of a shared receive queue for any user to see (`fill_res_srq_entry`).
    fn details(_srq: &Srq<T>) -> impl Details {
        unprovided::<Infallible>()
    }
}

/// The verbs of queue pairs. The driver's data implements them.
#[vtable]
pub trait QpVerbs<T: Driver>: Sized + Send + Sync {
    /// Creates a queue pair, and sets `attr` to the sizes of its queues (`create_qp`).
    fn create(
        pd: &Pd<T>,
        attr: &mut QpInitAttr<'_, T>,
        udata: Option<ContextUdata<'_, T>>,
    ) -> Result<impl PinInit<Self>>;
    /// Called when a queue pair is complete (`create_qp`): references to it may be taken from now
    /// on. Does nothing by default.
    fn publish(_qp: &Qp<T>) {}
    /// Changes attributes of a queue pair (`modify_qp`).
    fn modify(qp: &Qp<T>, attr: &QpAttr<'_>) -> Result;
    /// Fills in the attributes of a queue pair (`query_qp`).
    fn query(_qp: &Qp<T>, _attr: &mut QpAttr<'_>) {
        unprovided()
    }
    /// Ends a queue pair (`destroy_qp`), which its number does not find any more. On return each
    /// reference to it must be about to be dropped. So no completion queue has a completion that
    /// holds one.
    fn destroy(qp: &Qp<T>);
    /// Whether the caller may connect the queue pair (`iw_get_qp`): it is one of the calling
    /// process, or of a kernel user. rdma_cm passes on any number that a process supplies. Process
    /// context, maybe with a spin lock held and interrupts off; must not sleep.
    fn is_of_caller(qp: &Qp<T>) -> bool;
    /// Handles a call of a process that posts an empty list of WRs to the send queue (`post_send`).
    /// Its meaning is defined by the driver's ABI with user space. A list that is not empty is
    /// refused: the WRs of a process could name any memory of the kernel. Fails with `EOPNOTSUPP`
    /// by default.
    fn user_post_send(_qp: &Qp<T>) -> Result {
        Err(EOPNOTSUPP)
    }
    /// Handles a call of a process that posts an empty list of WRs to the receive queue
    /// (`post_recv`), as [`Self::user_post_send`] does.
    fn user_post_recv(_qp: &Qp<T>) -> Result {
        Err(EOPNOTSUPP)
    }
    /// Takes WRs that a kernel user posts to the send queue (`post_send`), in order. Any context;
    /// must not sleep, and must not call the consumer.
    ///
    /// If it fails, the WR that was taken last counts as not posted, and so do those after it.
    fn post_send(qp: &Qp<T>, wrs: &mut SendWrs<'_, T>) -> Result;
    /// Takes WRs that a kernel user posts to the receive queue (`post_recv`), as
    /// [`Self::post_send`] does.
    fn post_recv(qp: &Qp<T>, wrs: &mut RecvWrs<'_>) -> Result;
    /// Makes a queue pair count in `counter` instead of the device (`counter_bind_qp`). It counts
    /// in the device when it is created.
    fn bind_counter(_qp: &Qp<T>, _counter: &T::Counter) {
        unprovided()
    }
    /// Makes a queue pair count in the device again (`counter_unbind_qp`). After the return the
    /// queue pair does not use its old counter.
    fn unbind_counter(_qp: &Qp<T>) {
        unprovided()
    }
    /// Returns the details of a queue pair for any user to see (`fill_res_qp_entry`).
    fn details(_qp: &Qp<T>) -> impl Details {
        unprovided::<Infallible>()
    }
}

/// The verbs of memory regions and windows. The driver's data implements them.
#[vtable]
pub trait MrVerbs<T: Driver>: Sized + Send + Sync {
    /// Registers user memory (`reg_user_mr`).
    fn reg_user(
        pd: &Pd<T>,
        request: &MrRequest,
        udata: &ContextUdata<'_, T>,
    ) -> Result<impl PinInit<Self>>;
    /// Registers memory of a dma-buf (`reg_user_mr_dmabuf`).
    fn reg_dmabuf(_pd: &Pd<T>, _request: &DmaBufRequest) -> Result<impl PinInit<Self>> {
        unprovided::<Result<Self>>()
    }
    /// Creates a region in domain `pd` that differs from `old` as `change` says, and has the same
    /// STag (`rereg_user_mr`). It replaces `old` unless this fails.
    fn rereg(_old: &Mr<T>, _pd: &Pd<T>, _change: &MrChange) -> Result<impl PinInit<Self>> {
        unprovided::<Result<Self>>()
    }
    /// Prepares the region of a process for its end (`dereg_mr`), or for being replaced
    /// (`rereg_user_mr`). It stays as it was if this fails. Does nothing by default.
    fn retire(_dev: &Device<T>, _mr: &Mr<T>) -> Result {
        Ok(())
    }
    /// Undoes [`Self::retire`]: the region could not be replaced. Does nothing by default.
    fn keep(_mr: &Mr<T>) {}
    /// Prepares the region of a process for its end (`dereg_mr`), as uverbs undoes its creation.
    /// The process may use it already. This cannot fail. Does nothing by default.
    fn abandon(_dev: &Device<T>, _mr: &Mr<T>) {}
    /// Creates a memory window that is not bound (`alloc_mw`).
    fn alloc_window(_pd: &Pd<T>, _kind: MwKind) -> Result<impl PinInit<Self>> {
        unprovided::<Result<Self>>()
    }
    /// Creates a region for memory of a kernel user, of at most `max` blocks (`alloc_mr`). Its
    /// [registrations](Mr::registrations) are apart.
    fn alloc(_pd: &Pd<T>, _max: u32) -> Result<impl PinInit<Self>> {
        unprovided::<Result<Self>>()
    }
    /// Returns the details of a memory region for any user to see (`fill_res_mr_entry`).
    fn details(_mr: &Mr<T>) -> impl Details {
        unprovided::<Infallible>()
    }
}

/// The verbs of counters that queue pairs are bound to. The driver's data implements them; with
/// [`Self::create`], it must have all of them, and those of queue pairs.
#[vtable]
pub trait CounterVerbs<T: Driver>: Sized + Send + Sync {
    /// Creates a counter (`counter_bind_qp`).
    fn create(_dev: &Device<T>) -> Result<Self> {
        unprovided()
    }
    /// Returns the value of statistic `index` (`counter_update_stats`).
    fn stat(&self, _index: usize) -> u64 {
        unprovided()
    }
}
