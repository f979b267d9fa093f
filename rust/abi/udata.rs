// SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB

//! The driver's part of uverbs requests and responses (`struct ib_udata`,
//! `include/rdma/ib_verbs.h`).
//!
//! A request shorter than the struct fails with `EINVAL`. A longer one is accepted if its tail is
//! zero, and fails with `EOPNOTSUPP` otherwise. So does an unknown bit in `comp_mask`. A response
//! buffer shorter than the struct fails with `EINVAL`: the process could not use the object. The
//! rest of a longer one is filled with zeros.
//!
//! Verbs that have no struct here accept only requests of zeros, and respond with zeros.

/// Declares structs that the kernel copies from and to user space.
macro_rules! layouts {
    ($($layout:item)*) => {$(
        #[cfg_attr(
            CONFIG_RUST,
            derive(
                zerocopy_derive::FromBytes,
                zerocopy_derive::IntoBytes,
                zerocopy_derive::Immutable
            )
        )]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        $layout
    )*};
}

layouts! {
    /// Request of `alloc_ucontext` (get_context).
    pub struct AllocContextRequest {
        /// No bit is defined yet.
        pub comp_mask: u64,
    }

    /// Response of `alloc_ucontext`: the features and limits of the kernel.
    pub struct AllocContextResponse {
        /// The fields behind this struct that are valid. No bit is defined yet.
        pub comp_mask: u64,
        /// The features of the kernel: `FEATURE_*`.
        pub features: u64,
        /// Maximum SGEs of a WR.
        pub max_sge: u32,
        /// Maximum inline data of a WR.
        pub max_inline: u32,
    }
}

/// In [`AllocContextResponse::features`]: the opcodes
/// [`WRITE_WITH_IMM`](crate::wr::opcode::WRITE_WITH_IMM), and completions of immediate data.
pub const FEATURE_WRITE_WITH_IMM: u64 = 1;
/// In [`AllocContextResponse::features`]: the opcodes
/// [`COMPARE_SWAP`](crate::wr::opcode::COMPARE_SWAP) and
/// [`FETCH_ADD`](crate::wr::opcode::FETCH_ADD).
pub const FEATURE_ATOMICS: u64 = 1 << 1;
/// In [`AllocContextResponse::features`]: the masked opcodes, too.
pub const FEATURE_MASKED_ATOMICS: u64 = 1 << 2;
/// In [`AllocContextResponse::features`]: memory windows:
/// [`BIND_MW`](crate::wr::opcode::BIND_MW) and
/// [`LOCAL_INVALIDATE`](crate::wr::opcode::LOCAL_INVALIDATE).
pub const FEATURE_MEMORY_WINDOWS: u64 = 1 << 3;
/// In [`AllocContextResponse::features`]: `resize_cq`.
pub const FEATURE_RESIZE_CQ: u64 = 1 << 4;
/// In [`AllocContextResponse::features`]: `rereg_mr`.
pub const FEATURE_REREG_MR: u64 = 1 << 5;
/// In [`AllocContextResponse::features`]: a completion queue that is created with
/// `IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION` has [`Cqe::timestamp`](crate::cqe::Cqe::timestamp).
pub const FEATURE_TIMESTAMPS: u64 = 1 << 6;

layouts! {
    /// A ring, to be mapped by mmap() of the uverbs file.
    pub struct RingMap {
        /// The offset for mmap(): a multiple of the page size.
        pub offset: u64,
        /// The length for mmap(): a multiple of the page size, at least
        /// [`ring::len`](crate::ring::len) of the two fields below. mmap() needs exactly this
        /// length, `MAP_SHARED`, and `PROT_READ | PROT_WRITE`.
        pub bytes: u64,
        /// The number of entries: a power of two.
        pub entries: u32,
        /// The distance of two entries: a multiple of [`ring::LINE`](crate::ring::LINE).
        pub stride: u32,
    }

    /// Request of `create_cq`, `resize_cq`, `create_srq`, `create_qp` and `reg_mr`.
    pub struct CreateRequest {
        /// No bit is defined yet.
        pub comp_mask: u64,
    }

    /// Response of `create_cq`, and of `resize_cq`: see [`ring`](crate::ring#another-size). The
    /// number of entries is also in uverbs' part of the response.
    pub struct CreateCqResponse {
        /// The fields behind this struct that are valid. No bit is defined yet.
        pub comp_mask: u64,
        /// The ring of [`Cqe`](crate::cqe::Cqe)s.
        pub ring: RingMap,
    }

    /// Response of `create_srq`.
    pub struct CreateSrqResponse {
        /// The fields behind this struct that are valid. No bit is defined yet.
        pub comp_mask: u64,
        /// The ring of [`Rqe`](crate::wr::Rqe)s.
        pub ring: RingMap,
    }

    /// Response of `create_qp`. uverbs' part of the response has the number of the queue pair, and
    /// the sizes as granted: `max_send_sge` and `max_inline_data` are the sizes that fit in the
    /// stride.
    pub struct CreateQpResponse {
        /// The fields behind this struct that are valid. No bit is defined yet.
        pub comp_mask: u64,
        /// The ring of [`Sqe`](crate::wr::Sqe)s.
        pub sq: RingMap,
        /// The ring of [`Rqe`](crate::wr::Rqe)s. All zero for a queue pair with an SRQ.
        pub rq: RingMap,
    }

    /// Response of `reg_mr`. uverbs' part of the response has the STag, as lkey and as rkey.
    pub struct RegMrResponse {
        /// The fields behind this struct that are valid. No bit is defined yet.
        pub comp_mask: u64,
    }
}

const _: () = {
    assert!(size_of::<AllocContextRequest>() == 8);
    assert!(size_of::<AllocContextResponse>() == 24);
    assert!(size_of::<RingMap>() == 24);
    assert!(size_of::<CreateRequest>() == 8);
    assert!(size_of::<CreateCqResponse>() == 32);
    assert!(size_of::<CreateSrqResponse>() == 32);
    assert!(size_of::<CreateQpResponse>() == 56);
    assert!(size_of::<RegMrResponse>() == 8);
};
