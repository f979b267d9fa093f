/* SPDX-License-Identifier: GPL-2.0 */
/* The prototypes of the helpers, for bindgen. */
#include "helpers/kernel.h"
#include "helpers/rdma.h"
#include "helpers/net.h"
#include "helpers/sctp.h"
#include "helpers/tls.h"
