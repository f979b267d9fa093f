// SPDX-License-Identifier: GPL-2.0
/*
 * C wrappers for rust/net: the pages of a send buffer. The functions for pages are inline or
 * macros, and the crate `kernel` lacks most of the flags for their allocation.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sizes.h>

#include "net.h"

/* Each queue pair that sends keeps one: so not more where a page is large. */
#define RIW_STAGING_BYTES SZ_32K

/*
 * Allocates a (compound) page for `size` bytes (not 0): up to 32 KiB if that needs no effort,
 * otherwise order 0. Charges the active memory cgroup. May sleep.
 *
 * At the limit of the memory cgroup, a process meets the OOM killer. A worker gets NULL if a round
 * of reclaim was not enough: its process may be gone, and others wait for the worker.
 */
struct page *riw_helper_staging_alloc(size_t size)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	unsigned int order = min(get_order(size), get_order(RIW_STAGING_BYTES));
	gfp_t large = gfp | __GFP_COMP | __GFP_NORETRY | __GFP_NOMEMALLOC;
	struct page *page = NULL;

	if (current->flags & PF_KTHREAD) {
		gfp |= __GFP_NORETRY;
		large &= ~__GFP_DIRECT_RECLAIM;
	}
	if (order)
		page = alloc_pages(large, order);
	return page ?: alloc_page(gfp);
}

void *riw_helper_staging_address(struct page *page)
{
	return page_address(page);
}

size_t riw_helper_staging_size(struct page *page)
{
	return page_size(page);
}

bool riw_helper_staging_shared(struct page *page)
{
	return page_count(page) != 1;
}

void riw_helper_put_page(struct page *page)
{
	put_page(page);
}
