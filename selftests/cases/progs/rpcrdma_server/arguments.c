// SPDX-License-Identifier: GPL-2.0
/*
 * How the client sends arguments: inline, in Read chunks, in Long Calls. Position, length and
 * content of the chunks are checked where the calls are done.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <string.h>

#include "../common/tap.h"
#include "tests.h"

#define MIB (1 << 20)

static struct request request;
static struct region buffer;
static struct work work;
static struct file *file;
static int fd;

static void begin(void)
{
	file = file_make("sink", 0);
	client_mount(NULL);
	fd = client_open("sink", O_WRONLY | O_DIRECT);
}

static void end(void)
{
	client_close(fd);
	client_unmount();
	files_forget();
}

/* Writes `length` bytes from an offset into a page. Keeps the WRITE in `request`. */
static bool write_call(size_t length, size_t page_offset, uint64_t offset)
{
	bool done;

	buffer_open(&buffer, length, page_offset);
	start_write(&work, fd, &buffer, offset);
	done = call_of(&request, &work, NFS_WRITE) && nfs_serve(&request);
	done &= ends_with(&work, length) && file_holds(file, offset, &buffer);
	buffer_close(&buffer);
	return done;
}

static void chunks(void)
{
	static const struct {
		uint32_t length, page_offset;
	} whole[] = { { 4096, 0 }, { 8192, 0 }, { 65536, 0 }, { 5000, 100 }, { 100000, 2004 }, { MIB, 0 },
		      { MIB, 512 } },
	odd[] = { { 4097, 0 }, { 4098, 0 }, { 4099, 1 }, { 10001, 4095 }, { MIB - 1, 3 } };
	int i;

	write_call(1000, 10, 5);
	tap_check(!request.header.reads, "%d Read segments", request.header.reads);
	tap_point("a WRITE that fits into a message is a Short Message (RFC 8166, 3.5.1)");

	for (i = 0; i < COUNT(whole); i++) {
		write_call(whole[i].length, whole[i].page_offset, i);
		tap_check(request.header.procedure == RDMA_MSG && request.header.reads,
			  "%u bytes: procedure %u, %d Read segments", whole[i].length,
			  request.header.procedure, request.header.reads);
	}
	tap_point("the data of a long WRITE are one Read chunk at their place in the unreduced "
		  "Payload stream, the count stays in the message (RFC 8166, 3.4.4.1, 3.4.5)");

	for (i = 0; i < COUNT(odd); i++) {
		write_call(odd[i].length, odd[i].page_offset, i);
		tap_check(request.header.procedure == RDMA_MSG && request.header.reads,
			  "%u bytes: procedure %u, %d Read segments", odd[i].length,
			  request.header.procedure, request.header.reads);
	}
	tap_point("roundup padding is neither in a Read chunk nor left in the message "
		  "(RFC 8166, 3.4.4.4, 3.4.5.2)");
}

/* Returns how many calls of WRITE have chunks, with lengths around a threshold. */
static int around(uint32_t threshold)
{
	int reduced = 0;

	for (uint32_t length = threshold - 400; length < threshold + 40; length += 20) {
		write_call(length, 0, 0);
		reduced += request.header.reads > 0;
	}
	return reduced;
}

static void thresholds(void)
{
	static const uint8_t later[] = { 1, 2, 3, 4, 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3 };
	static const struct {
		uint32_t magic;
		uint8_t version;
	} others[] = { { MAGIC ^ 1, 1 }, { MAGIC, 2 }, { MAGIC, 0 } };
	uint8_t bytes[PRIVATE_BYTES];
	int reduced, i;

	begin();
	reduced = around(4096);
	tap_check(reduced > 0 && reduced < 22, "%d of 22 calls have chunks", reduced);
	end();
	tap_point("no call is longer than the client's send size, 4096, if the server's receive "
		  "size is the same (RFC 8797, 4.2)");

	settings_private(16384, 16384, R);
	begin();
	reduced = around(4096);
	tap_check(reduced > 0 && reduced < 22, "%d of 22 calls have chunks", reduced);
	end();
	tap_point("nor if the server's receive size is larger (RFC 8797, 4.2)");

	settings_private(4096, 2048, R);
	begin();
	reduced = around(2048);
	tap_check(reduced > 0 && reduced < 22, "%d of 22 calls have chunks", reduced);
	end();
	tap_point("no call is longer than the server's receive size if that is smaller (RFC 8797, 4.2)");

	settings_no_private();
	begin();
	reduced = around(INLINE_DEFAULT);
	tap_check(reduced > 0 && reduced < 22, "%d of 22 calls have chunks", reduced);
	end();
	tap_point("no call is longer than 1024 bytes if the server gives no private data "
		  "(RFC 8166, 3.3.3; RFC 8797, 5.1)");

	for (i = 0; i < COUNT(others); i++) {
		settings_no_private();
		private_put(bytes, (struct private){ .magic = others[i].magic,
						     .version = others[i].version,
						     .flags = R, .send = 3, .receive = 3 });
		settings.private = bytes;
		settings.private_length = sizeof(bytes);
		begin();
		around(INLINE_DEFAULT);
		end();
	}
	tap_point("nor if the server's private data have another format identifier or version "
		  "(RFC 8797, 5.1)");

	settings_no_private();
	settings.private = later;
	settings.private_length = sizeof(later);
	begin();
	around(INLINE_DEFAULT);
	end();
	tap_point("the client does not find the format identifier behind other private data "
		  "(deviates from RFC 8797, 5.2: it shall search)");
	settings_reset();
}

static void link_text(void)
{
	static char text[4001];
	const struct file *link;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 2] = 'y';
	work = (struct work){ .run = run_symlink, .path = path_of("link"), .text = text };
	work_start(&work);
	if (call_of(&request, &work, NFS_SYMLINK)) {
		tap_check(request.header.procedure == RDMA_MSG && request.header.reads,
			  "procedure %u, %d Read segments", request.header.procedure,
			  request.header.reads);
		nfs_serve(&request);
	}
	ends_with(&work, 0);
	link = file_find("link");
	tap_check(link && link->size == strlen(text) && !memcmp(link->bytes, text, link->size),
		  "the server has another text");
	tap_point("the text of a long SYMLINK is a Read chunk (RFC 8166, 3.4.5; RFC 8267, 4)");
}

#define ACL_USERS 600
#define ACL_HEADER 4
#define ACL_ENTRY 8

enum acl_tag { ACL_USER_OBJ = 1, ACL_USER = 2, ACL_GROUP_OBJ = 4, ACL_MASK = 0x10, ACL_OTHER = 0x20 };

static void acl_entry(uint8_t **at, enum acl_tag tag, uint32_t id)
{
	uint16_t words[] = { htole16(tag), htole16(4) };

	id = htole32(id);
	memcpy(*at, words, sizeof(words));
	memcpy(*at + sizeof(words), &id, sizeof(id));
	*at += ACL_ENTRY;
}

/* A list that is longer than a message, and that may not be reduced. */
static void long_call(void)
{
	static uint8_t acl[ACL_HEADER + (ACL_USERS + 4) * ACL_ENTRY];
	uint32_t version = htole32(2), length = 0;
	uint8_t *at = acl + ACL_HEADER;

	memcpy(acl, &version, sizeof(version));
	acl_entry(&at, ACL_USER_OBJ, ~0);
	for (int i = 0; i < ACL_USERS; i++)
		acl_entry(&at, ACL_USER, 1000 + i);
	acl_entry(&at, ACL_GROUP_OBJ, ~0);
	acl_entry(&at, ACL_MASK, ~0);
	acl_entry(&at, ACL_OTHER, ~0);

	file_make("data", 0);
	client_mount("acl");
	work = (struct work){ .run = run_set_acl, .path = path_of("data"), .bytes = acl,
			      .length = sizeof(acl) };
	work_start(&work);
	if (call_of(&request, &work, ACL_SET)) {
		const struct header *h = &request.header;

		tap_check(h->procedure == RDMA_NOMSG, "procedure %u, wanted RDMA_NOMSG", h->procedure);
		for (int i = 0; i < h->reads; i++) {
			tap_check(!h->read[i].position, "a segment at position %u",
				  h->read[i].position);
			length += h->read[i].segment.length;
		}
		tap_check(request.message.length == SHORTEST + h->reads * 6 * WORD,
			  "a message of %u bytes with %d Read segments", request.message.length,
			  h->reads);
		tap_check(length % WORD == 0 && length > (ACL_USERS + 4) * 3 * WORD,
			  "a Position Zero Read chunk of %u bytes", length);
		nfs_serve(&request);
	}
	ends_with(&work, 0);
	client_unmount();
	tap_check(nfs_calls[ACL_SET], "no SETACL");
	tap_point("a long call without data that may be reduced is a Long Call: a Position Zero "
		  "Read chunk has the whole Payload stream, the message nothing else (RFC 8166, 3.5.3, 4.3.1)");
}

void test_arguments(void)
{
	begin();
	chunks();
	link_text();
	end();
	thresholds();
	long_call();
}
