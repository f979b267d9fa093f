// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the declarations in this folder say about functions of rdma-core, as a C compiler sees them.
 * Compiled, never linked, against the private headers of rdma-core by
 * selftests/provider/check_layout, with the number of their interface as RDMAV. LAYOUT is a file
 * with an assertion for each field and constant that Rust declares: a test of libriw writes it.
 */
#include <infiniband/cmd_write.h>
#include <infiniband/driver.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stddef.h>
#include LAYOUT

/* The prototypes by which the extern "C" blocks call: a compiler rejects a second one that differs. */
#define REGISTER_DRIVER(number) REGISTER_DRIVER_(number)
#define REGISTER_DRIVER_(number) verbs_register_driver_##number
void REGISTER_DRIVER(RDMAV)(const struct verbs_device_ops *);
void *_verbs_init_and_alloc_context(struct ibv_device *, int, size_t, struct verbs_context *, uint32_t);
void verbs_uninit_context(struct verbs_context *);
void verbs_set_ops(struct verbs_context *, const struct verbs_context_ops *);
void __verbs_log(struct verbs_context *, uint32_t, const char *, ...);
int ibv_dontfork_range(void *, size_t);
int ibv_dofork_range(void *, size_t);
int ibv_cmd_get_context(struct verbs_context *, struct ibv_get_context *, size_t,
#if RDMAV >= 57
			struct ibv_fd_arr *,
#endif
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
int ibv_cmd_create_cq_ex(struct ibv_context *, const struct ibv_cq_init_attr_ex *,
#if RDMAV >= 59
			 struct verbs_create_cq_prov_attr *,
#endif
			 struct verbs_cq *, struct ibv_create_cq_ex *, size_t, struct ib_uverbs_ex_create_cq_resp *,
			 size_t, uint32_t);
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

