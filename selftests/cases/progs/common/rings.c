// SPDX-License-Identifier: GPL-2.0
#include "rings.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tap.h"

int rings_find(struct ring *rings)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long begin, end, offset;
	char line[512];
	int count = 0;

	if (!maps)
		tap_bail("/proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/dev/infiniband/uverbs"))
			continue;
		if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) != 3 || count == RINGS_MAX)
			tap_bail("/proc/self/maps: %s", line);
		rings[count++] = (struct ring){ (uint8_t *)begin, end - begin, offset };
	}
	fclose(maps);
	return count;
}

int rings_find_new(const struct ring *before, int count, struct ring *rings)
{
	struct ring all[RINGS_MAX];
	int found = 0, total = rings_find(all), i, j;

	for (i = 0; i < total; i++) {
		for (j = 0; j < count && before[j].at != all[i].at; j++)
			;
		if (j == count)
			rings[found++] = all[i];
	}
	return found;
}

int command(struct ibv_context *ctx, uint32_t number, void *in, size_t in_bytes, void *out,
	    size_t out_bytes)
{
	uint8_t buffer[512];
	struct ib_uverbs_cmd_hdr header = {
		.command = number,
		.in_words = (sizeof(header) + in_bytes) / 4,
		.out_words = out_bytes / 4,
	};
	uint64_t response = (uintptr_t)out;

	if (sizeof(header) + in_bytes > sizeof(buffer))
		tap_bail("command %u is too long", number);
	memcpy(buffer, &header, sizeof(header));
	memcpy(buffer + sizeof(header), in, in_bytes);
	if (out)
		memcpy(buffer + sizeof(header), &response, sizeof(response));
	if (write(ctx->cmd_fd, buffer, sizeof(header) + in_bytes) < 0)
		return errno;
	return 0;
}

void mr_shows(struct ibv_mr *mr, uint64_t iova, uint64_t length)
{
	uint32_t lkey, rkey;
	uint64_t seen_length = 0, seen_iova = 0;
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attrs[5];
	} query = {
		.header = {
			.length = sizeof(query), .object_id = UVERBS_OBJECT_MR,
			.method_id = UVERBS_METHOD_QUERY_MR, .num_attrs = 5, .driver_id = OWN_DRIVER_ID,
		},
		.attrs = {
			{ UVERBS_ATTR_QUERY_MR_HANDLE, 0, 1, .data = mr->handle },
			{ UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4, 1, .data = (uintptr_t)&lkey },
			{ UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4, 1, .data = (uintptr_t)&rkey },
			{ UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8, 1, .data = (uintptr_t)&seen_length },
			{ UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, 1, .data = (uintptr_t)&seen_iova },
		},
	};

	tap_check(!ioctl(mr->context->cmd_fd, RDMA_VERBS_IOCTL, &query), "UVERBS_METHOD_QUERY_MR: %s",
		  strerror(errno));
	tap_check(seen_iova == iova && seen_length == length, "the region has %#" PRIx64 " bytes at %#" PRIx64,
		  seen_length, seen_iova);
}

int ring_doorbell(struct ibv_qp *qp)
{
	struct ib_uverbs_post_send_resp response;
	struct ib_uverbs_post_send bell = {
		.qp_handle = qp->handle, .wqe_size = sizeof(struct ib_uverbs_send_wr),
	};

	return command(qp->context, IB_USER_VERBS_CMD_POST_SEND, &bell, sizeof(bell), &response,
		       sizeof(response));
}
