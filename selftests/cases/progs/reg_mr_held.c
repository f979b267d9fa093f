// SPDX-License-Identifier: GPL-2.0
/*
 * Stays within a verb until stdin ends: registers memory whose first page it provides only then.
 * Meanwhile ib_core cannot take the device away from it.
 *
 *     reg_mr_held DEVICE
 *
 * Writes "held" when the kernel waits for the page.
 */
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/demand.h"
#include "common/device.h"
#include "common/tap.h"

static uint8_t *memory;

static void *reg_mr(void *pd)
{
	return ibv_reg_mr(pd, memory, DEMAND_PAGE, IBV_ACCESS_LOCAL_WRITE);
}

int main(int argc, char **argv)
{
	struct uffdio_zeropage zero = { .range.len = DEMAND_PAGE };
	struct ibv_context *ctx;
	pthread_t thread;
	struct ibv_pd *pd;
	char byte;
	int uffd;

	if (argc != 2)
		return 2;
	ctx = device_open(argv[1]);
	if (!ctx)
		tap_bail("ibv_open_device %s", argv[1]);
	pd = ibv_alloc_pd(ctx);
	if (!pd)
		tap_bail("ibv_alloc_pd");

	memory = page_on_demand(&uffd);
	zero.range.start = (uintptr_t)memory;
	if (pthread_create(&thread, NULL, reg_mr, pd))
		tap_bail("a thread");
	if (!readable_within(uffd, PATIENCE))
		tap_bail("the page is not asked for");
	puts("held");
	fflush(stdout);

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	if (ioctl(uffd, UFFDIO_ZEROPAGE, &zero))
		tap_bail("to provide the page");
	pthread_join(thread, NULL);
	return 0;
}
