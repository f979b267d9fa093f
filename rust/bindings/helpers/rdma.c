// SPDX-License-Identifier: GPL-2.0
/*
 * Macros and inline functions of the kernel, which bindgen does not see, for rust/rdma. A helper
 * with logic of its own says why that is in C.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/dynamic_debug.h>
#include <linux/ethtool.h>
#include <linux/highmem.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/once.h>
#include <linux/random.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/siphash.h>
#include <linux/sysfs.h>
#include <linux/user_namespace.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_netlink.h>
#include <rdma/uverbs_ioctl.h>
#include "rdma.h"

/*
 * Logs `line`, a fmt::Arguments of Rust, as dev_dbg_ratelimited() does, but within the limit `rs`.
 * It is the one place that `module riw` of dynamic debug names, by data that a macro defines.
 */
void riw_helper_ibdev_dbg_limited(struct ib_device *dev, struct ratelimit_state *rs,
				  const void *line)
{
#ifdef CONFIG_DYNAMIC_DEBUG
	DEFINE_DYNAMIC_DEBUG_METADATA(descriptor, "%pA\n");

	if (DYNAMIC_DEBUG_BRANCH(descriptor) && __ratelimit(rs))
		__dynamic_dev_dbg(&descriptor, &dev->dev, "%pA\n", line);
#endif
}

/*
 * Returns whether ethtool reports a speed for the netdev of port 1. May sleep; RTNL must not be
 * held.
 *
 * A netdev that is being unregistered still has its memory, but its driver may have freed data that
 * its ethtool operations use.
 *
 * In C: dev_put() is inline, and riw does not bind struct net_device.
 */
bool riw_helper_ib_netdev_has_speed(struct ib_device *dev)
{
	struct net_device *netdev = ib_device_get_netdev(dev, 1);
	struct ethtool_link_ksettings settings = {};
	bool has_speed = false;

	if (!netdev)
		return false;
	rtnl_lock();
	if (READ_ONCE(netdev->reg_state) == NETREG_REGISTERED)
		has_speed = !__ethtool_get_link_ksettings(netdev, &settings) &&
			    settings.base.speed != (u32)SPEED_UNKNOWN;
	rtnl_unlock();
	dev_put(netdev);
	return has_speed;
}

enum ib_mtu riw_helper_ib_mtu_int_to_enum(int mtu)
{
	return ib_mtu_int_to_enum(mtu);
}

/* A move to another network namespace holds the lock to its end, and so does unregistration. */
bool riw_helper_ib_device_is_moving(struct ib_device *dev)
{
	return mutex_is_locked(&dev->unregistration_lock);
}

/* Inline functions if CONFIG_MODULES is not set. */
bool riw_helper_try_module_get(struct module *module)
{
	return try_module_get(module);
}

void riw_helper_module_put(struct module *module)
{
	module_put(module);
}

/*
 * As %p hashes a pointer: the hash shows which numbers are equal, and no more. It is the same for a
 * number until the module is unloaded. Any context. In C: get_random_once() is a macro.
 */
u32 riw_helper_hash_secret(u64 secret)
{
	static siphash_key_t key __read_mostly;

	get_random_once(&key, sizeof(key));
	return (u32)siphash_1u64(secret, &key);
}

struct ib_device *riw_helper_rdma_device_to_ibdev(struct device *dev)
{
	return rdma_device_to_ibdev(dev);
}

bool riw_helper_ib_device_try_get(struct ib_device *dev)
{
	return ib_device_try_get(dev);
}

/* Returns whether user space has passed an attribute to the current method. */
bool riw_helper_uverbs_attr_given(struct ib_udata *udata, unsigned int attr)
{
	return uverbs_attr_is_valid(rdma_udata_to_uverbs_attr_bundle(udata), attr);
}

/* Starts the nest of a driver's details. Returns NULL if the message has no room. */
struct nlattr *riw_helper_nldev_driver_nest(struct sk_buff *msg)
{
	return nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
}

void riw_helper_nla_nest_end(struct sk_buff *msg, struct nlattr *nest)
{
	nla_nest_end(msg, nest);
}

void riw_helper_nla_nest_cancel(struct sk_buff *msg, struct nlattr *nest)
{
	nla_nest_cancel(msg, nest);
}

u64 riw_helper_mmap_offset(const struct rdma_user_mmap_entry *entry)
{
	return rdma_user_mmap_get_offset(entry);
}

/* All nodes of the array are charged, also those that it allocates with flags of its own. */
void riw_helper_xa_init_account(struct xarray *xa)
{
	xa_init_flags(xa, XA_FLAGS_ACCOUNT);
}

/* Unlike xa_reserve(), fails with -EBUSY if the index is taken. */
int riw_helper_xa_reserve(struct xarray *xa, unsigned long index, gfp_t gfp)
{
	return xa_insert(xa, index, NULL, gfp);
}

void riw_helper_kfree_rcu(struct rcu_head *rcu, void *ptr)
{
	/* The same cast as in kfree_rcu(). */
	BUILD_BUG_ON(sizeof(*rcu) < sizeof(struct kvfree_rcu_head));
	kvfree_call_rcu((struct kvfree_rcu_head *)rcu, ptr);
}

/*
 * Like vmalloc_user(), but charged to the memory cgroup, and without a warning if a process wants
 * for too much. May sleep.
 *
 * The memory is not aligned to SHMLBA: user space maps rings of any number of pages one behind the
 * other. That would be wrong where data caches alias, but no 64-bit architecture with Rust has such
 * caches.
 */
static_assert(!IS_ENABLED(CONFIG_ARCH_HAS_CPU_CACHE_ALIASING));
void *riw_helper_shared_alloc(size_t size)
{
	return __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
}

struct ib_umem *riw_helper_ib_umem_get_va(struct ib_device *device, unsigned long addr,
					  size_t size, int access)
{
	return ib_umem_get_va(device, addr, size, access);
}

bool riw_helper_ib_access_writable(int access)
{
	return ib_access_writable(access);
}

MODULE_IMPORT_NS("DMA_BUF");

/*
 * The direction of the DMA that takes turns with the CPU: a CPU that only reads sees the data that
 * the device has written.
 */
static enum dma_data_direction dmabuf_direction(bool writable)
{
	return writable ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
}

/*
 * Maps the dma-buf that is open as `fd`, for writing if `access` includes a right to write. Returns
 * 0 or a negative errno.
 *
 * In C: FMODE_READ and FMODE_WRITE are macros with casts, which bindgen does not bind, and struct
 * iosys_map has a union that only its own macros and inline functions should set.
 */
int riw_helper_dmabuf_map(int fd, int access, struct riw_dmabuf_mapped *mapped)
{
	bool writable = ib_access_writable(access);
	struct iosys_map map;
	struct dma_buf *buf;
	int ret;

	buf = dma_buf_get(fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	ret = -EACCES;
	/* As mmap(): a mapping always allows to read. */
	if (!(buf->file->f_mode & FMODE_READ) || (writable && !(buf->file->f_mode & FMODE_WRITE)))
		goto put;
	ret = dma_buf_vmap_unlocked(buf, &map);
	if (ret)
		goto put;
	ret = -EOPNOTSUPP;
	if (map.is_iomem)
		goto unmap;
	ret = dma_buf_begin_cpu_access(buf, dmabuf_direction(writable));
	if (ret)
		goto unmap;
	*mapped = (struct riw_dmabuf_mapped){
		.buf = buf, .addr = map.vaddr, .size = buf->size, .writable = writable,
	};
	return 0;

unmap:
	dma_buf_vunmap_unlocked(buf, &map);
put:
	dma_buf_put(buf);
	return ret;
}

void riw_helper_dmabuf_unmap(const struct riw_dmabuf_mapped *mapped)
{
	struct iosys_map map = IOSYS_MAP_INIT_VADDR(mapped->addr);
	struct dma_buf *buf = mapped->buf;

	/* Cannot fail if the exporter has allowed the access. If it does, nothing is left to do. */
	dma_buf_end_cpu_access(buf, dmabuf_direction(mapped->writable));
	dma_buf_vunmap_unlocked(buf, &map);
	dma_buf_put(buf);
}

/*
 * Stores the first `count` pages of a region in order. Returns the number of pages: `count` + 1 if
 * there are more. In C: macros walk the list.
 */
size_t riw_helper_ib_umem_pages(struct ib_umem *umem, struct page **pages, size_t count)
{
	struct sg_page_iter iter;
	size_t n = 0;

	for_each_sgtable_page(&umem->sgt_append.sgt, &iter, 0) {
		if (n == count)
			return n + 1;
		pages[n++] = sg_page_iter_page(&iter);
	}
	return n;
}

void riw_helper_copy_to_page(struct page *page, size_t offset, const u8 *from, size_t len)
{
	memcpy_to_page(page, offset, (const char *)from, len);
}

void riw_helper_copy_from_page(u8 *to, struct page *page, size_t offset, size_t len)
{
	memcpy_from_page((char *)to, page, offset, len);
}

/* `offset` is a multiple of 8. Returns the value before. All steps are macros or inline. */
u64 riw_helper_cmpxchg_page(struct page *page, size_t offset, u64 old, u64 new)
{
	void *addr = kmap_local_page(page);
	u64 before = cmpxchg64((u64 *)(addr + offset), old, new);

	flush_dcache_page(page);
	kunmap_local(addr);
	return before;
}

/* `at` is a multiple of 8. Returns the value before. */
u64 riw_helper_cmpxchg_memory(u64 *at, u64 old, u64 new)
{
	return cmpxchg64(at, old, new);
}

/*
 * Only rdma_cm creates ids of iw_cm, and `context` is then its rdma_id_private (core/cma_priv.h),
 * which begins with a struct rdma_cm_id. In C: riw does not bind that struct, so that nothing else
 * depends on it.
 */
static struct rdma_cm_id *iw_cm_id_owner(struct iw_cm_id *id)
{
	return id->context;
}

/*
 * Returns the queue pair of a kernel user's id. For an id of a process it is NULL: the process only
 * names the number of a queue pair.
 */
struct ib_qp *riw_helper_iw_cm_id_qp(struct iw_cm_id *id)
{
	return READ_ONCE(iw_cm_id_owner(id)->qp);
}

/*
 * Whether uverbs undoes the creation of a process's region, as it cannot write the response. It
 * lists an object from the end of its creation until its driver has destroyed it. Not for a region
 * of ib_uverbs_rereg_mr(), whose `uobject` is that of the old region, and freed. uverbs has no
 * function for it.
 */
bool riw_helper_mr_is_undone(const struct ib_mr *mr)
{
	return list_empty(&mr->uobject->list);
}

/*
 * As capable(CAP_SYS_ADMIN), without an audit record: a refused caller has done no wrong. In C: the
 * credentials of the task are under RCU, behind macros.
 */
bool riw_helper_may_be_kernel_user(void)
{
	if (current->flags & PF_KTHREAD)
		return true;
	return current_user_ns() == &init_user_ns &&
	       cap_raised(current_cred()->cap_effective, CAP_SYS_ADMIN);
}

/* Returns the network namespace of the consumer, with a reference; NULL if it is being removed. */
struct net *riw_helper_iw_cm_id_net(struct iw_cm_id *id)
{
	return maybe_get_net(iw_cm_id_owner(id)->route.addr.dev_addr.net);
}

/*
 * Returns what a listening id has in common with the other ones of its consumer. If rdma_cm listens
 * on each device, it makes an rdma_cm_id for each, with the consumer's one as `context`. Else that
 * is what the consumer has set: nothing, for some kernel users.
 */
void *riw_helper_iw_cm_id_consumer(struct iw_cm_id *id)
{
	struct rdma_cm_id *owner = iw_cm_id_owner(id);

	return owner->context ?: owner;
}
