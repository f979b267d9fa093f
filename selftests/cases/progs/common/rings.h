/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Access to the kernel's side of objects without libibverbs: finds the rings that the user library
 * has mapped (rdma/siw-abi.h), and issues raw commands.
 */
#ifndef RINGS_H
#define RINGS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A mapping of the device's file. */
struct ring {
	uint8_t *at;
	size_t bytes;
	off_t offset;
};

#define RINGS_MAX 256

/* The driver of devices with riw's own user ABI (enum rdma_driver_id). */
#define OWN_DRIVER_ID 0x726977

/* Finds all mappings of uverbs files in this process. Returns their number. */
int rings_find(struct ring *rings);

/* Finds the mappings that are not among the `count` of `before`. */
int rings_find_new(const struct ring *before, int count, struct ring *rings);

/*
 * Issues a command of rdma/ib_user_verbs.h. If `out` is given, `in` begins with the address of the
 * response. Returns 0 or an errno.
 */
int command(struct ibv_context *ctx, uint32_t number, void *in, size_t in_bytes, void *out,
	    size_t out_bytes);

/*
 * Checks (tap_check) what the kernel shows of a region of riw's own ABI: the address of its first byte on the
 * wire, and its length.
 */
void mr_shows(struct ibv_mr *mr, uint64_t iova, uint64_t length);

/* Rings the doorbell of a QP, whatever its ring contains. */
int ring_doorbell(struct ibv_qp *qp);

#endif
