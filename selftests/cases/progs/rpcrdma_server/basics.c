// SPDX-License-Identifier: GPL-2.0
/* How the client connects, mounts, reads and writes. */
#include <stdio.h>
#include <string.h>

#include "../common/tap.h"
#include "tests.h"

#define BYTES 300000
#define NAMES 300

static struct region buffer;

static void what_the_client_gives(void)
{
	const struct private *got = &session.private;

	tap_check(session.private_length >= PRIVATE_BYTES, "%u bytes of private data",
		  session.private_length);
	tap_check(got->magic == MAGIC && got->version == 1, "magic %#x, version %u", got->magic,
		  got->version);
	tap_check(!(got->flags & ~R), "flags %#x: reserved bits are set", got->flags);
	tap_check(size_decoded(got->send) == 4096 && size_decoded(got->receive) == 4096,
		  "sizes %u and %u, wanted 4096", size_decoded(got->send), size_decoded(got->receive));
	tap_point("the client's private data have its sizes (RFC 8797, 4)");

	tap_check(got->flags & R, "flags %#x", got->flags);
	tap_point("the client's private data have R (RFC 8797, 4.1)");

	tap_check(session.reads, "the client allows no Reads");
	tap_check(!session.own_reads, "the client wants to do %u Reads", session.own_reads);
	tap_point("the client allows RDMA Reads, and does none itself (RFC 8166, 3.1)");
}

static void reading(void)
{
	struct file *file = file_make("data", BYTES);
	int fd = client_open("data", O_RDONLY);
	struct work work;

	buffer_open(&buffer, BYTES, 100);
	start_read(&work, fd, &buffer, 0);
	ends_with(&work, BYTES);
	buffer_expect(&buffer, file, 0, BYTES);
	buffer_close(&buffer);
	client_close(fd);
	tap_check(nfs_calls[NFS_READ], "no READ");
	tap_point("a file is read");
}

static void writing(void)
{
	int fd = client_open("new", O_RDWR | O_CREAT);
	struct work work;
	const struct file *file = file_find("new");

	buffer_open(&buffer, BYTES, 100);
	start_write(&work, fd, &buffer, 1000);
	ends_with(&work, BYTES);
	work.run = run_sync;
	work_start(&work);
	ends_with(&work, 0);
	client_close(fd);
	if (tap_check(file, "the file was not made"))
		file_holds(file, 1000, &buffer);
	buffer_close(&buffer);
	tap_check(nfs_calls[NFS_CREATE] && nfs_calls[NFS_WRITE] && nfs_calls[NFS_COMMIT],
		  "%d CREATE, %d WRITE, %d COMMIT", nfs_calls[NFS_CREATE], nfs_calls[NFS_WRITE],
		  nfs_calls[NFS_COMMIT]);
	tap_point("a file is made, and written with COMMIT");
}

static void names(void)
{
	struct work work = { .run = run_list, .path = folder };
	char name[NAME_BYTES], text[NAME_BYTES] = {};
	long before;

	before = work_do(&work);
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "a file with a name of some length %d", i);
		file_make(name, 0);
	}
	work_start(&work);
	ends_with(&work, before + NAMES);
	tap_check(nfs_calls[NFS_READDIRPLUS] || nfs_calls[NFS_READDIR], "no READDIR");
	tap_point("a folder of %d files is listed", NAMES);

	work = (struct work){ .run = run_symlink, .path = path_of("link"), .text = "a text" };
	work_start(&work);
	ends_with(&work, 0);
	work = (struct work){ .run = run_readlink, .path = path_of("link"), .bytes = text,
			      .length = sizeof(text) };
	work_start(&work);
	ends_with(&work, strlen("a text"));
	tap_check(!strcmp(text, "a text"), "the text is '%s'", text);
	work = (struct work){ .run = run_unlink, .path = path_of("link") };
	work_start(&work);
	ends_with(&work, 0);
	tap_check(!file_find("link"), "the link was not removed");
	tap_point("a symbolic link is made, read and removed");
}

static void other_family(void)
{
	int fd;

	session_close();
	session_listen(&server6);
	client_mount6(NULL);
	fd = client_open("data", O_RDONLY);
	client_works(fd);
	client_close(fd);
	client_unmount();
	session_close();
	session_listen(&server);
	tap_point("the client connects over IPv6, netid rdma6 (RFC 8166, 5, 9)");
}

void test_basics(void)
{
	memset(nfs_calls, 0, sizeof(nfs_calls));
	/* A file that takes one WRITE is written without COMMIT. */
	client_mount("wsize=65536");
	tap_check(nfs_calls[NFS_NULL] && nfs_calls[NFS_FSINFO], "%d calls of NULL, %d of FSINFO",
		  nfs_calls[NFS_NULL], nfs_calls[NFS_FSINFO]);
	tap_point("the client mounts the server");
	what_the_client_gives();
	reading();
	writing();
	names();
	client_unmount();
	tap_point("the client ends its connection when it unmounts");
	other_family();
}
