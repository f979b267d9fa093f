/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Applications on the mount. Each operation blocks until the server, which is the main thread, has
 * answered the client's calls; so each has its own thread.
 */
#ifndef WORK_H
#define WORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct work {
	long (*run)(struct work *work);	/* returns what the system call does, or -errno */
	long result;
	atomic_bool done;
	pthread_t thread;

	/* what the operation takes */
	const char *path, *text;
	const char *source, *options;
	int fd, flags;
	void *bytes;
	size_t length;
	off_t offset;
	void *context;
};

/* Becomes readable when a work is done; to be read then. Made by the first work_start(). */
extern int work_events;

/* Starts an operation. Set `run` and its arguments before. */
void work_start(struct work *work);

bool work_done(const struct work *work);

/* Serves the calls of an operation until it is done. Ends the program if it does not end. */
void work_serve(struct work *work);

/* Does both, and returns the result. */
long work_do(struct work *work);

/* --- operations */

long run_mount(struct work *work);	/* source, path, options */
long run_umount(struct work *work);	/* path */
long run_open(struct work *work);	/* path, flags */
long run_close(struct work *work);	/* fd */
long run_stat(struct work *work);	/* fd; stores a struct stat in `bytes` */
long run_pread(struct work *work);	/* fd, bytes, length, offset */
long run_pwrite(struct work *work);	/* fd, bytes, length, offset */
long run_sync(struct work *work);	/* fd */
long run_list(struct work *work);	/* path; returns the number of names */
long run_readlink(struct work *work);	/* path, bytes, length */
long run_symlink(struct work *work);	/* text, path */
long run_unlink(struct work *work);	/* path */
long run_set_acl(struct work *work);	/* path, bytes, length */

#endif
