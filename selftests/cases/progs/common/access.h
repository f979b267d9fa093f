/* SPDX-License-Identifier: GPL-2.0 */
/* Access rights of regions. */
#ifndef ACCESS_H
#define ACCESS_H

#include <infiniband/verbs.h>

#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
/* ALL, and a peer may invalidate the region. */
#define REVOCABLE (ALL | IBV_ACCESS_MW_BIND)

#endif
