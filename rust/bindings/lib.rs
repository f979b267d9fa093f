// SPDX-License-Identifier: GPL-2.0

//! Raw bindings that the `kernel` crate lacks: ib_core, iw_cm, sockets, dma-bufs, inline functions.
//!
//! Only `trace`, `rdma`, `net` and `kernel_ext` may use this crate; they wrap it. Types that the
//! `kernel` crate binds are re-exported, so that its pointers need no cast. Where the `kernel`
//! crate has only an opaque type (such as `ib_device`), the definition here shadows it.
//!
//! `rdma.h`, `net.h` and `trace.h` list the headers, the `.params` files select the items to bind;
//! `helpers/` has C wrappers of macros and inline functions.

#![crate_name = "riw_bindings"]
#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]
// Newer compilers than the oldest one have this lint, of the bit fields that bindgen makes.
#![cfg_attr(CONFIG_RUSTC_HAS_UNNECESSARY_TRANSMUTES, allow(unnecessary_transmutes))]

mod raw {
    pub use ::kernel::bindings::*;
    use ::{kernel::ffi, pin_init::MaybeZeroable};
    include!(concat!(env!("RIW_BINDINGS"), "/rdma_generated.rs"));
    include!(concat!(env!("RIW_BINDINGS"), "/net_generated.rs"));
    include!(concat!(env!("RIW_BINDINGS"), "/trace_generated.rs"));
    include!(concat!(env!("RIW_BINDINGS"), "/helpers_generated.rs"));
}

pub use raw::*;
