// SPDX-License-Identifier: GPL-2.0
/* C for what rdma/ has as macros and inline functions. */
#include "rdma.h"

struct ib_umem *riw_helper_ib_umem_get_va(struct ib_device *device, unsigned long addr,
					  size_t size, int access)
{
	return ib_umem_get_va(device, addr, size, access);
}
