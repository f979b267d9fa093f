// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! The registration of this library with libibverbs, and devices.

use super::errno::pointer;
use super::object::{self, Unfinished};
use super::open;
use crate::ffi::driver::{
    need_newest, verbs_device, verbs_device_ops, verbs_match_ent, verbs_register_driver,
    VERBS_MATCH_DRIVER_ID, VERBS_MATCH_SENTINEL,
};
use crate::ffi::verbs::Opaque;
use core::ptr;
use riw_abi::{DRIVER_ID, VERSION};

/// A constant with pointers, which libibverbs only reads.
struct Constant<T>(T);

// SAFETY: Nobody writes to it, and its pointers point to constants.
unsafe impl<T> Sync for Constant<T> {}

/// The devices that this library serves: those with riw's driver id, whatever their names.
static MATCHES: Constant<[verbs_match_ent; 2]> = Constant([
    match_entry(DRIVER_ID, VERBS_MATCH_DRIVER_ID),
    match_entry(0, VERBS_MATCH_SENTINEL),
]);

const fn match_entry(driver_id: u32, kind: u8) -> verbs_match_ent {
    let [a, b, c, d] = driver_id.to_ne_bytes();
    let id = if cfg!(target_endian = "little") {
        [a, b, c, d, 0, 0, 0, 0]
    } else {
        [0, 0, 0, 0, a, b, c, d]
    };

    verbs_match_ent {
        driver_data: ptr::null_mut(),
        u: u64::from_ne_bytes(id),
        vendor: 0,
        device: 0,
        kind,
    }
}

static OPERATIONS: Constant<verbs_device_ops> = Constant(verbs_device_ops {
    name: c"riw".as_ptr(),
    match_min_abi_version: VERSION,
    match_max_abi_version: VERSION,
    match_table: MATCHES.0.as_ptr(),
    static_providers: ptr::null(),
    match_device: None,
    alloc_context: Some(open::alloc_context),
    import_context: None,
    alloc_device: Some(alloc_device),
    uninit_device: Some(uninit_device),
});

/// The loader calls this when it has loaded the library.
#[used]
#[link_section = ".init_array"]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    need_newest();
    // SAFETY: libibverbs keeps the pointer, which is to a constant. It does not unload the library.
    unsafe { verbs_register_driver(&OPERATIONS.0) };
}

unsafe extern "C" fn alloc_device(_sysfs: *mut Opaque) -> *mut verbs_device {
    pointer(Unfinished::<verbs_device, ()>::new().map(|device| device.finish(())))
}

unsafe extern "C" fn uninit_device(device: *mut verbs_device) {
    // SAFETY: It comes from `alloc_device()`, and libibverbs has dropped its last reference.
    unsafe { object::free::<verbs_device, ()>(device) };
}
