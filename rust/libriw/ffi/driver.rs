// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! `infiniband/driver.h`: the private interface between libibverbs and its providers, as rdma-core
//! 54 to 58 and 62 to 65 have it. Its number is 34, 57, 59, 64 or 65: `build.rs` chooses one. Other
//! releases have the numbers 34 and 59, too: [`need_newest`] keeps this library from being loaded
//! by those.

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
    ($( $(#[$meta:meta])* $name:ident $( ($($argument:ty),*) $(-> $result:ty)? )?; )*) => {
        c_operations! {
            $( $(#[$meta])* $name: operations!(@type $( ($($argument),*) $(-> $result)? )?), )*
        }
    };
    (@type) => { Op };
    (@type ($($argument:ty),*) $(-> $result:ty)?) => {
        Option<unsafe extern "C" fn($($argument),*) $(-> $result)?>
    };
}

macro_rules! c_operations {
    ($( $(#[$meta:meta])* $name:ident: $type:ty, )*) => {
        /// The operations of a provider.
        #[repr(C)]
        pub(crate) struct verbs_context_ops {
            $( $(#[$meta])* pub(crate) $name: $type, )*
        }

        impl verbs_context_ops {
            /// No operation.
            pub(crate) const NONE: Self = Self { $( $(#[$meta])* $name: None, )* };
        }

        #[cfg(test)]
        pub(super) fn operations_layout() -> Vec<super::layout::Fact> {
            use core::mem::{offset_of, size_of};
            use super::layout::Fact;

            let mut facts = vec![Fact::new(
                "sizeof(struct verbs_context_ops)".into(),
                size_of::<verbs_context_ops>(),
            )];
            $(
                $(#[$meta])*
                facts.push(Fact::new(
                    concat!("offsetof(struct verbs_context_ops, ", stringify!($name), ")").into(),
                    offset_of!(verbs_context_ops, $name),
                ));
            )*
            facts
        }
    };
}

// The order is the same as in C. Operations without a signature are not provided.
operations! {
    advise_mr;
    #[cfg(since_64)]
    alloc_buf;
    alloc_dm;
    #[cfg(since_59)]
    alloc_dmah;
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
    #[cfg(since_65)]
    create_comp_cntr;
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
    #[cfg(since_59)]
    dealloc_dmah;
    dealloc_mw(*mut ibv_mw) -> c_int;
    dealloc_pd(*mut ibv_pd) -> c_int;
    dealloc_td;
    dereg_mr(*mut verbs_mr) -> c_int;
    destroy_ah;
    #[cfg(since_65)]
    destroy_comp_cntr;
    destroy_counters;
    destroy_cq(*mut ibv_cq) -> c_int;
    destroy_flow;
    destroy_flow_action;
    destroy_qp(*mut ibv_qp) -> c_int;
    destroy_rwq_ind_table;
    destroy_srq(*mut ibv_srq) -> c_int;
    destroy_wq;
    detach_mcast;
    #[cfg(since_59)]
    dm_export_dmabuf_fd;
    #[cfg(since_64)]
    free_buf;
    free_context(*mut ibv_context);
    free_dm;
    get_srq_num;
    import_dm;
    import_mr;
    import_pd;
    #[cfg(since_65)]
    inc_comp_cntr;
    #[cfg(since_65)]
    inc_err_comp_cntr;
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
    #[cfg(since_65)]
    qp_attach_comp_cntr;
    #[cfg(since_65)]
    query_comp_cntr_caps;
    query_device_ex(*mut ibv_context, *const Opaque, *mut ibv_device_attr, size_t) -> c_int;
    query_ece;
    query_port(*mut ibv_context, u8, *mut Opaque) -> c_int;
    #[cfg(since_59)]
    query_port_speed;
    query_qp(*mut ibv_qp, *mut Opaque, c_int, *mut ibv_qp_init_attr) -> c_int;
    query_qp_data_in_order;
    query_rt_values(*mut ibv_context, *mut ibv_values_ex) -> c_int;
    query_srq(*mut ibv_srq, *mut ibv_srq_attr) -> c_int;
    #[cfg(since_65)]
    read_comp_cntr;
    read_counters;
    #[cfg(since_65)]
    read_err_comp_cntr;
    reg_dm_mr;
    reg_dmabuf_mr(*mut ibv_pd, u64, size_t, u64, c_int, c_int) -> *mut ibv_mr;
    reg_mr(*mut ibv_pd, *mut c_void, size_t, u64, c_int) -> *mut ibv_mr;
    #[cfg(since_59)]
    reg_mr_ex;
    req_notify_cq(*mut ibv_cq, c_int) -> c_int;
    rereg_mr(*mut verbs_mr, c_int, *mut ibv_pd, *mut c_void, size_t, c_int) -> c_int;
    resize_cq(*mut ibv_cq, c_int) -> c_int;
    #[cfg(since_65)]
    set_comp_cntr;
    set_ece;
    #[cfg(since_65)]
    set_err_comp_cntr;
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

// Symbols of the version IBVERBS_PRIVATE_number, which build.rs lists: no other libibverbs loads
// this library.
#[cfg_attr(not(test), link(name = "ibverbs"))]
extern "C" {
    #[cfg_attr(not(since_57), link_name = "verbs_register_driver_34")]
    #[cfg_attr(all(since_57, not(since_59)), link_name = "verbs_register_driver_57")]
    #[cfg_attr(all(since_59, not(since_64)), link_name = "verbs_register_driver_59")]
    #[cfg_attr(all(since_64, not(since_65)), link_name = "verbs_register_driver_64")]
    #[cfg_attr(since_65, link_name = "verbs_register_driver_65")]
    pub(crate) fn verbs_register_driver(ops: *const verbs_device_ops);
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
    /// A function that nothing calls: see [`need_newest`].
    #[cfg_attr(not(since_59), link_name = "ibv_cmd_create_cq_ex2")]
    #[cfg_attr(since_59, link_name = "ibv_cmd_query_port_speed")]
    static NEWEST: Opaque;
}

/// Refers to a function that libibverbs has since rdma-core 53 (number 34) or 62 (number 59). The
/// loader has to find it before it runs code of this library. In older releases of the same number
/// it does not, and refuses the library: the process has no riw device.
pub(crate) fn need_newest() {
    core::hint::black_box(&raw const NEWEST);
}

// Symbols of IBVERBS_1.1.
extern "C" {
    pub(crate) fn ibv_dontfork_range(base: *mut c_void, size: size_t) -> c_int;
    pub(crate) fn ibv_dofork_range(base: *mut c_void, size: size_t) -> c_int;
}
