// SPDX-License-Identifier: GPL-2.0
/* C wrappers for rust/net: the pages of a send buffer. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "net.h"

#define RIW_STAGING_ORDER 3

/*
 * Allocates a (compound) page for `size` bytes (not 0): up to order 3 if that needs no effort,
 * otherwise order 0. Charges the active memory cgroup. May sleep.
 *
 * At the limit of the memory cgroup, a process meets the OOM killer. A worker gets NULL: its
 * process may be gone.
 */
struct page *riw_helper_staging_alloc(size_t size)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	unsigned int order = min(get_order(size), RIW_STAGING_ORDER);
	struct page *page = NULL;

	if (order)
		page = alloc_pages(gfp | __GFP_COMP | __GFP_NORETRY | __GFP_NOMEMALLOC, order);
	if (page)
		return page;
	if (current->flags & PF_KTHREAD)
		gfp |= __GFP_RETRY_MAYFAIL;
	return alloc_page(gfp);
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
