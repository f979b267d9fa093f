/* SPDX-License-Identifier: GPL-2.0 */
/* Messages of RPC (RFC 5531), as a server reads and makes them. */
#ifndef RPC_H
#define RPC_H

#include <stdbool.h>
#include <stdint.h>

#include "../rpcrdma/xdr.h"

#define RPC_CALL 0
#define RPC_REPLY 1
#define RPC_VERSION 2

#define AUTH_NONE 0
#define AUTH_SYS 1

enum accept { ACCEPT_SUCCESS, ACCEPT_PROG_UNAVAIL, ACCEPT_PROC_UNAVAIL = 3, ACCEPT_GARBAGE_ARGS };

/* Skips credentials and verifier of a call. Fails a check if they do not end. */
bool rpc_take_credentials(struct xdr *call);

/* Appends a reply up to the results. */
void rpc_put_accepted(struct xdr *reply, uint32_t xid, enum accept accept);

#endif
