// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of dma-bufs, exported by /dev/udmabuf, or with `heap` by the system heap.
 *
 *     provider_dmabuf ACTIVE PASSIVE [heap]
 *
 * Only a heap exports dma-bufs that are open for reading or for writing alone: udmabuf refuses a memfd that is
 * sealed against writing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "common/access.h"
#include "common/clock.h"
#include "common/completion.h"
#include "common/post.h"
#include "common/random.h"
#include "common/rings.h"
#include "common/setup.h"
#include "common/tap.h"

#define LENGTH 65536
#define OFFSET 8192		/* of regions in the dma-buf */
#define SIZE 16384		/* of regions */
#define IOVA 0x7000002000	/* of their first byte */

static struct rng rng = { .state = 1 };
static struct pair_opts sides;

struct buffer {
	int memfd, fd;
	uint8_t *bytes;		/* as the process sees it */
};

static struct buffer buffer_make(void)
{
	struct udmabuf_create create = { .size = LENGTH };
	struct buffer b;
	int dev = open("/dev/udmabuf", O_RDWR);

	b.memfd = memfd_create("provider_dmabuf", MFD_ALLOW_SEALING);
	if (dev < 0 || b.memfd < 0 || ftruncate(b.memfd, LENGTH) ||
	    fcntl(b.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		tap_bail("udmabuf: %s", strerror(errno));
	create.memfd = b.memfd;
	b.fd = ioctl(dev, UDMABUF_CREATE, &create);
	b.bytes = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, b.memfd, 0);
	if (b.fd < 0 || b.bytes == MAP_FAILED)
		tap_bail("UDMABUF_CREATE: %s", strerror(errno));
	close(dev);
	rng_fill(&rng, b.bytes, LENGTH);
	return b;
}

/* `flags`: O_RDONLY, O_WRONLY or O_RDWR. The memory is zero. Without O_WRONLY the process sees it. */
static struct buffer heap_make(int flags)
{
	struct dma_heap_allocation_data create = { .len = LENGTH, .fd_flags = flags | O_CLOEXEC };
	int prot = flags == O_RDWR ? PROT_READ | PROT_WRITE : PROT_READ;
	struct buffer b = { .memfd = -1 };
	int dev = open("/dev/dma_heap/system", O_RDONLY);

	if (dev < 0 || ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &create))
		tap_bail("DMA_HEAP_IOCTL_ALLOC: %s", strerror(errno));
	close(dev);
	b.fd = create.fd;
	if (flags == O_WRONLY)
		return b;
	b.bytes = mmap(NULL, LENGTH, prot, MAP_SHARED, b.fd, 0);
	if (b.bytes == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	return b;
}

static void buffer_close(struct buffer *b)
{
	close(b->fd);
	if (b->memfd >= 0)
		close(b->memfd);
}

/* Connects a pair, and registers the buffer at its passive end. */
static void open_with(struct setup *s, const struct buffer *b, int access)
{
	const struct regions regions = { .length = LENGTH, .local = ALL, .remote = UNREGISTERED };
	struct pair_opts opts = sides;

	setup_open(s, &opts, &rng, &regions);
	if (access == UNREGISTERED)
		return;
	s->remote.mr = ibv_reg_dmabuf_mr(s->pair.passive.pd, OFFSET, SIZE, IOVA, b->fd, access);
	if (!s->remote.mr)
		tap_bail("ibv_reg_dmabuf_mr: %s", strerror(errno));
}

static void begin(struct setup *s, struct buffer *b, int access)
{
	*b = buffer_make();
	open_with(s, b, access);
}

static void end(struct setup *s, struct buffer *b)
{
	setup_close(s);
	if (b->bytes)
		munmap(b->bytes, LENGTH);
}

static enum ibv_wc_status reach(struct setup *s, enum ibv_wr_opcode opcode, uint64_t addr,
				uint32_t length)
{
	return setup_reach(s, opcode, addr, length, s->remote.mr->rkey);
}

/* The peer writes to all of the region, and nothing else changes. */
static void written(struct setup *s, uint8_t *bytes)
{
	uint8_t before[LENGTH];

	memcpy(before, bytes, LENGTH);
	rng_fill(&rng, s->local.bytes, SIZE);
	memcpy(before + OFFSET, s->local.bytes, SIZE);
	tap_check(reach(s, IBV_WR_RDMA_WRITE, IOVA, SIZE) == IBV_WC_SUCCESS, "a write fails");
	/* The answer comes after the data of the write. */
	tap_check(reach(s, IBV_WR_RDMA_READ, IOVA, SIZE) == IBV_WC_SUCCESS, "a read fails");
	tap_check(!memcmp(s->local.bytes, bytes + OFFSET, SIZE), "a read has other data");
	tap_check(!memcmp(before, bytes, LENGTH), "the memory differs");
}

static void remote_access(void)
{
	struct buffer b;
	struct setup s;
	uint8_t before[8];

	begin(&s, &b, ALL);
	mr_shows(s.remote.mr, IOVA, SIZE);
	written(&s, b.bytes);
	memcpy(before, b.bytes + OFFSET + 4096, 8);
	tap_check(reach(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, IOVA + 4096, 8) == IBV_WC_REM_ACCESS_ERR,
		  "a peer adds");
	tap_check(!memcmp(before, b.bytes + OFFSET + 4096, 8), "something is added");
	buffer_close(&b);
	end(&s, &b);
	tap_point("a peer writes and reads, and cannot add");
}

static void local_access(void)
{
	struct ibv_sge from, to;
	struct buffer b;
	struct setup s;

	begin(&s, &b, IBV_ACCESS_LOCAL_WRITE);
	from = region_sge(&s.local, 100, 9000);
	to = (struct ibv_sge){ .addr = IOVA + 7, .length = 9000, .lkey = s.remote.mr->lkey };
	tap_check(!post_recv(s.pair.passive.qp, 1, &to, 1), "ibv_post_recv");
	tap_check(!post_send(s.pair.active.qp, 1, IBV_WR_SEND, &from, 1, IBV_SEND_SIGNALED, 0),
		  "ibv_post_send");
	cq_expect(s.pair.active.scq, 1, IBV_WC_SUCCESS, NULL);
	cq_expect(s.pair.passive.rcq, 1, IBV_WC_SUCCESS, NULL);
	tap_check(!memcmp(b.bytes + OFFSET + 7, s.local.bytes + 100, 9000), "received data differs");
	tap_check(!post_recv(s.pair.active.qp, 2, &from, 1), "ibv_post_recv");
	rng_fill(&rng, b.bytes, LENGTH);
	tap_check(!post_send(s.pair.passive.qp, 2, IBV_WR_SEND, &to, 1, IBV_SEND_SIGNALED, 0),
		  "ibv_post_send");
	cq_expect(s.pair.passive.scq, 2, IBV_WC_SUCCESS, NULL);
	cq_expect(s.pair.active.rcq, 2, IBV_WC_SUCCESS, NULL);
	tap_check(!memcmp(b.bytes + OFFSET + 7, s.local.bytes + 100, 9000), "sent data differs");
	buffer_close(&b);
	end(&s, &b);
	tap_point("work requests send from it and receive to it");
}

static void beyond(void)
{
	const uint64_t addrs[] = { IOVA - 8, IOVA + SIZE - 7, OFFSET, 0 };
	struct buffer b;
	struct setup s;

	for (unsigned int i = 0; i < sizeof(addrs) / sizeof(*addrs); i++) {
		enum ibv_wc_status status;

		begin(&s, &b, ALL);
		status = reach(&s, IBV_WR_RDMA_READ, addrs[i], 8);
		tap_check(status == IBV_WC_REM_ACCESS_ERR, "%#" PRIx64 ": %s", addrs[i],
			  ibv_wc_status_str(status));
		buffer_close(&b);
		end(&s, &b);
	}
	begin(&s, &b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	tap_check(reach(&s, IBV_WR_RDMA_READ, IOVA, 8) == IBV_WC_REM_ACCESS_ERR, "without the right");
	buffer_close(&b);
	end(&s, &b);
	tap_point("bounds and rights are those of the region");
}

/* The region keeps the memory. */
static void closed(void)
{
	struct buffer b;
	struct setup s;

	begin(&s, &b, ALL);
	buffer_close(&b);
	written(&s, b.bytes);
	munmap(b.bytes, LENGTH);
	b.bytes = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_check(reach(&s, IBV_WR_RDMA_WRITE, IOVA, SIZE) == IBV_WC_SUCCESS, "a write fails");
	tap_check(reach(&s, IBV_WR_RDMA_READ, IOVA, SIZE) == IBV_WC_SUCCESS, "a read fails");
	end(&s, &b);
	tap_point("it outlives the files and the mappings of the dma-buf");
}

/* Registers with these arguments, which must fail. */
static void fails(struct setup *s, int fd, uint64_t offset, size_t length, uint64_t iova, int access,
		  int error, const char *what)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(s->pair.passive.pd, offset, length, iova, fd, access);
	tap_check(!mr && errno == error, "%s: %s", what, mr ? "no error" : strerror(errno));
	if (mr)
		ibv_dereg_mr(mr);
}

static void refused(void)
{
	struct buffer b;
	struct setup s;
	int status;

	begin(&s, &b, UNREGISTERED);
	fails(&s, b.memfd, 0, SIZE, 0, ALL, EINVAL, "no dma-buf");
	fails(&s, 999, 0, SIZE, 0, ALL, EBADF, "no file");
	fails(&s, b.fd, 0, LENGTH + 1, 0, ALL, EINVAL, "too long");
	fails(&s, b.fd, 4096, LENGTH, 0, ALL, EINVAL, "too far");
	fails(&s, b.fd, LENGTH, 1, 0, ALL, EINVAL, "behind the end");
	fails(&s, b.fd, -4096, SIZE, 0, ALL, EINVAL, "an offset that wraps");
	fails(&s, b.fd, 0, 0, 0, ALL, EINVAL, "no length");
	fails(&s, b.fd, 0, SIZE, 1, ALL, EINVAL, "another offset in the page");
	fails(&s, b.fd, 0, SIZE, -4096, ALL, EINVAL, "addresses that wrap");
	fails(&s, b.fd, 0, SIZE, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL, "remote without local write");
	fails(&s, b.fd, 0, SIZE, 0, ALL | IBV_ACCESS_ON_DEMAND, EINVAL, "on-demand paging");
	fails(&s, b.fd, 0, SIZE, 0, ALL | IBV_ACCESS_REMOTE_ATOMIC, EOPNOTSUPP, "atomic operations");
	s.remote.mr = ibv_reg_dmabuf_mr(s.pair.passive.pd, OFFSET, SIZE, IOVA, b.fd,
					ALL | IBV_ACCESS_RELAXED_ORDERING);
	if (!s.remote.mr)
		tap_bail("ibv_reg_dmabuf_mr: %s", strerror(errno));
	status = ibv_rereg_mr(s.remote.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL);
	/* libibverbs itself refuses. */
	tap_check(status && errno == EINVAL, "ibv_rereg_mr: %s", strerror(errno));
	written(&s, b.bytes);
	buffer_close(&b);
	end(&s, &b);
	tap_point("what cannot be is refused");
}

static void many(void)
{
	struct ibv_mr *mr[64];
	struct buffer b;
	struct setup s;

	begin(&s, &b, ALL);
	for (int i = 0; i < 64; i++) {
		mr[i] = ibv_reg_dmabuf_mr(s.pair.passive.pd, i % 16 * 4096, 4096, 0, b.fd, ALL);
		tap_check(mr[i], "region %d: %s", i, strerror(errno));
	}
	for (int i = 0; i < 64; i++)
		tap_check(!mr[i] || !ibv_dereg_mr(mr[i]), "ibv_dereg_mr");
	written(&s, b.bytes);
	buffer_close(&b);
	end(&s, &b);
	tap_point("a dma-buf can have many regions");
}

/* The device's limit of such regions. */
#define MOST 4096

static void limited(void)
{
	static struct ibv_mr *mr[MOST];
	struct ibv_mr *more;
	struct buffer b;
	struct setup s;
	int count = 1;	/* that of begin() */

	begin(&s, &b, ALL);
	while (count < MOST && (mr[count] = ibv_reg_dmabuf_mr(s.pair.passive.pd, 0, 1, 0, b.fd, 0)))
		count++;
	tap_check(count == MOST, "%d regions: %s", count, strerror(errno));
	errno = 0;
	more = ibv_reg_dmabuf_mr(s.pair.passive.pd, 0, 1, 0, b.fd, 0);
	tap_check(!more && errno == ENOMEM, "one more: %s", more ? "no error" : strerror(errno));
	/* Other regions have a limit of their own. */
	more = ibv_reg_mr(s.pair.passive.pd, s.local.bytes, 1, 0);
	tap_check(more && !ibv_dereg_mr(more), "ibv_reg_mr: %s", strerror(errno));
	while (--count > 0)
		tap_check(!ibv_dereg_mr(mr[count]), "ibv_dereg_mr");
	more = ibv_reg_dmabuf_mr(s.pair.passive.pd, 0, 1, 0, b.fd, 0);
	tap_check(more && !ibv_dereg_mr(more), "after that: %s", strerror(errno));
	end(&s, &b);
	tap_point("a device has up to %d regions of dma-bufs", MOST);
}

/* Receives to the region, which must fail. */
static void no_receive(struct setup *s)
{
	struct ibv_sge from = region_sge(&s->local, 0, 8);
	struct ibv_sge to = { .addr = IOVA, .length = 8, .lkey = s->remote.mr->lkey };

	tap_check(!post_recv(s->pair.passive.qp, 1, &to, 1), "ibv_post_recv");
	tap_check(!post_send(s->pair.active.qp, 1, IBV_WR_SEND, &from, 1, IBV_SEND_SIGNALED, 0),
		  "ibv_post_send");
	cq_expect(s->pair.passive.rcq, 1, IBV_WC_LOC_PROT_ERR, NULL);
}

/* A region of the buffer with this access is read, and nothing writes to it. A refused access ends the connection. */
static void only_reads(struct buffer b, int access)
{
	enum { READ, SEND, WRITE, ADD, RECEIVE, N };
	uint8_t before[LENGTH];

	memcpy(before, b.bytes, LENGTH);
	for (int i = 0; i < N; i++) {
		struct ibv_sge from, to;
		struct setup s;

		open_with(&s, &b, access);
		switch (i) {
		case READ:
			tap_check(reach(&s, IBV_WR_RDMA_READ, IOVA, SIZE) == IBV_WC_SUCCESS, "a read fails");
			tap_check(!memcmp(s.local.bytes, b.bytes + OFFSET, SIZE), "a read has other data");
			break;
		case SEND:
			to = region_sge(&s.local, 0, SIZE);
			from = (struct ibv_sge){ .addr = IOVA, .length = SIZE, .lkey = s.remote.mr->lkey };
			tap_check(!post_recv(s.pair.active.qp, 1, &to, 1), "ibv_post_recv");
			tap_check(!post_send(s.pair.passive.qp, 1, IBV_WR_SEND, &from, 1,
					     IBV_SEND_SIGNALED, 0), "ibv_post_send");
			cq_expect(s.pair.active.rcq, 1, IBV_WC_SUCCESS, NULL);
			tap_check(!memcmp(s.local.bytes, b.bytes + OFFSET, SIZE), "sent data differs");
			break;
		case WRITE:
			/* The write completes before the peer refuses it: the read after it fails. */
			reach(&s, IBV_WR_RDMA_WRITE, IOVA, SIZE);
			tap_check(reach(&s, IBV_WR_RDMA_READ, IOVA, 8) != IBV_WC_SUCCESS, "a write is allowed");
			break;
		case ADD:
			tap_check(reach(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, IOVA, 8) == IBV_WC_REM_ACCESS_ERR,
				  "an add is allowed");
			break;
		case RECEIVE:
			no_receive(&s);
			break;
		}
		setup_close(&s);
		tap_check(!memcmp(before, b.bytes, LENGTH), "the memory has changed");
	}
}

static void no_right_to_write(void)
{
	struct buffer b = buffer_make();

	only_reads(b, IBV_ACCESS_REMOTE_READ);
	buffer_close(&b);
	munmap(b.bytes, LENGTH);
	tap_point("without a right to write nothing writes");
}

static void heap_access(void)
{
	struct buffer b = heap_make(O_RDWR);
	struct setup s;

	open_with(&s, &b, ALL);
	written(&s, b.bytes);
	buffer_close(&b);
	end(&s, &b);
	tap_point("a peer writes to and reads from memory of a heap");
}

static void read_only(void)
{
	const int writes[] = {
		IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, ALL,
	};
	struct buffer b = heap_make(O_RDONLY);
	struct setup s;

	open_with(&s, &b, UNREGISTERED);
	for (unsigned int i = 0; i < sizeof(writes) / sizeof(*writes); i++)
		fails(&s, b.fd, OFFSET, SIZE, IOVA, writes[i], EACCES, "a right to write");
	setup_close(&s);
	only_reads(b, IBV_ACCESS_REMOTE_READ);
	buffer_close(&b);
	munmap(b.bytes, LENGTH);
	tap_point("a dma-buf that is open for reading only is read, and no region may write to it");
}

static void write_only(void)
{
	const int all[] = { 0, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE, ALL };
	struct buffer b = heap_make(O_WRONLY);
	struct setup s;

	open_with(&s, &b, UNREGISTERED);
	for (unsigned int i = 0; i < sizeof(all) / sizeof(*all); i++)
		fails(&s, b.fd, OFFSET, SIZE, IOVA, all[i], EACCES, "a region that could be read");
	buffer_close(&b);
	end(&s, &b);
	tap_point("a dma-buf that is open for writing only gets no region");
}

int main(int argc, char **argv)
{
	if (argc != 3 && (argc != 4 || strcmp(argv[3], "heap")))
		return 2;
	sides.active = side_parse(argv[1]);
	sides.passive = side_parse(argv[2]);
	if (argc == 4) {
		heap_access();
		read_only();
		write_only();
		return tap_done();
	}

	remote_access();
	local_access();
	beyond();
	no_right_to_write();
	closed();
	refused();
	many();
	limited();
	return tap_done();
}
