// SPDX-License-Identifier: GPL-2.0
/*
 * System calls that no user library makes: mappings of wrong offsets and sizes, mappings that
 * outlive their object, commands that are too short, too long or have invalid pointers, objects
 * destroyed in the wrong order.
 *
 *     hostile_calls DEVICE
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/siw-abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/device.h"
#include "common/random.h"
#include "common/rings.h"
#include "common/tap.h"

#define PAGE 4096UL
#define RW (PROT_READ | PROT_WRITE)

static struct rng rng = { 1 };

/* One object of each kind. */
struct set {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp, *qp_of_srq;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct ring rings[RINGS_MAX];
	int count;
};

static void set_make(struct set *s, const char *device)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 100, .max_sge = 2 } };
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 100, .max_recv_wr = 50, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ring before[RINGS_MAX];
	int count = rings_find(before);

	s->ctx = device_open(device);
	if (!s->ctx)
		tap_bail("ibv_open_device %s", device);
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 500, NULL, NULL, 0);
	s->srq = ibv_create_srq(s->pd, &srq);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &init);
	init.srq = s->srq;
	s->qp_of_srq = ibv_create_qp(s->pd, &init);
	s->memory = aligned_alloc(PAGE, 4 * PAGE);
	s->mr = ibv_reg_mr(s->pd, s->memory, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	if (!s->pd || !s->cq || !s->srq || !s->qp || !s->qp_of_srq || !s->mr)
		tap_bail("objects");
	s->count = rings_find_new(before, count, s->rings);
	if (s->count != 5)
		tap_bail("%d rings, wanted 5: CQ, SRQ, two send queues, a receive queue", s->count);
}

static bool set_destroy(struct set *s)
{
	bool all = !ibv_dereg_mr(s->mr);

	all &= !ibv_destroy_qp(s->qp) & !ibv_destroy_qp(s->qp_of_srq);
	all &= !ibv_destroy_srq(s->srq);
	all &= !ibv_destroy_cq(s->cq);
	all &= !ibv_dealloc_pd(s->pd);
	free(s->memory);
	return all & !ibv_close_device(s->ctx);
}

static void *map(struct ibv_context *ctx, size_t bytes, int protection, int flags, off_t offset)
{
	return mmap(NULL, bytes, protection, flags, ctx->cmd_fd, offset);
}

/* Returns whether a mapping is refused. Unmaps it if not. */
static bool refused(struct ibv_context *ctx, size_t bytes, int flags, off_t offset)
{
	void *at = map(ctx, bytes, RW, flags, offset);

	if (at == MAP_FAILED)
		return true;
	munmap(at, bytes);
	return false;
}

static bool is_offered(const struct set *s, off_t offset)
{
	for (int i = 0; i < s->count; i++)
		if (offset >= s->rings[i].offset &&
		    offset < s->rings[i].offset + (off_t)s->rings[i].bytes)
			return true;
	return false;
}

static void wrong_maps(const char *device)
{
	struct set s, other;
	int i;

	set_make(&s, device);
	set_make(&other, device);
	for (i = 0; i < s.count; i++) {
		const struct ring *r = &s.rings[i];

		tap_check(!refused(s.ctx, r->bytes, MAP_SHARED, r->offset), "ring %d, a second time", i);
		tap_check(refused(s.ctx, r->bytes, MAP_PRIVATE, r->offset), "ring %d, private", i);
		tap_check(refused(s.ctx, r->bytes + PAGE, MAP_SHARED, r->offset), "ring %d, longer", i);
		tap_check(r->bytes == PAGE || refused(s.ctx, r->bytes - PAGE, MAP_SHARED, r->offset),
			  "ring %d, shorter", i);
		tap_check(refused(s.ctx, r->bytes, MAP_SHARED, r->offset + PAGE), "ring %d, further on", i);
		tap_check(refused(s.ctx, r->bytes, MAP_SHARED, r->offset - PAGE), "ring %d, before", i);
	}
	tap_point("a ring can be mapped as a whole, and shared, only");

	for (i = 0; i < 3000; i++) {
		off_t offset = (rng_below(&rng, 2) ? rng_below(&rng, 300) : rng_next(&rng) >> 13) * PAGE;
		size_t bytes = (1 + rng_below(&rng, 8)) * PAGE;

		if (!is_offered(&s, offset))
			tap_check(refused(s.ctx, bytes, MAP_SHARED, offset), "%zu bytes at %#jx", bytes,
				  (intmax_t)offset);
	}
	tap_point("nothing else can be mapped");

	/* Offsets belong to a context, and cannot reach another context's rings. */
	for (i = 0; i < s.count; i++) {
		const struct ring *r = &s.rings[i];
		uint8_t *at;

		memset(r->at, 0x5a, r->bytes);
		at = map(other.ctx, r->bytes, RW, MAP_SHARED, r->offset);
		if (at == MAP_FAILED)
			continue;
		tap_check(at[0] != 0x5a, "ring %d of the other", i);
		munmap(at, r->bytes);
	}
	tap_point("a context does not reach another's rings");
	tap_ok(set_destroy(&s) & set_destroy(&other), "everything can be destroyed");
}

/* Operations on ring mappings must not affect the memory of others. */
static void odd_maps(const char *device)
{
	uint8_t *at[RINGS_MAX], *moved, *copy;
	struct set s;
	int i, status;
	pid_t pid;

	set_make(&s, device);
	for (i = 0; i < s.count; i++) {
		at[i] = map(s.ctx, s.rings[i].bytes, RW, MAP_SHARED, s.rings[i].offset);
		if (at[i] == MAP_FAILED)
			tap_bail("mmap");
	}
	/* A grown mapping would expose the memory behind the ring. */
	for (i = 0; i < s.count; i++) {
		moved = mremap(at[i], s.rings[i].bytes, s.rings[i].bytes + PAGE, MREMAP_MAYMOVE);
		if (moved == MAP_FAILED)
			continue;
		at[i] = moved;
		pid = fork();
		if (!pid) {
			/* No page there: SIGBUS. */
			_exit(((volatile uint8_t *)moved)[s.rings[i].bytes]);
		}
		tap_check(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "ring %d grows", i);
	}
	tap_point("a mapping does not grow beyond its ring");

	/* A second view by mremap with size 0, a move, holes. */
	for (i = 0; i < s.count; i++) {
		copy = mremap(at[i], 0, s.rings[i].bytes, MREMAP_MAYMOVE);
		if (copy != MAP_FAILED)
			munmap(copy, s.rings[i].bytes);
		moved = mremap(at[i], s.rings[i].bytes, s.rings[i].bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
		if (moved != MAP_FAILED)
			munmap(moved, s.rings[i].bytes);
		madvise(at[i], s.rings[i].bytes, MADV_DONTNEED);
		madvise(at[i], s.rings[i].bytes, MADV_REMOVE);
		(void)mprotect(at[i], s.rings[i].bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
		munmap(at[i], PAGE);
	}
	tap_ok(ring_doorbell(s.qp) == ENOTCONN, "mappings are moved, doubled and cut");

	pid = fork();
	if (!pid) {
		for (i = 0; i < s.count; i++)
			memset(s.rings[i].at, 0xff, s.rings[i].bytes);
		_exit(0);
	}
	tap_check(waitpid(pid, &status, 0) == pid && !status, "the child ends with %#x", status);
	tap_check(ring_doorbell(s.qp) == ENOTCONN, "doorbell");
	tap_point("a child writes to the rings of its parent");
	tap_ok(set_destroy(&s), "everything can be destroyed");
}

/* The pages of a ring live as long as they are mapped. */
static void surviving_maps(const char *device)
{
	uint8_t *at[RINGS_MAX];
	struct ring rings[RINGS_MAX];
	struct set s;
	bool closed;
	int i, count;

	set_make(&s, device);
	count = s.count;
	memcpy(rings, s.rings, sizeof(rings));
	for (i = 0; i < count; i++)
		at[i] = map(s.ctx, rings[i].bytes, RW, MAP_SHARED, rings[i].offset);
	tap_check(!ibv_dereg_mr(s.mr) && !ibv_destroy_qp(s.qp) && !ibv_destroy_qp(s.qp_of_srq) &&
		  !ibv_destroy_srq(s.srq) && !ibv_destroy_cq(s.cq), "destroy: %m");
	for (i = 0; i < count; i++) {
		tap_check(at[i] != MAP_FAILED, "mmap of ring %d", i);
		memset(at[i], 0xff, rings[i].bytes);
		tap_check(refused(s.ctx, rings[i].bytes, MAP_SHARED, rings[i].offset),
			  "ring %d can still be mapped", i);
	}
	tap_point("rings that are mapped when their objects are destroyed");
	closed = !ibv_dealloc_pd(s.pd) & !ibv_close_device(s.ctx);
	for (i = 0; i < count; i++) {
		memset(at[i], 0xff, rings[i].bytes);
		munmap(at[i], rings[i].bytes);
	}
	free(s.memory);
	tap_ok(closed, "and when the device is closed");
}

/* A command that creates an object, with room for any answer. */
struct making {
	const char *name;
	uint32_t number;
	size_t in, in_driver;		/* bytes: of the core's part, and of siw's */
	size_t out, out_driver;
	uint32_t destroy;
	union {
		struct ib_uverbs_create_cq cq;
		struct ib_uverbs_create_srq srq;
		struct ib_uverbs_create_qp qp;
		struct ib_uverbs_reg_mr mr;
		struct ib_uverbs_alloc_pd pd;
		uint8_t bytes[256];
	} body;
};

/* The handle is the first word of every answer; the destroy commands differ in length. */
static int destroy(struct ibv_context *ctx, const struct making *m, uint32_t handle)
{
	uint64_t answer;
	struct ib_uverbs_destroy_qp with_answer = { .qp_handle = handle };
	struct ib_uverbs_dereg_mr without = { .mr_handle = handle };

	if (m->destroy == IB_USER_VERBS_CMD_DEREG_MR || m->destroy == IB_USER_VERBS_CMD_DEALLOC_PD)
		return command(ctx, m->destroy, &without, sizeof(without), NULL, 0);
	return command(ctx, m->destroy, &with_answer, sizeof(with_answer), &answer, sizeof(answer));
}

static void try_making(struct ibv_context *ctx, const struct making *m)
{
	uint64_t answer[32];
	uint8_t body[sizeof(m->body)];
	uint32_t handle;
	size_t in, out;
	void *nowhere[] = { NULL, (void *)PAGE, (void *)~0xfffUL, (void *)0xffff888000000000UL };
	int error;

	for (in = 0; in <= m->in + m->in_driver + 16; in += 4) {
		for (out = 0; out <= m->out + m->out_driver + 16; out += 4) {
			bool whole = in >= m->in + m->in_driver && out >= m->out + m->out_driver;

			error = command(ctx, m->number, (void *)m->body.bytes, in, answer, out);
			tap_check(!whole || !error, "%s, %zu bytes in and %zu out: %s", m->name, in, out,
				  strerror(error));
			tap_check(whole || error, "%s, %zu bytes in and %zu out: made", m->name, in, out);
			memcpy(&handle, answer, sizeof(handle));
			tap_check(error || !destroy(ctx, m, handle), "%s: destroy", m->name);
		}
	}
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(*nowhere); i++) {
		error = command(ctx, m->number, (void *)m->body.bytes, m->in + m->in_driver, nowhere[i],
				m->out + m->out_driver);
		tap_check(error == EFAULT || error == EINVAL, "%s, answer to %p: %s", m->name, nowhere[i],
			  strerror(error));
	}
	tap_point("%s with requests and answers of all lengths", m->name);

	/* Input that siw's ABI does not define must be refused unless it is zero. */
	in = m->in + m->in_driver;
	out = m->out + m->out_driver;
	memcpy(body, m->body.bytes, sizeof(body));
	body[in + 3] = 1;
	error = command(ctx, m->number, body, in + 4, answer, out);
	tap_check(error == EOPNOTSUPP, "4 bytes more that are not zero: %s", strerror(error));
	memset(answer, 0xff, sizeof(answer));
	error = command(ctx, m->number, (void *)m->body.bytes, in + 4, answer, out + 8);
	tap_check(!error, "4 bytes more that are zero: %s", strerror(error));
	tap_check(!memcmp((uint8_t *)answer + out, &(uint64_t){ 0 }, 8), "more room is not cleared");
	memcpy(&handle, answer, sizeof(handle));
	tap_check(error || !destroy(ctx, m, handle), "%s: destroy", m->name);
	tap_point("%s with a request that has a meaning for later drivers only", m->name);
}

/*
 * The driver's part of an answer can be written, and the core's part before it cannot: the object is there
 * when uverbs finds out. It has to go again; a region that stays keeps its PD.
 */
static void unreported(const struct set *s, const struct making *all[], size_t count)
{
	uint8_t *pages = mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_pd *pd = ibv_alloc_pd(s->ctx);

	if (pages == MAP_FAILED || !pd || mprotect(pages, PAGE, PROT_NONE))
		tap_bail("a page without access, and a PD");
	for (size_t i = 0; i < count; i++) {
		struct making m = *all[i];
		int error;

		if (m.number == IB_USER_VERBS_CMD_REG_MR) {
			m.body.mr.pd_handle = pd->handle;
			/* The key that a process may propose. */
			m.body.bytes[m.in] = 0x5a;
		}
		error = command(s->ctx, m.number, m.body.bytes, m.in + m.in_driver, pages + PAGE - m.out,
				m.out + m.out_driver);
		tap_check(error == EFAULT, "%s: %s", m.name, strerror(error));
	}
	tap_check(!ibv_dealloc_pd(pd), "an object is left: %m");
	tap_point("an object whose handle cannot be reported is destroyed");
	munmap(pages, 2 * PAGE);
}

/* The same for other commands. */
static void unknown_requests(const struct set *s)
{
	struct {
		struct ib_uverbs_get_context command;
		uint32_t more;
	} context = {};
	struct {
		struct ib_uverbs_modify_srq command;
		uint32_t more[2];
	} srq = { .command.srq_handle = s->srq->handle };
	struct ibv_context other = {};
	uint64_t answer[4];
	char path[64];
	int error;

	for (int more = 1; more >= 0; more--) {
		int wanted = more ? EOPNOTSUPP : 0;

		context.more = srq.more[1] = more;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", s->ctx->cmd_fd);
		other.cmd_fd = open(path, O_RDWR | O_CLOEXEC);
		if (other.cmd_fd < 0)
			tap_bail("%s", path);
		error = command(&other, IB_USER_VERBS_CMD_GET_CONTEXT, &context, sizeof(context), answer,
				sizeof(struct ib_uverbs_get_context_resp) +
				sizeof(struct siw_uresp_alloc_ctx));
		tap_check(error == wanted, "GET_CONTEXT with %d: %s", more, strerror(error));
		close(other.cmd_fd);
		error = command(s->ctx, IB_USER_VERBS_CMD_MODIFY_SRQ, &srq, sizeof(srq), NULL, 0);
		tap_check(error == wanted, "MODIFY_SRQ with %d: %s", more, strerror(error));
	}
	tap_point("GET_CONTEXT and MODIFY_SRQ with such a request");
}

/* Attributes of later headers. */
#define CREATE_CQ_BUFFER_VA (UVERBS_ATTR_CREATE_CQ_EVENT_FD + 1)
#define CREATE_CQ_BUFFER_LENGTH (UVERBS_ATTR_CREATE_CQ_EVENT_FD + 2)

/*
 * Creates a CQ by the ioctl, in a buffer of the process if `bytes` is not 0. Returns 0 or an errno.
 */
static int create_cq_at(const struct set *s, uint64_t bytes, uint32_t *handle)
{
	struct siw_uresp_create_cq response;
	uint32_t cqe;
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attrs[8];
	} call = {
		.header = {
			.object_id = UVERBS_OBJECT_CQ, .method_id = UVERBS_METHOD_CQ_CREATE,
			.num_attrs = bytes ? 8 : 6, .driver_id = RDMA_DRIVER_SIW,
		},
		.attrs = {
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_HANDLE },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_CQE, .len = 4, .data = 10 },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_USER_HANDLE, .len = 8 },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, .len = 4 },
			{ .attr_id = UVERBS_ATTR_CREATE_CQ_RESP_CQE, .len = 4, .data = (uintptr_t)&cqe },
			{ .attr_id = UVERBS_ATTR_UHW_OUT, .len = sizeof(response),
			  .data = (uintptr_t)&response },
			{ .attr_id = CREATE_CQ_BUFFER_VA, .len = 8, .data = (uintptr_t)s->memory },
			{ .attr_id = CREATE_CQ_BUFFER_LENGTH, .len = 8, .data = bytes },
		},
	};

	for (int i = 0; i < call.header.num_attrs; i++)
		call.attrs[i].flags = UVERBS_ATTR_F_MANDATORY;
	call.header.length = sizeof(call.header) + call.header.num_attrs * sizeof(call.attrs[0]);
	if (ioctl(s->ctx->cmd_fd, RDMA_VERBS_IOCTL, &call))
		return errno;
	*handle = call.attrs[0].data;
	return 0;
}

/* Some drivers let a process supply the memory of a queue; this one maps its own. */
static void own_buffers(const struct set *s)
{
	struct ib_uverbs_destroy_cq destroy = {};
	struct ib_uverbs_destroy_cq_resp answer;
	int error;

	error = create_cq_at(s, 0, &destroy.cq_handle);
	tap_check(!error, "without a buffer: %s", strerror(error));
	error = command(s->ctx, IB_USER_VERBS_CMD_DESTROY_CQ, &destroy, sizeof(destroy), &answer,
			sizeof(answer));
	tap_check(!error, "destroy: %s", strerror(error));
	error = create_cq_at(s, PAGE, &destroy.cq_handle);
	tap_check(error == EOPNOTSUPP, "with a buffer: %s", strerror(error));
	tap_point("a CQ in a buffer of the process is refused");
}

static void wrong_commands(const char *device)
{
	struct set s;
	struct making cq = {
		.name = "CREATE_CQ", .number = IB_USER_VERBS_CMD_CREATE_CQ,
		.in = sizeof(struct ib_uverbs_create_cq), .out = sizeof(struct ib_uverbs_create_cq_resp),
		.out_driver = sizeof(struct siw_uresp_create_cq), .destroy = IB_USER_VERBS_CMD_DESTROY_CQ,
		.body.cq = { .cqe = 10, .comp_channel = -1 },
	}, srq = {
		.name = "CREATE_SRQ", .number = IB_USER_VERBS_CMD_CREATE_SRQ,
		.in = sizeof(struct ib_uverbs_create_srq), .out = sizeof(struct ib_uverbs_create_srq_resp),
		.out_driver = sizeof(struct siw_uresp_create_srq),
		.destroy = IB_USER_VERBS_CMD_DESTROY_SRQ,
		.body.srq = { .max_wr = 10, .max_sge = 1 },
	}, qp = {
		.name = "CREATE_QP", .number = IB_USER_VERBS_CMD_CREATE_QP,
		.in = sizeof(struct ib_uverbs_create_qp), .out = sizeof(struct ib_uverbs_create_qp_resp),
		.out_driver = sizeof(struct siw_uresp_create_qp), .destroy = IB_USER_VERBS_CMD_DESTROY_QP,
		.body.qp = { .max_send_wr = 10, .max_recv_wr = 10, .max_send_sge = 1, .max_recv_sge = 1,
			     .qp_type = IBV_QPT_RC },
	}, mr = {
		.name = "REG_MR", .number = IB_USER_VERBS_CMD_REG_MR,
		.in = sizeof(struct ib_uverbs_reg_mr), .in_driver = sizeof(struct siw_ureq_reg_mr),
		.out = 12, .out_driver = sizeof(struct siw_uresp_reg_mr),
		.destroy = IB_USER_VERBS_CMD_DEREG_MR,
	}, pd = {
		.name = "ALLOC_PD", .number = IB_USER_VERBS_CMD_ALLOC_PD,
		.in = sizeof(struct ib_uverbs_alloc_pd), .out = sizeof(struct ib_uverbs_alloc_pd_resp),
		.destroy = IB_USER_VERBS_CMD_DEALLOC_PD,
	};

	set_make(&s, device);
	srq.body.srq.pd_handle = qp.body.qp.pd_handle = mr.body.mr.pd_handle = s.pd->handle;
	qp.body.qp.send_cq_handle = qp.body.qp.recv_cq_handle = s.cq->handle;
	mr.body.mr.start = mr.body.mr.hca_va = (uintptr_t)s.memory;
	mr.body.mr.length = 100;
	try_making(s.ctx, &cq);
	try_making(s.ctx, &srq);
	try_making(s.ctx, &qp);
	try_making(s.ctx, &mr);
	try_making(s.ctx, &pd);
	unreported(&s, (const struct making *[]){ &cq, &srq, &qp, &mr, &pd }, 5);
	unknown_requests(&s);
	own_buffers(&s);
	tap_ok(set_destroy(&s), "everything can be destroyed");
}

/*
 * Commands with a random body, in which handles and lengths may be valid. Most bodies are mostly
 * zero: bytes behind a command's own request must be zero.
 */
static void noisy_commands(const char *device)
{
	uint64_t answer[64];
	uint32_t body[48];
	struct set s;
	int i, taken = 0;

	for (i = 0; i < 8000; i++) {
		uint32_t number = rng_below(&rng, IB_USER_VERBS_CMD_OPEN_QP + 1);
		uint32_t noise = rng_below(&rng, 4) ? 2 + rng_below(&rng, 8) : 48;

		if (i % 1000 == 0) {
			if (i)
				ibv_close_device(s.ctx);
			set_make(&s, device);
		}
		for (size_t j = 0; j < 48; j++)
			body[j] = j >= noise ? 0 : rng_below(&rng, 3) ? rng_below(&rng, 8) : rng_next(&rng);
		taken += !command(s.ctx, number, body, 8 + 4 * rng_below(&rng, 40), answer,
				  4 * rng_below(&rng, 128));
	}
	ibv_close_device(s.ctx);
	tap_ok(taken > 50, "%d of %d commands of noise were taken", taken, i);
}

static void wrong_order(const char *device)
{
	struct set s;

	set_make(&s, device);
	tap_check(ibv_dealloc_pd(s.pd) == EBUSY, "a PD with regions and QPs");
	tap_check(command(s.ctx, IB_USER_VERBS_CMD_DESTROY_SRQ,
			  &(struct ib_uverbs_destroy_srq){ .srq_handle = s.srq->handle },
			  sizeof(struct ib_uverbs_destroy_srq), &(struct ib_uverbs_destroy_srq_resp){},
			  sizeof(struct ib_uverbs_destroy_srq_resp)) == EBUSY, "an SRQ with a QP");
	tap_check(command(s.ctx, IB_USER_VERBS_CMD_DESTROY_CQ,
			  &(struct ib_uverbs_destroy_cq){ .cq_handle = s.cq->handle },
			  sizeof(struct ib_uverbs_destroy_cq), &(struct ib_uverbs_destroy_cq_resp){},
			  sizeof(struct ib_uverbs_destroy_cq_resp)) == EBUSY, "a CQ with QPs");
	tap_point("what is in use is not destroyed");
	tap_ok(ring_doorbell(s.qp) == ENOTCONN && set_destroy(&s), "and works on");
	set_make(&s, device);
	tap_ok(!ibv_close_device(s.ctx), "a device is closed with everything there");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	wrong_maps(argv[1]);
	odd_maps(argv[1]);
	surviving_maps(argv[1]);
	wrong_commands(argv[1]);
	wrong_order(argv[1]);
	noisy_commands(argv[1]);
	return tap_done();
}
