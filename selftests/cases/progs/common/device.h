/* SPDX-License-Identifier: GPL-2.0 */
/* Devices by their names. */
#ifndef DEVICE_H
#define DEVICE_H

#include <infiniband/verbs.h>

/* Opens a device; NULL and errno if that fails. */
struct ibv_context *device_open(const char *name);

#endif
