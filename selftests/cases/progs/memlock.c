// SPDX-License-Identifier: GPL-2.0
/*
 * A process that may lock only a few pages in memory, and registers more.
 *
 *     prlimit --memlock=BYTES memlock DEVICE
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/device.h"
#include "common/tap.h"

#define PAGE 4096UL

int main(int argc, char **argv)
{
	struct ibv_mr *first, *second, *more;
	struct ibv_context *ctx;
	struct rlimit limit;
	struct ibv_pd *pd;
	uint8_t *memory;
	int i;

	if (argc != 2)
		return 2;
	ctx = device_open(argv[1]);
	if (!ctx)
		tap_bail("ibv_open_device %s", argv[1]);
	pd = ibv_alloc_pd(ctx);
	if (!pd || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur % (2 * PAGE) || !limit.rlim_cur)
		tap_bail("a limit of pages, an even number, is needed");
	memory = aligned_alloc(PAGE, limit.rlim_cur + PAGE);
	memset(memory, 1, limit.rlim_cur + PAGE);

	errno = 0;
	more = ibv_reg_mr(pd, memory, limit.rlim_cur + 1, 0);
	tap_ok(!more && errno == ENOMEM, "a byte more than the limit is refused");
	first = ibv_reg_mr(pd, memory, limit.rlim_cur / 2, 0);
	second = ibv_reg_mr(pd, memory + limit.rlim_cur / 2, limit.rlim_cur / 2, IBV_ACCESS_LOCAL_WRITE);
	tap_ok(first && second, "the limit in two halves is not");
	for (i = 0; i < 1000; i++) {
		errno = 0;
		more = ibv_reg_mr(pd, memory, 1, 0);
		tap_check(!more && errno == ENOMEM, "attempt %d: %m", i);
	}
	tap_point("then not a byte more, however often it is tried");
	tap_check(first && !ibv_dereg_mr(first), "deregistration");
	first = ibv_reg_mr(pd, memory, limit.rlim_cur / 2, 0);
	tap_check(first, "registration: %m");
	tap_point("what is deregistered can be registered again");
	tap_ok(first && second && !ibv_dereg_mr(first) && !ibv_dereg_mr(second) && !ibv_dealloc_pd(pd) &&
	       !ibv_close_device(ctx), "everything can be destroyed");
	return tap_done();
}
