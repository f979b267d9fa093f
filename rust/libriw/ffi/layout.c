// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the declarations in this folder say about structures and constants of rdma-core, as a C compiler
 * sees them. Compiled, never linked, against the private headers of rdma-core by
 * selftests/provider/check_layout.
 *
 * A list of assertions, one for each field and constant that Rust declares. It is longer than other files
 * of riw, because a part of it would be of no use alone: check_layout compares the whole of it with the
 * declarations.
 */
#include <infiniband/cmd_write.h>
#include <infiniband/driver.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stddef.h>

/* The prototypes by which the extern "C" blocks call: a compiler rejects a second one that differs. */
void verbs_register_driver_34(const struct verbs_device_ops *);
void *_verbs_init_and_alloc_context(struct ibv_device *, int, size_t, struct verbs_context *, uint32_t);
void verbs_uninit_context(struct verbs_context *);
void verbs_set_ops(struct verbs_context *, const struct verbs_context_ops *);
void __verbs_log(struct verbs_context *, uint32_t, const char *, ...);
int ibv_dontfork_range(void *, size_t);
int ibv_dofork_range(void *, size_t);
int ibv_cmd_get_context(struct verbs_context *, struct ibv_get_context *, size_t,
			struct ib_uverbs_get_context_resp *, size_t);
int ibv_cmd_query_device_any(struct ibv_context *, const struct ibv_query_device_ex_input *,
			     struct ibv_device_attr_ex *, size_t,
			     struct ib_uverbs_ex_query_device_resp *, size_t *);
int ibv_cmd_query_port(struct ibv_context *, uint8_t, struct ibv_port_attr *, struct ibv_query_port *,
		       size_t);
int ibv_cmd_alloc_pd(struct ibv_context *, struct ibv_pd *, struct ibv_alloc_pd *, size_t,
		     struct ib_uverbs_alloc_pd_resp *, size_t);
int ibv_cmd_dealloc_pd(struct ibv_pd *);
int ibv_cmd_reg_mr(struct ibv_pd *, void *, size_t, uint64_t, int, struct verbs_mr *,
		   struct ibv_reg_mr *, size_t, struct ib_uverbs_reg_mr_resp *, size_t);
int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int, struct verbs_mr *,
			  struct ibv_command_buffer *);
int ibv_cmd_rereg_mr(struct verbs_mr *, uint32_t, void *, size_t, uint64_t, int, struct ibv_pd *,
		     struct ibv_rereg_mr *, size_t, struct ib_uverbs_rereg_mr_resp *, size_t);
int ibv_cmd_dereg_mr(struct verbs_mr *);
int ibv_cmd_alloc_mw(struct ibv_pd *, enum ibv_mw_type, struct ibv_mw *, struct ibv_alloc_mw *, size_t,
		     struct ib_uverbs_alloc_mw_resp *, size_t);
int ibv_cmd_dealloc_mw(struct ibv_mw *);
int ibv_cmd_create_cq_ex(struct ibv_context *, const struct ibv_cq_init_attr_ex *, struct verbs_cq *,
			 struct ibv_create_cq_ex *, size_t, struct ib_uverbs_ex_create_cq_resp *,
			 size_t, uint32_t);
int ibv_cmd_req_notify_cq(struct ibv_cq *, int);
int ibv_cmd_resize_cq(struct ibv_cq *, int, struct ibv_resize_cq *, size_t,
		      struct ib_uverbs_resize_cq_resp *, size_t);
int ibv_cmd_destroy_cq(struct ibv_cq *);
int ibv_cmd_create_srq(struct ibv_pd *, struct ibv_srq *, struct ibv_srq_init_attr *,
		       struct ibv_create_srq *, size_t, struct ib_uverbs_create_srq_resp *, size_t);
int ibv_cmd_modify_srq(struct ibv_srq *, struct ibv_srq_attr *, int, struct ibv_modify_srq *, size_t);
int ibv_cmd_query_srq(struct ibv_srq *, struct ibv_srq_attr *, struct ibv_query_srq *, size_t);
int ibv_cmd_destroy_srq(struct ibv_srq *);
int ibv_cmd_create_qp_ex(struct ibv_context *, struct verbs_qp *, struct ibv_qp_init_attr_ex *,
			 struct ibv_create_qp *, size_t, struct ib_uverbs_create_qp_resp *, size_t);
int ibv_cmd_query_qp(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *,
		     struct ibv_query_qp *, size_t);
int ibv_cmd_modify_qp(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_modify_qp *, size_t);
int ibv_cmd_destroy_qp(struct ibv_qp *);

/* The types of the operations that are provided. */
#define OPERATION(name, result, ...)                                                             \
	result (*check_##name(struct verbs_context_ops *ops))(__VA_ARGS__);                      \
	result (*check_##name(struct verbs_context_ops *ops))(__VA_ARGS__) { return ops->name; }

OPERATION(alloc_mw, struct ibv_mw *, struct ibv_pd *, enum ibv_mw_type)
OPERATION(alloc_pd, struct ibv_pd *, struct ibv_context *)
OPERATION(bind_mw, int, struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *)
OPERATION(cq_event, void, struct ibv_cq *)
OPERATION(create_cq, struct ibv_cq *, struct ibv_context *, int, struct ibv_comp_channel *, int)
OPERATION(create_cq_ex, struct ibv_cq_ex *, struct ibv_context *, struct ibv_cq_init_attr_ex *)
OPERATION(create_qp, struct ibv_qp *, struct ibv_pd *, struct ibv_qp_init_attr *)
OPERATION(create_qp_ex, struct ibv_qp *, struct ibv_context *, struct ibv_qp_init_attr_ex *)
OPERATION(create_srq, struct ibv_srq *, struct ibv_pd *, struct ibv_srq_init_attr *)
OPERATION(dealloc_mw, int, struct ibv_mw *)
OPERATION(dealloc_pd, int, struct ibv_pd *)
OPERATION(dereg_mr, int, struct verbs_mr *)
OPERATION(destroy_cq, int, struct ibv_cq *)
OPERATION(destroy_qp, int, struct ibv_qp *)
OPERATION(destroy_srq, int, struct ibv_srq *)
OPERATION(free_context, void, struct ibv_context *)
OPERATION(modify_qp, int, struct ibv_qp *, struct ibv_qp_attr *, int)
OPERATION(modify_srq, int, struct ibv_srq *, struct ibv_srq_attr *, int)
OPERATION(poll_cq, int, struct ibv_cq *, int, struct ibv_wc *)
OPERATION(post_recv, int, struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **)
OPERATION(post_send, int, struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **)
OPERATION(post_srq_recv, int, struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **)
OPERATION(query_device_ex, int, struct ibv_context *, const struct ibv_query_device_ex_input *,
	  struct ibv_device_attr_ex *, size_t)
OPERATION(query_port, int, struct ibv_context *, uint8_t, struct ibv_port_attr *)
OPERATION(query_qp, int, struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *)
OPERATION(query_rt_values, int, struct ibv_context *, struct ibv_values_ex *)
OPERATION(query_srq, int, struct ibv_srq *, struct ibv_srq_attr *)
OPERATION(reg_dmabuf_mr, struct ibv_mr *, struct ibv_pd *, uint64_t, size_t, uint64_t, int, int)
OPERATION(reg_mr, struct ibv_mr *, struct ibv_pd *, void *, size_t, uint64_t, int)
OPERATION(req_notify_cq, int, struct ibv_cq *, int)
OPERATION(rereg_mr, int, struct verbs_mr *, int, struct ibv_pd *, void *, size_t, int)
OPERATION(resize_cq, int, struct ibv_cq *, int)

/* Generated: see tests.rs. */
_Static_assert(sizeof(struct ibv_device) == 664, "sizeof(struct ibv_device)");
_Static_assert(offsetof(struct ibv_device, _ops) == 0, "offsetof(struct ibv_device, _ops)");
_Static_assert(offsetof(struct ibv_device, node_type) == 16, "offsetof(struct ibv_device, node_type)");
_Static_assert(offsetof(struct ibv_device, transport_type) == 20, "offsetof(struct ibv_device, transport_type)");
_Static_assert(offsetof(struct ibv_device, name) == 24, "offsetof(struct ibv_device, name)");
_Static_assert(offsetof(struct ibv_device, dev_name) == 88, "offsetof(struct ibv_device, dev_name)");
_Static_assert(offsetof(struct ibv_device, dev_path) == 152, "offsetof(struct ibv_device, dev_path)");
_Static_assert(offsetof(struct ibv_device, ibdev_path) == 408, "offsetof(struct ibv_device, ibdev_path)");
_Static_assert(sizeof(struct ibv_context) == 328, "sizeof(struct ibv_context)");
_Static_assert(offsetof(struct ibv_context, device) == 0, "offsetof(struct ibv_context, device)");
_Static_assert(offsetof(struct ibv_context, ops) == 8, "offsetof(struct ibv_context, ops)");
_Static_assert(offsetof(struct ibv_context, cmd_fd) == 264, "offsetof(struct ibv_context, cmd_fd)");
_Static_assert(offsetof(struct ibv_context, async_fd) == 268, "offsetof(struct ibv_context, async_fd)");
_Static_assert(offsetof(struct ibv_context, num_comp_vectors) == 272, "offsetof(struct ibv_context, num_comp_vectors)");
_Static_assert(offsetof(struct ibv_context, mutex) == 280, "offsetof(struct ibv_context, mutex)");
_Static_assert(offsetof(struct ibv_context, abi_compat) == 320, "offsetof(struct ibv_context, abi_compat)");
_Static_assert(sizeof(struct verbs_context) == 648, "sizeof(struct verbs_context)");
_Static_assert(offsetof(struct verbs_context, query_port) == 0, "offsetof(struct verbs_context, query_port)");
_Static_assert(offsetof(struct verbs_context, sz) == 312, "offsetof(struct verbs_context, sz)");
_Static_assert(offsetof(struct verbs_context, context) == 320, "offsetof(struct verbs_context, context)");
_Static_assert(sizeof(struct ibv_device_attr) == 232, "sizeof(struct ibv_device_attr)");
_Static_assert(offsetof(struct ibv_device_attr, fw_ver) == 0, "offsetof(struct ibv_device_attr, fw_ver)");
_Static_assert(offsetof(struct ibv_device_attr, node_guid) == 64, "offsetof(struct ibv_device_attr, node_guid)");
_Static_assert(offsetof(struct ibv_device_attr, sys_image_guid) == 72, "offsetof(struct ibv_device_attr, sys_image_guid)");
_Static_assert(offsetof(struct ibv_device_attr, max_mr_size) == 80, "offsetof(struct ibv_device_attr, max_mr_size)");
_Static_assert(offsetof(struct ibv_device_attr, page_size_cap) == 88, "offsetof(struct ibv_device_attr, page_size_cap)");
_Static_assert(offsetof(struct ibv_device_attr, vendor_id) == 96, "offsetof(struct ibv_device_attr, vendor_id)");
_Static_assert(offsetof(struct ibv_device_attr, vendor_part_id) == 100, "offsetof(struct ibv_device_attr, vendor_part_id)");
_Static_assert(offsetof(struct ibv_device_attr, hw_ver) == 104, "offsetof(struct ibv_device_attr, hw_ver)");
_Static_assert(offsetof(struct ibv_device_attr, max_qp) == 108, "offsetof(struct ibv_device_attr, max_qp)");
_Static_assert(offsetof(struct ibv_device_attr, max_qp_wr) == 112, "offsetof(struct ibv_device_attr, max_qp_wr)");
_Static_assert(offsetof(struct ibv_device_attr, device_cap_flags) == 116, "offsetof(struct ibv_device_attr, device_cap_flags)");
_Static_assert(offsetof(struct ibv_device_attr, max_sge) == 120, "offsetof(struct ibv_device_attr, max_sge)");
_Static_assert(offsetof(struct ibv_device_attr, max_sge_rd) == 124, "offsetof(struct ibv_device_attr, max_sge_rd)");
_Static_assert(offsetof(struct ibv_device_attr, max_cq) == 128, "offsetof(struct ibv_device_attr, max_cq)");
_Static_assert(offsetof(struct ibv_device_attr, max_cqe) == 132, "offsetof(struct ibv_device_attr, max_cqe)");
_Static_assert(offsetof(struct ibv_device_attr, max_mr) == 136, "offsetof(struct ibv_device_attr, max_mr)");
_Static_assert(offsetof(struct ibv_device_attr, max_pd) == 140, "offsetof(struct ibv_device_attr, max_pd)");
_Static_assert(offsetof(struct ibv_device_attr, max_qp_rd_atom) == 144, "offsetof(struct ibv_device_attr, max_qp_rd_atom)");
_Static_assert(offsetof(struct ibv_device_attr, max_ee_rd_atom) == 148, "offsetof(struct ibv_device_attr, max_ee_rd_atom)");
_Static_assert(offsetof(struct ibv_device_attr, max_res_rd_atom) == 152, "offsetof(struct ibv_device_attr, max_res_rd_atom)");
_Static_assert(offsetof(struct ibv_device_attr, max_qp_init_rd_atom) == 156, "offsetof(struct ibv_device_attr, max_qp_init_rd_atom)");
_Static_assert(offsetof(struct ibv_device_attr, max_ee_init_rd_atom) == 160, "offsetof(struct ibv_device_attr, max_ee_init_rd_atom)");
_Static_assert(offsetof(struct ibv_device_attr, atomic_cap) == 164, "offsetof(struct ibv_device_attr, atomic_cap)");
_Static_assert(offsetof(struct ibv_device_attr, max_ee) == 168, "offsetof(struct ibv_device_attr, max_ee)");
_Static_assert(offsetof(struct ibv_device_attr, max_rdd) == 172, "offsetof(struct ibv_device_attr, max_rdd)");
_Static_assert(offsetof(struct ibv_device_attr, max_mw) == 176, "offsetof(struct ibv_device_attr, max_mw)");
_Static_assert(offsetof(struct ibv_device_attr, max_raw_ipv6_qp) == 180, "offsetof(struct ibv_device_attr, max_raw_ipv6_qp)");
_Static_assert(offsetof(struct ibv_device_attr, max_raw_ethy_qp) == 184, "offsetof(struct ibv_device_attr, max_raw_ethy_qp)");
_Static_assert(offsetof(struct ibv_device_attr, max_mcast_grp) == 188, "offsetof(struct ibv_device_attr, max_mcast_grp)");
_Static_assert(offsetof(struct ibv_device_attr, max_mcast_qp_attach) == 192, "offsetof(struct ibv_device_attr, max_mcast_qp_attach)");
_Static_assert(offsetof(struct ibv_device_attr, max_total_mcast_qp_attach) == 196, "offsetof(struct ibv_device_attr, max_total_mcast_qp_attach)");
_Static_assert(offsetof(struct ibv_device_attr, max_ah) == 200, "offsetof(struct ibv_device_attr, max_ah)");
_Static_assert(offsetof(struct ibv_device_attr, max_fmr) == 204, "offsetof(struct ibv_device_attr, max_fmr)");
_Static_assert(offsetof(struct ibv_device_attr, max_map_per_fmr) == 208, "offsetof(struct ibv_device_attr, max_map_per_fmr)");
_Static_assert(offsetof(struct ibv_device_attr, max_srq) == 212, "offsetof(struct ibv_device_attr, max_srq)");
_Static_assert(offsetof(struct ibv_device_attr, max_srq_wr) == 216, "offsetof(struct ibv_device_attr, max_srq_wr)");
_Static_assert(offsetof(struct ibv_device_attr, max_srq_sge) == 220, "offsetof(struct ibv_device_attr, max_srq_sge)");
_Static_assert(offsetof(struct ibv_device_attr, max_pkeys) == 224, "offsetof(struct ibv_device_attr, max_pkeys)");
_Static_assert(offsetof(struct ibv_device_attr, local_ca_ack_delay) == 226, "offsetof(struct ibv_device_attr, local_ca_ack_delay)");
_Static_assert(offsetof(struct ibv_device_attr, phys_port_cnt) == 227, "offsetof(struct ibv_device_attr, phys_port_cnt)");
_Static_assert(sizeof(struct ibv_pd) == 16, "sizeof(struct ibv_pd)");
_Static_assert(offsetof(struct ibv_pd, context) == 0, "offsetof(struct ibv_pd, context)");
_Static_assert(offsetof(struct ibv_pd, handle) == 8, "offsetof(struct ibv_pd, handle)");
_Static_assert(sizeof(struct ibv_mr) == 48, "sizeof(struct ibv_mr)");
_Static_assert(offsetof(struct ibv_mr, context) == 0, "offsetof(struct ibv_mr, context)");
_Static_assert(offsetof(struct ibv_mr, pd) == 8, "offsetof(struct ibv_mr, pd)");
_Static_assert(offsetof(struct ibv_mr, addr) == 16, "offsetof(struct ibv_mr, addr)");
_Static_assert(offsetof(struct ibv_mr, length) == 24, "offsetof(struct ibv_mr, length)");
_Static_assert(offsetof(struct ibv_mr, handle) == 32, "offsetof(struct ibv_mr, handle)");
_Static_assert(offsetof(struct ibv_mr, lkey) == 36, "offsetof(struct ibv_mr, lkey)");
_Static_assert(offsetof(struct ibv_mr, rkey) == 40, "offsetof(struct ibv_mr, rkey)");
_Static_assert(sizeof(struct ibv_mw) == 32, "sizeof(struct ibv_mw)");
_Static_assert(offsetof(struct ibv_mw, context) == 0, "offsetof(struct ibv_mw, context)");
_Static_assert(offsetof(struct ibv_mw, pd) == 8, "offsetof(struct ibv_mw, pd)");
_Static_assert(offsetof(struct ibv_mw, rkey) == 16, "offsetof(struct ibv_mw, rkey)");
_Static_assert(offsetof(struct ibv_mw, handle) == 20, "offsetof(struct ibv_mw, handle)");
_Static_assert(offsetof(struct ibv_mw, type) == 24, "offsetof(struct ibv_mw, type)");
_Static_assert(sizeof(struct ibv_mw_bind_info) == 32, "sizeof(struct ibv_mw_bind_info)");
_Static_assert(offsetof(struct ibv_mw_bind_info, mr) == 0, "offsetof(struct ibv_mw_bind_info, mr)");
_Static_assert(offsetof(struct ibv_mw_bind_info, addr) == 8, "offsetof(struct ibv_mw_bind_info, addr)");
_Static_assert(offsetof(struct ibv_mw_bind_info, length) == 16, "offsetof(struct ibv_mw_bind_info, length)");
_Static_assert(offsetof(struct ibv_mw_bind_info, mw_access_flags) == 24, "offsetof(struct ibv_mw_bind_info, mw_access_flags)");
_Static_assert(sizeof(struct ibv_mw_bind) == 48, "sizeof(struct ibv_mw_bind)");
_Static_assert(offsetof(struct ibv_mw_bind, wr_id) == 0, "offsetof(struct ibv_mw_bind, wr_id)");
_Static_assert(offsetof(struct ibv_mw_bind, send_flags) == 8, "offsetof(struct ibv_mw_bind, send_flags)");
_Static_assert(offsetof(struct ibv_mw_bind, bind_info) == 16, "offsetof(struct ibv_mw_bind, bind_info)");
_Static_assert(sizeof(struct ibv_cq) == 128, "sizeof(struct ibv_cq)");
_Static_assert(offsetof(struct ibv_cq, context) == 0, "offsetof(struct ibv_cq, context)");
_Static_assert(offsetof(struct ibv_cq, channel) == 8, "offsetof(struct ibv_cq, channel)");
_Static_assert(offsetof(struct ibv_cq, cq_context) == 16, "offsetof(struct ibv_cq, cq_context)");
_Static_assert(offsetof(struct ibv_cq, handle) == 24, "offsetof(struct ibv_cq, handle)");
_Static_assert(offsetof(struct ibv_cq, cqe) == 28, "offsetof(struct ibv_cq, cqe)");
_Static_assert(offsetof(struct ibv_cq, mutex) == 32, "offsetof(struct ibv_cq, mutex)");
_Static_assert(offsetof(struct ibv_cq, cond) == 72, "offsetof(struct ibv_cq, cond)");
_Static_assert(offsetof(struct ibv_cq, comp_events_completed) == 120, "offsetof(struct ibv_cq, comp_events_completed)");
_Static_assert(offsetof(struct ibv_cq, async_events_completed) == 124, "offsetof(struct ibv_cq, async_events_completed)");
_Static_assert(sizeof(struct ibv_cq_ex) == 288, "sizeof(struct ibv_cq_ex)");
_Static_assert(offsetof(struct ibv_cq_ex, context) == 0, "offsetof(struct ibv_cq_ex, context)");
_Static_assert(offsetof(struct ibv_cq_ex, channel) == 8, "offsetof(struct ibv_cq_ex, channel)");
_Static_assert(offsetof(struct ibv_cq_ex, cq_context) == 16, "offsetof(struct ibv_cq_ex, cq_context)");
_Static_assert(offsetof(struct ibv_cq_ex, handle) == 24, "offsetof(struct ibv_cq_ex, handle)");
_Static_assert(offsetof(struct ibv_cq_ex, cqe) == 28, "offsetof(struct ibv_cq_ex, cqe)");
_Static_assert(offsetof(struct ibv_cq_ex, mutex) == 32, "offsetof(struct ibv_cq_ex, mutex)");
_Static_assert(offsetof(struct ibv_cq_ex, cond) == 72, "offsetof(struct ibv_cq_ex, cond)");
_Static_assert(offsetof(struct ibv_cq_ex, comp_events_completed) == 120, "offsetof(struct ibv_cq_ex, comp_events_completed)");
_Static_assert(offsetof(struct ibv_cq_ex, async_events_completed) == 124, "offsetof(struct ibv_cq_ex, async_events_completed)");
_Static_assert(offsetof(struct ibv_cq_ex, comp_mask) == 128, "offsetof(struct ibv_cq_ex, comp_mask)");
_Static_assert(offsetof(struct ibv_cq_ex, status) == 132, "offsetof(struct ibv_cq_ex, status)");
_Static_assert(offsetof(struct ibv_cq_ex, wr_id) == 136, "offsetof(struct ibv_cq_ex, wr_id)");
_Static_assert(offsetof(struct ibv_cq_ex, start_poll) == 144, "offsetof(struct ibv_cq_ex, start_poll)");
_Static_assert(offsetof(struct ibv_cq_ex, next_poll) == 152, "offsetof(struct ibv_cq_ex, next_poll)");
_Static_assert(offsetof(struct ibv_cq_ex, end_poll) == 160, "offsetof(struct ibv_cq_ex, end_poll)");
_Static_assert(offsetof(struct ibv_cq_ex, read_opcode) == 168, "offsetof(struct ibv_cq_ex, read_opcode)");
_Static_assert(offsetof(struct ibv_cq_ex, read_vendor_err) == 176, "offsetof(struct ibv_cq_ex, read_vendor_err)");
_Static_assert(offsetof(struct ibv_cq_ex, read_byte_len) == 184, "offsetof(struct ibv_cq_ex, read_byte_len)");
_Static_assert(offsetof(struct ibv_cq_ex, read_imm_data) == 192, "offsetof(struct ibv_cq_ex, read_imm_data)");
_Static_assert(offsetof(struct ibv_cq_ex, read_qp_num) == 200, "offsetof(struct ibv_cq_ex, read_qp_num)");
_Static_assert(offsetof(struct ibv_cq_ex, read_src_qp) == 208, "offsetof(struct ibv_cq_ex, read_src_qp)");
_Static_assert(offsetof(struct ibv_cq_ex, read_wc_flags) == 216, "offsetof(struct ibv_cq_ex, read_wc_flags)");
_Static_assert(offsetof(struct ibv_cq_ex, read_slid) == 224, "offsetof(struct ibv_cq_ex, read_slid)");
_Static_assert(offsetof(struct ibv_cq_ex, read_sl) == 232, "offsetof(struct ibv_cq_ex, read_sl)");
_Static_assert(offsetof(struct ibv_cq_ex, read_dlid_path_bits) == 240, "offsetof(struct ibv_cq_ex, read_dlid_path_bits)");
_Static_assert(offsetof(struct ibv_cq_ex, read_completion_ts) == 248, "offsetof(struct ibv_cq_ex, read_completion_ts)");
_Static_assert(offsetof(struct ibv_cq_ex, read_cvlan) == 256, "offsetof(struct ibv_cq_ex, read_cvlan)");
_Static_assert(offsetof(struct ibv_cq_ex, read_flow_tag) == 264, "offsetof(struct ibv_cq_ex, read_flow_tag)");
_Static_assert(offsetof(struct ibv_cq_ex, read_tm_info) == 272, "offsetof(struct ibv_cq_ex, read_tm_info)");
_Static_assert(offsetof(struct ibv_cq_ex, read_completion_wallclock_ns) == 280, "offsetof(struct ibv_cq_ex, read_completion_wallclock_ns)");
_Static_assert(sizeof(struct ibv_poll_cq_attr) == 4, "sizeof(struct ibv_poll_cq_attr)");
_Static_assert(offsetof(struct ibv_poll_cq_attr, comp_mask) == 0, "offsetof(struct ibv_poll_cq_attr, comp_mask)");
_Static_assert(sizeof(struct ibv_cq_init_attr_ex) == 56, "sizeof(struct ibv_cq_init_attr_ex)");
_Static_assert(offsetof(struct ibv_cq_init_attr_ex, cqe) == 0, "offsetof(struct ibv_cq_init_attr_ex, cqe)");
_Static_assert(offsetof(struct ibv_cq_init_attr_ex, cq_context) == 8, "offsetof(struct ibv_cq_init_attr_ex, cq_context)");
_Static_assert(offsetof(struct ibv_cq_init_attr_ex, channel) == 16, "offsetof(struct ibv_cq_init_attr_ex, channel)");
_Static_assert(offsetof(struct ibv_cq_init_attr_ex, comp_vector) == 24, "offsetof(struct ibv_cq_init_attr_ex, comp_vector)");
_Static_assert(offsetof(struct ibv_cq_init_attr_ex, wc_flags) == 32, "offsetof(struct ibv_cq_init_attr_ex, wc_flags)");
_Static_assert(offsetof(struct ibv_cq_init_attr_ex, comp_mask) == 40, "offsetof(struct ibv_cq_init_attr_ex, comp_mask)");
_Static_assert(offsetof(struct ibv_cq_init_attr_ex, flags) == 44, "offsetof(struct ibv_cq_init_attr_ex, flags)");
_Static_assert(offsetof(struct ibv_cq_init_attr_ex, parent_domain) == 48, "offsetof(struct ibv_cq_init_attr_ex, parent_domain)");
_Static_assert(sizeof(struct ibv_wc) == 48, "sizeof(struct ibv_wc)");
_Static_assert(offsetof(struct ibv_wc, wr_id) == 0, "offsetof(struct ibv_wc, wr_id)");
_Static_assert(offsetof(struct ibv_wc, status) == 8, "offsetof(struct ibv_wc, status)");
_Static_assert(offsetof(struct ibv_wc, opcode) == 12, "offsetof(struct ibv_wc, opcode)");
_Static_assert(offsetof(struct ibv_wc, vendor_err) == 16, "offsetof(struct ibv_wc, vendor_err)");
_Static_assert(offsetof(struct ibv_wc, byte_len) == 20, "offsetof(struct ibv_wc, byte_len)");
_Static_assert(offsetof(struct ibv_wc, imm_data) == 24, "offsetof(struct ibv_wc, imm_data)");
_Static_assert(offsetof(struct ibv_wc, qp_num) == 28, "offsetof(struct ibv_wc, qp_num)");
_Static_assert(offsetof(struct ibv_wc, src_qp) == 32, "offsetof(struct ibv_wc, src_qp)");
_Static_assert(offsetof(struct ibv_wc, wc_flags) == 36, "offsetof(struct ibv_wc, wc_flags)");
_Static_assert(offsetof(struct ibv_wc, pkey_index) == 40, "offsetof(struct ibv_wc, pkey_index)");
_Static_assert(offsetof(struct ibv_wc, slid) == 42, "offsetof(struct ibv_wc, slid)");
_Static_assert(offsetof(struct ibv_wc, sl) == 44, "offsetof(struct ibv_wc, sl)");
_Static_assert(offsetof(struct ibv_wc, dlid_path_bits) == 45, "offsetof(struct ibv_wc, dlid_path_bits)");
_Static_assert(sizeof(struct ibv_srq) == 128, "sizeof(struct ibv_srq)");
_Static_assert(offsetof(struct ibv_srq, context) == 0, "offsetof(struct ibv_srq, context)");
_Static_assert(offsetof(struct ibv_srq, srq_context) == 8, "offsetof(struct ibv_srq, srq_context)");
_Static_assert(offsetof(struct ibv_srq, pd) == 16, "offsetof(struct ibv_srq, pd)");
_Static_assert(offsetof(struct ibv_srq, handle) == 24, "offsetof(struct ibv_srq, handle)");
_Static_assert(offsetof(struct ibv_srq, mutex) == 32, "offsetof(struct ibv_srq, mutex)");
_Static_assert(offsetof(struct ibv_srq, cond) == 72, "offsetof(struct ibv_srq, cond)");
_Static_assert(offsetof(struct ibv_srq, events_completed) == 120, "offsetof(struct ibv_srq, events_completed)");
_Static_assert(sizeof(struct ibv_srq_attr) == 12, "sizeof(struct ibv_srq_attr)");
_Static_assert(offsetof(struct ibv_srq_attr, max_wr) == 0, "offsetof(struct ibv_srq_attr, max_wr)");
_Static_assert(offsetof(struct ibv_srq_attr, max_sge) == 4, "offsetof(struct ibv_srq_attr, max_sge)");
_Static_assert(offsetof(struct ibv_srq_attr, srq_limit) == 8, "offsetof(struct ibv_srq_attr, srq_limit)");
_Static_assert(sizeof(struct ibv_srq_init_attr) == 24, "sizeof(struct ibv_srq_init_attr)");
_Static_assert(offsetof(struct ibv_srq_init_attr, srq_context) == 0, "offsetof(struct ibv_srq_init_attr, srq_context)");
_Static_assert(offsetof(struct ibv_srq_init_attr, attr) == 8, "offsetof(struct ibv_srq_init_attr, attr)");
_Static_assert(sizeof(struct ibv_srq_init_attr_ex) == 64, "sizeof(struct ibv_srq_init_attr_ex)");
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, srq_context) == 0, "offsetof(struct ibv_srq_init_attr_ex, srq_context)");
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, attr) == 8, "offsetof(struct ibv_srq_init_attr_ex, attr)");
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, comp_mask) == 20, "offsetof(struct ibv_srq_init_attr_ex, comp_mask)");
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, srq_type) == 24, "offsetof(struct ibv_srq_init_attr_ex, srq_type)");
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, pd) == 32, "offsetof(struct ibv_srq_init_attr_ex, pd)");
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, xrcd) == 40, "offsetof(struct ibv_srq_init_attr_ex, xrcd)");
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, cq) == 48, "offsetof(struct ibv_srq_init_attr_ex, cq)");
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, tm_cap) == 56, "offsetof(struct ibv_srq_init_attr_ex, tm_cap)");
_Static_assert(sizeof(struct ibv_qp_cap) == 20, "sizeof(struct ibv_qp_cap)");
_Static_assert(offsetof(struct ibv_qp_cap, max_send_wr) == 0, "offsetof(struct ibv_qp_cap, max_send_wr)");
_Static_assert(offsetof(struct ibv_qp_cap, max_recv_wr) == 4, "offsetof(struct ibv_qp_cap, max_recv_wr)");
_Static_assert(offsetof(struct ibv_qp_cap, max_send_sge) == 8, "offsetof(struct ibv_qp_cap, max_send_sge)");
_Static_assert(offsetof(struct ibv_qp_cap, max_recv_sge) == 12, "offsetof(struct ibv_qp_cap, max_recv_sge)");
_Static_assert(offsetof(struct ibv_qp_cap, max_inline_data) == 16, "offsetof(struct ibv_qp_cap, max_inline_data)");
_Static_assert(sizeof(struct ibv_qp_init_attr) == 64, "sizeof(struct ibv_qp_init_attr)");
_Static_assert(offsetof(struct ibv_qp_init_attr, qp_context) == 0, "offsetof(struct ibv_qp_init_attr, qp_context)");
_Static_assert(offsetof(struct ibv_qp_init_attr, send_cq) == 8, "offsetof(struct ibv_qp_init_attr, send_cq)");
_Static_assert(offsetof(struct ibv_qp_init_attr, recv_cq) == 16, "offsetof(struct ibv_qp_init_attr, recv_cq)");
_Static_assert(offsetof(struct ibv_qp_init_attr, srq) == 24, "offsetof(struct ibv_qp_init_attr, srq)");
_Static_assert(offsetof(struct ibv_qp_init_attr, cap) == 32, "offsetof(struct ibv_qp_init_attr, cap)");
_Static_assert(offsetof(struct ibv_qp_init_attr, qp_type) == 52, "offsetof(struct ibv_qp_init_attr, qp_type)");
_Static_assert(offsetof(struct ibv_qp_init_attr, sq_sig_all) == 56, "offsetof(struct ibv_qp_init_attr, sq_sig_all)");
_Static_assert(sizeof(struct ibv_qp_init_attr_ex) == 136, "sizeof(struct ibv_qp_init_attr_ex)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, qp_context) == 0, "offsetof(struct ibv_qp_init_attr_ex, qp_context)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, send_cq) == 8, "offsetof(struct ibv_qp_init_attr_ex, send_cq)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, recv_cq) == 16, "offsetof(struct ibv_qp_init_attr_ex, recv_cq)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, srq) == 24, "offsetof(struct ibv_qp_init_attr_ex, srq)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, cap) == 32, "offsetof(struct ibv_qp_init_attr_ex, cap)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, qp_type) == 52, "offsetof(struct ibv_qp_init_attr_ex, qp_type)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, sq_sig_all) == 56, "offsetof(struct ibv_qp_init_attr_ex, sq_sig_all)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, comp_mask) == 60, "offsetof(struct ibv_qp_init_attr_ex, comp_mask)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, pd) == 64, "offsetof(struct ibv_qp_init_attr_ex, pd)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, xrcd) == 72, "offsetof(struct ibv_qp_init_attr_ex, xrcd)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, create_flags) == 80, "offsetof(struct ibv_qp_init_attr_ex, create_flags)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, max_tso_header) == 84, "offsetof(struct ibv_qp_init_attr_ex, max_tso_header)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, rwq_ind_tbl) == 88, "offsetof(struct ibv_qp_init_attr_ex, rwq_ind_tbl)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, rx_hash_conf) == 96, "offsetof(struct ibv_qp_init_attr_ex, rx_hash_conf)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, source_qpn) == 120, "offsetof(struct ibv_qp_init_attr_ex, source_qpn)");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, send_ops_flags) == 128, "offsetof(struct ibv_qp_init_attr_ex, send_ops_flags)");
_Static_assert(sizeof(struct ibv_qp) == 160, "sizeof(struct ibv_qp)");
_Static_assert(offsetof(struct ibv_qp, context) == 0, "offsetof(struct ibv_qp, context)");
_Static_assert(offsetof(struct ibv_qp, qp_context) == 8, "offsetof(struct ibv_qp, qp_context)");
_Static_assert(offsetof(struct ibv_qp, pd) == 16, "offsetof(struct ibv_qp, pd)");
_Static_assert(offsetof(struct ibv_qp, send_cq) == 24, "offsetof(struct ibv_qp, send_cq)");
_Static_assert(offsetof(struct ibv_qp, recv_cq) == 32, "offsetof(struct ibv_qp, recv_cq)");
_Static_assert(offsetof(struct ibv_qp, srq) == 40, "offsetof(struct ibv_qp, srq)");
_Static_assert(offsetof(struct ibv_qp, handle) == 48, "offsetof(struct ibv_qp, handle)");
_Static_assert(offsetof(struct ibv_qp, qp_num) == 52, "offsetof(struct ibv_qp, qp_num)");
_Static_assert(offsetof(struct ibv_qp, state) == 56, "offsetof(struct ibv_qp, state)");
_Static_assert(offsetof(struct ibv_qp, qp_type) == 60, "offsetof(struct ibv_qp, qp_type)");
_Static_assert(offsetof(struct ibv_qp, mutex) == 64, "offsetof(struct ibv_qp, mutex)");
_Static_assert(offsetof(struct ibv_qp, cond) == 104, "offsetof(struct ibv_qp, cond)");
_Static_assert(offsetof(struct ibv_qp, events_completed) == 152, "offsetof(struct ibv_qp, events_completed)");
_Static_assert(sizeof(struct ibv_qp_ex) == 360, "sizeof(struct ibv_qp_ex)");
_Static_assert(offsetof(struct ibv_qp_ex, qp_base) == 0, "offsetof(struct ibv_qp_ex, qp_base)");
_Static_assert(offsetof(struct ibv_qp_ex, comp_mask) == 160, "offsetof(struct ibv_qp_ex, comp_mask)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_id) == 168, "offsetof(struct ibv_qp_ex, wr_id)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_flags) == 176, "offsetof(struct ibv_qp_ex, wr_flags)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp) == 184, "offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_atomic_fetch_add) == 192, "offsetof(struct ibv_qp_ex, wr_atomic_fetch_add)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_bind_mw) == 200, "offsetof(struct ibv_qp_ex, wr_bind_mw)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_local_inv) == 208, "offsetof(struct ibv_qp_ex, wr_local_inv)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_rdma_read) == 216, "offsetof(struct ibv_qp_ex, wr_rdma_read)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_rdma_write) == 224, "offsetof(struct ibv_qp_ex, wr_rdma_write)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_rdma_write_imm) == 232, "offsetof(struct ibv_qp_ex, wr_rdma_write_imm)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_send) == 240, "offsetof(struct ibv_qp_ex, wr_send)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_send_imm) == 248, "offsetof(struct ibv_qp_ex, wr_send_imm)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_send_inv) == 256, "offsetof(struct ibv_qp_ex, wr_send_inv)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_send_tso) == 264, "offsetof(struct ibv_qp_ex, wr_send_tso)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_set_ud_addr) == 272, "offsetof(struct ibv_qp_ex, wr_set_ud_addr)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_set_xrc_srqn) == 280, "offsetof(struct ibv_qp_ex, wr_set_xrc_srqn)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_set_inline_data) == 288, "offsetof(struct ibv_qp_ex, wr_set_inline_data)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_set_inline_data_list) == 296, "offsetof(struct ibv_qp_ex, wr_set_inline_data_list)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_set_sge) == 304, "offsetof(struct ibv_qp_ex, wr_set_sge)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_set_sge_list) == 312, "offsetof(struct ibv_qp_ex, wr_set_sge_list)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_start) == 320, "offsetof(struct ibv_qp_ex, wr_start)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_complete) == 328, "offsetof(struct ibv_qp_ex, wr_complete)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_abort) == 336, "offsetof(struct ibv_qp_ex, wr_abort)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_atomic_write) == 344, "offsetof(struct ibv_qp_ex, wr_atomic_write)");
_Static_assert(offsetof(struct ibv_qp_ex, wr_flush) == 352, "offsetof(struct ibv_qp_ex, wr_flush)");
_Static_assert(sizeof(struct ibv_values_ex) == 24, "sizeof(struct ibv_values_ex)");
_Static_assert(offsetof(struct ibv_values_ex, comp_mask) == 0, "offsetof(struct ibv_values_ex, comp_mask)");
_Static_assert(offsetof(struct ibv_values_ex, raw_clock) == 8, "offsetof(struct ibv_values_ex, raw_clock)");
_Static_assert(sizeof(struct ibv_data_buf) == 16, "sizeof(struct ibv_data_buf)");
_Static_assert(offsetof(struct ibv_data_buf, addr) == 0, "offsetof(struct ibv_data_buf, addr)");
_Static_assert(offsetof(struct ibv_data_buf, length) == 8, "offsetof(struct ibv_data_buf, length)");
_Static_assert(sizeof(struct ibv_sge) == 16, "sizeof(struct ibv_sge)");
_Static_assert(offsetof(struct ibv_sge, addr) == 0, "offsetof(struct ibv_sge, addr)");
_Static_assert(offsetof(struct ibv_sge, length) == 8, "offsetof(struct ibv_sge, length)");
_Static_assert(offsetof(struct ibv_sge, lkey) == 12, "offsetof(struct ibv_sge, lkey)");
_Static_assert(sizeof(struct ibv_recv_wr) == 32, "sizeof(struct ibv_recv_wr)");
_Static_assert(offsetof(struct ibv_recv_wr, wr_id) == 0, "offsetof(struct ibv_recv_wr, wr_id)");
_Static_assert(offsetof(struct ibv_recv_wr, next) == 8, "offsetof(struct ibv_recv_wr, next)");
_Static_assert(offsetof(struct ibv_recv_wr, sg_list) == 16, "offsetof(struct ibv_recv_wr, sg_list)");
_Static_assert(offsetof(struct ibv_recv_wr, num_sge) == 24, "offsetof(struct ibv_recv_wr, num_sge)");
_Static_assert(sizeof(struct ibv_send_wr) == 128, "sizeof(struct ibv_send_wr)");
_Static_assert(offsetof(struct ibv_send_wr, wr_id) == 0, "offsetof(struct ibv_send_wr, wr_id)");
_Static_assert(offsetof(struct ibv_send_wr, next) == 8, "offsetof(struct ibv_send_wr, next)");
_Static_assert(offsetof(struct ibv_send_wr, sg_list) == 16, "offsetof(struct ibv_send_wr, sg_list)");
_Static_assert(offsetof(struct ibv_send_wr, num_sge) == 24, "offsetof(struct ibv_send_wr, num_sge)");
_Static_assert(offsetof(struct ibv_send_wr, opcode) == 28, "offsetof(struct ibv_send_wr, opcode)");
_Static_assert(offsetof(struct ibv_send_wr, send_flags) == 32, "offsetof(struct ibv_send_wr, send_flags)");
_Static_assert(offsetof(struct ibv_send_wr, imm_data) == 36, "offsetof(struct ibv_send_wr, imm_data)");
_Static_assert(offsetof(struct ibv_send_wr, wr) == 40, "offsetof(struct ibv_send_wr, wr)");
_Static_assert(offsetof(struct ibv_send_wr, qp_type) == 72, "offsetof(struct ibv_send_wr, qp_type)");
_Static_assert(offsetof(struct ibv_send_wr, bind_mw) == 80, "offsetof(struct ibv_send_wr, bind_mw)");
_Static_assert(offsetof(struct ibv_send_wr, wr.rdma.remote_addr) == 40, "offsetof(struct ibv_send_wr, wr.rdma.remote_addr)");
_Static_assert(offsetof(struct ibv_send_wr, wr.rdma.rkey) == 48, "offsetof(struct ibv_send_wr, wr.rdma.rkey)");
_Static_assert(offsetof(struct ibv_send_wr, wr.atomic.remote_addr) == 40, "offsetof(struct ibv_send_wr, wr.atomic.remote_addr)");
_Static_assert(offsetof(struct ibv_send_wr, wr.atomic.compare_add) == 48, "offsetof(struct ibv_send_wr, wr.atomic.compare_add)");
_Static_assert(offsetof(struct ibv_send_wr, wr.atomic.swap) == 56, "offsetof(struct ibv_send_wr, wr.atomic.swap)");
_Static_assert(offsetof(struct ibv_send_wr, wr.atomic.rkey) == 64, "offsetof(struct ibv_send_wr, wr.atomic.rkey)");
_Static_assert(offsetof(struct ibv_send_wr, bind_mw.mw) == 80, "offsetof(struct ibv_send_wr, bind_mw.mw)");
_Static_assert(offsetof(struct ibv_send_wr, bind_mw.rkey) == 88, "offsetof(struct ibv_send_wr, bind_mw.rkey)");
_Static_assert(offsetof(struct ibv_send_wr, bind_mw.bind_info) == 96, "offsetof(struct ibv_send_wr, bind_mw.bind_info)");
_Static_assert(IBV_QPT_RC == 2, "IBV_QPT_RC");
_Static_assert(IBV_QP_INIT_ATTR_PD == 1, "IBV_QP_INIT_ATTR_PD");
_Static_assert(IBV_QP_INIT_ATTR_CREATE_FLAGS == 4, "IBV_QP_INIT_ATTR_CREATE_FLAGS");
_Static_assert(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS == 64, "IBV_QP_INIT_ATTR_SEND_OPS_FLAGS");
_Static_assert(IBV_QP_EX_WITH_RDMA_WRITE == 1, "IBV_QP_EX_WITH_RDMA_WRITE");
_Static_assert(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM == 2, "IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM");
_Static_assert(IBV_QP_EX_WITH_SEND == 4, "IBV_QP_EX_WITH_SEND");
_Static_assert(IBV_QP_EX_WITH_RDMA_READ == 16, "IBV_QP_EX_WITH_RDMA_READ");
_Static_assert(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP == 32, "IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP");
_Static_assert(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD == 64, "IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD");
_Static_assert(IBV_QP_EX_WITH_LOCAL_INV == 128, "IBV_QP_EX_WITH_LOCAL_INV");
_Static_assert(IBV_QP_EX_WITH_BIND_MW == 256, "IBV_QP_EX_WITH_BIND_MW");
_Static_assert(IBV_QP_EX_WITH_SEND_WITH_INV == 512, "IBV_QP_EX_WITH_SEND_WITH_INV");
_Static_assert(IBV_WR_RDMA_WRITE == 0, "IBV_WR_RDMA_WRITE");
_Static_assert(IBV_WR_RDMA_WRITE_WITH_IMM == 1, "IBV_WR_RDMA_WRITE_WITH_IMM");
_Static_assert(IBV_WR_SEND == 2, "IBV_WR_SEND");
_Static_assert(IBV_WR_RDMA_READ == 4, "IBV_WR_RDMA_READ");
_Static_assert(IBV_WR_ATOMIC_CMP_AND_SWP == 5, "IBV_WR_ATOMIC_CMP_AND_SWP");
_Static_assert(IBV_WR_ATOMIC_FETCH_AND_ADD == 6, "IBV_WR_ATOMIC_FETCH_AND_ADD");
_Static_assert(IBV_WR_LOCAL_INV == 7, "IBV_WR_LOCAL_INV");
_Static_assert(IBV_WR_BIND_MW == 8, "IBV_WR_BIND_MW");
_Static_assert(IBV_WR_SEND_WITH_INV == 9, "IBV_WR_SEND_WITH_INV");
_Static_assert(IBV_MW_TYPE_2 == 2, "IBV_MW_TYPE_2");
_Static_assert(IBV_SEND_FENCE == 1, "IBV_SEND_FENCE");
_Static_assert(IBV_SEND_SIGNALED == 2, "IBV_SEND_SIGNALED");
_Static_assert(IBV_SEND_SOLICITED == 4, "IBV_SEND_SOLICITED");
_Static_assert(IBV_SEND_INLINE == 8, "IBV_SEND_INLINE");
_Static_assert(IBV_QP_STATE == 1, "IBV_QP_STATE");
_Static_assert(IBV_WC_SUCCESS == 0, "IBV_WC_SUCCESS");
_Static_assert(IBV_WC_LOC_LEN_ERR == 1, "IBV_WC_LOC_LEN_ERR");
_Static_assert(IBV_WC_LOC_QP_OP_ERR == 2, "IBV_WC_LOC_QP_OP_ERR");
_Static_assert(IBV_WC_LOC_PROT_ERR == 4, "IBV_WC_LOC_PROT_ERR");
_Static_assert(IBV_WC_WR_FLUSH_ERR == 5, "IBV_WC_WR_FLUSH_ERR");
_Static_assert(IBV_WC_MW_BIND_ERR == 6, "IBV_WC_MW_BIND_ERR");
_Static_assert(IBV_WC_BAD_RESP_ERR == 7, "IBV_WC_BAD_RESP_ERR");
_Static_assert(IBV_WC_LOC_ACCESS_ERR == 8, "IBV_WC_LOC_ACCESS_ERR");
_Static_assert(IBV_WC_REM_INV_REQ_ERR == 9, "IBV_WC_REM_INV_REQ_ERR");
_Static_assert(IBV_WC_REM_ACCESS_ERR == 10, "IBV_WC_REM_ACCESS_ERR");
_Static_assert(IBV_WC_REM_OP_ERR == 11, "IBV_WC_REM_OP_ERR");
_Static_assert(IBV_WC_FATAL_ERR == 19, "IBV_WC_FATAL_ERR");
_Static_assert(IBV_WC_GENERAL_ERR == 21, "IBV_WC_GENERAL_ERR");
_Static_assert(IBV_WC_SEND == 0, "IBV_WC_SEND");
_Static_assert(IBV_WC_RDMA_WRITE == 1, "IBV_WC_RDMA_WRITE");
_Static_assert(IBV_WC_RDMA_READ == 2, "IBV_WC_RDMA_READ");
_Static_assert(IBV_WC_COMP_SWAP == 3, "IBV_WC_COMP_SWAP");
_Static_assert(IBV_WC_FETCH_ADD == 4, "IBV_WC_FETCH_ADD");
_Static_assert(IBV_WC_RECV == 128, "IBV_WC_RECV");
_Static_assert(IBV_WC_RECV_RDMA_WITH_IMM == 129, "IBV_WC_RECV_RDMA_WITH_IMM");
_Static_assert(IBV_WC_WITH_IMM == 2, "IBV_WC_WITH_IMM");
_Static_assert(IBV_WC_WITH_INV == 8, "IBV_WC_WITH_INV");
_Static_assert(IBV_WC_EX_WITH_BYTE_LEN == 1, "IBV_WC_EX_WITH_BYTE_LEN");
_Static_assert(IBV_WC_EX_WITH_IMM == 2, "IBV_WC_EX_WITH_IMM");
_Static_assert(IBV_WC_EX_WITH_QP_NUM == 4, "IBV_WC_EX_WITH_QP_NUM");
_Static_assert(IBV_WC_EX_WITH_SRC_QP == 8, "IBV_WC_EX_WITH_SRC_QP");
_Static_assert(IBV_WC_EX_WITH_SLID == 16, "IBV_WC_EX_WITH_SLID");
_Static_assert(IBV_WC_EX_WITH_SL == 32, "IBV_WC_EX_WITH_SL");
_Static_assert(IBV_WC_EX_WITH_DLID_PATH_BITS == 64, "IBV_WC_EX_WITH_DLID_PATH_BITS");
_Static_assert(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP == 128, "IBV_WC_EX_WITH_COMPLETION_TIMESTAMP");
_Static_assert(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK == 2048, "IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK");
_Static_assert(IBV_CQ_INIT_ATTR_MASK_FLAGS == 1, "IBV_CQ_INIT_ATTR_MASK_FLAGS");
_Static_assert(IBV_CREATE_CQ_ATTR_SINGLE_THREADED == 1, "IBV_CREATE_CQ_ATTR_SINGLE_THREADED");
_Static_assert(IBV_SRQ_MAX_WR == 1, "IBV_SRQ_MAX_WR");
_Static_assert(IBV_SRQ_LIMIT == 2, "IBV_SRQ_LIMIT");
_Static_assert(IBV_SRQT_BASIC == 0, "IBV_SRQT_BASIC");
_Static_assert(IBV_SRQ_INIT_ATTR_TYPE == 1, "IBV_SRQ_INIT_ATTR_TYPE");
_Static_assert(IBV_SRQ_INIT_ATTR_PD == 2, "IBV_SRQ_INIT_ATTR_PD");
_Static_assert(IBV_VALUES_MASK_RAW_CLOCK == 1, "IBV_VALUES_MASK_RAW_CLOCK");
_Static_assert(sizeof(struct verbs_match_ent) == 24, "sizeof(struct verbs_match_ent)");
_Static_assert(offsetof(struct verbs_match_ent, driver_data) == 0, "offsetof(struct verbs_match_ent, driver_data)");
_Static_assert(offsetof(struct verbs_match_ent, u) == 8, "offsetof(struct verbs_match_ent, u)");
_Static_assert(offsetof(struct verbs_match_ent, vendor) == 16, "offsetof(struct verbs_match_ent, vendor)");
_Static_assert(offsetof(struct verbs_match_ent, device) == 18, "offsetof(struct verbs_match_ent, device)");
_Static_assert(offsetof(struct verbs_match_ent, kind) == 20, "offsetof(struct verbs_match_ent, kind)");
_Static_assert(sizeof(struct verbs_device_ops) == 72, "sizeof(struct verbs_device_ops)");
_Static_assert(offsetof(struct verbs_device_ops, name) == 0, "offsetof(struct verbs_device_ops, name)");
_Static_assert(offsetof(struct verbs_device_ops, match_min_abi_version) == 8, "offsetof(struct verbs_device_ops, match_min_abi_version)");
_Static_assert(offsetof(struct verbs_device_ops, match_max_abi_version) == 12, "offsetof(struct verbs_device_ops, match_max_abi_version)");
_Static_assert(offsetof(struct verbs_device_ops, match_table) == 16, "offsetof(struct verbs_device_ops, match_table)");
_Static_assert(offsetof(struct verbs_device_ops, static_providers) == 24, "offsetof(struct verbs_device_ops, static_providers)");
_Static_assert(offsetof(struct verbs_device_ops, match_device) == 32, "offsetof(struct verbs_device_ops, match_device)");
_Static_assert(offsetof(struct verbs_device_ops, alloc_context) == 40, "offsetof(struct verbs_device_ops, alloc_context)");
_Static_assert(offsetof(struct verbs_device_ops, import_context) == 48, "offsetof(struct verbs_device_ops, import_context)");
_Static_assert(offsetof(struct verbs_device_ops, alloc_device) == 56, "offsetof(struct verbs_device_ops, alloc_device)");
_Static_assert(offsetof(struct verbs_device_ops, uninit_device) == 64, "offsetof(struct verbs_device_ops, uninit_device)");
_Static_assert(sizeof(struct verbs_device) == 712, "sizeof(struct verbs_device)");
_Static_assert(offsetof(struct verbs_device, device) == 0, "offsetof(struct verbs_device, device)");
_Static_assert(offsetof(struct verbs_device, ops) == 664, "offsetof(struct verbs_device, ops)");
_Static_assert(offsetof(struct verbs_device, refcount) == 672, "offsetof(struct verbs_device, refcount)");
_Static_assert(offsetof(struct verbs_device, entry) == 680, "offsetof(struct verbs_device, entry)");
_Static_assert(offsetof(struct verbs_device, sysfs) == 696, "offsetof(struct verbs_device, sysfs)");
_Static_assert(offsetof(struct verbs_device, core_support) == 704, "offsetof(struct verbs_device, core_support)");
_Static_assert(sizeof(struct verbs_mr) == 56, "sizeof(struct verbs_mr)");
_Static_assert(offsetof(struct verbs_mr, ibv_mr) == 0, "offsetof(struct verbs_mr, ibv_mr)");
_Static_assert(offsetof(struct verbs_mr, mr_type) == 48, "offsetof(struct verbs_mr, mr_type)");
_Static_assert(offsetof(struct verbs_mr, access) == 52, "offsetof(struct verbs_mr, access)");
_Static_assert(sizeof(struct verbs_srq) == 160, "sizeof(struct verbs_srq)");
_Static_assert(offsetof(struct verbs_srq, srq) == 0, "offsetof(struct verbs_srq, srq)");
_Static_assert(offsetof(struct verbs_srq, srq_type) == 128, "offsetof(struct verbs_srq, srq_type)");
_Static_assert(offsetof(struct verbs_srq, xrcd) == 136, "offsetof(struct verbs_srq, xrcd)");
_Static_assert(offsetof(struct verbs_srq, cq) == 144, "offsetof(struct verbs_srq, cq)");
_Static_assert(offsetof(struct verbs_srq, srq_num) == 152, "offsetof(struct verbs_srq, srq_num)");
_Static_assert(sizeof(struct verbs_cq) == 288, "sizeof(struct verbs_cq)");
_Static_assert(offsetof(struct verbs_cq, cq_ex) == 0, "offsetof(struct verbs_cq, cq_ex)");
_Static_assert(sizeof(struct verbs_qp) == 376, "sizeof(struct verbs_qp)");
_Static_assert(offsetof(struct verbs_qp, qp_ex) == 0, "offsetof(struct verbs_qp, qp_ex)");
_Static_assert(offsetof(struct verbs_qp, comp_mask) == 360, "offsetof(struct verbs_qp, comp_mask)");
_Static_assert(offsetof(struct verbs_qp, xrcd) == 368, "offsetof(struct verbs_qp, xrcd)");
_Static_assert(sizeof(struct verbs_context_ops) == 608, "sizeof(struct verbs_context_ops)");
_Static_assert(offsetof(struct verbs_context_ops, advise_mr) == 0, "offsetof(struct verbs_context_ops, advise_mr)");
_Static_assert(offsetof(struct verbs_context_ops, alloc_dm) == 8, "offsetof(struct verbs_context_ops, alloc_dm)");
_Static_assert(offsetof(struct verbs_context_ops, alloc_mw) == 16, "offsetof(struct verbs_context_ops, alloc_mw)");
_Static_assert(offsetof(struct verbs_context_ops, alloc_null_mr) == 24, "offsetof(struct verbs_context_ops, alloc_null_mr)");
_Static_assert(offsetof(struct verbs_context_ops, alloc_parent_domain) == 32, "offsetof(struct verbs_context_ops, alloc_parent_domain)");
_Static_assert(offsetof(struct verbs_context_ops, alloc_pd) == 40, "offsetof(struct verbs_context_ops, alloc_pd)");
_Static_assert(offsetof(struct verbs_context_ops, alloc_td) == 48, "offsetof(struct verbs_context_ops, alloc_td)");
_Static_assert(offsetof(struct verbs_context_ops, async_event) == 56, "offsetof(struct verbs_context_ops, async_event)");
_Static_assert(offsetof(struct verbs_context_ops, attach_counters_point_flow) == 64, "offsetof(struct verbs_context_ops, attach_counters_point_flow)");
_Static_assert(offsetof(struct verbs_context_ops, attach_mcast) == 72, "offsetof(struct verbs_context_ops, attach_mcast)");
_Static_assert(offsetof(struct verbs_context_ops, bind_mw) == 80, "offsetof(struct verbs_context_ops, bind_mw)");
_Static_assert(offsetof(struct verbs_context_ops, close_xrcd) == 88, "offsetof(struct verbs_context_ops, close_xrcd)");
_Static_assert(offsetof(struct verbs_context_ops, cq_event) == 96, "offsetof(struct verbs_context_ops, cq_event)");
_Static_assert(offsetof(struct verbs_context_ops, create_ah) == 104, "offsetof(struct verbs_context_ops, create_ah)");
_Static_assert(offsetof(struct verbs_context_ops, create_counters) == 112, "offsetof(struct verbs_context_ops, create_counters)");
_Static_assert(offsetof(struct verbs_context_ops, create_cq) == 120, "offsetof(struct verbs_context_ops, create_cq)");
_Static_assert(offsetof(struct verbs_context_ops, create_cq_ex) == 128, "offsetof(struct verbs_context_ops, create_cq_ex)");
_Static_assert(offsetof(struct verbs_context_ops, create_flow) == 136, "offsetof(struct verbs_context_ops, create_flow)");
_Static_assert(offsetof(struct verbs_context_ops, create_flow_action_esp) == 144, "offsetof(struct verbs_context_ops, create_flow_action_esp)");
_Static_assert(offsetof(struct verbs_context_ops, create_qp) == 152, "offsetof(struct verbs_context_ops, create_qp)");
_Static_assert(offsetof(struct verbs_context_ops, create_qp_ex) == 160, "offsetof(struct verbs_context_ops, create_qp_ex)");
_Static_assert(offsetof(struct verbs_context_ops, create_rwq_ind_table) == 168, "offsetof(struct verbs_context_ops, create_rwq_ind_table)");
_Static_assert(offsetof(struct verbs_context_ops, create_srq) == 176, "offsetof(struct verbs_context_ops, create_srq)");
_Static_assert(offsetof(struct verbs_context_ops, create_srq_ex) == 184, "offsetof(struct verbs_context_ops, create_srq_ex)");
_Static_assert(offsetof(struct verbs_context_ops, create_wq) == 192, "offsetof(struct verbs_context_ops, create_wq)");
_Static_assert(offsetof(struct verbs_context_ops, dealloc_mw) == 200, "offsetof(struct verbs_context_ops, dealloc_mw)");
_Static_assert(offsetof(struct verbs_context_ops, dealloc_pd) == 208, "offsetof(struct verbs_context_ops, dealloc_pd)");
_Static_assert(offsetof(struct verbs_context_ops, dealloc_td) == 216, "offsetof(struct verbs_context_ops, dealloc_td)");
_Static_assert(offsetof(struct verbs_context_ops, dereg_mr) == 224, "offsetof(struct verbs_context_ops, dereg_mr)");
_Static_assert(offsetof(struct verbs_context_ops, destroy_ah) == 232, "offsetof(struct verbs_context_ops, destroy_ah)");
_Static_assert(offsetof(struct verbs_context_ops, destroy_counters) == 240, "offsetof(struct verbs_context_ops, destroy_counters)");
_Static_assert(offsetof(struct verbs_context_ops, destroy_cq) == 248, "offsetof(struct verbs_context_ops, destroy_cq)");
_Static_assert(offsetof(struct verbs_context_ops, destroy_flow) == 256, "offsetof(struct verbs_context_ops, destroy_flow)");
_Static_assert(offsetof(struct verbs_context_ops, destroy_flow_action) == 264, "offsetof(struct verbs_context_ops, destroy_flow_action)");
_Static_assert(offsetof(struct verbs_context_ops, destroy_qp) == 272, "offsetof(struct verbs_context_ops, destroy_qp)");
_Static_assert(offsetof(struct verbs_context_ops, destroy_rwq_ind_table) == 280, "offsetof(struct verbs_context_ops, destroy_rwq_ind_table)");
_Static_assert(offsetof(struct verbs_context_ops, destroy_srq) == 288, "offsetof(struct verbs_context_ops, destroy_srq)");
_Static_assert(offsetof(struct verbs_context_ops, destroy_wq) == 296, "offsetof(struct verbs_context_ops, destroy_wq)");
_Static_assert(offsetof(struct verbs_context_ops, detach_mcast) == 304, "offsetof(struct verbs_context_ops, detach_mcast)");
_Static_assert(offsetof(struct verbs_context_ops, free_context) == 312, "offsetof(struct verbs_context_ops, free_context)");
_Static_assert(offsetof(struct verbs_context_ops, free_dm) == 320, "offsetof(struct verbs_context_ops, free_dm)");
_Static_assert(offsetof(struct verbs_context_ops, get_srq_num) == 328, "offsetof(struct verbs_context_ops, get_srq_num)");
_Static_assert(offsetof(struct verbs_context_ops, import_dm) == 336, "offsetof(struct verbs_context_ops, import_dm)");
_Static_assert(offsetof(struct verbs_context_ops, import_mr) == 344, "offsetof(struct verbs_context_ops, import_mr)");
_Static_assert(offsetof(struct verbs_context_ops, import_pd) == 352, "offsetof(struct verbs_context_ops, import_pd)");
_Static_assert(offsetof(struct verbs_context_ops, modify_cq) == 360, "offsetof(struct verbs_context_ops, modify_cq)");
_Static_assert(offsetof(struct verbs_context_ops, modify_flow_action_esp) == 368, "offsetof(struct verbs_context_ops, modify_flow_action_esp)");
_Static_assert(offsetof(struct verbs_context_ops, modify_qp) == 376, "offsetof(struct verbs_context_ops, modify_qp)");
_Static_assert(offsetof(struct verbs_context_ops, modify_qp_rate_limit) == 384, "offsetof(struct verbs_context_ops, modify_qp_rate_limit)");
_Static_assert(offsetof(struct verbs_context_ops, modify_srq) == 392, "offsetof(struct verbs_context_ops, modify_srq)");
_Static_assert(offsetof(struct verbs_context_ops, modify_wq) == 400, "offsetof(struct verbs_context_ops, modify_wq)");
_Static_assert(offsetof(struct verbs_context_ops, open_qp) == 408, "offsetof(struct verbs_context_ops, open_qp)");
_Static_assert(offsetof(struct verbs_context_ops, open_xrcd) == 416, "offsetof(struct verbs_context_ops, open_xrcd)");
_Static_assert(offsetof(struct verbs_context_ops, poll_cq) == 424, "offsetof(struct verbs_context_ops, poll_cq)");
_Static_assert(offsetof(struct verbs_context_ops, post_recv) == 432, "offsetof(struct verbs_context_ops, post_recv)");
_Static_assert(offsetof(struct verbs_context_ops, post_send) == 440, "offsetof(struct verbs_context_ops, post_send)");
_Static_assert(offsetof(struct verbs_context_ops, post_srq_ops) == 448, "offsetof(struct verbs_context_ops, post_srq_ops)");
_Static_assert(offsetof(struct verbs_context_ops, post_srq_recv) == 456, "offsetof(struct verbs_context_ops, post_srq_recv)");
_Static_assert(offsetof(struct verbs_context_ops, query_device_ex) == 464, "offsetof(struct verbs_context_ops, query_device_ex)");
_Static_assert(offsetof(struct verbs_context_ops, query_ece) == 472, "offsetof(struct verbs_context_ops, query_ece)");
_Static_assert(offsetof(struct verbs_context_ops, query_port) == 480, "offsetof(struct verbs_context_ops, query_port)");
_Static_assert(offsetof(struct verbs_context_ops, query_qp) == 488, "offsetof(struct verbs_context_ops, query_qp)");
_Static_assert(offsetof(struct verbs_context_ops, query_qp_data_in_order) == 496, "offsetof(struct verbs_context_ops, query_qp_data_in_order)");
_Static_assert(offsetof(struct verbs_context_ops, query_rt_values) == 504, "offsetof(struct verbs_context_ops, query_rt_values)");
_Static_assert(offsetof(struct verbs_context_ops, query_srq) == 512, "offsetof(struct verbs_context_ops, query_srq)");
_Static_assert(offsetof(struct verbs_context_ops, read_counters) == 520, "offsetof(struct verbs_context_ops, read_counters)");
_Static_assert(offsetof(struct verbs_context_ops, reg_dm_mr) == 528, "offsetof(struct verbs_context_ops, reg_dm_mr)");
_Static_assert(offsetof(struct verbs_context_ops, reg_dmabuf_mr) == 536, "offsetof(struct verbs_context_ops, reg_dmabuf_mr)");
_Static_assert(offsetof(struct verbs_context_ops, reg_mr) == 544, "offsetof(struct verbs_context_ops, reg_mr)");
_Static_assert(offsetof(struct verbs_context_ops, req_notify_cq) == 552, "offsetof(struct verbs_context_ops, req_notify_cq)");
_Static_assert(offsetof(struct verbs_context_ops, rereg_mr) == 560, "offsetof(struct verbs_context_ops, rereg_mr)");
_Static_assert(offsetof(struct verbs_context_ops, resize_cq) == 568, "offsetof(struct verbs_context_ops, resize_cq)");
_Static_assert(offsetof(struct verbs_context_ops, set_ece) == 576, "offsetof(struct verbs_context_ops, set_ece)");
_Static_assert(offsetof(struct verbs_context_ops, unimport_dm) == 584, "offsetof(struct verbs_context_ops, unimport_dm)");
_Static_assert(offsetof(struct verbs_context_ops, unimport_mr) == 592, "offsetof(struct verbs_context_ops, unimport_mr)");
_Static_assert(offsetof(struct verbs_context_ops, unimport_pd) == 600, "offsetof(struct verbs_context_ops, unimport_pd)");
_Static_assert(VERBS_MATCH_SENTINEL == 0, "VERBS_MATCH_SENTINEL");
_Static_assert(VERBS_MATCH_DRIVER_ID == 3, "VERBS_MATCH_DRIVER_ID");
_Static_assert(VERBS_QP_EX == 2, "VERBS_QP_EX");
_Static_assert(VERBS_LOG_ERR == 1, "VERBS_LOG_ERR");
_Static_assert(sizeof(struct ibv_get_context) == 16, "sizeof(struct ibv_get_context)");
_Static_assert(sizeof(struct ib_uverbs_get_context_resp) == 8, "sizeof(struct ib_uverbs_get_context_resp)");
_Static_assert(sizeof(struct ibv_query_port) == 24, "sizeof(struct ibv_query_port)");
_Static_assert(sizeof(struct ibv_alloc_pd) == 16, "sizeof(struct ibv_alloc_pd)");
_Static_assert(sizeof(struct ib_uverbs_alloc_pd_resp) == 4, "sizeof(struct ib_uverbs_alloc_pd_resp)");
_Static_assert(sizeof(struct ibv_reg_mr) == 48, "sizeof(struct ibv_reg_mr)");
_Static_assert(sizeof(struct ib_uverbs_reg_mr_resp) == 12, "sizeof(struct ib_uverbs_reg_mr_resp)");
_Static_assert(sizeof(struct ibv_rereg_mr) == 56, "sizeof(struct ibv_rereg_mr)");
_Static_assert(sizeof(struct ib_uverbs_rereg_mr_resp) == 8, "sizeof(struct ib_uverbs_rereg_mr_resp)");
_Static_assert(sizeof(struct ibv_alloc_mw) == 24, "sizeof(struct ibv_alloc_mw)");
_Static_assert(sizeof(struct ib_uverbs_alloc_mw_resp) == 8, "sizeof(struct ib_uverbs_alloc_mw_resp)");
_Static_assert(sizeof(struct ibv_create_cq_ex) == 56, "sizeof(struct ibv_create_cq_ex)");
_Static_assert(sizeof(struct ib_uverbs_ex_create_cq_resp) == 16, "sizeof(struct ib_uverbs_ex_create_cq_resp)");
_Static_assert(sizeof(struct ibv_resize_cq) == 24, "sizeof(struct ibv_resize_cq)");
_Static_assert(sizeof(struct ib_uverbs_resize_cq_resp) == 8, "sizeof(struct ib_uverbs_resize_cq_resp)");
_Static_assert(sizeof(struct ibv_create_srq) == 40, "sizeof(struct ibv_create_srq)");
_Static_assert(sizeof(struct ib_uverbs_create_srq_resp) == 16, "sizeof(struct ib_uverbs_create_srq_resp)");
_Static_assert(sizeof(struct ibv_modify_srq) == 24, "sizeof(struct ibv_modify_srq)");
_Static_assert(sizeof(struct ibv_query_srq) == 24, "sizeof(struct ibv_query_srq)");
_Static_assert(sizeof(struct ibv_create_qp) == 64, "sizeof(struct ibv_create_qp)");
_Static_assert(sizeof(struct ib_uverbs_create_qp_resp) == 32, "sizeof(struct ib_uverbs_create_qp_resp)");
_Static_assert(sizeof(struct ibv_query_qp) == 24, "sizeof(struct ibv_query_qp)");
_Static_assert(sizeof(struct ibv_modify_qp) == 120, "sizeof(struct ibv_modify_qp)");
_Static_assert(offsetof(struct ib_uverbs_ex_query_device_resp, base.fw_ver) == 0, "offsetof(struct ib_uverbs_ex_query_device_resp, base.fw_ver)");
_Static_assert(sizeof(struct ib_uverbs_ex_query_device_resp) == 304, "sizeof(struct ib_uverbs_ex_query_device_resp)");
_Static_assert(sizeof(struct ib_uverbs_attr) == 16, "sizeof(struct ib_uverbs_attr)");
_Static_assert(offsetof(struct ib_uverbs_attr, attr_id) == 0, "offsetof(struct ib_uverbs_attr, attr_id)");
_Static_assert(offsetof(struct ib_uverbs_attr, len) == 2, "offsetof(struct ib_uverbs_attr, len)");
_Static_assert(offsetof(struct ib_uverbs_attr, flags) == 4, "offsetof(struct ib_uverbs_attr, flags)");
_Static_assert(offsetof(struct ib_uverbs_attr, attr_data) == 6, "offsetof(struct ib_uverbs_attr, attr_data)");
_Static_assert(offsetof(struct ib_uverbs_attr, data) == 8, "offsetof(struct ib_uverbs_attr, data)");
_Static_assert(sizeof(struct ib_uverbs_ioctl_hdr) == 24, "sizeof(struct ib_uverbs_ioctl_hdr)");
_Static_assert(offsetof(struct ib_uverbs_ioctl_hdr, length) == 0, "offsetof(struct ib_uverbs_ioctl_hdr, length)");
_Static_assert(offsetof(struct ib_uverbs_ioctl_hdr, object_id) == 2, "offsetof(struct ib_uverbs_ioctl_hdr, object_id)");
_Static_assert(offsetof(struct ib_uverbs_ioctl_hdr, method_id) == 4, "offsetof(struct ib_uverbs_ioctl_hdr, method_id)");
_Static_assert(offsetof(struct ib_uverbs_ioctl_hdr, num_attrs) == 6, "offsetof(struct ib_uverbs_ioctl_hdr, num_attrs)");
_Static_assert(offsetof(struct ib_uverbs_ioctl_hdr, reserved1) == 8, "offsetof(struct ib_uverbs_ioctl_hdr, reserved1)");
_Static_assert(offsetof(struct ib_uverbs_ioctl_hdr, driver_id) == 16, "offsetof(struct ib_uverbs_ioctl_hdr, driver_id)");
_Static_assert(offsetof(struct ib_uverbs_ioctl_hdr, reserved2) == 20, "offsetof(struct ib_uverbs_ioctl_hdr, reserved2)");
_Static_assert(RDMA_VERBS_IOCTL == 3222805249, "RDMA_VERBS_IOCTL");
_Static_assert(UVERBS_OBJECT_DEVICE == 0, "UVERBS_OBJECT_DEVICE");
_Static_assert(UVERBS_METHOD_INVOKE_WRITE == 0, "UVERBS_METHOD_INVOKE_WRITE");
_Static_assert(UVERBS_ATTR_CORE_IN == 0, "UVERBS_ATTR_CORE_IN");
_Static_assert(UVERBS_ATTR_CORE_OUT == 1, "UVERBS_ATTR_CORE_OUT");
_Static_assert(UVERBS_ATTR_WRITE_CMD == 2, "UVERBS_ATTR_WRITE_CMD");
_Static_assert(UVERBS_ATTR_F_MANDATORY == 1, "UVERBS_ATTR_F_MANDATORY");
