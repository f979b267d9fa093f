// SPDX-License-Identifier: GPL-2.0
/*
 * Applications that read and write at random, while the server replies in any order and in any way
 * that the protocol allows, and ends connections.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/tap.h"
#include "tests.h"

#define APPLICATIONS 4
#define ROUNDS 25
#define FILE_LENGTH (1 << 20)
#define LONGEST 300000
#define PIECE (LONGEST / 500)	/* a Write for each octet would take half a minute */
#define POOL 64
#define STUCK 60000		/* milliseconds */
/* On slow kernels, calls wait for long: the client must not end the connection because of one. */
#define TIMEOUT "timeo=1800"

struct application {
	struct work work;
	struct rng rng;
	int direct, buffered;	/* the same file, without and with the page cache */
	uint8_t *model;		/* what the file should have */
	uint8_t *bytes;
	char failed[256];
};

static struct application applications[APPLICATIONS];

/* One read or write. Returns false, with the reason in `failed`, if it goes wrong. */
static bool transfer(struct application *a)
{
	size_t length = 1 + rng_length(&a->rng, LONGEST - 1);
	off_t offset = rng_below(&a->rng, FILE_LENGTH - length);
	bool writes = rng_below(&a->rng, 2), direct = rng_below(&a->rng, 2);
	int fd = direct ? a->direct : a->buffered;
	ssize_t done;

	if (writes) {
		rng_fill(&a->rng, a->model + offset, length);
		memcpy(a->bytes, a->model + offset, length);
		done = pwrite(fd, a->bytes, length, offset);
	} else {
		done = pread(fd, a->bytes, length, offset);
	}
	if (done != (ssize_t)length)
		snprintf(a->failed, sizeof(a->failed), "%s of %zu bytes at %lld: %zd (%m)",
			 writes ? "write" : "read", length, (long long)offset, done);
	else if (memcmp(a->bytes, a->model + offset, length))
		snprintf(a->failed, sizeof(a->failed), "%s of %zu bytes at %lld, %s: other bytes",
			 writes ? "write" : "read", length, (long long)offset,
			 direct ? "direct" : "buffered");
	else
		return true;
	return false;
}

static long run_application(struct work *work)
{
	struct application *a = work->context;

	for (int i = 0; i < ROUNDS; i++)
		if (!transfer(a))
			return -1;
	return fsync(a->buffered);
}

static const char *name_of(int i)
{
	static char name[NAME_BYTES];

	snprintf(name, sizeof(name), "file%d", i);
	return name;
}

static void start_application(int i)
{
	struct application *a = &applications[i];
	struct file *file = file_make(name_of(i), FILE_LENGTH);

	a->rng.state = rng_next(&rng);
	a->direct = client_open(name_of(i), O_RDWR | O_DIRECT);
	a->buffered = client_open(name_of(i), O_RDWR);
	a->model = malloc(FILE_LENGTH);
	a->bytes = malloc(LONGEST);
	if (!a->model || !a->bytes)
		tap_bail("memory");
	memcpy(a->model, file->bytes, FILE_LENGTH);
	a->work = (struct work){ .run = run_application, .context = a };
}

static void end_application(int i)
{
	struct application *a = &applications[i];
	const struct file *file = file_find(name_of(i));

	pthread_join(a->work.thread, NULL);
	tap_check(!a->work.result, "application %d: %s", i, a->failed);
	tap_check(file->size == FILE_LENGTH && !memcmp(file->bytes, a->model, FILE_LENGTH),
		  "file %d of the server has other bytes", i);
	client_close(a->direct);
	client_close(a->buffered);
	free(a->model);
	free(a->bytes);
}

/* Chooses how the next reply is sent. */
static void choose(void)
{
	settings.invalidate = rng_below(&rng, INVALIDATE_LAST + 1);
	settings.short_replies = rng_below(&rng, 2);
	settings.piece = rng_below(&rng, 2) ? 0 : PIECE + rng_length(&rng, 100000);
	settings.credits = 1 + rng_below(&rng, 32);
}

static struct request pool[POOL];	/* calls that wait for their replies */
static int count;			/* of them */

/* Drops the calls of a connection that has ended: they come again. */
static void drop_old(void)
{
	int kept = 0;

	for (int i = 0; i < count; i++)
		if (session.open && pool[i].connection == session.accepted)
			pool[kept++] = pool[i];
	count = kept;
}

/* Replies to one of the calls. */
static void answer_one(void)
{
	int i = rng_below(&rng, count);

	choose();
	nfs_serve(&pool[i]);
	pool[i] = pool[--count];
}

/* Serves until an application is done. Ends up to `losses` connections. */
static void serve(const struct work *work, int *losses)
{
	while (!work_done(work)) {
		/* All calls that have arrived, and the next one if there is none. */
		while (count < POOL && call_within(&pool[count], work, count ? 0 : STUCK))
			count++;
		if (!count && !work_done(work))
			tap_bail("no call arrives");
		drop_old();
		if (count && *losses && !rng_below(&rng, 60)) {
			--*losses;
			session_disconnect();
		} else if (count) {
			answer_one();
		}
	}
}

static void load(const char *options, int losses, const char *name)
{
	int i;

	client_mount(options);
	for (i = 0; i < APPLICATIONS; i++)
		start_application(i);
	for (i = 0; i < APPLICATIONS; i++)
		work_start(&applications[i].work);
	for (i = 0; i < APPLICATIONS; i++)
		serve(&applications[i].work, &losses);
	while (count)
		answer_one();
	settings_reset();
	for (i = 0; i < APPLICATIONS; i++)
		end_application(i);
	client_unmount();
	tap_point("%d applications read and write %s; replies come in any order, by all ways of "
		  "data transfer (RFC 8166, 3.5)", APPLICATIONS, name);
}

void test_load(void)
{
	load(TIMEOUT, 0, "blocks of up to 1 MiB");
	load(TIMEOUT ",rsize=8192,wsize=8192", 0, "blocks of 8 KiB");
	load(TIMEOUT ",rsize=32768,wsize=32768", 5, "while connections end");
}
