// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! `infiniband/driver.h`: the private interface between libibverbs and its providers, version 34,
//! as rdma-core 54 to 56 have it. Earlier releases have the same number: [`need_newest`] keeps this library
//! from being loaded by those whose structures are shorter.

use super::layout::{c_constants, c_structs};
use super::verbs::*;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::AtomicI32;
use libc::size_t;

c_structs! {
    struct verbs_match_ent {
        driver_data: *mut c_void,
        /// A union in C: the driver id, or a pointer.
        u: u64,
        vendor: u16,
        device: u16,
        kind: u8,
    }

    struct verbs_device_ops {
        name: *const c_char,
        match_min_abi_version: u32,
        match_max_abi_version: u32,
        match_table: *const verbs_match_ent,
        static_providers: *const c_void,
        match_device: Op,
        alloc_context: Option<
            unsafe extern "C" fn(*mut ibv_device, c_int, *mut c_void) -> *mut verbs_context,
        >,
        import_context: Op,
        alloc_device: Option<unsafe extern "C" fn(*mut Opaque) -> *mut verbs_device>,
        uninit_device: Option<unsafe extern "C" fn(*mut verbs_device)>,
    }

    struct verbs_device {
        device: ibv_device,
        ops: *const verbs_device_ops,
        refcount: AtomicI32,
        entry: [*mut c_void; 2],
        sysfs: *mut Opaque,
        core_support: u64,
    }

    struct verbs_mr {
        ibv_mr: ibv_mr,
        mr_type: u32,
        access: c_int,
    }

    struct verbs_srq {
        srq: ibv_srq,
        srq_type: u32,
        xrcd: *mut Opaque,
        cq: *mut ibv_cq,
        srq_num: u32,
    }

    /// A union of `cq` and `cq_ex` in C.
    struct verbs_cq {
        cq_ex: ibv_cq_ex,
    }

    struct verbs_qp {
        /// A union of `qp` and `qp_ex` in C.
        qp_ex: ibv_qp_ex,
        comp_mask: u32,
        xrcd: *mut Opaque,
    }
}

/// Declares `struct verbs_context_ops`: every operation is a pointer to a function.
macro_rules! operations {
    ($( $name:ident $( ($($argument:ty),*) $(-> $result:ty)? )?; )*) => {
        c_operations! { $( $name: operations!(@type $( ($($argument),*) $(-> $result)? )?), )* }
    };
    (@type) => { Op };
    (@type ($($argument:ty),*) $(-> $result:ty)?) => {
        Option<unsafe extern "C" fn($($argument),*) $(-> $result)?>
    };
}

macro_rules! c_operations {
    ($( $name:ident: $type:ty, )*) => {
        /// The operations of a provider.
        #[repr(C)]
        pub(crate) struct verbs_context_ops {
            $( pub(crate) $name: $type, )*
        }

        impl verbs_context_ops {
            /// No operation.
            pub(crate) const NONE: Self = Self { $( $name: None, )* };
        }

        #[cfg(test)]
        pub(super) fn operations_layout() -> Vec<super::layout::Fact> {
            use core::mem::{offset_of, size_of};
            use super::layout::Fact;

            vec![
                Fact::new("sizeof(struct verbs_context_ops)".into(), size_of::<verbs_context_ops>()),
                $( Fact::new(
                    concat!("offsetof(struct verbs_context_ops, ", stringify!($name), ")").into(),
                    offset_of!(verbs_context_ops, $name),
                ), )*
            ]
        }
    };
}

// The order is the same as in C. Operations without a signature are not provided.
operations! {
    advise_mr;
    alloc_dm;
    alloc_mw(*mut ibv_pd, u32) -> *mut ibv_mw;
    alloc_null_mr;
    alloc_parent_domain;
    alloc_pd(*mut ibv_context) -> *mut ibv_pd;
    alloc_td;
    async_event;
    attach_counters_point_flow;
    attach_mcast;
    bind_mw(*mut ibv_qp, *mut ibv_mw, *mut ibv_mw_bind) -> c_int;
    close_xrcd;
    cq_event(*mut ibv_cq);
    create_ah;
    create_counters;
    create_cq(*mut ibv_context, c_int, *mut Opaque, c_int) -> *mut ibv_cq;
    create_cq_ex(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex;
    create_flow;
    create_flow_action_esp;
    create_qp(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
    create_qp_ex(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp;
    create_rwq_ind_table;
    create_srq(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq;
    create_srq_ex(*mut ibv_context, *mut ibv_srq_init_attr_ex) -> *mut ibv_srq;
    create_wq;
    dealloc_mw(*mut ibv_mw) -> c_int;
    dealloc_pd(*mut ibv_pd) -> c_int;
    dealloc_td;
    dereg_mr(*mut verbs_mr) -> c_int;
    destroy_ah;
    destroy_counters;
    destroy_cq(*mut ibv_cq) -> c_int;
    destroy_flow;
    destroy_flow_action;
    destroy_qp(*mut ibv_qp) -> c_int;
    destroy_rwq_ind_table;
    destroy_srq(*mut ibv_srq) -> c_int;
    destroy_wq;
    detach_mcast;
    free_context(*mut ibv_context);
    free_dm;
    get_srq_num;
    import_dm;
    import_mr;
    import_pd;
    modify_cq;
    modify_flow_action_esp;
    modify_qp(*mut ibv_qp, *mut Opaque, c_int) -> c_int;
    modify_qp_rate_limit;
    modify_srq(*mut ibv_srq, *mut ibv_srq_attr, c_int) -> c_int;
    modify_wq;
    open_qp;
    open_xrcd;
    poll_cq(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int;
    post_recv(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int;
    post_send(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int;
    post_srq_ops;
    post_srq_recv(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int;
    query_device_ex(*mut ibv_context, *const Opaque, *mut ibv_device_attr, size_t) -> c_int;
    query_ece;
    query_port(*mut ibv_context, u8, *mut Opaque) -> c_int;
    query_qp(*mut ibv_qp, *mut Opaque, c_int, *mut ibv_qp_init_attr) -> c_int;
    query_qp_data_in_order;
    query_rt_values(*mut ibv_context, *mut ibv_values_ex) -> c_int;
    query_srq(*mut ibv_srq, *mut ibv_srq_attr) -> c_int;
    read_counters;
    reg_dm_mr;
    reg_dmabuf_mr(*mut ibv_pd, u64, size_t, u64, c_int, c_int) -> *mut ibv_mr;
    reg_mr(*mut ibv_pd, *mut c_void, size_t, u64, c_int) -> *mut ibv_mr;
    req_notify_cq(*mut ibv_cq, c_int) -> c_int;
    rereg_mr(*mut verbs_mr, c_int, *mut ibv_pd, *mut c_void, size_t, c_int) -> c_int;
    resize_cq(*mut ibv_cq, c_int) -> c_int;
    set_ece;
    unimport_dm;
    unimport_mr;
    unimport_pd;
}

c_constants! {
    const VERBS_MATCH_SENTINEL: u8 = 0;
    const VERBS_MATCH_DRIVER_ID: u8 = 3;
    const VERBS_QP_EX: u32 = 1 << 1;
    const VERBS_LOG_ERR: u32 = 1;
}

// Symbols of the version IBVERBS_PRIVATE_34: no other libibverbs loads this library.
#[cfg_attr(not(test), link(name = "ibverbs"))]
extern "C" {
    pub(crate) fn verbs_register_driver_34(ops: *const verbs_device_ops);
    pub(crate) fn _verbs_init_and_alloc_context(
        device: *mut ibv_device,
        cmd_fd: c_int,
        alloc_size: size_t,
        context_offset: *mut verbs_context,
        driver_id: u32,
    ) -> *mut c_void;
    pub(crate) fn verbs_uninit_context(context: *mut verbs_context);
    pub(crate) fn verbs_set_ops(context: *mut verbs_context, ops: *const verbs_context_ops);
    pub(crate) fn __verbs_log(context: *mut verbs_context, level: u32, format: *const c_char, ...);
    /// A function that libibverbs has since rdma-core 53. Nothing calls it: see [`need_newest`].
    static ibv_cmd_create_cq_ex2: Opaque;
}

/// Refers to the newest function of version 34, which the loader has to find before it runs code of this
/// library. Before rdma-core 53 it does not, and refuses the library: the process has no riw device.
pub(crate) fn need_newest() {
    core::hint::black_box(&raw const ibv_cmd_create_cq_ex2);
}

// Symbols of IBVERBS_1.1.
extern "C" {
    pub(crate) fn ibv_dontfork_range(base: *mut c_void, size: size_t) -> c_int;
    pub(crate) fn ibv_dofork_range(base: *mut c_void, size: size_t) -> c_int;
}
