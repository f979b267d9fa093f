/* SPDX-License-Identifier: GPL-2.0 */
/* The helpers, for bindgen: prototypes only. */
#include "helpers/rdma.h"
#include "helpers/net.h"
