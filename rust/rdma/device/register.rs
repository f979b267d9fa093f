// SPDX-License-Identifier: GPL-2.0

//! The registration of a device with ib_core.

use super::{info::Info, Device};
use crate::{
    cq, iw, mr, mr::MrTable, mw, pd, pma, port, qp, qp::table::QpTable, restrack, srq, stats,
    ucontext, Driver,
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    module::this_module,
    prelude::*,
    sync::{atomic::Atomic, Arc},
};
use kernel_ext::net::{NetDevice, Netns};
use riw_bindings as bindings;

impl<T: iw::CmOperations> Device<T> {
    /// Creates a device on `netdev` and registers it as `name` (`_ib_alloc_device()`,
    /// `ib_register_device()`, `core/device.c`). Process context; may sleep.
    ///
    /// The device belongs to the network namespace of `netdev`. ib_core owns it from here on, and
    /// may unregister it at any time.
    ///
    /// Fails with `EINVAL` if `name` contains a `%`, which ib_core would use as a format, `ENODEV`
    /// if the namespace is being dismantled, `ENFILE` if the name is taken, `ENOMEM` without
    /// memory, or another error of ib_core.
    pub fn register(
        name: &CStr,
        netdev: &NetDevice,
        info: &Info,
        data: impl PinInit<T::Device>,
    ) -> Result<DeviceRegistration<T>> {
        const {
            assert!(core::mem::offset_of!(Self, base) == 0);
            assert!(align_of::<Self>() <= 8);
        }
        if name.to_bytes_with_nul().contains(&b'%') {
            return Err(EINVAL);
        }
        // This reference keeps the namespace: `netdev` may move to another one meanwhile.
        let netns = netdev.netns().ok_or(ENODEV)?;
        let this = Self::alloc(&netns, data)?;
        let raw = this.as_ptr().cast::<bindings::ib_device>();

        // SAFETY: `alloc` returned `raw`, which nothing else accesses.
        let registered = unsafe {
            Self::configure(raw, netdev, info).and_then(|()| Self::register_core(raw, name))
        };
        match registered {
            // INVARIANT: The registration owns the reference that `register_core` took.
            Ok(()) => Ok(DeviceRegistration(this)),
            Err(e) => {
                // SAFETY: The device is allocated and not registered. `data` is dropped by
                // `dealloc_driver`, which ib_dealloc_device() calls.
                unsafe { bindings::ib_dealloc_device(raw) };
                Err(e)
            }
        }
    }

    /// Allocates a device with its data and its callbacks, and registers nothing. The caller must
    /// pass it to `ib_register_device()` or `ib_dealloc_device()`. Process context; may sleep.
    fn alloc(netns: &Netns, data: impl PinInit<T::Device>) -> Result<NonNull<Self>> {
        let mrs = Arc::pin_init(MrTable::new(), GFP_KERNEL)?;
        let qps = KBox::pin_init(QpTable::new(), GFP_KERNEL)?;
        // SAFETY: A `Self` of that size begins with an ib_device. The caller holds `netns` until
        // the device is registered.
        let raw = unsafe { bindings::_ib_alloc_device(size_of::<Self>(), netns.as_raw()) };
        let this = NonNull::new(raw.cast::<Self>()).ok_or(ENOMEM)?;

        // SAFETY: ib_core allocated `size_of::<Self>()` zeroed bytes, aligned to 8, and nothing
        // else accesses them yet. So each field may be written.
        unsafe {
            (&raw mut (*this.as_ptr()).mrs).write(mrs);
            (&raw mut (*this.as_ptr()).qps).write(qps);
            (&raw mut (*this.as_ptr()).next_counter).write(Atomic::new(1));
            let Ok(()) =
                pin_init::raw_try_init((&raw mut (*this.as_ptr()).data).cast::<T::Device>(), data);
        }
        // INVARIANT: `data`, `mrs` and `qps` are initialized, so the ops may be set.
        // SAFETY: `raw` is a new device that is not registered, so nothing else accesses it. The
        // ops are static.
        unsafe { bindings::ib_set_device_ops(raw, &const { Self::ops() }) };
        Ok(this)
    }

    /// Sets the fields that ib_core needs before the registration. Process context; may sleep.
    ///
    /// # Safety
    ///
    /// `raw` must come from [`Self::alloc`], not registered, and nothing else may access it.
    unsafe fn configure(raw: *mut bindings::ib_device, netdev: &NetDevice, info: &Info) -> Result {
        // SAFETY: By the caller's promise nothing else accesses the device. `netdev` is a
        // reference, so it is alive. The attribute groups are static. ib_core sets the first two
        // groups, and the first one that is free for statistics of a device, which no driver here
        // has; the last one stays null.
        to_result(unsafe {
            if T::HAS_ATTRIBUTES {
                let [first, second] = T::attributes();
                (*raw).ops.device_group = first.as_raw();
                (*raw).groups[2] = second.as_raw();
            }
            // Each verb checks the data that user space sends: see `udata`.
            (*raw).ops.set_uverbs_robust_udata(1);
            (*raw).ops.driver_id = info.abi.driver_id;
            (*raw).ops.uverbs_abi_ver = info.abi.version;
            (*raw).ops.owner = this_module::<T::OwnerModule>().as_ptr();
            // Makes udev keep the user's name.
            (*raw).name_assign_type = bindings::rdma_nl_name_assign_type_RDMA_NAME_ASSIGN_TYPE_USER;
            info.apply(&mut *raw, netdev);
            bindings::ib_device_set_netdev(raw, netdev.as_raw(), 1)
        })
    }

    /// Registers the device with ib_core, and takes a reference to it if that succeeds. Process
    /// context; may sleep.
    ///
    /// # Safety
    ///
    /// `raw` must come from [`Self::alloc`] and be configured by [`Self::configure`].
    unsafe fn register_core(raw: *mut bindings::ib_device, name: &CStr) -> Result {
        // ib_core may unregister and free the device as soon as it is registered, so take the
        // reference first.
        // SAFETY: By the caller's promise the device is allocated and not registered: it is alive.
        unsafe { bindings::get_device(Self::core_device(raw)) };
        // SAFETY: By the caller's promise the ops, the netdev and all fields that ib_core requires
        // are set. `name` is a NUL-terminated string.
        let ret =
            unsafe { bindings::ib_register_device(raw, name.as_char_ptr(), core::ptr::null_mut()) };

        to_result(ret).inspect_err(|_| {
            // SAFETY: `get_device()` above took the reference that is dropped here.
            unsafe { bindings::put_device(Self::core_device(raw)) }
        })
    }

    /// Returns the verbs of driver `T`. `configure` adds the fields that differ between devices.
    const fn ops() -> bindings::ib_device_ops {
        // SAFETY: All-zero bytes are valid `ib_device_ops`: a null callback means that the verb is
        // not offered.
        let mut ops: bindings::ib_device_ops = unsafe { core::mem::zeroed() };

        ops = super::fill::<T>(ops);
        ops = port::fill::<T>(ops);
        ops = pma::fill::<T>(ops);
        ops = ucontext::fill::<T>(ops);
        ops = pd::fill::<T>(ops);
        ops = cq::fill::<T>(ops);
        ops = srq::fill::<T>(ops);
        ops = qp::callbacks::fill::<T>(ops);
        ops = iw::callbacks::fill::<T>(ops);
        ops = stats::fill::<T>(ops);
        ops = restrack::fill::<T>(ops);
        mw::fill::<T>(mr::callbacks::fill::<T>(ops))
    }
}

/// A registration of a device with ib_core. Dropping it unregisters the device
/// (`ib_unregister_device()`, `core/device.c`). Process context; may sleep.
///
/// `rdma link delete` and the end of the netdev unregister the device, too: the drop waits for
/// another thread that is doing so. After the drop no callback of the driver runs for the device.
///
/// # Invariants
///
/// The registration owns a reference to the memory of the ib_device, which was registered.
pub struct DeviceRegistration<T: Driver>(NonNull<Device<T>>);

impl<T: Driver> Drop for DeviceRegistration<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant there is a reference, which is dropped here, after its last
        // use. ib_unregister_device() checks under the device's lock whether the device is still
        // registered.
        unsafe {
            bindings::ib_unregister_device(self.0.as_ptr().cast());
            bindings::put_device(Device::<T>::core_device(self.0.as_ptr().cast()));
        }
    }
}

// SAFETY: Any thread may unregister a device, and drop a reference to it.
unsafe impl<T: Driver> Send for DeviceRegistration<T> {}
// SAFETY: `&self` allows nothing.
unsafe impl<T: Driver> Sync for DeviceRegistration<T> {}
