/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RIW_HELPERS_RDMA_H
#define RIW_HELPERS_RDMA_H

#include <linux/ratelimit_types.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

enum riw_core_cap {
	RIW_RDMA_CORE_PORT_IWARP = RDMA_CORE_PORT_IWARP,
};

/* A dma-buf that is mapped for the CPU. */
struct riw_dmabuf_mapped {
	void *buf;
	void *addr;
	size_t size;
	bool writable;
};

/* Rust sees a helper under its name without `riw_helper_`. */
bool riw_helper_ib_netdev_has_speed(struct ib_device *dev);
enum ib_mtu riw_helper_ib_mtu_int_to_enum(int mtu);
void riw_helper_ibdev_dbg_limited(struct ib_device *dev, struct ratelimit_state *rs,
				  const void *line);
bool riw_helper_ib_device_is_moving(struct ib_device *dev);
bool riw_helper_try_module_get(struct module *module);
void riw_helper_module_put(struct module *module);
u32 riw_helper_hash_secret(u64 secret);
struct ib_device *riw_helper_rdma_device_to_ibdev(struct device *dev);
bool riw_helper_ib_device_try_get(struct ib_device *dev);
bool riw_helper_uverbs_attr_given(struct ib_udata *udata, unsigned int attr);
struct nlattr *riw_helper_nldev_driver_nest(struct sk_buff *msg);
void riw_helper_nla_nest_end(struct sk_buff *msg, struct nlattr *nest);
void riw_helper_nla_nest_cancel(struct sk_buff *msg, struct nlattr *nest);
u64 riw_helper_mmap_offset(const struct rdma_user_mmap_entry *entry);
void riw_helper_xa_init_account(struct xarray *xa);
int riw_helper_xa_reserve(struct xarray *xa, unsigned long index, gfp_t gfp);
void riw_helper_kfree_rcu(struct rcu_head *rcu, void *ptr);
void *riw_helper_shared_alloc(size_t size);
struct ib_umem *riw_helper_ib_umem_get_va(struct ib_device *device, unsigned long addr,
					  size_t size, int access);
bool riw_helper_ib_access_writable(int access);
int riw_helper_dmabuf_map(int fd, int access, struct riw_dmabuf_mapped *mapped);
void riw_helper_dmabuf_unmap(const struct riw_dmabuf_mapped *mapped);
size_t riw_helper_ib_umem_pages(struct ib_umem *umem, struct page **pages, size_t count);
void riw_helper_copy_to_page(struct page *page, size_t offset, const u8 *from, size_t len);
void riw_helper_copy_from_page(u8 *to, struct page *page, size_t offset, size_t len);
u64 riw_helper_cmpxchg_page(struct page *page, size_t offset, u64 old, u64 new);
u64 riw_helper_cmpxchg_memory(u64 *at, u64 old, u64 new);
struct ib_qp *riw_helper_iw_cm_id_qp(struct iw_cm_id *id);
bool riw_helper_mr_is_undone(const struct ib_mr *mr);
bool riw_helper_may_be_kernel_user(void);
struct net *riw_helper_iw_cm_id_net(struct iw_cm_id *id);
void *riw_helper_iw_cm_id_consumer(struct iw_cm_id *id);

#endif
