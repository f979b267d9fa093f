// SPDX-License-Identifier: GPL-2.0

//! RDMA devices.
//!
//! C header: `include/rdma/ib_verbs.h`. C source: `core/device.c`

pub mod info;
pub mod register;

use crate::{mr::MrTable, ops::SrqVerbs, qp::table::QpTable, version::Version, Driver, Udata};
use core::{marker::PhantomData, mem::MaybeUninit, ops::Deref, ptr::NonNull};
use kernel::{
    device::Device as CoreDevice,
    error::from_result,
    fmt::{self, Write},
    prelude::*,
    str::NullTerminatedFormatter,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
    types::Opaque,
};
use kernel_ext::{net::NetDevice, ratelimit::RateLimit};
use riw_bindings as bindings;

/// In `kernel_cap_flags`: `rdma link delete` may unregister the device (`IBK_ALLOW_USER_UNREG`,
/// `include/rdma/ib_verbs.h`).
// CAST: A bit.
pub const ALLOW_USER_UNREG: u64 = bindings::ib_kernel_cap_flags_IBK_ALLOW_USER_UNREG as u64;

/// In `kernel_cap_flags`: kernel users name any memory by
/// [`LOCAL_DMA_LKEY`](crate::wr::LOCAL_DMA_LKEY) (`IBK_LOCAL_DMA_LKEY`).
// CAST: A bit.
pub const LOCAL_DMA_LKEY: u64 = bindings::ib_kernel_cap_flags_IBK_LOCAL_DMA_LKEY as u64;

/// In `device_cap_flags`: fast registration, and Send with Invalidate
/// (`IB_DEVICE_MEM_MGT_EXTENSIONS`).
// CAST: A bit.
pub const MEM_MGT_EXTENSIONS: u64 =
    bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64;
/// The device capability of memory windows of types 1 and 2B (`IB_DEVICE_MEM_WINDOW`,
/// `IB_DEVICE_MEM_WINDOW_TYPE_2B`).
// CAST: Bits of a mask.
pub const MEMORY_WINDOWS: u64 = bindings::ib_device_cap_flags_IB_DEVICE_MEM_WINDOW as u64
    | bindings::ib_device_cap_flags_IB_DEVICE_MEM_WINDOW_TYPE_2B as u64;

/// In `atomic_cap` and `masked_atomic_cap`: no atomic operations (`IB_ATOMIC_NONE`).
pub const ATOMIC_NONE: AtomicCap = bindings::ib_atomic_cap_IB_ATOMIC_NONE;
/// In `atomic_cap` and `masked_atomic_cap`: they are atomic among all devices and CPUs of the host
/// (`IB_ATOMIC_GLOB`).
pub const ATOMIC_GLOB: AtomicCap = bindings::ib_atomic_cap_IB_ATOMIC_GLOB;
/// The scope of atomic operations (`enum ib_atomic_cap`).
pub type AtomicCap = bindings::ib_atomic_cap;

/// The capabilities of a device (`struct ib_device_attr`, `include/rdma/ib_verbs.h`).
pub type DeviceAttr = bindings::ib_device_attr;

/// Returns a number as [`DeviceAttr`] has it: an `int` in Linux 7.2, a `u32` later. Processes get
/// an `int` in any case.
pub fn count<T: TryFrom<u32> + Default>(number: u32) -> T {
    T::try_from(number.min(i32::MAX as u32)).unwrap_or_default()
}

/// An RDMA device (`struct ib_device`, `include/rdma/ib_verbs.h`) with the driver's data.
///
/// # Invariants
///
/// `base` is at offset 0 and initialized. `data` is initialized before the device's ops are set,
/// and dropped by `dealloc_driver`, the last callback. A `&Device` exists only in between: in
/// callbacks, and while an object of the device or a [`Registered`] exists.
#[repr(C)]
pub struct Device<T: Driver> {
    base: Opaque<bindings::ib_device>,
    mrs: Arc<MrTable<T>>,
    qps: Pin<KBox<QpTable>>,
    next_counter: Atomic<u32>,
    data: MaybeUninit<T::Device>,
}

/// A device that stays registered as long as this exists (`ib_device_try_get()`,
/// `include/rdma/ib_verbs.h`). Unregistration waits for the drop, so drop it soon.
pub struct Registered<T: Driver>(NonNull<Device<T>>);

/// Sets the callbacks of this file in a `struct ib_device_ops`.
const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.query_device = Some(Device::<T>::query_device_callback);
    ops.get_dev_fw_str = Some(Device::<T>::get_dev_fw_str_callback);
    if T::HAS_ENABLE_DEVICE {
        ops.enable_driver = Some(Device::<T>::enable_driver_callback);
    }
    ops.dealloc_driver = Some(Device::<T>::dealloc_driver_callback);
    ops
}

impl<T: Driver> Device<T> {
    /// Borrows a device from ib_core's pointer. Any context.
    ///
    /// # Safety
    ///
    /// [`Self::register`] must have made `raw`, and its `data` must stay initialized for `'a`.
    pub(crate) unsafe fn from_raw<'a>(raw: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: By the caller's promise `raw` is the start of a `Device<T>` whose data is
        // initialized for `'a`; `base` is at offset 0.
        unsafe { &*raw.cast() }
    }

    /// Returns the `struct device` of an ib_device. Any context.
    ///
    /// # Safety
    ///
    /// `raw` must be an allocated ib_device.
    unsafe fn core_device(raw: *mut bindings::ib_device) -> *mut bindings::device {
        // SAFETY: By the caller's promise `raw` is allocated, so the pointer to its field is within
        // it. No reference is made.
        unsafe { (&raw mut (*raw).__bindgen_anon_1.dev).cast() }
    }

    /// Returns ib_core's part, for crates that call C functions. The pointer is valid as long as
    /// `self`. Any context.
    pub fn as_raw(&self) -> *mut bindings::ib_device {
        self.base.get()
    }

    /// Finds this driver's device on `netdev` (`ib_device_get_by_netdev()`, `core/device.c`). Any
    /// context.
    ///
    /// Fails with `EBUSY` if there is only one that another driver made, with one of this driver's
    /// ids.
    pub fn on(netdev: &NetDevice) -> Result<Option<Registered<T>>> {
        let mut found = Ok(None);

        for abi in T::USER_ABIS {
            match Self::with_id(netdev, abi.driver_id) {
                Ok(None) => {}
                Err(e) => found = Err(e),
                ours => return ours,
            }
        }
        found
    }

    /// Finds this driver's device on `netdev` with one of its ids, as [`Self::on`] does.
    fn with_id(netdev: &NetDevice, id: u32) -> Result<Option<Registered<T>>> {
        // SAFETY: `netdev` is a reference, so it is alive.
        let raw = unsafe { bindings::ib_device_get_by_netdev(netdev.as_raw(), id) };
        let Some(this) = NonNull::new(raw) else {
            return Ok(None);
        };

        // SAFETY: ib_device_get_by_netdev() returned a device with a reference that keeps it
        // registered, so its ops are set and readable.
        let dealloc = unsafe { (*this.as_ptr()).ops.dealloc_driver };
        // A callback of this type identifies the driver.
        let ours = Self::dealloc_driver_callback as unsafe extern "C" fn(_);
        if dealloc.is_none_or(|dealloc| dealloc as usize != ours as usize) {
            // SAFETY: ib_device_get_by_netdev() took the reference that is dropped here.
            unsafe { bindings::ib_device_put(this.as_ptr()) };
            return Err(EBUSY);
        }
        Ok(Some(Registered(this.cast())))
    }

    /// Returns the memory regions of the device. Any context.
    pub fn mrs(&self) -> &Arc<MrTable<T>> {
        &self.mrs
    }

    /// Returns the table of queue pairs. Any context.
    pub(crate) fn qps(&self) -> &QpTable {
        &self.qps
    }

    /// Whether ib_core is moving the device to another network namespace, or unregistering it
    /// (`rdma_dev_change_netns()`, `core/device.c`). Any context.
    pub fn is_moving(&self) -> bool {
        // SAFETY: `self` is alive, and ib_core initialized its lock when it allocated the device.
        unsafe { bindings::ib_device_is_moving(self.as_raw()) }
    }

    /// Returns a number for a counter that queue pairs are bound to. Any context.
    ///
    /// Numbers repeat after 2^32 counters. ib_core does not list a counter whose number is in use.
    pub(crate) fn next_counter_id(&self) -> u32 {
        self.next_counter.fetch_add(1u32, ordering::Relaxed)
    }

    /// Returns ib_core's `struct device`, for `dev_*!` messages. Any context.
    pub fn as_dev(&self) -> &CoreDevice {
        // SAFETY: ib_core initialized the embedded device, which lives as long as `self`.
        unsafe { CoreDevice::from_raw(Self::core_device(self.as_raw())) }
    }

    /// Logs a line about the device as `dev_dbg()` does: if dynamic debug is on for the module,
    /// within `limit`. Any context.
    pub fn debug(&self, limit: &RateLimit, line: fmt::Arguments<'_>) {
        // SAFETY: The device and the limit are borrowed, and initialized by their type invariants.
        // The helper prints `line` by `%pA`, which takes a pointer to a `fmt::Arguments`, before it
        // returns.
        unsafe {
            bindings::ibdev_dbg_limited(
                self.as_raw(),
                limit.as_raw(),
                (&raw const line).cast::<kernel::ffi::c_void>(),
            )
        }
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `query_device` of a device of driver `T`.
    unsafe extern "C" fn query_device_callback(
        dev: *mut bindings::ib_device,
        attr: *mut bindings::ib_device_attr,
        udata: *mut bindings::ib_udata,
    ) -> kernel::ffi::c_int {
        from_result(|| {
            // SAFETY: ib_core passes null or a `udata` that is valid during the call.
            unsafe { Udata::check_empty(udata)? };
            // SAFETY: ib_core calls this for a device that is registered or being registered, so
            // its `data` is initialized.
            let dev = unsafe { Self::from_raw(dev) };
            // SAFETY: ib_core passes valid attributes that only this call accesses.
            let attr = unsafe { &mut *attr };

            *attr = DeviceAttr::default();
            T::query_device(dev, !udata.is_null(), attr);
            if !T::Srq::HAS_CREATE {
                // Kernel users such as nvmet look at it first.
                attr.max_srq = count(0);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `get_dev_fw_str` of a device of driver `T`.
    unsafe extern "C" fn get_dev_fw_str_callback(
        dev: *mut bindings::ib_device,
        to: *mut kernel::ffi::c_char,
    ) {
        // SAFETY: ib_core passes a device that is or was registered. Registration called
        // `query_device`, which set the attributes; they do not change afterwards.
        let fw_ver = unsafe { (*dev).attrs.fw_ver };
        let Version {
            major,
            minor,
            patch,
        } = Version::from_fw_ver(fw_ver);
        let mut text = [0u8; bindings::IB_FW_VERSION_NAME_MAX as usize];

        if let Some(mut text) = NullTerminatedFormatter::new(&mut text) {
            // Three 16-bit numbers fit.
            let _ = write!(text, "{major}.{minor}.{patch}");
        }
        // SAFETY: ib_core passes a buffer of `IB_FW_VERSION_NAME_MAX` bytes, the length of `text`,
        // that only this call accesses.
        unsafe {
            to.cast::<u8>()
                .copy_from_nonoverlapping(text.as_ptr(), text.len())
        };
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `enable_driver` of a device of driver `T`.
    unsafe extern "C" fn enable_driver_callback(
        dev: *mut bindings::ib_device,
    ) -> kernel::ffi::c_int {
        let Some(this) = NonNull::new(dev.cast()) else {
            return 0;
        };

        // SAFETY: ib_core passes a device that it is about to show to its clients: it is allocated.
        if unsafe { bindings::ib_device_try_get(dev) } {
            T::enable_device(&Registered(this));
        }
        0
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `dealloc_driver` of a device of driver `T`.
    unsafe extern "C" fn dealloc_driver_callback(dev: *mut bindings::ib_device) {
        // SAFETY: ib_core calls this once, as the last callback of a device whose ops are set, so
        // `data` is initialized until it is dropped below.
        T::dealloc_device(unsafe { Self::from_raw(dev) });
        // SAFETY: `data`, `mrs` and `qps` were initialized before the ops were set. ib_core calls
        // nothing else for the device, and no object, `Registered` or callback exists any more, so
        // no reference to them remains.
        unsafe {
            (*dev.cast::<Self>()).data.assume_init_drop();
            core::ptr::drop_in_place(&raw mut (*dev.cast::<Self>()).mrs);
            core::ptr::drop_in_place(&raw mut (*dev.cast::<Self>()).qps);
        }
    }
}

impl<T: Driver> Deref for Device<T> {
    type Target = T::Device;

    fn deref(&self) -> &T::Device {
        // SAFETY: By the type invariants `data` is initialized while a `&Device` exists.
        unsafe { self.data.assume_init_ref() }
    }
}

// SAFETY: ib_core's part is only accessible in this crate, which follows ib_core's rules for use
// from any thread. `data` is `Send`, and so are `mrs` and `qps`.
unsafe impl<T: Driver> Send for Device<T> {}
// SAFETY: `&Device` gives access to `data`, `mrs` and `qps`, which are `Sync`. ib_core's part is
// only accessible in this crate, which follows ib_core's locking rules.
unsafe impl<T: Driver> Sync for Device<T> {}

impl<T: Driver> Registered<T> {
    /// Has a worker of ib_core unregister the device (`ib_unregister_device_queued()`,
    /// `core/device.c`). Any context.
    pub fn unregister_later(&self) {
        // SAFETY: `self` keeps the device registered, and its ops have `dealloc_driver`, as the
        // function requires.
        unsafe { bindings::ib_unregister_device_queued(self.as_raw()) };
    }
}

impl<T: Driver> Deref for Registered<T> {
    type Target = Device<T>;

    fn deref(&self) -> &Device<T> {
        // SAFETY: The reference that `self` stands for keeps the device registered, so its `data`
        // is initialized.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Driver> Drop for Registered<T> {
    fn drop(&mut self) {
        // SAFETY: `self` owns a reference of ib_device_try_get() or ib_device_get_by_netdev(),
        // which is dropped here.
        unsafe { bindings::ib_device_put(self.as_raw()) };
    }
}

// SAFETY: A counted reference to a `Device`, which is `Send` and `Sync`, may be dropped by any
// thread.
unsafe impl<T: Driver> Send for Registered<T> {}
// SAFETY: `&Registered` gives access to a `&Device` only, and `Device` is `Sync`.
unsafe impl<T: Driver> Sync for Registered<T> {}

/// Namespace for the callbacks of driver `T`.
pub(crate) struct Callbacks<T: Driver>(PhantomData<T>);
