/* SPDX-License-Identifier: GPL-2.0 */
/* A page on whose first access the kernel waits (userfaultfd). */
#ifndef DEMAND_H
#define DEMAND_H

#define DEMAND_PAGE 4096UL

/*
 * Maps such a page. *uffd can be read when the kernel waits for it: it goes on when the page is provided by
 * an ioctl, or after *uffd is closed. Ends the program on failure.
 */
void *page_on_demand(int *uffd);

#endif
