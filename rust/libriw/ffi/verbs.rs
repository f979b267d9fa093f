// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! `infiniband/verbs.h`: the interface of programs and libibverbs, as far as libriw uses it.
//!
//! The names are the same as in C. C's enumerations are `u32` here: C code may store any value.

use super::layout::{c_constants, c_structs};
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::{pthread_cond_t, pthread_mutex_t, size_t, timespec};

/// A pointer to a function that libriw neither provides nor calls.
pub(crate) type Op = Option<unsafe extern "C" fn()>;

/// An opaque object of libibverbs.
pub(crate) type Opaque = c_void;

c_structs! {
    struct ibv_device {
        _ops: [Op; 2],
        node_type: u32,
        transport_type: c_int,
        name: [c_char; 64],
        dev_name: [c_char; 64],
        dev_path: [c_char; 256],
        ibdev_path: [c_char; 256],
    }

    struct ibv_context {
        device: *mut ibv_device,
        ops: [Op; 32],
        cmd_fd: c_int,
        async_fd: c_int,
        num_comp_vectors: c_int,
        mutex: pthread_mutex_t,
        abi_compat: *mut c_void,
    }

    struct verbs_context {
        /// As each of these, this stands for itself and others of the size of a pointer. New ones
        /// come first.
        #[cfg(since_64)]
        free_buf: [Op; 2],
        #[cfg(since_59)]
        dm_export_dmabuf_fd: [Op; 4],
        query_port: [Op; 39],
        sz: size_t,
        context: ibv_context,
    }

    /// Begins `struct ibv_device_attr_ex`.
    struct ibv_device_attr {
        fw_ver: [c_char; 64],
        node_guid: u64,
        sys_image_guid: u64,
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: c_int,
        max_qp_wr: c_int,
        device_cap_flags: c_uint,
        max_sge: c_int,
        max_sge_rd: c_int,
        max_cq: c_int,
        max_cqe: c_int,
        max_mr: c_int,
        max_pd: c_int,
        max_qp_rd_atom: c_int,
        max_ee_rd_atom: c_int,
        max_res_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
        max_ee_init_rd_atom: c_int,
        atomic_cap: u32,
        max_ee: c_int,
        max_rdd: c_int,
        max_mw: c_int,
        max_raw_ipv6_qp: c_int,
        max_raw_ethy_qp: c_int,
        max_mcast_grp: c_int,
        max_mcast_qp_attach: c_int,
        max_total_mcast_qp_attach: c_int,
        max_ah: c_int,
        max_fmr: c_int,
        max_map_per_fmr: c_int,
        max_srq: c_int,
        max_srq_wr: c_int,
        max_srq_sge: c_int,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
    }

    struct ibv_pd {
        context: *mut ibv_context,
        handle: u32,
    }

    struct ibv_mr {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        addr: *mut c_void,
        length: size_t,
        handle: u32,
        lkey: u32,
        rkey: u32,
    }

    struct ibv_mw {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        rkey: u32,
        handle: u32,
        r#type: u32,
    }

    struct ibv_mw_bind_info {
        mr: *mut ibv_mr,
        addr: u64,
        length: u64,
        mw_access_flags: c_uint,
    }

    struct ibv_mw_bind {
        wr_id: u64,
        send_flags: c_uint,
        bind_info: ibv_mw_bind_info,
    }

    struct ibv_cq {
        context: *mut ibv_context,
        channel: *mut Opaque,
        cq_context: *mut c_void,
        handle: u32,
        cqe: c_int,
        mutex: pthread_mutex_t,
        cond: pthread_cond_t,
        comp_events_completed: u32,
        async_events_completed: u32,
    }

    /// Begins with the fields of [`ibv_cq`].
    struct ibv_cq_ex {
        context: *mut ibv_context,
        channel: *mut Opaque,
        cq_context: *mut c_void,
        handle: u32,
        cqe: c_int,
        mutex: pthread_mutex_t,
        cond: pthread_cond_t,
        comp_events_completed: u32,
        async_events_completed: u32,
        comp_mask: u32,
        status: u32,
        wr_id: u64,
        start_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex, *const ibv_poll_cq_attr) -> c_int>,
        next_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> c_int>,
        end_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex)>,
        read_opcode: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_vendor_err: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_byte_len: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_imm_data: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_qp_num: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_src_qp: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_wc_flags: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> c_uint>,
        read_slid: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_sl: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u8>,
        read_dlid_path_bits: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u8>,
        read_completion_ts: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u64>,
        read_cvlan: Op,
        read_flow_tag: Op,
        read_tm_info: Op,
        read_completion_wallclock_ns: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u64>,
    }

    struct ibv_poll_cq_attr {
        comp_mask: u32,
    }

    struct ibv_cq_init_attr_ex {
        cqe: u32,
        cq_context: *mut c_void,
        channel: *mut Opaque,
        comp_vector: u32,
        wc_flags: u64,
        comp_mask: u32,
        flags: u32,
        parent_domain: *mut ibv_pd,
    }

    struct ibv_wc {
        wr_id: u64,
        status: u32,
        opcode: u32,
        vendor_err: u32,
        byte_len: u32,
        /// Also `invalidated_rkey`.
        imm_data: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: c_uint,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    }

    struct ibv_srq {
        context: *mut ibv_context,
        srq_context: *mut c_void,
        pd: *mut ibv_pd,
        handle: u32,
        mutex: pthread_mutex_t,
        cond: pthread_cond_t,
        events_completed: u32,
    }

    struct ibv_srq_attr {
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
    }

    struct ibv_srq_init_attr {
        srq_context: *mut c_void,
        attr: ibv_srq_attr,
    }

    struct ibv_srq_init_attr_ex {
        srq_context: *mut c_void,
        attr: ibv_srq_attr,
        comp_mask: u32,
        srq_type: u32,
        pd: *mut ibv_pd,
        xrcd: *mut Opaque,
        cq: *mut ibv_cq,
        tm_cap: [u32; 2],
    }

    #[derive(Clone, Copy)]
    struct ibv_qp_cap {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
    }

    struct ibv_qp_init_attr {
        qp_context: *mut c_void,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        cap: ibv_qp_cap,
        qp_type: u32,
        sq_sig_all: c_int,
    }

    /// Begins with the fields of [`ibv_qp_init_attr`].
    struct ibv_qp_init_attr_ex {
        qp_context: *mut c_void,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        cap: ibv_qp_cap,
        qp_type: u32,
        sq_sig_all: c_int,
        comp_mask: u32,
        pd: *mut ibv_pd,
        xrcd: *mut Opaque,
        create_flags: u32,
        max_tso_header: u16,
        rwq_ind_tbl: *mut Opaque,
        rx_hash_conf: [u64; 3],
        source_qpn: u32,
        send_ops_flags: u64,
    }

    struct ibv_qp {
        context: *mut ibv_context,
        qp_context: *mut c_void,
        pd: *mut ibv_pd,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        handle: u32,
        qp_num: u32,
        state: u32,
        qp_type: u32,
        mutex: pthread_mutex_t,
        cond: pthread_cond_t,
        events_completed: u32,
    }

    struct ibv_qp_ex {
        qp_base: ibv_qp,
        comp_mask: u64,
        wr_id: u64,
        wr_flags: c_uint,
        wr_atomic_cmp_swp: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u64, u64)>,
        wr_atomic_fetch_add: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u64)>,
        wr_bind_mw:
            Option<unsafe extern "C" fn(*mut ibv_qp_ex, *mut ibv_mw, u32, *const ibv_mw_bind_info)>,
        wr_local_inv: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
        wr_rdma_read: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64)>,
        wr_rdma_write: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64)>,
        wr_rdma_write_imm: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u32)>,
        wr_send: Option<unsafe extern "C" fn(*mut ibv_qp_ex)>,
        wr_send_imm: Op,
        wr_send_inv: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
        wr_send_tso: Op,
        wr_set_ud_addr: Op,
        wr_set_xrc_srqn: Op,
        wr_set_inline_data: Option<unsafe extern "C" fn(*mut ibv_qp_ex, *const c_void, size_t)>,
        wr_set_inline_data_list:
            Option<unsafe extern "C" fn(*mut ibv_qp_ex, size_t, *const ibv_data_buf)>,
        wr_set_sge: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u32)>,
        wr_set_sge_list: Option<unsafe extern "C" fn(*mut ibv_qp_ex, size_t, *const ibv_sge)>,
        wr_start: Option<unsafe extern "C" fn(*mut ibv_qp_ex)>,
        wr_complete: Option<unsafe extern "C" fn(*mut ibv_qp_ex) -> c_int>,
        wr_abort: Option<unsafe extern "C" fn(*mut ibv_qp_ex)>,
        wr_atomic_write: Op,
        wr_flush: Op,
    }

    struct ibv_values_ex {
        comp_mask: u32,
        raw_clock: timespec,
    }

    struct ibv_data_buf {
        addr: *const c_void,
        length: size_t,
    }

    struct ibv_sge {
        addr: u64,
        length: u32,
        lkey: u32,
    }

    struct ibv_recv_wr {
        wr_id: u64,
        next: *mut ibv_recv_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
    }

    struct ibv_send_wr {
        wr_id: u64,
        next: *mut ibv_send_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
        opcode: u32,
        send_flags: c_uint,
        /// Also `invalidate_rkey`.
        imm_data: u32,
        /// A union in C: see [`ibv_wr_remote`].
        wr: ibv_wr_remote,
        qp_type: u32,
        bind_mw: ibv_wr_bind_mw,
    }
}

/// The union `wr` of [`ibv_send_wr`].
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union ibv_wr_remote {
    pub(crate) rdma: ibv_wr_rdma,
    pub(crate) atomic: ibv_wr_atomic,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_wr_rdma {
    pub(crate) remote_addr: u64,
    pub(crate) rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_wr_atomic {
    pub(crate) remote_addr: u64,
    pub(crate) compare_add: u64,
    pub(crate) swap: u64,
    pub(crate) rkey: u32,
}

/// The member `bind_mw` of the last union of [`ibv_send_wr`].
#[repr(C)]
pub(crate) struct ibv_wr_bind_mw {
    pub(crate) mw: *mut ibv_mw,
    pub(crate) rkey: u32,
    pub(crate) bind_info: ibv_mw_bind_info,
}

c_constants! {
    const IBV_QPT_RC: u32 = 2;

    const IBV_QP_INIT_ATTR_PD: u32 = 1 << 0;
    const IBV_QP_INIT_ATTR_CREATE_FLAGS: u32 = 1 << 2;
    const IBV_QP_INIT_ATTR_SEND_OPS_FLAGS: u32 = 1 << 6;

    const IBV_QP_EX_WITH_RDMA_WRITE: u64 = 1 << 0;
    const IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM: u64 = 1 << 1;
    const IBV_QP_EX_WITH_SEND: u64 = 1 << 2;
    const IBV_QP_EX_WITH_RDMA_READ: u64 = 1 << 4;
    const IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP: u64 = 1 << 5;
    const IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD: u64 = 1 << 6;
    const IBV_QP_EX_WITH_LOCAL_INV: u64 = 1 << 7;
    const IBV_QP_EX_WITH_BIND_MW: u64 = 1 << 8;
    const IBV_QP_EX_WITH_SEND_WITH_INV: u64 = 1 << 9;

    const IBV_WR_RDMA_WRITE: u32 = 0;
    const IBV_WR_RDMA_WRITE_WITH_IMM: u32 = 1;
    const IBV_WR_SEND: u32 = 2;
    const IBV_WR_RDMA_READ: u32 = 4;
    const IBV_WR_ATOMIC_CMP_AND_SWP: u32 = 5;
    const IBV_WR_ATOMIC_FETCH_AND_ADD: u32 = 6;
    const IBV_WR_LOCAL_INV: u32 = 7;
    const IBV_WR_BIND_MW: u32 = 8;
    const IBV_WR_SEND_WITH_INV: u32 = 9;

    const IBV_MW_TYPE_2: u32 = 2;

    const IBV_SEND_FENCE: c_uint = 1 << 0;
    const IBV_SEND_SIGNALED: c_uint = 1 << 1;
    const IBV_SEND_SOLICITED: c_uint = 1 << 2;
    const IBV_SEND_INLINE: c_uint = 1 << 3;

    const IBV_QP_STATE: c_uint = 1 << 0;

    const IBV_WC_SUCCESS: u32 = 0;
    const IBV_WC_LOC_LEN_ERR: u32 = 1;
    const IBV_WC_LOC_QP_OP_ERR: u32 = 2;
    const IBV_WC_LOC_PROT_ERR: u32 = 4;
    const IBV_WC_WR_FLUSH_ERR: u32 = 5;
    const IBV_WC_MW_BIND_ERR: u32 = 6;
    const IBV_WC_LOC_ACCESS_ERR: u32 = 8;
    const IBV_WC_REM_INV_REQ_ERR: u32 = 9;
    const IBV_WC_REM_ACCESS_ERR: u32 = 10;
    const IBV_WC_REM_OP_ERR: u32 = 11;
    const IBV_WC_GENERAL_ERR: u32 = 21;

    const IBV_WC_SEND: u32 = 0;
    const IBV_WC_RDMA_WRITE: u32 = 1;
    const IBV_WC_RDMA_READ: u32 = 2;
    const IBV_WC_COMP_SWAP: u32 = 3;
    const IBV_WC_FETCH_ADD: u32 = 4;
    const IBV_WC_BIND_MW: u32 = 5;
    const IBV_WC_LOCAL_INV: u32 = 6;
    const IBV_WC_RECV: u32 = 1 << 7;
    const IBV_WC_RECV_RDMA_WITH_IMM: u32 = 129;

    const IBV_WC_WITH_IMM: c_uint = 1 << 1;
    const IBV_WC_WITH_INV: c_uint = 1 << 3;

    const IBV_WC_EX_WITH_BYTE_LEN: u64 = 1 << 0;
    const IBV_WC_EX_WITH_IMM: u64 = 1 << 1;
    const IBV_WC_EX_WITH_QP_NUM: u64 = 1 << 2;
    const IBV_WC_EX_WITH_SRC_QP: u64 = 1 << 3;
    const IBV_WC_EX_WITH_SLID: u64 = 1 << 4;
    const IBV_WC_EX_WITH_SL: u64 = 1 << 5;
    const IBV_WC_EX_WITH_DLID_PATH_BITS: u64 = 1 << 6;
    const IBV_WC_EX_WITH_COMPLETION_TIMESTAMP: u64 = 1 << 7;
    const IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK: u64 = 1 << 11;

    const IBV_CQ_INIT_ATTR_MASK_FLAGS: u32 = 1 << 0;
    const IBV_CREATE_CQ_ATTR_SINGLE_THREADED: u32 = 1 << 0;

    const IBV_SRQ_MAX_WR: u32 = 1 << 0;

    const IBV_VALUES_MASK_RAW_CLOCK: u32 = 1 << 0;
}
