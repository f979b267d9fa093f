// SPDX-License-Identifier: GPL-2.0

//! The counters that InfiniBand defines for each port: `counters/` of a port in sysfs, which
//! monitoring programs read.
//!
//! ib_core has the directory only for a driver with `process_mad`, and reads each file by a MAD to
//! the Performance Management Agent (PMA; InfiniBand Architecture Specification, volume 1, chapter
//! 16.1). An iWARP port has no other MADs: ib_core makes no MAD agent for it, in the kernel or for
//! processes (`rdma_cap_ib_mad()`, `include/rdma/ib_verbs.h`). So ib_core's sysfs is the only
//! caller.
//!
//! C header: `include/rdma/ib_pma.h`. C source: `core/sysfs.c` (`get_perf_mad()`)

#[cfg(CONFIG_KUNIT = "y")]
#[path = "kunit/pma.rs"]
mod kunit;

use crate::{
    device::{Callbacks, Device},
    Driver,
};
use kernel::ffi::c_int;
use riw_bindings as bindings;

/// The counters of a port since the device was created. They wrap around. InfiniBand's other
/// counters are 0.
pub struct PortCounters {
    /// Octets that were sent (`PortXmitData`, in other units).
    pub xmit_octets: u64,
    /// Octets that were received (`PortRcvData`, in other units).
    pub rcv_octets: u64,
    /// Packets that were sent (`PortXmitPkts`).
    pub xmit_packets: u64,
    /// Packets that were received (`PortRcvPkts`).
    pub rcv_packets: u64,
    /// Packets with an error that were received (`PortRcvErrors`).
    pub rcv_errors: u64,
}

/// The unit of `PortXmitData` and `PortRcvData`, in octets.
const DATA_UNIT: u64 = 4;
/// Octets of a MAD before the attribute, without the header (`struct ib_pma_mad`).
const RESERVED: usize = 40;
/// In `capability_mask`: the PMA has `PortCountersExtended` (`IB_PMA_CLASS_CAP_EXT_WIDTH`).
const CAP_EXT_WIDTH: u16 = 1 << 9;

/// `IB_PMA_CLASS_PORT_INFO`.
const CLASS_PORT_INFO: u16 = 0x0001;
/// `IB_PMA_PORT_COUNTERS`.
const PORT_COUNTERS: u16 = 0x0012;
/// `IB_PMA_PORT_COUNTERS_EXT`.
const PORT_COUNTERS_EXT: u16 = 0x001d;

/// The attribute of a MAD.
#[repr(C)]
union PmaAttribute {
    octets: [u8; bindings::IB_MGMT_MAD_DATA as usize - RESERVED],
    info: bindings::ib_class_port_info,
    counters: bindings::ib_pma_portcounters,
    extended: bindings::ib_pma_portcounters_ext,
}

impl PortCounters {
    /// Returns `PortCounters`, whose values stay at their largest when they reach it.
    fn short(&self) -> bindings::ib_pma_portcounters {
        let word = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).to_be();

        bindings::ib_pma_portcounters {
            port_rcv_errors: u16::try_from(self.rcv_errors).unwrap_or(u16::MAX).to_be(),
            port_xmit_data: word(self.xmit_octets / DATA_UNIT),
            port_rcv_data: word(self.rcv_octets / DATA_UNIT),
            port_xmit_packets: word(self.xmit_packets),
            port_rcv_packets: word(self.rcv_packets),
            ..Default::default()
        }
    }

    /// Returns `PortCountersExtended`. iWARP has no multicast.
    fn extended(&self) -> bindings::ib_pma_portcounters_ext {
        bindings::ib_pma_portcounters_ext {
            port_xmit_data: (self.xmit_octets / DATA_UNIT).to_be(),
            port_rcv_data: (self.rcv_octets / DATA_UNIT).to_be(),
            port_xmit_packets: self.xmit_packets.to_be(),
            port_rcv_packets: self.rcv_packets.to_be(),
            port_unicast_xmit_packets: self.xmit_packets.to_be(),
            port_unicast_rcv_packets: self.rcv_packets.to_be(),
            ..Default::default()
        }
    }
}

/// Returns the data of the reply to a request, or `None` if it is not one of `get_perf_mad()`.
fn reply(
    request: &bindings::ib_mad,
    counters: impl FnOnce() -> PortCounters,
) -> Option<[u8; bindings::IB_MGMT_MAD_DATA as usize]> {
    let header = &request.mad_hdr;
    let mut attribute = PmaAttribute {
        octets: [0; bindings::IB_MGMT_MAD_DATA as usize - RESERVED],
    };

    if u32::from(header.mgmt_class) != bindings::IB_MGMT_CLASS_PERF_MGMT
        || u32::from(header.method) != bindings::IB_MGMT_METHOD_GET
    {
        return None;
    }
    match u16::from_be(header.attr_id) {
        CLASS_PORT_INFO => {
            attribute.info = bindings::ib_class_port_info {
                base_version: header.base_version,
                class_version: header.class_version,
                capability_mask: CAP_EXT_WIDTH.to_be(),
                ..Default::default()
            }
        }
        PORT_COUNTERS => attribute.counters = counters().short(),
        PORT_COUNTERS_EXT => attribute.extended = counters().extended(),
        _ => return None,
    }
    // The reserved octets are those of the request. ib_core looks at nothing but the values.
    let mut data = request.data;
    // SAFETY: Each field consists of integers without padding, and all octets behind it are
    // initialized.
    let octets = unsafe { attribute.octets };
    for (to, from) in data.iter_mut().skip(RESERVED).zip(octets) {
        *to = from;
    }
    Some(data)
}

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    if T::HAS_PORT_COUNTERS {
        ops.process_mad = Some(Callbacks::<T>::process_mad);
    }
    ops
}

impl<T: Driver> Callbacks<T> {
    /// Fails for all that `get_perf_mad()` does not request.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `process_mad` of a device of driver `T`.
    unsafe extern "C" fn process_mad(
        dev: *mut bindings::ib_device,
        _flags: c_int,
        _port: u32,
        _wc: *const bindings::ib_wc,
        _grh: *const bindings::ib_grh,
        request: *const bindings::ib_mad,
        to: *mut bindings::ib_mad,
        to_size: *mut usize,
        _pkey_index: *mut u16,
    ) -> c_int {
        // SAFETY: ib_core passes a MAD that nothing changes during the call, and calls this for a
        // device that is registered or being registered, so its data is initialized.
        let (request, dev) = unsafe { (&*request, Device::<T>::from_raw(dev)) };

        // SAFETY: ib_core passes a valid pointer to the size of the other MAD.
        if unsafe { *to_size } < size_of::<bindings::ib_mad>() {
            return bindings::ib_mad_result_IB_MAD_RESULT_FAILURE as c_int;
        }
        let Some(data) = reply(request, || T::port_counters(dev)) else {
            return bindings::ib_mad_result_IB_MAD_RESULT_FAILURE as c_int;
        };
        let mad_hdr = bindings::ib_mad_hdr {
            method: bindings::IB_MGMT_METHOD_GET_RESP as u8,
            ..request.mad_hdr
        };
        // SAFETY: ib_core passes memory of that size, which is large enough and which only this
        // call accesses.
        unsafe { to.write(bindings::ib_mad { mad_hdr, data }) };
        // CAST: Bits.
        (bindings::ib_mad_result_IB_MAD_RESULT_SUCCESS
            | bindings::ib_mad_result_IB_MAD_RESULT_REPLY) as c_int
    }
}
