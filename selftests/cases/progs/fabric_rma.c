// SPDX-License-Identifier: GPL-2.0
/*
 * One-sided communication over libfabric's "verbs;ofi_rxm".
 *
 *     fabric_rma serve
 *     fabric_rma access NAME BASE KEY
 *
 * `serve` offers a region of memory: writes `region NAME BASE KEY`, all hexadecimal, and ends at the end
 * of its stdin. `access` writes to that region, reads it back and compares each byte, and runs
 * atomic operations on it. It writes TAP.
 */
#include <inttypes.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/random.h"
#include "common/tap.h"

#define PROVIDER "verbs;ofi_rxm"
#define VERSION FI_VERSION(1, 18)
#define SLOTS 16		/* requests in flight, each within a slot of its own */
#define SLOT (256 << 10)
#define LENGTH (SLOTS * SLOT)
#define BATCHES 25
#define ATOMICS 200
#define NAME_MAX_LENGTH 128

static struct endpoint {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer;
	uint64_t posted, completed;
	struct fi_context2 contexts[SLOTS];
} local;

/* Registered memory. */
struct region {
	uint8_t *memory;
	struct fid_mr *mr;
};

static void must(int status, const char *what)
{
	if (status)
		tap_bail("%s: %s", what, fi_strerror(-status));
}

static void open_endpoint(void)
{
	struct fi_cq_attr cq = { .size = 4 * SLOTS, .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = { .count = 1 };

	hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(PROVIDER);
	must(fi_getinfo(VERSION, NULL, NULL, 0, hints, &local.info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(local.info->fabric_attr, &local.fabric, NULL), "fi_fabric");
	must(fi_domain(local.fabric, local.info, &local.domain, NULL), "fi_domain");
	must(fi_cq_open(local.domain, &cq, &local.cq, NULL), "fi_cq_open");
	must(fi_av_open(local.domain, &av, &local.av, NULL), "fi_av_open");
	must(fi_endpoint(local.domain, local.info, &local.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(local.ep, &local.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(local.ep, &local.av->fid, 0), "fi_ep_bind");
	must(fi_enable(local.ep), "fi_enable");
}

static void close_endpoint(void)
{
	fi_close(&local.ep->fid);
	fi_close(&local.av->fid);
	fi_close(&local.cq->fid);
	fi_close(&local.domain->fid);
	fi_close(&local.fabric->fid);
	fi_freeinfo(local.info);
}

static struct region new_region(size_t length)
{
	static uint64_t key;
	struct region region;

	if (posix_memalign((void **)&region.memory, 4096, length))
		tap_bail("no memory");
	memset(region.memory, 0, length);
	must(fi_mr_reg(local.domain, region.memory, length,
		       FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, ++key, 0,
		       &region.mr, NULL), "fi_mr_reg");
	return region;
}

static void free_region(struct region *region)
{
	fi_close(&region->mr->fid);
	free(region->memory);
}

/* Takes a completion, if there is one. */
static void progress(void)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_entry entry;
	ssize_t got = fi_cq_read(local.cq, &entry, 1);

	if (got == 1) {
		local.completed++;
	} else if (got == -FI_EAVAIL) {
		fi_cq_readerr(local.cq, &error, 0);
		tap_bail("a request has failed: %s", fi_strerror(error.err));
	} else if (got != -FI_EAGAIN) {
		tap_bail("fi_cq_read: %s", fi_strerror(-got));
	}
}

static void await_all(void)
{
	while (local.completed < local.posted)
		progress();
}

/* Posts a request, as soon as the provider takes it. */
#define post(call)						\
	do {							\
		ssize_t status_;				\
								\
		while ((status_ = (call)) == -FI_EAGAIN)	\
			progress();				\
		must(status_, #call);				\
		local.posted++;					\
	} while (0)

static void serve(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	struct region region;
	uint8_t name[NAME_MAX_LENGTH];
	size_t length = sizeof(name), i;

	open_endpoint();
	region = new_region(LENGTH);
	must(fi_getname(&local.ep->fid, name, &length), "fi_getname");
	printf("region ");
	for (i = 0; i < length; i++)
		printf("%02x", name[i]);
	printf(" %" PRIx64 " %" PRIx64 "\n",
	       local.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)region.memory : 0,
	       fi_mr_key(region.mr));
	fflush(stdout);
	/* The provider connects, and runs atomic operations, within these calls. */
	while (poll(&input, 1, 1) == 0)
		progress();
	free_region(&region);
	close_endpoint();
}

static void insert_peer(const char *text)
{
	uint8_t name[NAME_MAX_LENGTH] = { 0 };
	size_t i;

	for (i = 0; i < sizeof(name) && sscanf(text + 2 * i, "%2hhx", &name[i]) == 1; i++)
		;
	if (fi_av_insert(local.av, name, 1, &local.peer, 0, NULL) != 1)
		tap_bail("fi_av_insert");
}

/* Chooses a range within a slot: where it begins in the region, and its length, which is not 0. */
static size_t random_range(struct rng *rng, int slot, size_t *length)
{
	*length = rng_length(rng, SLOT - 1) + 1;
	return (size_t)slot * SLOT + rng_below(rng, SLOT - *length + 1);
}

/* Writes random ranges of `own` to the same places of the peer's region. */
static void write_batches(struct region *own, uint64_t base, uint64_t key, struct rng *rng)
{
	int batch, slot;

	for (batch = 0; batch < BATCHES; batch++) {
		for (slot = 0; slot < SLOTS; slot++) {
			size_t length, start = random_range(rng, slot, &length);

			rng_fill(rng, own->memory + start, length);
			post(fi_write(local.ep, own->memory + start, length, fi_mr_desc(own->mr), local.peer,
				      base + start, key, &local.contexts[slot]));
		}
		await_all();
	}
}

/* Reads all of the peer's region, in pieces, and compares it with `own`. */
static void read_back(struct region *own, uint64_t base, uint64_t key, struct rng *rng)
{
	struct region copy = new_region(LENGTH);
	int slot;
	size_t i;

	for (slot = 0; slot < SLOTS; slot++) {
		size_t start = (size_t)slot * SLOT, first = rng_below(rng, SLOT - 1) + 1;

		post(fi_read(local.ep, copy.memory + start, first, fi_mr_desc(copy.mr), local.peer,
			     base + start, key, &local.contexts[slot]));
		await_all();
		post(fi_read(local.ep, copy.memory + start + first, SLOT - first, fi_mr_desc(copy.mr),
			     local.peer, base + start + first, key, &local.contexts[slot]));
	}
	await_all();
	for (i = 0; i < LENGTH && copy.memory[i] == own->memory[i]; i++)
		;
	tap_check(i == LENGTH, "the byte at %zu differs: %02x, not %02x", i, copy.memory[i % LENGTH],
		  own->memory[i % LENGTH]);
	free_region(&copy);
}

/* Reads random ranges, many at a time, and compares them with `own`. */
static void read_batches(struct region *own, uint64_t base, uint64_t key, struct rng *rng)
{
	struct region copy = new_region(LENGTH);
	int batch, slot;

	for (batch = 0; batch < BATCHES; batch++) {
		size_t lengths[SLOTS], starts[SLOTS];

		memset(copy.memory, 0, LENGTH);
		for (slot = 0; slot < SLOTS; slot++) {
			starts[slot] = random_range(rng, slot, &lengths[slot]);
			post(fi_read(local.ep, copy.memory + starts[slot], lengths[slot],
				     fi_mr_desc(copy.mr), local.peer, base + starts[slot], key,
				     &local.contexts[slot]));
		}
		await_all();
		for (slot = 0; slot < SLOTS; slot++)
			tap_check(!memcmp(copy.memory + starts[slot], own->memory + starts[slot],
					  lengths[slot]),
				  "batch %d: %zu bytes at %zu differ", batch, lengths[slot], starts[slot]);
	}
	free_region(&copy);
}

/* Adds to a number of the peer, and replaces it, always by the number that it has to have. */
static void run_atomics(uint64_t base, uint64_t key, struct rng *rng)
{
	struct region numbers = new_region(4096);
	uint64_t *operand = (uint64_t *)numbers.memory, *compare = operand + 1, *result = operand + 2;
	void *desc = fi_mr_desc(numbers.mr);
	uint64_t value;
	int i;

	/* What the number is at first. */
	*operand = 0;
	post(fi_fetch_atomic(local.ep, operand, 1, desc, result, desc, local.peer, base, key, FI_UINT64,
			     FI_SUM, &local.contexts[0]));
	await_all();
	value = *result;
	for (i = 0; i < ATOMICS; i++) {
		uint64_t wanted = value;

		*operand = rng_next(rng);
		if (i % 2) {
			/* Every fourth has the wrong number, and changes nothing. */
			*compare = i % 4 == 3 ? value + 1 : value;
			post(fi_compare_atomic(local.ep, operand, 1, desc, compare, desc, result, desc,
					       local.peer, base, key, FI_UINT64, FI_CSWAP,
					       &local.contexts[0]));
			if (i % 4 != 3)
				value = *operand;
		} else {
			post(fi_fetch_atomic(local.ep, operand, 1, desc, result, desc, local.peer, base, key,
					     FI_UINT64, FI_SUM, &local.contexts[0]));
			value += *operand;
		}
		await_all();
		tap_check(*result == wanted, "operation %d: %" PRIx64 ", not %" PRIx64, i, *result, wanted);
	}
	free_region(&numbers);
}

static void access_region(const char *name, uint64_t base, uint64_t key)
{
	struct rng rng = { 1 };
	struct region own;

	open_endpoint();
	insert_peer(name);
	own = new_region(LENGTH);
	write_batches(&own, base, key, &rng);
	read_back(&own, base, key, &rng);
	tap_point("what was written at random places can be read");
	read_batches(&own, base, key, &rng);
	tap_point("Reads of random places, %d at a time, have the data of these places", SLOTS);
	run_atomics(base, key, &rng);
	tap_point("atomic operations return the numbers that they find");
	free_region(&own);
	close_endpoint();
	tap_done();
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve")) {
		serve();
	} else if (argc == 5 && !strcmp(argv[1], "access")) {
		access_region(argv[2], strtoull(argv[3], NULL, 16), strtoull(argv[4], NULL, 16));
	} else {
		fprintf(stderr, "usage: fabric_rma serve | access NAME BASE KEY\n");
		return 2;
	}
	return 0;
}
