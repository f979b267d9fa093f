// SPDX-License-Identifier: GPL-2.0
#include "device.h"

#include <errno.h>
#include <string.h>

struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i = 0, error;

	if (!list)
		return NULL;
	while (list[i] && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	errno = ENODEV;
	if (list[i])
		ctx = ibv_open_device(list[i]);
	error = errno;
	ibv_free_device_list(list);
	errno = error;
	return ctx;
}
