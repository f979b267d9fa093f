/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a process can do to the kernel's side of its objects without libibverbs: find the
 * rings that its user library has mapped (rdma/siw-abi.h), and give raw commands.
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

#define RINGS_MAX 64

/* Finds all mappings of uverbs files in this process; how many. */
int rings_find(struct ring *rings);

/* Finds those that are not among the `count` of `before`. */
int rings_find_new(const struct ring *before, int count, struct ring *rings);

/*
 * Gives a command of rdma/ib_user_verbs.h: `in` begins with the address of the response if
 * `out` is given. Returns 0 or an errno.
 */
int command(struct ibv_context *ctx, uint32_t number, void *in, size_t in_bytes, void *out,
	    size_t out_bytes);

/* Rings the doorbell of a QP, whatever is in its ring. */
int ring_doorbell(struct ibv_qp *qp);

#endif
