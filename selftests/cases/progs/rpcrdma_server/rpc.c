// SPDX-License-Identifier: GPL-2.0
#include "rpc.h"

#include "../common/tap.h"

#define MSG_ACCEPTED 0

bool rpc_take_credentials(struct xdr *call)
{
	uint32_t length;

	for (int i = 0; i < 2; i++) {
		xdr_get(call);
		xdr_get_opaque(call, &length);
	}
	return tap_check(!call->failed, "the credentials of a call do not end");
}

void rpc_put_accepted(struct xdr *reply, uint32_t xid, enum accept accept)
{
	xdr_put(reply, xid);
	xdr_put(reply, RPC_REPLY);
	xdr_put(reply, MSG_ACCEPTED);
	xdr_put(reply, AUTH_NONE);
	xdr_put(reply, 0);
	xdr_put(reply, accept);
}
