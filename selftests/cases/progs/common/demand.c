// SPDX-License-Identifier: GPL-2.0
#include "demand.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tap.h"

void *page_on_demand(int *uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *page = mmap(NULL, DEMAND_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* If it blocks, poll() returns POLLERR at once. */
	*uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	range.range.start = (uintptr_t)page;
	range.range.len = DEMAND_PAGE;
	if (page == MAP_FAILED || *uffd < 0 || ioctl(*uffd, UFFDIO_API, &api) ||
	    ioctl(*uffd, UFFDIO_REGISTER, &range))
		tap_bail("a page that is provided on demand");
	return page;
}
