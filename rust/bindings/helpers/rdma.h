/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RIW_HELPERS_RDMA_H
#define RIW_HELPERS_RDMA_H

#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

struct ib_umem *riw_helper_ib_umem_get_va(struct ib_device *device, unsigned long addr,
					  size_t size, int access);

#endif
