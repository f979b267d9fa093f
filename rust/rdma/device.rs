// SPDX-License-Identifier: GPL-2.0

//! RDMA devices.
//!
//! C header: `include/rdma/ib_verbs.h`

use crate::{
    cq, iw,
    mr::{self, MrTable},
    pd, port, qp, srq, ucontext,
    version::Version,
    Driver, Exchange,
};
use core::{marker::PhantomData, mem::MaybeUninit, ops::Deref, ptr::NonNull};
use kernel::{
    device::Device as CoreDevice,
    error::{from_result, to_result},
    fmt::Write,
    module::this_module,
    prelude::*,
    str::NullTerminatedFormatter,
    sync::Arc,
    types::Opaque,
};
use riw_bindings as bindings;

/// In `kernel_cap_flags`: a user may unregister the device.
// CAST: A bit.
pub const ALLOW_USER_UNREG: u64 = bindings::ib_kernel_cap_flags_IBK_ALLOW_USER_UNREG as u64;

/// What a device can do (`struct ib_device_attr`).
pub type DeviceAttr = bindings::ib_device_attr;

/// An RDMA device (`struct ib_device`) with the data of its driver.
///
/// # Invariants
///
/// `base` is at offset 0 and initialised. `data` is initialised from before the device's ops are
/// set until ib_core calls `dealloc_driver`, the last of all callbacks. A `&Device` only exists in
/// between: in callbacks, and as long as a [`Registered`] does.
#[repr(C)]
pub struct Device<T: Driver> {
    base: Opaque<bindings::ib_device>,
    mrs: Arc<MrTable<T>>,
    data: MaybeUninit<T::Device>,
}

/// A device that cannot be unregistered as long as this exists.
pub struct Registered<T: Driver>(NonNull<Device<T>>);

impl<T: iw::CmOperations> Device<T> {
    /// Makes a device on `netdev` and registers it as `name`.
    ///
    /// It belongs to the network namespace of `netdev`. ib_core owns it from here on; the returned
    /// handle is for unregistering it. May sleep.
    ///
    /// Fails with `EINVAL` for a name with a `%`, which ib_core takes for a pattern and uses as a
    /// format, `ENODEV` if that namespace is being dismantled, `ENFILE` if there is a device of
    /// that name.
    pub fn register(
        name: &CStr,
        netdev: &net::NetDevice,
        info: &Info,
        data: impl PinInit<T::Device>,
    ) -> Result<Handle<T>> {
        const {
            assert!(core::mem::offset_of!(Self, base) == 0);
            assert!(align_of::<Self>() <= 8);
        }
        if name.to_bytes().contains(&b'%') {
            return Err(EINVAL);
        }
        let mrs = Arc::pin_init(MrTable::new(), GFP_KERNEL)?;

        // Nothing else keeps the namespace: `netdev` may be moved to another one meanwhile.
        let netns = netdev.netns().ok_or(ENODEV)?;
        // SAFETY: The size is that of a struct with an ib_device at its start; `netns` is held until
        // the device is registered.
        let raw = unsafe { bindings::_ib_alloc_device(size_of::<Self>(), netns.as_raw()) };
        let this = NonNull::new(raw.cast::<Self>()).ok_or(ENOMEM)?;

        // SAFETY: The memory is ours alone and has room for `data`.
        unsafe {
            (&raw mut (*this.as_ptr()).mrs).write(mrs);
            let Ok(()) =
                pin_init::raw_try_init((&raw mut (*this.as_ptr()).data).cast::<T::Device>(), data);
        }

        // INVARIANT: `data` is initialised, now the ops may be set.
        // SAFETY: The device is not registered: nobody else looks at it. `netdev` is alive.
        let done = unsafe {
            bindings::ib_set_device_ops(raw, &const { Self::ops() });
            (*raw).ops.device_group = T::attributes().as_raw();
            // Each verb checks what user space sends along with it: see `udata`.
            (*raw).ops.set_uverbs_robust_udata(1);
            (*raw).ops.owner = this_module::<T::OwnerModule>().as_ptr();
            info.apply(&mut *raw, netdev);
            to_result(bindings::ib_device_set_netdev(raw, netdev.as_raw(), 1))
        }
        .and_then(|()| {
            // The name given by the user is kept by udev.
            // SAFETY: As above.
            unsafe {
                (*raw).name_assign_type =
                    bindings::rdma_nl_name_assign_type_RDMA_NAME_ASSIGN_TYPE_USER;
                // Our own reference, for the caller: ib_core may unregister and free the device
                // as soon as it is registered.
                bindings::get_device(Self::core_device(raw));
            }
            // SAFETY: The device is complete; `name` is a string.
            let ret = unsafe {
                bindings::ib_register_device(raw, name.as_ptr().cast(), core::ptr::null_mut())
            };
            to_result(ret).inspect_err(|_| {
                // SAFETY: The reference taken above.
                unsafe { bindings::put_device(Self::core_device(raw)) }
            })
        });

        match done {
            // INVARIANT: The reference taken above is handed over.
            Ok(()) => Ok(Handle(this)),
            Err(e) => {
                // SAFETY: The device is not registered. This calls `dealloc_driver`.
                unsafe { bindings::ib_dealloc_device(raw) };
                Err(e)
            }
        }
    }

    /// The verbs, as ib_core calls them.
    const fn ops() -> bindings::ib_device_ops {
        // SAFETY: Null is a valid value of every field: it means that the verb is not offered.
        let mut ops: bindings::ib_device_ops = unsafe { core::mem::zeroed() };

        ops.driver_id = T::DRIVER_ID;
        ops.uverbs_abi_ver = T::ABI_VERSION;
        ops.query_device = Some(Self::query_device_callback);
        ops.get_dev_fw_str = Some(Self::get_dev_fw_str_callback);
        ops.dealloc_driver = Some(Self::dealloc_driver_callback);
        ops = port::fill::<T>(ops);
        ops = ucontext::fill::<T>(ops);
        ops = pd::fill::<T>(ops);
        ops = cq::fill::<T>(ops);
        ops = srq::fill::<T>(ops);
        ops = qp::fill::<T>(ops);
        ops = iw::fill::<T>(ops);
        mr::fill::<T>(ops)
    }
}

impl<T: Driver> Device<T> {
    /// Borrows a device from ib_core's pointer.
    ///
    /// # Safety
    ///
    /// `raw` must be a device made by [`Self::register`] whose `data` is initialised for `'a`.
    pub(crate) unsafe fn from_raw<'a>(raw: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: By the caller's promise; `base` is at offset 0.
        unsafe { &*raw.cast() }
    }

    /// The `struct device` within an ib_device.
    ///
    /// # Safety
    ///
    /// `raw` must be an allocated ib_device.
    unsafe fn core_device(raw: *mut bindings::ib_device) -> *mut bindings::device {
        // SAFETY: By the caller's promise; no reference is made.
        unsafe { (&raw mut (*raw).__bindgen_anon_1.dev).cast() }
    }

    /// ib_core's part.
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.base.get()
    }

    /// The device on `netdev` that has this driver's id, if there is one: `Err` if another driver
    /// made it (siw has the same id). Any context.
    pub fn on(netdev: &net::NetDevice) -> Result<Option<Registered<T>>> {
        // SAFETY: `netdev` is alive.
        let raw = unsafe { bindings::ib_device_get_by_netdev(netdev.as_raw(), T::DRIVER_ID) };
        let Some(this) = NonNull::new(raw) else {
            return Ok(None);
        };

        // SAFETY: ib_device_get_by_netdev() took a reference that holds it registered.
        let dealloc = unsafe { (*this.as_ptr()).ops.dealloc_driver };
        // A callback of this type's own says whose device it is.
        let ours = Self::dealloc_driver_callback as unsafe extern "C" fn(_);
        if dealloc.is_none_or(|dealloc| dealloc as usize != ours as usize) {
            // SAFETY: Gives that reference back.
            unsafe { bindings::ib_device_put(this.as_ptr()) };
            return Err(EBUSY);
        }
        Ok(Some(Registered(this.cast())))
    }

    /// The memory regions of the device.
    pub fn mrs(&self) -> &Arc<MrTable<T>> {
        &self.mrs
    }

    /// ib_core's `struct device`, for messages.
    pub fn as_dev(&self) -> &CoreDevice {
        // SAFETY: The embedded device lives as long as `self`.
        unsafe { CoreDevice::from_raw(Self::core_device(self.as_raw())) }
    }

    unsafe extern "C" fn query_device_callback(
        dev: *mut bindings::ib_device,
        attr: *mut bindings::ib_device_attr,
        udata: *mut bindings::ib_udata,
    ) -> kernel::ffi::c_int {
        from_result(|| {
            // SAFETY: ib_core's pointer, valid for the call.
            unsafe { Exchange::check_empty(udata)? };
            // SAFETY: Called for a registered device, or while it is being registered.
            let dev = unsafe { Self::from_raw(dev) };
            // SAFETY: `attr` is valid, and nobody else's for the call.
            let attr = unsafe { &mut *attr };

            *attr = DeviceAttr::default();
            T::query_device(dev, attr);
            Ok(0)
        })
    }

    unsafe extern "C" fn get_dev_fw_str_callback(
        dev: *mut bindings::ib_device,
        to: *mut kernel::ffi::c_char,
    ) {
        // SAFETY: The attributes were set when the device was registered, which it is or was.
        let fw_ver = unsafe { (*dev).attrs.fw_ver };
        let Version {
            major,
            minor,
            patch,
        } = Version::from_fw_ver(fw_ver);
        let mut text = [0u8; bindings::IB_FW_VERSION_NAME_MAX as usize];

        if let Some(mut text) = NullTerminatedFormatter::new(&mut text) {
            // There is room for three numbers of 16 bits.
            let _ = write!(text, "{major}.{minor}.{patch}");
        }
        // SAFETY: `to` has room for that many bytes, and is nobody else's for the call.
        unsafe {
            to.cast::<u8>()
                .copy_from_nonoverlapping(text.as_ptr(), text.len())
        };
    }

    unsafe extern "C" fn dealloc_driver_callback(dev: *mut bindings::ib_device) {
        // SAFETY: The ops were set after `data` was initialised, and this is the last of them.
        T::dealloc_device(unsafe { Self::from_raw(dev) });
        // SAFETY: As above; nobody uses `data` any more.
        unsafe {
            (*dev.cast::<Self>()).data.assume_init_drop();
            core::ptr::drop_in_place(&raw mut (*dev.cast::<Self>()).mrs);
        }
    }
}

impl<T: Driver> Deref for Device<T> {
    type Target = T::Device;

    fn deref(&self) -> &T::Device {
        // SAFETY: By the type's invariants.
        unsafe { self.data.assume_init_ref() }
    }
}

/// A device that was registered, and may not be any more.
///
/// # Invariants
///
/// Holds a reference that keeps the memory of the ib_device.
pub struct Handle<T: Driver>(NonNull<Device<T>>);

impl<T: Driver> Handle<T> {
    /// Holds the device registered, unless it is being unregistered already. Any context.
    pub fn try_get(&self) -> Option<Registered<T>> {
        // SAFETY: The memory is there, by the type's invariant; the count may be zero.
        unsafe { bindings::ib_device_try_get(self.0.as_ptr().cast()) }.then(|| Registered(self.0))
    }

    /// Unregisters the device. If somebody does so already, waits until that is done: after this
    /// no callback of the driver runs for it any more, and none will. May sleep.
    pub fn unregister(self) {
        // SAFETY: The memory is there, by the type's invariant; whether the device is still
        // registered is looked at by the function, under the device's lock.
        unsafe { bindings::ib_unregister_device(self.0.as_ptr().cast()) };
    }
}

impl<T: Driver> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: Gives back the reference of the type's invariant.
        unsafe { bindings::put_device(Device::<T>::core_device(self.0.as_ptr().cast())) };
    }
}

// SAFETY: The reference may be given back, and the functions above called, from any thread.
unsafe impl<T: Driver> Send for Handle<T> {}
// SAFETY: As above.
unsafe impl<T: Driver> Sync for Handle<T> {}

// SAFETY: ib_core's part is used as ib_core allows, from any thread; the driver's is `Send`.
unsafe impl<T: Driver> Send for Device<T> {}
// SAFETY: As above.
unsafe impl<T: Driver> Sync for Device<T> {}

impl<T: Driver> Registered<T> {
    /// Has ib_core unregister the device from a worker of its own. Any context.
    pub fn unregister_later(&self) {
        // SAFETY: The device is held registered; its ops have `dealloc_driver`.
        unsafe { bindings::ib_unregister_device_queued(self.as_raw()) };
    }
}

impl<T: Driver> Deref for Registered<T> {
    type Target = Device<T>;

    fn deref(&self) -> &Device<T> {
        // SAFETY: The reference holds the device registered, so `data` is initialised.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Driver> Drop for Registered<T> {
    fn drop(&mut self) {
        // SAFETY: Gives back the reference that the value stands for.
        unsafe { bindings::ib_device_put(self.as_raw()) };
    }
}

// SAFETY: A counted reference to a `Device`, which is `Send` and `Sync`.
unsafe impl<T: Driver> Send for Registered<T> {}
// SAFETY: As above.
unsafe impl<T: Driver> Sync for Registered<T> {}

/// How many CPUs there can be.
pub fn possible_cpus() -> i32 {
    // SAFETY: No requirements.
    unsafe { bindings::num_possible_cpus() }
        .try_into()
        .unwrap_or(i32::MAX)
}

/// An unpredictable number. Any context.
pub fn random() -> u64 {
    // SAFETY: No requirements.
    unsafe { bindings::get_random_u64() }
}

/// A hash of three numbers, the same whenever and wherever it is made. Any context.
pub fn hash(a: u64, b: u64, c: u64) -> u64 {
    // SAFETY: No requirements.
    unsafe { bindings::hash_3u64(a, b, c) }
}

/// What a device says of itself.
pub struct Info {
    /// The GUID of the device, an EUI-64 that no other device of the host has.
    pub node_guid: [u8; 8],
    /// A line for people.
    pub description: &'static CStr,
    /// The number of completion vectors.
    pub completion_vectors: i32,
}

impl Info {
    fn apply(&self, dev: &mut bindings::ib_device, netdev: &net::NetDevice) {
        dev.node_guid = u64::from_ne_bytes(self.node_guid);
        dev.node_type = bindings::RDMA_NODE_RNIC as u8;
        dev.phys_port_cnt = 1;
        dev.num_comp_vectors = self.completion_vectors;
        // User space rings the doorbell by this command.
        dev.uverbs_cmd_mask |= 1 << bindings::ib_uverbs_write_cmds_IB_USER_VERBS_CMD_POST_SEND;
        // The TCP port is the one that the user names; no port mapper.
        dev.iw_driver_flags = bindings::iw_flags_IW_F_NO_PORT_MAP;
        copy_name(&mut dev.node_desc, self.description.to_bytes());
        copy_name(&mut dev.iw_ifname, netdev.name().to_bytes());
    }
}

/// Copies a name into a zeroed array of C, leaving at least one zero at its end.
fn copy_name(to: &mut [kernel::ffi::c_char], from: &[u8]) {
    let room = to.len().saturating_sub(1);

    for (to, from) in to.iter_mut().take(room).zip(from) {
        *to = *from;
    }
}

/// The driver of a device, as a type; used where only its callbacks are named.
pub(crate) struct Callbacks<T: Driver>(PhantomData<T>);
