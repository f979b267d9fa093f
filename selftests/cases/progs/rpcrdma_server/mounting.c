// SPDX-License-Identifier: GPL-2.0
/* The client's mount, and operations on it. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "../common/clock.h"
#include "../common/tap.h"
#include "mountd.h"
#include "tests.h"

struct side client, server, server6;
const char *folder;

/* A server that ends leaves a mount behind whose calls end, too: after 30 s. */
#define OPTIONS "vers=3,nolock,noacl,actimeo=0,soft,timeo=150,retrans=1,port=" PORT

static void mount_by(const char *transport, const char *mount_transport, const char *address,
		     const char *source, const char *more)
{
	static uint16_t port;
	char options[512];
	struct work work = { .run = run_mount, .source = source, .path = folder,
			     .options = options };
	long result;

	if (!port)
		port = mountd_start(&server);
	snprintf(options, sizeof(options),
		 OPTIONS ",proto=%s,addr=%s,mountproto=%s,mountaddr=%s,mountport=%u%s%s", transport,
		 address, mount_transport, address, port, more ? "," : "", more ? more : "");
	result = work_do(&work);
	if (result) {
		errno = -result;
		tap_bail("mount of %s with %s", source, options);
	}
}

void client_mount(const char *options)
{
	char source[128];

	snprintf(source, sizeof(source), "%s:/", server.addr);
	mount_by("rdma", "tcp", server.addr, source, options);
}

void client_mount6(const char *options)
{
	char source[128];

	snprintf(source, sizeof(source), "[%s]:/", server6.addr);
	mount_by("rdma6", "tcp6", server6.addr, source, options);
}

void client_unmount(void)
{
	struct work work = { .run = run_umount, .path = folder };
	long result = work_do(&work);

	if (result) {
		errno = -result;
		tap_bail("umount %s", folder);
	}
	session_ended();
}

const char *path_of(const char *name)
{
	static char paths[4][256];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

int client_open(const char *name, int flags)
{
	struct work work = { .run = run_open, .path = path_of(name), .flags = flags };
	long fd = work_do(&work);

	if (fd < 0) {
		errno = -fd;
		tap_bail("opening %s", work.path);
	}
	return fd;
}

void client_close(int fd)
{
	struct work work = { .run = run_close, .fd = fd };
	long result = work_do(&work);

	tap_check(!result, "closing a file: %s", strerror(-result));
}

void start_stat(struct work *work, int fd)
{
	static struct stat ignored;

	*work = (struct work){ .run = run_stat, .fd = fd, .bytes = &ignored };
	work_start(work);
}

long client_stat(int fd)
{
	struct work work;

	start_stat(&work, fd);
	work_serve(&work);
	return work.result;
}

bool client_works(int fd)
{
	int before = nfs_calls[NFS_GETATTR];
	long result = client_stat(fd);

	return tap_check(!result, "the attributes of a file: %s", strerror(-result)) &&
	       tap_check(nfs_calls[NFS_GETATTR] > before, "no GETATTR");
}

/* --- buffers */

void buffer_open(struct region *buffer, size_t length, size_t offset)
{
	region_make(buffer, &rng, length, offset);
}

void buffer_close(struct region *buffer)
{
	region_intact(buffer, "a buffer");
	region_free(buffer);
}

void buffer_expect(struct region *buffer, const struct file *file, uint64_t offset, size_t length)
{
	memcpy(region_wanted(buffer, buffer->bytes), file->bytes + offset, length);
}

static void start_transfer(struct work *work, long (*run)(struct work *), int fd,
			   struct region *buffer, uint64_t offset)
{
	*work = (struct work){ .run = run, .fd = fd, .bytes = buffer->bytes,
			       .length = buffer->length, .offset = offset };
	work_start(work);
}

void start_read(struct work *work, int fd, struct region *buffer, uint64_t offset)
{
	start_transfer(work, run_pread, fd, buffer, offset);
}

void start_write(struct work *work, int fd, struct region *buffer, uint64_t offset)
{
	start_transfer(work, run_pwrite, fd, buffer, offset);
}

bool ends_with(struct work *work, long result)
{
	work_serve(work);
	return tap_check(work->result == result, "an operation ends with %ld, wanted %ld",
			 work->result, result);
}

bool file_holds(const struct file *file, uint64_t offset, const struct region *buffer)
{
	return tap_check(file->size >= offset + buffer->length, "a file of %" PRIu64 " bytes",
			 file->size) &&
	       tap_check(!memcmp(file->bytes + offset, buffer->bytes, buffer->length),
			 "the server has other bytes than were written");
}

/* --- calls */

bool call_of(struct request *r, const struct work *work, enum nfs_procedure procedure)
{
	while (call_within(r, work, PATIENCE)) {
		if (is_call(r, procedure))
			return true;
		nfs_serve(r);
	}
	return tap_check(false, "no call of procedure %d", procedure);
}

bool no_call(void)
{
	static struct request request;

	return tap_check(!call_within(&request, NULL, SILENCE), "another call arrives");
}

long client_counter(enum counter counter)
{
	FILE *file = fopen("/proc/self/mountstats", "r");
	char line[1024], *at;
	bool here = false;
	long value = -1;

	if (!file)
		tap_bail("mountstats");
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "device ", 7))
			here = strstr(line, folder);
		at = strstr(line, "xprt:\trdma ");
		if (!here || !at)
			continue;
		at = strchr(at, ' ');
		for (int i = 0; at && i <= (int)counter; i++)
			at += sscanf(at, " %ld", &value) == 1 ? strcspn(at + 1, " \n") + 1 : 0;
		break;
	}
	fclose(file);
	return value;
}
