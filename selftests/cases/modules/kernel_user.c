// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel user of verbs with one connection, which a case commands: it writes a command to the file
 * `kernel_user` in debugfs, and reads its result there. A command that fails gives its error number.
 *
 *	connect ADDRESS PORT		as the active side; in the network namespace of the writer
 *	close
 *	reserves			the number of sockets of the kernel that may use the memory reserves
 *	caps				atomic_cap, masked_atomic_cap
 *	store OFFSET VALUE		the 8 bytes there in the memory
 *	load OFFSET
 *	register ACCESS IOVA OFFSET LENGTH	of the memory; IOVA 0: that of ib_map_mr_sg(). rkey, IOVA
 *	recv OFFSET LENGTH		posts a receive
 *	post OPCODE RKEY ADDR OFFSET LENGTH FLAGS IMM COMPARE_ADD SWAP COMPARE_ADD_MASK SWAP_MASK
 *					posts a send WR; numbers of enum ib_wr_opcode, ib_send_flags. The
 *					OFFSET is that in the registered memory for the sink of a READ, and
 *					with the flag 100
 *	poll				the completions since the last time, a line each:
 *					wr_id status opcode byte_len wc_flags imm
 *
 *	arm FLAGS			the queue of completions: numbers of enum ib_cq_notify_flags
 *	events				the number of notifications since the start of the connection
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

static DEFINE_MUTEX(lock);	/* protects all below but events */
static struct dentry *file;
static char result[4096];
static size_t result_length;

static struct rdma_cm_id *id;
static struct ib_pd *pd;
static struct ib_cq *cq;
static struct ib_mr *mr;
static u8 *memory;
static u64 dma;
static u64 posted;

static struct completion event;
static int event_type;
static atomic_t notified;

static __printf(1, 2) void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	result_length += vscnprintf(result + result_length, sizeof(result) - result_length, format, args);
	va_end(args);
}

static int on_event(struct rdma_cm_id *of, struct rdma_cm_event *happened)
{
	event_type = happened->event;
	complete(&event);
	return 0;
}

static void on_completion(struct ib_cq *of, void *context)
{
	atomic_inc(&notified);
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

static void close(void)
{
	if (!id)
		return;
	if (id->qp) {
		rdma_disconnect(id);
		/* Its completions go with it. */
		rdma_destroy_qp(id);
	}
	if (mr)
		ib_dereg_mr(mr);
	mr = NULL;
	if (dma)
		ib_dma_unmap_single(id->device, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	dma = 0;
	if (cq)
		ib_destroy_cq(cq);
	cq = NULL;
	if (pd)
		ib_dealloc_pd(pd);
	pd = NULL;
	rdma_destroy_id(id);
	id = NULL;
}

static int make_queues(void)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ib_cq_init_attr attr = { .cqe = 4 * DEPTH };
	int ret;

	pd = ib_alloc_pd(id->device, 0);
	if (IS_ERR(pd)) {
		ret = PTR_ERR(pd);
		pd = NULL;
		return ret;
	}
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
	init.send_cq = init.recv_cq = cq;
	return rdma_create_qp(id, pd, &init);
}

static int connect(const char *address, const char *port)
{
	struct rdma_conn_param param = {
		.responder_resources = READS, .initiator_depth = READS,
	};
	struct sockaddr_storage to;
	int ret;

	ret = inet_pton_with_scope(current->nsproxy->net_ns, AF_INET, address, port, &to);
	if (ret)
		return ret;
	init_completion(&event);
	id = rdma_create_id(current->nsproxy->net_ns, on_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		ret = PTR_ERR(id);
		id = NULL;
		return ret;
	}
	posted = 0;
	atomic_set(&notified, 0);
	ret = await(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, SECONDS * 1000),
		    RDMA_CM_EVENT_ADDR_RESOLVED) ?:
	      await(rdma_resolve_route(id, SECONDS * 1000), RDMA_CM_EVENT_ROUTE_RESOLVED) ?:
	      make_queues() ?:
	      await(rdma_connect(id, &param), RDMA_CM_EVENT_ESTABLISHED);
	if (ret)
		close();
	return ret;
}

static int post_recv(unsigned int offset, unsigned int length)
{
	struct ib_sge sge = { .addr = dma + offset, .length = length, .lkey = pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_id = ++posted, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(id->qp, &wr, NULL);
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
	wr.send.wr_id = ++posted;
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
	case IB_WR_RDMA_READ:
		/* The peer gets the key of the sink. */
		sge.addr = mr->iova + offset;
		sge.lkey = mr->lkey;
		fallthrough;
	default:
		wr.rdma.remote_addr = addr;
		wr.rdma.rkey = rkey;
	}
	return ib_post_send(id->qp, &wr.send, NULL);
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
	wr.wr.wr_id = ++posted;
	wr.mr = mr;
	wr.key = mr->rkey;
	wr.access = access;
	say("%x %llx\n", mr->rkey, mr->iova);
	return ib_post_send(id->qp, &wr.wr, NULL);
}

static void poll(void)
{
	struct ib_wc wc;

	while (sizeof(result) - result_length > 100 && ib_poll_cq(cq, 1, &wc) > 0)
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
	if (!strcmp(name, "connect")) {
		char *address = strsep(&command, " ");

		return id || !command ? -EBUSY : connect(address, command);
	}
	if (!strcmp(name, "reserves")) {
		say("%d\n", static_key_count(&memalloc_socks_key.key));
		return 0;
	}
	if (!id)
		return -ENOTCONN;
	if (!strcmp(name, "close")) {
		close();
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
		return post_recv(offset, length);
	} else if (!strcmp(name, "post")) {
		return post(command);
	} else if (!strcmp(name, "poll")) {
		poll();
	} else if (!strcmp(name, "arm")) {
		if (sscanf(command, "%x", &access) != 1)
			return -EINVAL;
		return ib_req_notify_cq(cq, access);
	} else if (!strcmp(name, "events")) {
		say("%d\n", atomic_read(&notified));
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
