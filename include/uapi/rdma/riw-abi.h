/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * riw's own ABI with user space, version 1, in C. rust/abi has the same in Rust, and says how the
 * rings are used; a test of that crate compares both.
 *
 * All numbers are in the byte order of the host, if their comment names no other. Lengths and
 * offsets are in octets. Reserved fields are written as zero and ignored by their reader.
 *
 * A ring consists of 64-bit words. Either side accesses a word only by an atomic 64-bit load or
 * store.
 */
#ifndef RIW_ABI_H
#define RIW_ABI_H

#include <linux/types.h>

/* The driver id of a device with this ABI: the letters "riw". */
#define RIW_DRIVER_ID 0x00726977
#define RIW_ABI_VERSION 1

/* Limits of a WR: SGEs, and octets of inline data. */
#define RIW_MAX_SGE 16
#define RIW_MAX_INLINE 256

/*
 * The driver's part of the requests and responses of uverbs. The fields behind these structs are
 * valid as comp_mask says; no bit of it is defined yet.
 */

/* riw_uresp_alloc_ucontext.features */
enum riw_features {
	RIW_FEATURE_WRITE_WITH_IMM = 1 << 0,
	RIW_FEATURE_ATOMICS = 1 << 1,
	RIW_FEATURE_MASKED_ATOMICS = 1 << 2,
	RIW_FEATURE_MEMORY_WINDOWS = 1 << 3,
	RIW_FEATURE_RESIZE_CQ = 1 << 4,
	RIW_FEATURE_REREG_MR = 1 << 5,
	RIW_FEATURE_TIMESTAMPS = 1 << 6,
};

struct riw_ureq_alloc_ucontext {
	__aligned_u64 comp_mask;
};

struct riw_uresp_alloc_ucontext {
	__aligned_u64 comp_mask;
	__aligned_u64 features;
	__u32 max_sge;
	__u32 max_inline;
};

/* A ring, to be mapped by mmap() of the uverbs file: this length, MAP_SHARED, read and write. */
struct riw_ring_map {
	__aligned_u64 offset;
	__aligned_u64 bytes;
	__u32 entries; /* a power of two */
	__u32 stride; /* of two entries; a multiple of RIW_LINE */
};

/* create_cq, resize_cq, create_srq, create_qp and reg_mr */
struct riw_ureq_create {
	__aligned_u64 comp_mask;
};

/* create_cq and resize_cq: a ring of struct riw_cqe */
struct riw_uresp_create_cq {
	__aligned_u64 comp_mask;
	struct riw_ring_map ring;
};

/* A ring of struct riw_rqe. */
struct riw_uresp_create_srq {
	__aligned_u64 comp_mask;
	struct riw_ring_map ring;
};

struct riw_uresp_create_qp {
	__aligned_u64 comp_mask;
	struct riw_ring_map sq; /* of struct riw_sqe */
	struct riw_ring_map rq; /* of struct riw_rqe; all zero with an SRQ */
};

struct riw_uresp_reg_mr {
	__aligned_u64 comp_mask;
};

/* A ring has a header and then entries. These are the offsets of its words. */
enum riw_ring {
	RIW_LINE = 64,
	RIW_RING_PRODUCER = 0, /* the producer's count; not in completion queues */
	RIW_RING_CONSUMER = RIW_LINE, /* the consumer's count */
	RIW_RING_WAKE_AT = 2 * RIW_LINE, /* posting this entry rings the doorbell */
	RIW_RING_ARM = 2 * RIW_LINE, /* completion queues: which completions trigger an event */
	RIW_RING_HEADER = 4 * RIW_LINE, /* the first entry */
};

/* The first value of RIW_RING_WAKE_AT of a receive queue. */
#define RIW_WAKE_NEVER 0xffffffff

/* RIW_RING_ARM */
enum riw_arm {
	RIW_ARM_SOLICITED = 1 << 0,
	RIW_ARM_NEXT = 1 << 1,
};

/* riw_sqe.opcode, with the values of enum ib_uverbs_wr_opcode */
enum riw_wr_opcode {
	RIW_WR_WRITE = 0,
	RIW_WR_WRITE_WITH_IMM = 1,
	RIW_WR_SEND = 2,
	RIW_WR_READ = 4,
	RIW_WR_COMPARE_SWAP = 5,
	RIW_WR_FETCH_ADD = 6,
	RIW_WR_LOCAL_INVALIDATE = 7,
	RIW_WR_BIND_MW = 8,
	RIW_WR_SEND_WITH_INVALIDATE = 9,
	RIW_WR_MASKED_COMPARE_SWAP = 12,
	RIW_WR_MASKED_FETCH_ADD = 13,
};

/* riw_sqe.flags, with the values of enum ibv_send_flags */
enum riw_wr_flags {
	RIW_WR_FENCE = 1 << 0,
	RIW_WR_SIGNALED = 1 << 1,
	RIW_WR_SOLICITED = 1 << 2,
	RIW_WR_INLINE = 1 << 3,
};

struct riw_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/* The head of an entry of a send queue. Behind it are the SGEs, or the inline data. */
struct riw_sqe {
	__aligned_u64 wr_id;
	__u8 opcode; /* enum riw_wr_opcode */
	__u8 sge_count;
	__u16 flags; /* enum riw_wr_flags */
	__u32 inline_len;
	__u32 rkey; /* LOCAL_INVALIDATE: the STag; BIND_MW: the new STag of the window */
	__u32 invalidate_or_imm; /* BIND_MW: the region's STag; WRITE_WITH_IMM: in wire order */
	__aligned_u64 remote_addr; /* BIND_MW: the first address of the window */
	__aligned_u64 add_or_swap; /* BIND_MW: the length of the window */
	__aligned_u64 compare; /* BIND_MW: the access flags */
	__aligned_u64 add_or_swap_mask;
	__aligned_u64 compare_mask;
};

/* The head of an entry of a receive queue or SRQ. Behind it are the SGEs. */
struct riw_rqe {
	__aligned_u64 wr_id;
	__u32 sge_count;
	__u32 reserved;
};

/* riw_cqe.opcode: the values of enum ib_uverbs_wc_opcode; for receives of enum ibv_wc_opcode */
enum riw_wc_opcode {
	RIW_WC_SEND = 0,
	RIW_WC_WRITE = 1,
	RIW_WC_READ = 2,
	RIW_WC_COMPARE_SWAP = 3,
	RIW_WC_FETCH_ADD = 4,
	RIW_WC_BIND_MW = 5,
	RIW_WC_LOCAL_INVALIDATE = 6,
	RIW_WC_RECEIVE = 128,
	RIW_WC_RECEIVE_WRITE_WITH_IMM = 129,
};

/* riw_cqe.status, with the values of enum ib_wc_status */
enum riw_wc_status {
	RIW_WC_SUCCESS = 0,
	RIW_WC_LOCAL_LENGTH = 1,
	RIW_WC_LOCAL_OPERATION = 2,
	RIW_WC_LOCAL_PROTECTION = 4,
	RIW_WC_FLUSHED = 5,
	RIW_WC_BIND = 6,
	RIW_WC_LOCAL_ACCESS = 8,
	RIW_WC_REMOTE_INVALID = 9,
	RIW_WC_REMOTE_ACCESS = 10,
	RIW_WC_REMOTE_OPERATION = 11, /* reserved: riw does not report it */
	RIW_WC_GENERAL = 21,
};

/* riw_cqe.flags */
enum riw_wc_flags {
	RIW_WC_PHASE = 1 << 0, /* set in the first, third, ... lap of the ring */
	RIW_WC_WITH_IMM = 1 << 1,
	RIW_WC_WITH_INVALIDATE = 1 << 2,
};

/* The kernel stores the word that begins with `opcode` last, release. */
struct riw_cqe {
	__aligned_u64 wr_id;
	__u8 opcode; /* enum riw_wc_opcode */
	__u8 status; /* enum riw_wc_status */
	__u16 flags; /* enum riw_wc_flags */
	__u32 byte_len; /* undefined unless the WR was successful */
	__u32 qp_num;
	__u32 vendor_err;
	__u32 imm; /* in the order of the wire */
	__u32 invalidated;
	__aligned_u64 timestamp; /* ns of CLOCK_MONOTONIC, or 0 */
	__aligned_u64 reserved[3];
};

#endif
