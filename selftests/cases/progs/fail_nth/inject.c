// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/tap.h"

static int fd;
static bool copies_fail;

void inject_open(bool copies)
{
	copies_fail = copies;
	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		tap_bail("/proc/thread-self/fail-nth: %m");
}

void inject(int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", nth);

	/* Copying the text is a pass, too. If it is the one that fails, no other one does. */
	if (pwrite(fd, text, length, 0) != length &&
	    (errno != EFAULT || pwrite(fd, text, length, 0) != length))
		tap_bail("fail-nth: %m");
}

int inject_left(void)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) < 0) {
		if (errno != EFAULT)
			tap_bail("fail-nth: %m");
		/* The pass that was left is the copy of the number. */
		return 1;
	}
	inject(0);
	return atoi(text);
}

bool is_destroyed(int status)
{
	return !status || (copies_fail && status == ENOENT);
}
