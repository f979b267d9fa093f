/* SPDX-License-Identifier: GPL-2.0 */
/* Look-up of devices by name. */
#ifndef DEVICE_H
#define DEVICE_H

#include <infiniband/verbs.h>

/* Opens a device. Returns NULL and sets errno on failure. */
struct ibv_context *device_open(const char *name);

#endif
