// SPDX-License-Identifier: GPL-2.0
/*
 * Stays within a verb until stdin ends: registers memory whose first page it provides only then.
 * Meanwhile ib_core cannot take the device away from it.
 *
 *     reg_mr_held DEVICE
 *
 * Writes "held" when the kernel waits for the page.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/device.h"
#include "common/tap.h"

#define PAGE 4096UL

static uint8_t *memory;

static void *reg_mr(void *pd)
{
	return ibv_reg_mr(pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
}

int main(int argc, char **argv)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage zero = {};
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

	memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	range.range.start = (uintptr_t)memory;
	range.range.len = PAGE;
	zero.range = range.range;
	if (memory == MAP_FAILED || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &range))
		tap_bail("a page that is provided on demand");
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
