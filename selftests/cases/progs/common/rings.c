// SPDX-License-Identifier: GPL-2.0
#include "rings.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <string.h>
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

int ring_doorbell(struct ibv_qp *qp)
{
	struct ib_uverbs_post_send_resp response;
	struct ib_uverbs_post_send bell = {
		.qp_handle = qp->handle, .wqe_size = sizeof(struct ib_uverbs_send_wr),
	};

	return command(qp->context, IB_USER_VERBS_CMD_POST_SEND, &bell, sizeof(bell), &response,
		       sizeof(response));
}
