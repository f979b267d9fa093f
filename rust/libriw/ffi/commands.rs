// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! `infiniband/kern-abi.h`: calls to the kernel by libibverbs.
//!
//! libibverbs fills in its part of a request, and reads its part of a response. A provider supplies
//! the memory, and behind that the part of its driver: see [`WithDriver`].

use super::driver::*;
use super::verbs::*;
use core::ffi::{c_int, c_void};
use libc::size_t;

/// libibverbs' part of a request or of a response.
pub(crate) trait Core {
    /// One that is all zero.
    const ZERO: Self;
}

/// A request or a response: libibverbs' part, and the driver's.
#[repr(C)]
pub(crate) struct WithDriver<C, D> {
    pub(crate) core: C,
    pub(crate) driver: D,
}

impl<C: Core, D: Default> WithDriver<C, D> {
    /// libibverbs takes the octets behind its own part for the driver's part, so there must be no
    /// padding.
    const LEN: size_t = {
        assert!(size_of::<Self>() == size_of::<C>() + size_of::<D>());
        size_of::<Self>()
    };

    /// Returns one whose core is zero.
    pub(crate) fn new() -> Self {
        Self {
            core: C::ZERO,
            driver: D::default(),
        }
    }

    /// Returns the length of the whole in bytes.
    pub(crate) fn len(&self) -> size_t {
        Self::LEN
    }

    /// Returns a pointer to the whole, as libibverbs takes it: to its core.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut C {
        core::ptr::from_mut(self).cast()
    }
}

/// Declares cores by their size.
macro_rules! cores {
    ($( $name:ident: [$word:ty; $words:literal], )*) => {
        $(
            #[repr(C)]
            pub(crate) struct $name([$word; $words]);

            impl Core for $name {
                const ZERO: Self = Self([0; $words]);
            }
        )*

        #[cfg(test)]
        pub(super) fn layout() -> Vec<super::layout::Fact> {
            vec![$(
                super::layout::Fact::new(
                    concat!("sizeof(struct ", stringify!($name), ")").into(),
                    size_of::<$name>(),
                ),
            )*]
        }
    };
}

cores! {
    ibv_get_context: [u64; 2],
    ib_uverbs_get_context_resp: [u32; 2],
    ibv_query_port: [u64; 3],
    ibv_alloc_pd: [u64; 2],
    ib_uverbs_alloc_pd_resp: [u32; 1],
    ibv_reg_mr: [u64; 6],
    ib_uverbs_reg_mr_resp: [u32; 3],
    ibv_rereg_mr: [u64; 7],
    ib_uverbs_rereg_mr_resp: [u32; 2],
    ibv_alloc_mw: [u64; 3],
    ib_uverbs_alloc_mw_resp: [u32; 2],
    ibv_create_cq_ex: [u64; 7],
    ib_uverbs_ex_create_cq_resp: [u32; 4],
    ibv_resize_cq: [u64; 3],
    ib_uverbs_resize_cq_resp: [u32; 2],
    ibv_create_srq: [u64; 5],
    ib_uverbs_create_srq_resp: [u32; 4],
    ibv_modify_srq: [u64; 3],
    ibv_query_srq: [u64; 3],
    ibv_create_qp: [u64; 8],
    ib_uverbs_create_qp_resp: [u32; 8],
    ibv_query_qp: [u64; 3],
    ibv_modify_qp: [u64; 15],
}

/// The response to a query of a device.
#[repr(C)]
pub(crate) struct ib_uverbs_ex_query_device_resp {
    /// In `base`.
    pub(crate) fw_ver: u64,
    pub(crate) words: [u64; 37],
}

#[cfg(test)]
pub(super) fn query_device_layout() -> Vec<super::layout::Fact> {
    vec![
        super::layout::Fact::new(
            "offsetof(struct ib_uverbs_ex_query_device_resp, base.fw_ver)".into(),
            core::mem::offset_of!(ib_uverbs_ex_query_device_resp, fw_ver),
        ),
        super::layout::Fact::new(
            "sizeof(struct ib_uverbs_ex_query_device_resp)".into(),
            size_of::<ib_uverbs_ex_query_device_resp>(),
        ),
    ]
}

// Symbols of IBVERBS_PRIVATE_number, which build.rs lists. The prototypes are in layout.c, too.
extern "C" {
    pub(crate) fn ibv_cmd_get_context(
        context: *mut verbs_context,
        cmd: *mut ibv_get_context,
        cmd_size: size_t,
        #[cfg(since_57)] fd_arr: *mut Opaque,
        resp: *mut ib_uverbs_get_context_resp,
        resp_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_query_device_any(
        context: *mut ibv_context,
        input: *const Opaque,
        attr: *mut ibv_device_attr,
        attr_size: size_t,
        resp: *mut ib_uverbs_ex_query_device_resp,
        resp_size: *mut size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_query_port(
        context: *mut ibv_context,
        port_num: u8,
        port_attr: *mut Opaque,
        cmd: *mut ibv_query_port,
        cmd_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_alloc_pd(
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        cmd: *mut ibv_alloc_pd,
        cmd_size: size_t,
        resp: *mut ib_uverbs_alloc_pd_resp,
        resp_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_dealloc_pd(pd: *mut ibv_pd) -> c_int;
    pub(crate) fn ibv_cmd_reg_mr(
        pd: *mut ibv_pd,
        addr: *mut c_void,
        length: size_t,
        hca_va: u64,
        access: c_int,
        mr: *mut verbs_mr,
        cmd: *mut ibv_reg_mr,
        cmd_size: size_t,
        resp: *mut ib_uverbs_reg_mr_resp,
        resp_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_reg_dmabuf_mr(
        pd: *mut ibv_pd,
        offset: u64,
        length: size_t,
        iova: u64,
        fd: c_int,
        access: c_int,
        mr: *mut verbs_mr,
        driver: *mut Opaque,
    ) -> c_int;
    pub(crate) fn ibv_cmd_rereg_mr(
        mr: *mut verbs_mr,
        flags: u32,
        addr: *mut c_void,
        length: size_t,
        hca_va: u64,
        access: c_int,
        pd: *mut ibv_pd,
        cmd: *mut ibv_rereg_mr,
        cmd_size: size_t,
        resp: *mut ib_uverbs_rereg_mr_resp,
        resp_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_dereg_mr(mr: *mut verbs_mr) -> c_int;
    pub(crate) fn ibv_cmd_alloc_mw(
        pd: *mut ibv_pd,
        kind: u32,
        mw: *mut ibv_mw,
        cmd: *mut ibv_alloc_mw,
        cmd_size: size_t,
        resp: *mut ib_uverbs_alloc_mw_resp,
        resp_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_dealloc_mw(mw: *mut ibv_mw) -> c_int;
    pub(crate) fn ibv_cmd_create_cq_ex(
        context: *mut ibv_context,
        attr: *const ibv_cq_init_attr_ex,
        #[cfg(since_59)] prov_attr: *mut Opaque,
        cq: *mut verbs_cq,
        cmd: *mut ibv_create_cq_ex,
        cmd_size: size_t,
        resp: *mut ib_uverbs_ex_create_cq_resp,
        resp_size: size_t,
        cmd_flags: u32,
    ) -> c_int;
    pub(crate) fn ibv_cmd_resize_cq(
        cq: *mut ibv_cq,
        cqe: c_int,
        cmd: *mut ibv_resize_cq,
        cmd_size: size_t,
        resp: *mut ib_uverbs_resize_cq_resp,
        resp_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_destroy_cq(cq: *mut ibv_cq) -> c_int;
    pub(crate) fn ibv_cmd_create_srq(
        pd: *mut ibv_pd,
        srq: *mut ibv_srq,
        attr: *mut ibv_srq_init_attr,
        cmd: *mut ibv_create_srq,
        cmd_size: size_t,
        resp: *mut ib_uverbs_create_srq_resp,
        resp_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_modify_srq(
        srq: *mut ibv_srq,
        attr: *mut ibv_srq_attr,
        attr_mask: c_int,
        cmd: *mut ibv_modify_srq,
        cmd_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_query_srq(
        srq: *mut ibv_srq,
        attr: *mut ibv_srq_attr,
        cmd: *mut ibv_query_srq,
        cmd_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_destroy_srq(srq: *mut ibv_srq) -> c_int;
    pub(crate) fn ibv_cmd_create_qp_ex(
        context: *mut ibv_context,
        qp: *mut verbs_qp,
        attr: *mut ibv_qp_init_attr_ex,
        cmd: *mut ibv_create_qp,
        cmd_size: size_t,
        resp: *mut ib_uverbs_create_qp_resp,
        resp_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_query_qp(
        qp: *mut ibv_qp,
        attr: *mut Opaque,
        attr_mask: c_int,
        init_attr: *mut ibv_qp_init_attr,
        cmd: *mut ibv_query_qp,
        cmd_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_modify_qp(
        qp: *mut ibv_qp,
        attr: *mut Opaque,
        attr_mask: c_int,
        cmd: *mut ibv_modify_qp,
        cmd_size: size_t,
    ) -> c_int;
    pub(crate) fn ibv_cmd_destroy_qp(qp: *mut ibv_qp) -> c_int;
}
