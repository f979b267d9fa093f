// SPDX-License-Identifier: GPL-2.0

//! The one port of a device.

use crate::{
    device::{Callbacks, Device},
    Driver,
};
use core::ptr::NonNull;
use kernel::{error::from_result, ffi::c_int, sync::aref::ARef};
use riw_bindings as bindings;

/// The state and abilities of a port (`struct ib_port_attr`).
pub type PortAttr = bindings::ib_port_attr;

/// Speed and width of a link as verbs know them (`active_speed`, `active_width`), nearest to what
/// the netdev's driver reports through ethtool; the least there is if it reports nothing, or is
/// gone. May sleep, takes the RTNL.
pub fn eth_speed<T: Driver>(dev: &Device<T>) -> (u16, u8) {
    let least = (
        bindings::ib_port_speed_IB_SPEED_SDR as u16,
        bindings::ib_port_width_IB_WIDTH_1X as u8,
    );
    let (mut speed, mut width) = least;

    // ib_get_eth_speed() warns of a netdev without a speed each time it is asked.
    // SAFETY: The device is registered, or being so.
    if !unsafe { bindings::ib_netdev_has_speed(dev.as_raw()) } {
        return least;
    }

    // SAFETY: The device is registered; the results are ours.
    match unsafe { bindings::ib_get_eth_speed(dev.as_raw(), 1, &mut speed, &mut width) } {
        0 => (speed, width),
        _ => least,
    }
}

/// The netdev of the port, if ib_core still has one. Process context.
pub fn netdev<T: Driver>(dev: &Device<T>) -> Option<ARef<net::NetDevice>> {
    // SAFETY: The device is alive.
    let netdev = NonNull::new(unsafe { bindings::ib_netdev(dev.as_raw()) })?;

    // SAFETY: The function returns a reference, which is handed over. `NetDevice` is transparent.
    Some(unsafe { ARef::from_raw(netdev.cast()) })
}

/// Reports whether the port can carry traffic.
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

/// Reports the MTU, in bytes of a netdev, as the nearest that verbs know.
pub fn set_mtu(attr: &mut PortAttr, mtu: u32) {
    // SAFETY: `attr` is valid.
    unsafe { bindings::ib_port_mtu(attr, mtu) };
}

/// Fills in the callbacks of this file.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    ops.query_port = Some(Callbacks::<T>::query_port);
    ops.query_gid = Some(Callbacks::<T>::query_gid);
    ops.query_pkey = Some(Callbacks::<T>::query_pkey);
    ops.get_port_immutable = Some(Callbacks::<T>::get_port_immutable);
    ops
}

impl<T: Driver> Callbacks<T> {
    unsafe extern "C" fn query_port(
        dev: *mut bindings::ib_device,
        _port: u32,
        attr: *mut bindings::ib_port_attr,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The device is registered or being so; `attr` is the call's own.
            T::query_port(unsafe { Device::from_raw(dev) }, unsafe { &mut *attr })?;
            Ok(0)
        })
    }

    unsafe extern "C" fn query_gid(
        dev: *mut bindings::ib_device,
        _port: u32,
        _index: c_int,
        gid: *mut bindings::ib_gid,
    ) -> c_int {
        // SAFETY: As above. A GID is 16 bytes in whatever way they are looked at.
        unsafe { (*gid).raw = T::query_gid(Device::<T>::from_raw(dev)) };
        0
    }

    /// iWARP has no partitions. But the connection manager asks for the first one when it resolves
    /// a loopback address.
    unsafe extern "C" fn query_pkey(
        _dev: *mut bindings::ib_device,
        _port: u32,
        _index: u16,
        pkey: *mut u16,
    ) -> c_int {
        /// The partition that everybody is in.
        const DEFAULT: u16 = 0xffff;

        // SAFETY: The result is the call's own.
        unsafe { *pkey = DEFAULT };
        0
    }

    unsafe extern "C" fn get_port_immutable(
        dev: *mut bindings::ib_device,
        port: u32,
        immutable: *mut bindings::ib_port_immutable,
    ) -> c_int {
        let mut attr = PortAttr::default();

        // SAFETY: ib_core calls this while it registers the device, with all ops set.
        let ret = unsafe { bindings::ib_query_port(dev, port, &mut attr) };
        if ret != 0 {
            return ret;
        }
        // SAFETY: `immutable` is the call's own.
        unsafe {
            (*immutable).gid_tbl_len = attr.gid_tbl_len;
            (*immutable).pkey_tbl_len = attr.pkey_tbl_len.into();
            (*immutable).core_cap_flags = bindings::riw_core_cap_RIW_RDMA_CORE_PORT_IWARP;
        }
        0
    }
}
