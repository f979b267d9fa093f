// SPDX-License-Identifier: GPL-2.0
/*
 * Allocates PDs until the device refuses one. It has as many as it reports, and then still other objects.
 *
 *     most_pds DEVICE
 *
 * In C: a device has 100,000 of them, and an emulated machine takes a minute for that in Python.
 */
#include <stdlib.h>

#include "common/device.h"
#include "common/tap.h"

int main(int argc, char **argv)
{
	struct ibv_device_attr limits;
	struct ibv_context *ctx;
	struct ibv_pd **pds, *pd;
	struct ibv_cq *cq;
	int count = 0;

	if (argc != 2)
		return 2;
	ctx = device_open(argv[1]);
	if (!ctx || ibv_query_device(ctx, &limits))
		tap_bail("the device %s", argv[1]);
	pds = calloc(limits.max_pd + 1, sizeof(*pds));
	if (!pds)
		tap_bail("calloc");

	while (count <= limits.max_pd && (pds[count] = ibv_alloc_pd(ctx)))
		count++;
	tap_check(count == limits.max_pd, "%d PDs of %d", count, limits.max_pd);
	tap_point("there are no more PDs than the device says");

	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	tap_check(cq && !ibv_destroy_cq(cq), "no CQ");
	tap_point("then it still has what else there is");

	for (int i = 0; i < count; i++)
		tap_check(!ibv_dealloc_pd(pds[i]), "PD %d stays", i);
	pd = ibv_alloc_pd(ctx);
	tap_check(pd && !ibv_dealloc_pd(pd), "no PD");
	tap_point("and PDs again when some are gone");
	return tap_done();
}
