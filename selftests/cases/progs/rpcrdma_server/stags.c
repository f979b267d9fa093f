// SPDX-License-Identifier: GPL-2.0
/* How long, and for what, the server may use the STags of a call; remote invalidation. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/clock.h"
#include "../common/tap.h"
#include "rpc.h"
#include "tests.h"

#define FILE_LENGTH 100000
#define BYTES 8000
#define TEXT_BYTES 3000
#define TIMES 40

enum kind { READ_CHUNK, WRITE_CHUNK, REPLY_CHUNK, KINDS };

static const char *const names[KINDS] = { "Read", "Write", "Reply" };

static struct request request;
static struct payload payload;
static struct nfs_call call;
static struct region buffer;
static struct work work;
static struct file *file;
static int fd;
static char got[TEXT_BYTES + 1];

static void begin(void)
{
	file = file_make("data", FILE_LENGTH);
	client_mount(NULL);
	fd = client_open("data", O_RDWR | O_DIRECT);
}

static void end(void)
{
	client_close(fd);
	client_unmount();
}

/* Returns the path of a new symbolic link. */
static const char *new_link(void)
{
	static char text[TEXT_BYTES];
	static int links;
	char name[NAME_BYTES];

	memset(text, 'x', sizeof(text));
	snprintf(name, sizeof(name), "text%d", links++);
	link_make(name, text, sizeof(text));
	return path_of(name);
}

/* Starts an operation whose call has a chunk, and keeps the call in `request`. */
static bool start(enum kind kind)
{
	buffer_open(&buffer, BYTES, 100);
	switch (kind) {
	case READ_CHUNK:
		start_write(&work, fd, &buffer, 0);
		return call_of(&request, &work, NFS_WRITE) &&
		       tap_check(request.header.reads, "no Read chunk");
	case WRITE_CHUNK:
		start_read(&work, fd, &buffer, 0);
		return call_of(&request, &work, NFS_READ) &&
		       tap_check(request.header.writes, "no Write chunk");
	default:
		work = (struct work){ .run = run_readlink, .path = new_link(), .bytes = got,
				      .length = sizeof(got) };
		work_start(&work);
		return call_of(&request, &work, NFS_READLINK) &&
		       tap_check(request.header.has_reply, "no Reply chunk");
	}
}

/* Serves until it is done, and checks its result. */
static void finish(enum kind kind)
{
	ends_with(&work, kind == REPLY_CHUNK ? TEXT_BYTES : BYTES);
	if (kind == READ_CHUNK)
		file_holds(file, 0, &buffer);
	if (kind == WRITE_CHUNK)
		buffer_expect(&buffer, file, 0, BYTES);
}

/* Returns the first segment of the call. */
static const struct segment *segment(enum kind kind)
{
	switch (kind) {
	case READ_CHUNK:
		return &request.header.read[0].segment;
	case WRITE_CHUNK:
		return &request.header.write[0].segments[0];
	default:
		return &request.header.reply.segments[0];
	}
}

static enum ibv_wr_opcode opcode(enum kind kind)
{
	return kind == READ_CHUNK ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
}

/* Returns the number of STags in the call. */
static long stags(void)
{
	const struct header *h = &request.header;

	return h->reads + (h->writes ? h->write[0].count : 0) + (h->has_reply ? h->reply.count : 0);
}

/* Uses an STag when its call is over. */
static void late(enum kind kind, bool invalidated)
{
	long before = client_counter(LOCAL_INVALIDATES), done, wanted;

	settings.invalidate = invalidated ? INVALIDATE_FIRST : INVALIDATE_NONE;
	if (start(kind))
		nfs_serve(&request);
	finish(kind);
	settings.invalidate = INVALIDATE_NONE;
	done = client_counter(LOCAL_INVALIDATES) - before;
	wanted = stags() - invalidated;
	tap_check(done == wanted, "the client has invalidated %ld STags, wanted %ld", done, wanted);
	if (!tap_failing())
		client_refuses(opcode(kind), segment(kind));
	buffer_close(&buffer);
	client_works(fd);
}

static void after_the_call(void)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		late(kind, false);
		tap_point("the client invalidates the STags of a %s chunk when the reply has "
			  "arrived; their use ends the connection by a Terminate (RFC 8166, 4.4.1, 8.1.3)",
			  names[kind]);
	}
	for (kind = 0; kind < KINDS; kind++) {
		late(kind, true);
		tap_point("the client does not invalidate the STag of a %s chunk that the reply has "
			  "invalidated, only the others (RFC 8797, 3.2)", names[kind]);
	}
}

static void new_stags(void)
{
	uint32_t last = 0;

	for (int i = 0; i < TIMES; i++) {
		if (start(i % 2 ? READ_CHUNK : WRITE_CHUNK))
			nfs_serve(&request);
		finish(i % 2 ? READ_CHUNK : WRITE_CHUNK);
		buffer_close(&buffer);
		tap_check(first_stag(&request) != last, "STag %#x again", last);
		last = first_stag(&request);
	}
	tap_point("a call has other STags than the one before (RFC 8166, 8.1.3)");
}

static void wrong_use(enum kind kind, const char *name)
{
	if (start(kind))
		client_refuses(kind == READ_CHUNK ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
			       segment(kind));
	finish(kind);
	buffer_close(&buffer);
	tap_point("%s ends the connection by a Terminate; the client calls again (RFC 8166, 4.5.3, 8.1)",
		  name);
}

static void beyond(enum kind kind)
{
	struct segment longer;

	if (start(kind)) {
		longer = *segment(kind);
		longer.length++;
		client_refuses(opcode(kind), &longer);
	}
	finish(kind);
	buffer_close(&buffer);
	tap_point("one byte behind a segment of a %s chunk is protected (RFC 8166, 4.5.3, 8.1)",
		  names[kind]);
}

/* The STag of a call that was in flight when its connection ended. */
static void other_connection(void)
{
	struct segment old;

	if (start(WRITE_CHUNK)) {
		old = *segment(WRITE_CHUNK);
		session_disconnect();
		if (call_of(&request, &work, NFS_READ))
			client_refuses(IBV_WR_RDMA_WRITE, &old);
	}
	finish(WRITE_CHUNK);
	buffer_close(&buffer);
	tap_point("an STag of a call is of no use on the connection on which the call is sent again "
		  "(RFC 8166, 8.1.1)");
}

/* Sends the reply to a READ, and invalidates any STag. */
static void reply_invalidating(const struct request *r, uint32_t stag)
{
	uint8_t bytes[SEND_BYTES];
	struct xdr x = xdr_of(bytes, sizeof(bytes));
	struct header header;

	reply_header(&header, r);
	if (!nfs_do(r, &call, &payload) ||
	    !chunk_fill(&r->header.write[0], &header.write[0], payload.bytes + payload.item,
			payload.item_length))
		return;
	header_put(&x, &header);
	xdr_put_bytes(&x, payload.bytes, payload.item);
	answer(bytes, x.at, stag);
}

/* A reply that says that a READ has failed. */
static void reply_failure(const struct request *r)
{
	uint8_t bytes[SEND_BYTES];
	struct xdr x = xdr_of(bytes, sizeof(bytes));
	struct header header;

	reply_header(&header, r);
	header_put(&x, &header);
	reply_begin(&x, r);
	xdr_put(&x, NFS_IO);
	xdr_put(&x, false);
	answer(bytes, x.at, 0);
}

/* Starts a READ whose Write chunk has a segment for roundup. */
static bool start_odd(struct segment *pad)
{
	const struct chunk *chunk = &request.header.write[0];

	buffer_open(&buffer, BYTES + 1, 100);
	start_read(&work, fd, &buffer, 0);
	if (!call_of(&request, &work, NFS_READ) ||
	    !tap_check(request.header.writes && chunk->count > 1, "no segment for roundup"))
		return false;
	*pad = chunk->segments[chunk->count - 1];
	return true;
}

static void finish_odd(void)
{
	ends_with(&work, BYTES + 1);
	buffer_expect(&buffer, file, 0, BYTES + 1);
	buffer_close(&buffer);
}

/* All calls of a connection have the same segment for roundup. */
static void roundup(void)
{
	uint8_t bytes[WORD] = { 1, 2, 3, 4 };
	int before = session.accepted;
	struct segment pad, same;

	if (start_odd(&pad))
		nfs_serve(&request);
	finish_odd();
	if (!tap_failing())
		client_write(&pad, bytes, sizeof(bytes));
	client_works(fd);
	tap_check(session.accepted == before, "the connection was lost");
	tap_point("the STag of the segment for roundup remains valid after its call "
		  "(deviates from RFC 8166, 8.1.2: no memory should be advertised all the time)");

	if (start_odd(&pad))
		reply_invalidating(&request, pad.handle);
	finish_odd();
	if (start_odd(&same)) {
		tap_check(same.handle == pad.handle, "STag %#x, then %#x", pad.handle, same.handle);
		nfs_serve(&request);
	}
	finish_odd();
	tap_check(session.accepted == before, "the connection was lost");
	if (!tap_failing())
		client_refuses(IBV_WR_RDMA_WRITE, &same);
	client_works(fd);
	tap_point("the STag of the segment for roundup must not be invalidated, in spite of R: "
		  "later calls offer it although it is invalid (deviates from RFC 8797, 3.2)");
}

static void another_calls_stag(void)
{
	static struct request other_request;
	struct region other_buffer;
	struct work other;
	int before = session.accepted;

	buffer_open(&other_buffer, BYTES, 0);
	if (start(WRITE_CHUNK)) {
		start_read(&other, fd, &other_buffer, 0);
		if (call_of(&other_request, &other, NFS_READ)) {
			reply_invalidating(&request, first_stag(&other_request));
			finish(WRITE_CHUNK);
			reply_failure(&other_request);
		}
		ends_with(&other, -EIO);
	}
	buffer_close(&buffer);
	buffer_close(&other_buffer);
	client_works(fd);
	tap_check(session.accepted == before, "the connection was lost");
	tap_point("a reply that invalidates the STag of another call, which RFC 8797, 4.1 forbids, "
		  "does the connection no harm");
}

static void unknown_stag(void)
{
	struct connection *c = &session.connection;
	uint64_t before;

	if (start(WRITE_CHUNK)) {
		before = terminates(c, RECEIVED);
		reply_invalidating(&request, first_stag(&request) ^ 0x00a5a500);
		if (connection_ends(c))
			terminated(c, RECEIVED, before);
		session_disconnect();
	}
	finish(WRITE_CHUNK);
	buffer_close(&buffer);
	tap_point("a reply that invalidates an STag that does not exist ends the connection by a "
		  "Terminate; the client calls again");
}

/* Starts readlink(1), whose output goes nowhere. */
static pid_t start_process(const char *path)
{
	char *argv[] = { "readlink", (char *)path, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ||
	    posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ))
		tap_bail("posix_spawnp");
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* Kills a process, and waits until it is gone. */
static void end_process(pid_t pid)
{
	int64_t end = now_ms() + PATIENCE;
	int status;
	pid_t gone;

	kill(pid, SIGKILL);
	while (!(gone = waitpid(pid, &status, WNOHANG)) && now_ms() < end)
		sleep_ms(1);
	tap_check(gone == pid, "the process does not end");
}

static void killed_application(void)
{
	uint8_t bytes[SEND_BYTES];
	struct xdr x = xdr_of(bytes, sizeof(bytes));
	int before = session.accepted;
	struct header header;
	pid_t pid = start_process(new_link());

	if (call_of(&request, NULL, NFS_READLINK)) {
		end_process(pid);
		/* An empty one, without RDMA Writes. */
		reply_header(&header, &request);
		header_put(&x, &header);
		reply_begin(&x, &request);
		xdr_put(&x, NFS_IO);
		xdr_put(&x, false);
		answer(bytes, x.at, 0);
		client_works(fd);
		tap_check(session.accepted == before, "the connection was lost");
	} else {
		end_process(pid);
	}
	tap_point("the reply to a call of an application that was killed is discarded (RFC 8166, 4.5)");

	if (request.header.has_reply)
		client_refuses(IBV_WR_RDMA_WRITE, segment(REPLY_CHUNK));
	client_works(fd);
	tap_point("the STags of such a call are invalid (RFC 8166, 4.4.1, 8.1.3)");
}

void test_stags(void)
{
	begin();
	after_the_call();
	new_stags();
	roundup();
	wrong_use(READ_CHUNK, "an RDMA Write into a Read chunk");
	wrong_use(WRITE_CHUNK, "an RDMA Read from a Write chunk");
	wrong_use(REPLY_CHUNK, "an RDMA Read from a Reply chunk");
	for (int kind = 0; kind < KINDS; kind++)
		beyond(kind);
	other_connection();
	another_calls_stag();
	unknown_stag();
	killed_application();
	end();
}
