// SPDX-License-Identifier: GPL-2.0
/* Connections that are lost, refused, or changed. */
#define _GNU_SOURCE
#include <string.h>

#include "../common/tap.h"
#include "tests.h"

#define FILE_LENGTH 100000
#define BYTES 20000
#define LOSSES 10

static struct request request, again;
static struct region buffer;
static struct work work;
static struct file *file;
static int fd;

static void begin(const char *options)
{
	file = file_make("data", FILE_LENGTH);
	client_mount(options);
	fd = client_open("data", O_RDWR | O_DIRECT);
}

static void end(void)
{
	client_close(fd);
	client_unmount();
}

/* Starts an operation with one call of a procedure. */
static void start(enum nfs_procedure procedure)
{
	buffer_open(&buffer, BYTES, 100);
	if (procedure == NFS_READ)
		start_read(&work, fd, &buffer, 0);
	else if (procedure == NFS_WRITE)
		start_write(&work, fd, &buffer, 0);
	else
		start_stat(&work, fd);
}

static void finish(enum nfs_procedure procedure)
{
	ends_with(&work, procedure == NFS_GETATTR ? 0 : BYTES);
	if (procedure == NFS_READ)
		buffer_expect(&buffer, file, 0, BYTES);
	if (procedure == NFS_WRITE)
		file_holds(file, 0, &buffer);
	buffer_close(&buffer);
}

/* Ends connections while a call waits for its reply; the server has done the call, or not. */
static void lost(enum nfs_procedure procedure, const char *name)
{
	static struct payload payload;
	struct nfs_call call;
	int before = session.accepted;

	start(procedure);
	if (call_of(&request, &work, procedure)) {
		for (int i = 0; i < LOSSES; i++) {
			if (i % 2)
				nfs_do(&request, &call, &payload);
			session_disconnect();
			if (!call_of(&again, &work, procedure))
				break;
			tap_check(again.header.xid == request.header.xid, "XID %#x, then %#x",
				  request.header.xid, again.header.xid);
			tap_check(!first_stag(&again) || first_stag(&again) != first_stag(&request),
				  "STag %#x again", first_stag(&again));
			request = again;
		}
		nfs_serve(&request);
	}
	finish(procedure);
	tap_check(session.accepted == before + LOSSES, "%d connections for %d losses",
		  session.accepted - before, LOSSES);
	tap_point("a %s without reply when the connection ends is sent again on a new one, with its "
		  "XID and other STags (RFC 8166, 4.5.5)", name);
}

static void idle(void)
{
	int before = session.accepted;

	session_disconnect();
	client_works(fd);
	tap_check(session.accepted == before + 1, "%d connections", session.accepted - before);
	tap_point("the client connects again for the next call if the connection ends between calls "
		  "(RFC 8166, 4.5.5)");
}

static void refused(void)
{
	int before = session.accepted;

	settings.rejects = 1;
	session_disconnect();
	client_works(fd);
	tap_check(!settings.rejects, "no connection was refused");
	tap_check(session.accepted == before + 1, "%d connections", session.accepted - before);
	tap_point("the client tries again if its connection is refused (RFC 8166, 4.5.5)");
}

/* The inline thresholds of a new connection may be others. */
static void other_thresholds(void)
{
	static const uint32_t sizes[] = { 1024, 4096, 2048, 4096 };
	int reduced = 0;

	for (int i = 0; i < COUNT(sizes); i++) {
		settings_private(sizes[i], sizes[i], R);
		session_disconnect();
		for (uint32_t length = 600; length < 4600; length += 500) {
			buffer_open(&buffer, length, 0);
			start_write(&work, fd, &buffer, 0);
			if (call_of(&request, &work, NFS_WRITE)) {
				reduced += request.header.reads > 0;
				nfs_serve(&request);
			}
			ends_with(&work, length);
			file_holds(file, 0, &buffer);
			buffer_close(&buffer);
			buffer_open(&buffer, length, 0);
			start_read(&work, fd, &buffer, 0);
			ends_with(&work, length);
			buffer_expect(&buffer, file, 0, length);
			buffer_close(&buffer);
		}
	}
	settings_reset();
	tap_check(reduced > 4, "%d calls have chunks", reduced);
	tap_point("a new connection may have other inline thresholds (RFC 8797, 4)");
}

/* The client's time limit for a reply is 2 s here. */
static void no_reply(void)
{
	int before;

	begin("timeo=20,retrans=10");
	before = session.accepted;
	start(NFS_READ);
	if (call_of(&request, &work, NFS_READ) && call_of(&again, &work, NFS_READ)) {
		tap_check(again.header.xid == request.header.xid, "XID %#x, then %#x",
			  request.header.xid, again.header.xid);
		nfs_serve(&again);
	}
	finish(NFS_READ);
	tap_check(session.accepted == before + 1, "%d connections", session.accepted - before);
	end();
	tap_point("a call that gets no reply is sent again, but on a new connection (RFC 8166, 3.3.1)");
}

void test_connections(void)
{
	begin(NULL);
	lost(NFS_GETATTR, "GETATTR");
	lost(NFS_READ, "READ");
	lost(NFS_WRITE, "WRITE");
	idle();
	refused();
	other_thresholds();
	end();
	no_reply();
}
