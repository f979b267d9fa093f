// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../common/tap.h"
#include "nfs.h"
#include "tests.h"

/* Milliseconds until an operation that waits for nothing but the server is stuck. */
#define STUCK 60000

int work_events = -1;

static void *thread(void *argument)
{
	struct work *work = argument;
	uint64_t one = 1;

	work->result = work->run(work);
	atomic_store(&work->done, true);
	if (write(work_events, &one, sizeof(one)) != (ssize_t)sizeof(one))
		tap_bail("eventfd");
	return NULL;
}

void work_start(struct work *work)
{
	if (work_events < 0)
		work_events = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	atomic_store(&work->done, false);
	if (work_events < 0 || pthread_create(&work->thread, NULL, thread, work))
		tap_bail("a thread");
}

bool work_done(const struct work *work)
{
	return atomic_load(&work->done);
}

void work_serve(struct work *work)
{
	static struct request request;

	while (!work_done(work)) {
		if (call_within(&request, work, STUCK))
			nfs_serve(&request);
		else if (!work_done(work))
			tap_bail("an operation does not end");
	}
	pthread_join(work->thread, NULL);
}

long work_do(struct work *work)
{
	work_start(work);
	work_serve(work);
	return work->result;
}

/* --- operations */

static long or_errno(long result)
{
	return result < 0 ? -errno : result;
}

long run_mount(struct work *work)
{
	long result;

	/* A mount belongs to the network namespace of the thread that makes it. */
	netns_enter(client.netns);
	result = or_errno(mount(work->source, work->path, "nfs", 0, work->options));
	netns_leave();
	return result;
}

long run_umount(struct work *work)
{
	return or_errno(umount2(work->path, 0));
}

long run_open(struct work *work)
{
	return or_errno(open(work->path, work->flags | O_CLOEXEC, 0644));
}

long run_close(struct work *work)
{
	return or_errno(close(work->fd));
}

long run_stat(struct work *work)
{
	return or_errno(fstat(work->fd, work->bytes));
}

long run_pread(struct work *work)
{
	return or_errno(pread(work->fd, work->bytes, work->length, work->offset));
}

long run_pwrite(struct work *work)
{
	return or_errno(pwrite(work->fd, work->bytes, work->length, work->offset));
}

long run_sync(struct work *work)
{
	return or_errno(fsync(work->fd));
}

long run_list(struct work *work)
{
	DIR *folder = opendir(work->path);
	struct dirent *entry;
	long names = 0;

	if (!folder)
		return -errno;
	errno = 0;
	while ((entry = readdir(folder)))
		names += entry->d_name[0] != '.';
	if (errno)
		names = -errno;
	closedir(folder);
	return names;
}

long run_readlink(struct work *work)
{
	return or_errno(readlink(work->path, work->bytes, work->length));
}

long run_symlink(struct work *work)
{
	return or_errno(symlink(work->text, work->path));
}

long run_unlink(struct work *work)
{
	return or_errno(unlink(work->path));
}

long run_set_acl(struct work *work)
{
	return or_errno(setxattr(work->path, "system.posix_acl_access", work->bytes, work->length, 0));
}
