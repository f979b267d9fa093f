// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel user of verbs with one connection or two, which a case commands: it writes a command to the file
 * `kernel_user` in debugfs, and reads its result there. A command that fails gives its error number.
 *
 *	open ADDRESS PORT [OPTION]...	makes the queues, in the network namespace of the writer. Options:
 *					`srq`, with a shared receive queue; `drain`, for `drain`;
 *					`immediate`, the queue pair takes Immediate Data; `unknown`, with a
 *					creation flag that riw does not know
 *	connect ADDRESS PORT [OPTION]...	the same, and connects as the active side
 *	second ADDRESS PORT		connects another queue pair, of the same protection domain and completion
 *					queue. Commands still go to the first one
 *	swap				commands go to the other queue pair
 *	close
 *	irqs 0|1			whether WRs are posted, and the completion queue is polled and armed,
 *					with interrupts on
 *	reserves			the number of sockets of the kernel that may use the memory reserves
 *	caps				atomic_cap, masked_atomic_cap
 *	attributes			of the device, a line each: name, value. Flags have the value 0 or 1
 *	error				moves the queue pair to ERROR
 *	drain				ib_drain_qp(): milliseconds, completions since the last time
 *	arm FLAGS			the result of ib_req_notify_cq(); numbers of enum ib_cq_notify_flags
 *	events				calls of the completion handler, LAST_WQE_REACHED events, since the start
 *					of the connection
 *	keys COUNT			the rkeys of new regions, which are then destroyed
 *	rotate KEY			the low 8 bits of the region's key
 *	places				the addresses of the memory, and of what the ids point to with `drain`; a
 *					line each: first, last + 1
 *	invalidate KEY			posts a LOCAL_INV
 *	big PAGES ACCESS		registers so many pages, at another place each: rkey, IOVA
 *	bigstore, bigload		as `store` and `load`, in those pages
 *	store OFFSET VALUE		the 8 bytes there in the memory
 *	load OFFSET
 *	register ACCESS IOVA OFFSET LENGTH	of the memory; IOVA 0: that of ib_map_mr_sg(). rkey, IOVA
 *	recv OFFSET LENGTH		posts a receive
 *	post OPCODE RKEY ADDR OFFSET LENGTH FLAGS IMM COMPARE_ADD SWAP COMPARE_ADD_MASK SWAP_MASK
 *					posts a send WR; numbers of enum ib_wr_opcode, ib_send_flags. The
 *					OFFSET is that in the registered memory for the sink of a READ, and
 *					with the flag 100. RKEY is what an invalidation invalidates
 *	srecv OFFSET LENGTH		posts a receive to the shared queue, and makes one that no queue pair
 *					uses if there is none. Its number
 *	poll				the completions since the last time, a line each:
 *					wr_id status opcode byte_len wc_flags imm
 *
 *
 * WRs are numbered from 1 in the order of posting. All numbers but ADDRESS, PORT, OFFSET and LENGTH are
 * hexadecimal without 0x. The memory has one page.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define DEPTH 16
#define READS 4
#define SECONDS 20
#define REGISTERED 0x100	/* a flag of `post` */
#define PAGES_MAX 513
/* The creation flag of riw's queue pairs that take Immediate Data, and the next one. */
#define TAKES_IMMEDIATE IB_QP_CREATE_RESERVED_START
#define UNKNOWN_FLAG (IB_QP_CREATE_RESERVED_START << 1)

static DEFINE_MUTEX(lock);	/* protects all below but events */
static struct dentry *file;
static char result[8192];
static size_t result_length;

static struct rdma_cm_id *id;
static struct rdma_cm_id *other;
static struct ib_pd *pd;
static struct ib_cq *cq;
static struct ib_srq *srq;
static struct ib_mr *mr;
static u8 *memory;
static u64 dma;
static u64 posted;

static struct ib_mr *big;
static struct page *pages[PAGES_MAX];
static struct sg_table big_table;
static unsigned int big_pages;
static bool big_mapped;

static bool irqs_off;
static bool drains;		/* the completion queue is one of ib_alloc_cq(), which ib_drain_qp() needs */
static atomic_t drained;
static atomic_t calls;
static atomic_t last_wqes;

static struct completion event;
static int event_type;

/* Evaluates a call, with interrupts off if that has been commanded. */
#define ANY_CONTEXT(call) ({				\
	unsigned long context = 0;			\
	bool off = irqs_off;				\
	typeof(call) returned;				\
							\
	if (off)					\
		local_irq_save(context);		\
	returned = (call);				\
	if (off)					\
		local_irq_restore(context);		\
	returned;					\
})

static __printf(1, 2) void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	result_length += vscnprintf(result + result_length, sizeof(result) - result_length, format, args);
	va_end(args);
}

static void on_drained(struct ib_cq *of, struct ib_wc *wc)
{
	atomic_inc(&drained);
}

static struct ib_cqe drained_cqe = { .done = on_drained };

/* The id of the next WR. */
static u64 next_id(void)
{
	posted++;
	return drains ? (uintptr_t)&drained_cqe : posted;
}

static void on_completion(struct ib_cq *of, void *context)
{
	atomic_inc(&calls);
}

static void on_async(struct ib_event *happened, void *context)
{
	if (happened->event == IB_EVENT_QP_LAST_WQE_REACHED)
		atomic_inc(&last_wqes);
}

static int on_event(struct rdma_cm_id *of, struct rdma_cm_event *happened)
{
	event_type = happened->event;
	complete(&event);
	return 0;
}

/* Waits for the event of a step whose start returned `started`. */
static int await(int started, enum rdma_cm_event_type wanted)
{
	if (started)
		return started;
	if (!wait_for_completion_timeout(&event, SECONDS * HZ))
		return -ETIMEDOUT;
	return event_type == wanted ? 0 : -ECONNREFUSED;
}

static void big_free(void)
{
	if (big)
		ib_dereg_mr(big);
	big = NULL;
	if (big_mapped)
		ib_dma_unmap_sg(id->device, big_table.sgl, big_pages, DMA_BIDIRECTIONAL);
	big_mapped = false;
	if (big_table.sgl)
		sg_free_table(&big_table);
	memset(&big_table, 0, sizeof(big_table));
	while (big_pages)
		__free_page(pages[--big_pages]);
}

/* Its completions go with it. */
static void destroy_qp(struct rdma_cm_id *of)
{
	if (!of->qp)
		return;
	rdma_disconnect(of);
	rdma_destroy_qp(of);
}

static void close_other(void)
{
	if (!other)
		return;
	destroy_qp(other);
	rdma_destroy_id(other);
	other = NULL;
}

static void close(void)
{
	if (!id)
		return;
	close_other();
	destroy_qp(id);
	big_free();
	if (srq)
		ib_destroy_srq(srq);
	srq = NULL;
	if (mr)
		ib_dereg_mr(mr);
	mr = NULL;
	if (dma)
		ib_dma_unmap_single(id->device, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	dma = 0;
	if (cq && drains)
		ib_free_cq(cq);
	else if (cq)
		ib_destroy_cq(cq);
	cq = NULL;
	drains = false;
	if (pd)
		ib_dealloc_pd(pd);
	pd = NULL;
	rdma_destroy_id(id);
	id = NULL;
}

static int make_srq(void)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	int ret;

	srq = ib_create_srq(pd, &init);
	if (!IS_ERR(srq))
		return 0;
	ret = PTR_ERR(srq);
	srq = NULL;
	return ret;
}

static int make_qp(struct rdma_cm_id *of, u32 flags)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR, .event_handler = on_async,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.send_cq = cq, .recv_cq = cq, .srq = srq, .create_flags = flags,
	};

	return rdma_create_qp(of, pd, &init);
}

static int make_queues(const char *options)
{
	struct ib_cq_init_attr attr = { .cqe = 4 * DEPTH };
	u32 flags = 0;
	int ret;

	pd = ib_alloc_pd(id->device, 0);
	if (IS_ERR(pd)) {
		ret = PTR_ERR(pd);
		pd = NULL;
		return ret;
	}
	drains = strstr(options, "drain");
	if (drains)
		cq = ib_alloc_cq(id->device, NULL, attr.cqe, 0, IB_POLL_WORKQUEUE);
	else
		cq = ib_create_cq(id->device, on_completion, NULL, NULL, &attr);
	if (IS_ERR(cq)) {
		ret = PTR_ERR(cq);
		cq = NULL;
		return ret;
	}
	dma = ib_dma_map_single(id->device, memory, PAGE_SIZE, DMA_BIDIRECTIONAL);
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1);
	if (IS_ERR(mr)) {
		ret = PTR_ERR(mr);
		mr = NULL;
		return ret;
	}
	if (strstr(options, "srq")) {
		ret = make_srq();
		if (ret)
			return ret;
	}
	if (strstr(options, "immediate"))
		flags |= TAKES_IMMEDIATE;
	if (strstr(options, "unknown"))
		flags |= UNKNOWN_FLAG;
	return make_qp(id, flags);
}

/* Makes an id that has resolved its route. */
static int resolve(struct rdma_cm_id **made, const char *address, const char *port)
{
	struct sockaddr_storage to;
	struct rdma_cm_id *new;
	int ret;

	ret = inet_pton_with_scope(current->nsproxy->net_ns, AF_INET, address, port, &to);
	if (ret)
		return ret;
	init_completion(&event);
	new = rdma_create_id(current->nsproxy->net_ns, on_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(new))
		return PTR_ERR(new);
	*made = new;
	return await(rdma_resolve_addr(new, NULL, (struct sockaddr *)&to, SECONDS * 1000),
		     RDMA_CM_EVENT_ADDR_RESOLVED) ?:
	       await(rdma_resolve_route(new, SECONDS * 1000), RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int establish(struct rdma_cm_id *of)
{
	struct rdma_conn_param param = {
		.responder_resources = READS, .initiator_depth = READS,
	};

	return await(rdma_connect(of, &param), RDMA_CM_EVENT_ESTABLISHED);
}

static int connect_second(const char *address, const char *port)
{
	int ret;

	ret = resolve(&other, address, port) ?: make_qp(other, 0) ?: establish(other);
	if (ret)
		close_other();
	return ret;
}

static int connect(const char *address, const char *port, const char *options, bool only_open)
{
	int ret;

	posted = 0;
	atomic_set(&drained, 0);
	atomic_set(&calls, 0);
	atomic_set(&last_wqes, 0);
	ret = resolve(&id, address, port) ?: make_queues(options);
	if (!ret && !only_open)
		ret = establish(id);
	if (ret)
		close();
	return ret;
}

static int post_recv(unsigned int offset, unsigned int length, bool shared)
{
	struct ib_sge sge = { .addr = dma + offset, .length = length, .lkey = pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_id = next_id(), .sg_list = &sge, .num_sge = 1 };
	int ret;

	if (!shared)
		return ANY_CONTEXT(ib_post_recv(id->qp, &wr, NULL));
	ret = srq ? 0 : make_srq();
	if (ret)
		return ret;
	say("%u\n", srq->res.id);
	return ANY_CONTEXT(ib_post_srq_recv(srq, &wr, NULL));
}

static int post(const char *command)
{
	unsigned int offset, length, flags;
	u32 opcode, rkey, imm;
	u64 addr, compare_add, swap, compare_add_mask, swap_mask;
	struct ib_sge sge = { .lkey = pd->local_dma_lkey };
	union {
		struct ib_send_wr send;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	} wr = {};

	if (sscanf(command, "%x %x %llx %u %u %x %x %llx %llx %llx %llx", &opcode, &rkey, &addr, &offset,
		   &length, &flags, &imm, &compare_add, &swap, &compare_add_mask, &swap_mask) != 11)
		return -EINVAL;
	sge.addr = dma + offset;
	sge.length = length;
	wr.send.wr_id = next_id();
	wr.send.opcode = opcode;
	wr.send.send_flags = flags & ~REGISTERED;
	wr.send.sg_list = &sge;
	wr.send.num_sge = length ? 1 : 0;
	wr.send.ex.imm_data = cpu_to_be32(imm);
	if (flags & REGISTERED) {
		sge.addr = mr->iova + offset;
		sge.lkey = mr->lkey;
	}
	switch (opcode) {
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		wr.atomic.remote_addr = addr;
		wr.atomic.rkey = rkey;
		wr.atomic.compare_add = compare_add;
		wr.atomic.swap = swap;
		wr.atomic.compare_add_mask = compare_add_mask;
		wr.atomic.swap_mask = swap_mask;
		break;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		wr.send.ex.invalidate_rkey = rkey;
		break;
	case IB_WR_RDMA_READ_WITH_INV:
		wr.send.ex.invalidate_rkey = mr->rkey;
		fallthrough;
	case IB_WR_RDMA_READ:
		/* The peer gets the key of the sink. */
		sge.addr = mr->iova + offset;
		sge.lkey = mr->lkey;
		fallthrough;
	default:
		wr.rdma.remote_addr = addr;
		wr.rdma.rkey = rkey;
	}
	return ANY_CONTEXT(ib_post_send(id->qp, &wr.send, NULL));
}

static int register_memory(u32 access, u64 iova, unsigned int offset, unsigned int length)
{
	struct ib_reg_wr wr = { .wr = { .opcode = IB_WR_REG_MR } };
	struct scatterlist sg;
	int ret;

	sg_init_one(&sg, memory + offset, length);
	ret = ib_dma_map_sg(id->device, &sg, 1, DMA_BIDIRECTIONAL);
	if (ret != 1)
		return -EIO;
	ret = ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE);
	if (ret != 1)
		return ret < 0 ? ret : -EIO;
	if (iova)
		mr->iova = iova;
	wr.wr.wr_id = next_id();
	wr.mr = mr;
	wr.key = mr->rkey;
	wr.access = access;
	say("%x %llx\n", mr->rkey, mr->iova);
	return ANY_CONTEXT(ib_post_send(id->qp, &wr.wr, NULL));
}

static int invalidate(u32 key)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV, .wr_id = next_id(), .ex.invalidate_rkey = key,
	};

	return ANY_CONTEXT(ib_post_send(id->qp, &wr, NULL));
}

static int fail(void)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return ib_modify_qp(id->qp, &attr, IB_QP_STATE);
}

static int drain(void)
{
	ktime_t start = ktime_get();

	if (!drains)
		return -EINVAL;
	ib_drain_qp(id->qp);
	say("%lld %d\n", ktime_ms_delta(ktime_get(), start), atomic_xchg(&drained, 0));
	return 0;
}

static int keys(unsigned int count)
{
	struct ib_mr *made[64];
	unsigned int i;
	int ret = 0;

	if (count > ARRAY_SIZE(made))
		return -EINVAL;
	for (i = 0; i < count; i++) {
		made[i] = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1);
		if (IS_ERR(made[i])) {
			ret = PTR_ERR(made[i]);
			break;
		}
		say("%x\n", made[i]->rkey);
	}
	while (i)
		ib_dereg_mr(made[--i]);
	return ret;
}

static int register_big(unsigned int count, u32 access)
{
	struct ib_reg_wr wr = { .wr = { .opcode = IB_WR_REG_MR } };
	struct scatterlist *sg;
	unsigned int i;
	int ret;

	if (big || !count || count > PAGES_MAX)
		return -EINVAL;
	big = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, count);
	if (IS_ERR(big)) {
		ret = PTR_ERR(big);
		big = NULL;
		return ret;
	}
	while (big_pages < count) {
		pages[big_pages] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!pages[big_pages])
			return -ENOMEM;
		big_pages++;
	}
	ret = sg_alloc_table(&big_table, count, GFP_KERNEL);
	if (ret)
		return ret;
	for_each_sg(big_table.sgl, sg, count, i)
		sg_set_page(sg, pages[i], PAGE_SIZE, 0);
	if (ib_dma_map_sg(id->device, big_table.sgl, count, DMA_BIDIRECTIONAL) != count)
		return -EIO;
	big_mapped = true;
	if (ib_map_mr_sg(big, big_table.sgl, count, NULL, PAGE_SIZE) != count)
		return -EIO;
	wr.wr.wr_id = next_id();
	wr.mr = big;
	wr.key = big->rkey;
	wr.access = access;
	say("%x %llx\n", big->rkey, big->iova);
	return ANY_CONTEXT(ib_post_send(id->qp, &wr.wr, NULL));
}

/* Returns the place of 8 bytes in the big region. */
static void *big_place(unsigned int offset)
{
	if (offset % 8 || offset / PAGE_SIZE >= big_pages)
		return NULL;
	return page_address(pages[offset / PAGE_SIZE]) + offset % PAGE_SIZE;
}

static void attributes(void)
{
	const struct ib_device_attr *attrs = &id->device->attrs;

#define VALUE(name) say(#name " %llu\n", (u64)attrs->name)
	VALUE(max_mr_size);
	VALUE(page_size_cap);
	VALUE(vendor_id);
	VALUE(vendor_part_id);
	VALUE(hw_ver);
	VALUE(max_qp);
	VALUE(max_qp_wr);
	VALUE(max_send_sge);
	VALUE(max_recv_sge);
	VALUE(max_sge_rd);
	VALUE(max_cq);
	VALUE(max_cqe);
	VALUE(max_mr);
	VALUE(max_pd);
	VALUE(max_qp_rd_atom);
	VALUE(max_ee_rd_atom);
	VALUE(max_res_rd_atom);
	VALUE(max_qp_init_rd_atom);
	VALUE(max_ee_init_rd_atom);
	VALUE(atomic_cap);
	VALUE(masked_atomic_cap);
	VALUE(max_ee);
	VALUE(max_rdd);
	VALUE(max_mw);
	VALUE(max_raw_ipv6_qp);
	VALUE(max_raw_ethy_qp);
	VALUE(max_mcast_grp);
	VALUE(max_mcast_qp_attach);
	VALUE(max_total_mcast_qp_attach);
	VALUE(max_ah);
	VALUE(max_srq);
	VALUE(max_srq_wr);
	VALUE(max_srq_sge);
	VALUE(max_fast_reg_page_list_len);
	VALUE(max_pi_fast_reg_page_list_len);
	VALUE(max_pkeys);
	VALUE(local_ca_ack_delay);
	VALUE(sig_prot_cap);
	VALUE(sig_guard_cap);
	VALUE(timestamp_mask);
	VALUE(hca_core_clock);
	VALUE(max_wq_type_rq);
	VALUE(raw_packet_caps);
	VALUE(max_dm_size);
	VALUE(max_sgl_rd);
#undef VALUE
#define NOTHING(name) say(#name " %d\n", !!memchr_inv(&attrs->name, 0, sizeof(attrs->name)))
	NOTHING(odp_caps);
	NOTHING(rss_caps);
	NOTHING(tm_caps);
	NOTHING(cq_caps);
#undef NOTHING
#define FLAG(of, name) say(#name " %d\n", !!(attrs->of & (name)))
	FLAG(device_cap_flags, IB_DEVICE_RESIZE_MAX_WR);
	FLAG(device_cap_flags, IB_DEVICE_BAD_PKEY_CNTR);
	FLAG(device_cap_flags, IB_DEVICE_BAD_QKEY_CNTR);
	FLAG(device_cap_flags, IB_DEVICE_RAW_MULTI);
	FLAG(device_cap_flags, IB_DEVICE_AUTO_PATH_MIG);
	FLAG(device_cap_flags, IB_DEVICE_CHANGE_PHY_PORT);
	FLAG(device_cap_flags, IB_DEVICE_UD_AV_PORT_ENFORCE);
	FLAG(device_cap_flags, IB_DEVICE_CURR_QP_STATE_MOD);
	FLAG(device_cap_flags, IB_DEVICE_SHUTDOWN_PORT);
	FLAG(device_cap_flags, IB_DEVICE_PORT_ACTIVE_EVENT);
	FLAG(device_cap_flags, IB_DEVICE_SYS_IMAGE_GUID);
	FLAG(device_cap_flags, IB_DEVICE_RC_RNR_NAK_GEN);
	FLAG(device_cap_flags, IB_DEVICE_SRQ_RESIZE);
	FLAG(device_cap_flags, IB_DEVICE_N_NOTIFY_CQ);
	FLAG(device_cap_flags, IB_DEVICE_MEM_WINDOW);
	FLAG(device_cap_flags, IB_DEVICE_UD_IP_CSUM);
	FLAG(device_cap_flags, IB_DEVICE_XRC);
	FLAG(device_cap_flags, IB_DEVICE_MEM_MGT_EXTENSIONS);
	FLAG(device_cap_flags, IB_DEVICE_MEM_WINDOW_TYPE_2A);
	FLAG(device_cap_flags, IB_DEVICE_MEM_WINDOW_TYPE_2B);
	FLAG(device_cap_flags, IB_DEVICE_RC_IP_CSUM);
	FLAG(device_cap_flags, IB_DEVICE_RAW_IP_CSUM);
	FLAG(device_cap_flags, IB_DEVICE_MANAGED_FLOW_STEERING);
	FLAG(device_cap_flags, IB_DEVICE_RAW_SCATTER_FCS);
	FLAG(device_cap_flags, IB_DEVICE_PCI_WRITE_END_PADDING);
	FLAG(device_cap_flags, IB_DEVICE_FLUSH_GLOBAL);
	FLAG(device_cap_flags, IB_DEVICE_FLUSH_PERSISTENT);
	FLAG(device_cap_flags, IB_DEVICE_ATOMIC_WRITE);
	FLAG(device_cap_flags, IB_DEVICE_CC_DMA_BOUNCE);
	FLAG(kernel_cap_flags, IBK_LOCAL_DMA_LKEY);
	FLAG(kernel_cap_flags, IBK_INTEGRITY_HANDOVER);
	FLAG(kernel_cap_flags, IBK_ON_DEMAND_PAGING);
	FLAG(kernel_cap_flags, IBK_SG_GAPS_REG);
	FLAG(kernel_cap_flags, IBK_ALLOW_USER_UNREG);
	FLAG(kernel_cap_flags, IBK_BLOCK_MULTICAST_LOOPBACK);
	FLAG(kernel_cap_flags, IBK_UD_TSO);
	FLAG(kernel_cap_flags, IBK_VIRTUAL_FUNCTION);
	FLAG(kernel_cap_flags, IBK_RDMA_NETDEV_OPA);
#undef FLAG
}

static void poll(void)
{
	struct ib_wc wc;

	while (sizeof(result) - result_length > 100 && ANY_CONTEXT(ib_poll_cq(cq, 1, &wc)) > 0)
		say("%llu %d %d %u %d %x\n", wc.wr_id, wc.status, wc.opcode, wc.byte_len, wc.wc_flags,
		    wc.wc_flags & IB_WC_WITH_IMM ? be32_to_cpu(wc.ex.imm_data) : 0);
}

static int obey(char *command)
{
	unsigned int offset, length;
	char *name = strsep(&command, " ");
	u64 value;
	u32 access;

	if (!command)
		command = "";
	if (!strcmp(name, "connect") || !strcmp(name, "open")) {
		char *address = strsep(&command, " ");
		char *port = strsep(&command, " ");

		if (id || !port)
			return -EBUSY;
		return connect(address, port, command ?: "", !strcmp(name, "open"));
	}
	if (!strcmp(name, "irqs")) {
		irqs_off = !strcmp(command, "0");
		return 0;
	}
	if (!strcmp(name, "reserves")) {
		say("%d\n", static_key_count(&memalloc_socks_key.key));
		return 0;
	}
	if (!id)
		return -ENOTCONN;
	if (!strcmp(name, "close")) {
		close();
	} else if (!strcmp(name, "second")) {
		char *address = strsep(&command, " ");

		return other || !command ? -EBUSY : connect_second(address, command);
	} else if (!strcmp(name, "swap")) {
		if (!other)
			return -ENOTCONN;
		swap(id, other);
	} else if (!strcmp(name, "caps")) {
		say("%d %d\n", id->device->attrs.atomic_cap, id->device->attrs.masked_atomic_cap);
	} else if (!strcmp(name, "store")) {
		if (sscanf(command, "%u %llx", &offset, &value) != 2 || offset > PAGE_SIZE - 8)
			return -EINVAL;
		memcpy(memory + offset, &value, sizeof(value));
	} else if (!strcmp(name, "load")) {
		if (sscanf(command, "%u", &offset) != 1 || offset > PAGE_SIZE - 8)
			return -EINVAL;
		memcpy(&value, memory + offset, sizeof(value));
		say("%llx\n", value);
	} else if (!strcmp(name, "register")) {
		if (sscanf(command, "%x %llx %u %u", &access, &value, &offset, &length) != 4)
			return -EINVAL;
		return register_memory(access, value, offset, length);
	} else if (!strcmp(name, "recv")) {
		if (sscanf(command, "%u %u", &offset, &length) != 2)
			return -EINVAL;
		return post_recv(offset, length, false);
	} else if (!strcmp(name, "srecv")) {
		if (sscanf(command, "%u %u", &offset, &length) != 2)
			return -EINVAL;
		return post_recv(offset, length, true);
	} else if (!strcmp(name, "attributes")) {
		attributes();
	} else if (!strcmp(name, "error")) {
		return fail();
	} else if (!strcmp(name, "drain")) {
		return drain();
	} else if (!strcmp(name, "arm")) {
		if (sscanf(command, "%x", &access) != 1)
			return -EINVAL;
		say("%d\n", ANY_CONTEXT(ib_req_notify_cq(cq, access)));
	} else if (!strcmp(name, "events")) {
		say("%d %d\n", atomic_read(&calls), atomic_read(&last_wqes));
	} else if (!strcmp(name, "keys")) {
		if (sscanf(command, "%u", &length) != 1)
			return -EINVAL;
		return keys(length);
	} else if (!strcmp(name, "rotate")) {
		if (sscanf(command, "%x", &access) != 1)
			return -EINVAL;
		ib_update_fast_reg_key(mr, access);
	} else if (!strcmp(name, "places")) {
		say("%llx %llx\n", dma, dma + PAGE_SIZE);
		say("%lx %lx\n", (long)&drained_cqe, (long)(&drained_cqe + 1));
	} else if (!strcmp(name, "invalidate")) {
		if (sscanf(command, "%x", &access) != 1)
			return -EINVAL;
		return invalidate(access);
	} else if (!strcmp(name, "big")) {
		if (sscanf(command, "%u %x", &length, &access) != 2)
			return -EINVAL;
		return register_big(length, access);
	} else if (!strcmp(name, "bigstore")) {
		if (sscanf(command, "%u %llx", &offset, &value) != 2 || !big_place(offset))
			return -EINVAL;
		memcpy(big_place(offset), &value, sizeof(value));
	} else if (!strcmp(name, "bigload")) {
		if (sscanf(command, "%u", &offset) != 1 || !big_place(offset))
			return -EINVAL;
		memcpy(&value, big_place(offset), sizeof(value));
		say("%llx\n", value);
	} else if (!strcmp(name, "post")) {
		return post(command);
	} else if (!strcmp(name, "poll")) {
		poll();
	} else {
		return -EINVAL;
	}
	return 0;
}

static ssize_t command_write(struct file *of, const char __user *from, size_t count, loff_t *at)
{
	char *command = memdup_user_nul(from, count);
	int ret;

	if (IS_ERR(command))
		return PTR_ERR(command);
	mutex_lock(&lock);
	result_length = 0;
	ret = obey(strim(command));
	mutex_unlock(&lock);
	kfree(command);
	return ret < 0 ? ret : count;
}

static ssize_t result_read(struct file *of, char __user *to, size_t count, loff_t *at)
{
	ssize_t ret;

	mutex_lock(&lock);
	ret = simple_read_from_buffer(to, count, at, result, result_length);
	mutex_unlock(&lock);
	return ret;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.write = command_write,
	.read = result_read,
};

static int __init kernel_user_init(void)
{
	memory = (u8 *)get_zeroed_page(GFP_KERNEL);
	if (!memory)
		return -ENOMEM;
	file = debugfs_create_file("kernel_user", 0600, NULL, NULL, &operations);
	return 0;
}

static void __exit kernel_user_exit(void)
{
	debugfs_remove(file);
	close();
	free_page((unsigned long)memory);
}

module_init(kernel_user_init);
module_exit(kernel_user_exit);
MODULE_DESCRIPTION("A kernel user of verbs that test cases command");
MODULE_LICENSE("GPL");
