/* SPDX-License-Identifier: GPL-2.0 */
/* Blocks of data whose contents tell where they belong and how old they are. */
#ifndef BLOCK_H
#define BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK 4096

/* Makes the contents of block `index`, changed for the `generation`th time. */
void block_make(uint64_t *block, uint64_t seed, uint64_t index, uint64_t generation);

/* Returns whether a block, at any address, has these contents. If not, describes it in `text`. */
bool block_is(const void *at, uint64_t seed, uint64_t index, uint64_t generation, char *text,
	      size_t size);

#endif
