/* SPDX-License-Identifier: GPL-2.0 */
/* MOUNT version 3 (RFC 1813, appendix I) over TCP: gives clients the file handle of the root. */
#ifndef MOUNTD_H
#define MOUNTD_H

#include <stdint.h>

#include "../common/pair.h"

/* Serves in a thread of its own, until the program ends. Returns the port. Ends the program on failure. */
uint16_t mountd_start(const struct side *side);

#endif
