// SPDX-License-Identifier: GPL-2.0

//! The port of a device: always port 1.
//!
//! C sources: `core/device.c`, `core/verbs.c`

use crate::{
    device::{Callbacks, Device},
    Driver,
};
use core::ptr::NonNull;
use kernel::{error::from_result, ffi::c_int, sync::aref::ARef};
use kernel_ext::net::NetDevice;
use riw_bindings as bindings;

/// The attributes of a port (`struct ib_port_attr`, `include/rdma/ib_verbs.h`).
pub type PortAttr = bindings::ib_port_attr;

/// Returns the speed (`enum ib_port_speed`) and width (`enum ib_port_width`) nearest to the speed
/// that the netdev reports to ethtool (`ib_get_eth_speed()`, `core/verbs.c`). Process context;
/// takes the RTNL, may sleep.
///
/// Returns the lowest values if the netdev reports no speed, or is gone.
pub fn eth_speed<T: Driver>(dev: &Device<T>) -> (u16, u8) {
    let least = (
        bindings::ib_port_speed_IB_SPEED_SDR as u16,
        bindings::ib_port_width_IB_WIDTH_1X as u8,
    );
    let (mut speed, mut width) = least;

    // ib_get_eth_speed() logs a warning at each call for a netdev without a speed.
    // SAFETY: `dev` is registered or being registered, so its `struct ib_device` is valid.
    if !unsafe { bindings::ib_netdev_has_speed(dev.as_raw()) } {
        return least;
    }

    // SAFETY: `dev` is registered or being registered, so its `struct ib_device` is valid. The
    // results are local variables.
    match unsafe { bindings::ib_get_eth_speed(dev.as_raw(), 1, &mut speed, &mut width) } {
        0 => (speed, width),
        _ => least,
    }
}

/// Returns the netdev of the port (`ib_device_get_netdev()`, `core/device.c`). Process context;
/// does not sleep.
///
/// Returns `None` if ib_core has let go of the netdev.
pub fn netdev<T: Driver>(dev: &Device<T>) -> Option<ARef<NetDevice>> {
    // SAFETY: `dev` is a reference, so its `struct ib_device` is valid.
    let netdev = NonNull::new(unsafe { bindings::ib_device_get_netdev(dev.as_raw(), 1) })?;

    // SAFETY: ib_device_get_netdev() has taken a reference, which the `ARef` owns from here on.
    // `NetDevice` is transparent over `struct net_device`.
    Some(unsafe { ARef::from_raw(netdev.cast()) })
}

/// Sets the state of the port: ACTIVE if it can carry traffic, else DOWN. Any context.
pub fn set_state(attr: &mut PortAttr, active: bool) {
    let (state, phys_state) = if active {
        (
            bindings::ib_port_state_IB_PORT_ACTIVE,
            bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_LINK_UP,
        )
    } else {
        (
            bindings::ib_port_state_IB_PORT_DOWN,
            bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_DISABLED,
        )
    };

    attr.state = state;
    // CAST: A small constant.
    attr.phys_state = phys_state as u8;
}

/// Sets the MTU of the port, in bytes. For verbs that is the largest `enum ib_mtu` not above `mtu`,
/// at least 256 (`ib_mtu_int_to_enum()`, `include/rdma/ib_verbs.h`). Any context.
pub fn set_mtu(attr: &mut PortAttr, mtu: u32) {
    // SAFETY: ib_mtu_int_to_enum() has no preconditions.
    attr.max_mtu = unsafe { bindings::ib_mtu_int_to_enum(mtu.try_into().unwrap_or(i32::MAX)) };
    attr.active_mtu = attr.max_mtu;
    attr.phys_mtu = mtu;
}

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.query_port = Some(Callbacks::<T>::query_port);
    ops.query_gid = Some(Callbacks::<T>::query_gid);
    ops.query_pkey = Some(Callbacks::<T>::query_pkey);
    ops.get_port_immutable = Some(Callbacks::<T>::get_port_immutable);
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only ib_core may call it, as `query_port` of a device of driver `T`.
    unsafe extern "C" fn query_port(
        dev: *mut bindings::ib_device,
        _port: u32,
        attr: *mut bindings::ib_port_attr,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core calls this for a device that is registered or being registered, so
            // its data is initialized. Only this call accesses `attr`.
            T::query_port(unsafe { Device::from_raw(dev) }, unsafe { &mut *attr })?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `query_gid` of a device of driver `T`.
    unsafe extern "C" fn query_gid(
        dev: *mut bindings::ib_device,
        _port: u32,
        _index: c_int,
        gid: *mut bindings::ib_gid,
    ) -> c_int {
        // SAFETY: ib_core calls this for a device that is registered or being registered, so its
        // data is initialized. Only this call accesses `gid`, a union whose fields all cover the
        // same 16 bytes.
        unsafe { (*gid).raw = T::query_gid(Device::<T>::from_raw(dev)) };
        0
    }

    /// iWARP has no partitions, but rdma_cm queries the first one when it resolves a loopback
    /// address.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `query_pkey` of a device of driver `T`.
    unsafe extern "C" fn query_pkey(
        _dev: *mut bindings::ib_device,
        _port: u32,
        _index: u16,
        pkey: *mut u16,
    ) -> c_int {
        /// The default partition.
        const DEFAULT: u16 = 0xffff;

        // SAFETY: ib_core passes a valid pointer that only this call accesses.
        unsafe { *pkey = DEFAULT };
        0
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `get_port_immutable` of a device of driver `T`.
    unsafe extern "C" fn get_port_immutable(
        dev: *mut bindings::ib_device,
        port: u32,
        immutable: *mut bindings::ib_port_immutable,
    ) -> c_int {
        let mut attr = PortAttr::default();

        // SAFETY: ib_core calls this while it registers the device, when all ops are set. `attr` is
        // a local variable.
        let ret = unsafe { bindings::ib_query_port(dev, port, &mut attr) };
        if ret != 0 {
            return ret;
        }
        // SAFETY: ib_core passes a valid struct that only this call accesses.
        unsafe {
            (*immutable).gid_tbl_len = attr.gid_tbl_len;
            (*immutable).pkey_tbl_len = attr.pkey_tbl_len.into();
            (*immutable).core_cap_flags = bindings::riw_core_cap_RIW_RDMA_CORE_PORT_IWARP;
        }
        0
    }
}
