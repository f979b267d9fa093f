// SPDX-License-Identifier: GPL-2.0
/* How many calls the client has in flight. */
#define _GNU_SOURCE
#include <string.h>

#include "../common/clock.h"
#include "../common/tap.h"
#include "tests.h"

#define BLOCK 4096		/* of each READ */
#define BLOCKS 200		/* more than the client requests credits */
#define MOST 160

static struct request pending[MOST];
static int count;		/* of them */
static struct region buffer;
static struct work work;
static struct file *file;
static int fd;

/* XIDs of calls that were in flight when the connection was lost, and how many of them came again. */
static uint32_t lost[MOST];
static int losses, again;

/* Takes a call. Returns false without one if none arrives for `ms`, or if `end` (if not NULL) is done. */
static bool take_one(const struct work *end, int ms)
{
	if (count == MOST || !call_within(&pending[count], end, ms))
		return false;
	tap_check(is_call(&pending[count], NFS_READ), "a call of procedure %u",
		  pending[count].procedure);
	for (int i = 0; i < losses; i++)
		again += pending[count].header.xid == lost[i];
	count++;
	return true;
}

/* Takes calls until none arrives for `ms`. */
static void gather(int ms)
{
	while (take_one(NULL, ms))
		;
}

/* Waits for `wanted` calls in flight, and checks that there are no more. */
static void expect(int wanted, const char *when)
{
	while (count < wanted && take_one(NULL, PATIENCE))
		;
	gather(SILENCE);
	tap_check(count == wanted, "%s: %d calls in flight, wanted %d", when, count, wanted);
}

/* Replies to any of the calls in flight, and grants credits. */
static void answer_one(uint32_t credits)
{
	int i;

	if (!tap_check(count, "no call in flight"))
		return;
	i = rng_below(&rng, count);
	settings.credits = credits;
	nfs_serve(&pending[i]);
	pending[i] = pending[--count];
}

static void begin(void)
{
	file = file_make("data", BLOCKS * BLOCK);
	client_mount("rsize=4096");
	fd = client_open("data", O_RDONLY | O_DIRECT);
	/* So that the first call is the first on its connection. */
	session_disconnect();
	buffer_open(&buffer, BLOCKS * BLOCK, 0);
	start_read(&work, fd, &buffer, 0);
}

static void end(void)
{
	buffer_expect(&buffer, file, 0, BLOCKS * BLOCK);
	buffer_close(&buffer);
	client_close(fd);
	client_unmount();
}

static void grants(void)
{
	expect(1, "before the first reply");
	tap_point("before the first reply on a connection, there is one call in flight "
		  "(RFC 8166, 3.3.3)");

	answer_one(7);
	expect(7, "7 were granted");
	answer_one(20);
	expect(20, "20 were granted");
	tap_point("as many calls are in flight as credits were granted, and no more (RFC 8166, 3.3.1)");

	/* Those in flight remain. */
	for (int left = 19; left >= 3; left--)
		answer_one(3);
	expect(3, "3 were granted");
	answer_one(2);
	expect(2, "2 were granted");
	answer_one(2);
	expect(2, "2 were granted");
	tap_point("after a lower grant, calls wait until fewer are in flight (RFC 8166, 3.3.1)");

	for (int i = 0; i < 3; i++) {
		while (count)
			answer_one(0);
		expect(1, "0 were granted");
	}
	tap_point("a grant of 0, which RFC 8166, 3.3.1 forbids, counts as 1");

	answer_one(0xffffffff);
	if (tap_check(take_one(NULL, PATIENCE), "no call arrives"))
		expect(pending[0].header.credit, "all that were requested");
	tap_point("no more calls are in flight than the client requests credits, whatever was "
		  "granted (RFC 8166, 3.3.1)");
}

/* Loses the connection with all these calls in flight. */
static void sent_again(void)
{
	losses = count;
	for (int i = 0; i < losses; i++)
		lost[i] = pending[i].header.xid;
	session_disconnect();
	count = 0;
	expect(1, "before the first reply");
	answer_one(MOST);
	while (count || take_one(&work, PATIENCE)) {
		gather(0);
		answer_one(MOST);
	}
	ends_with(&work, BLOCKS * BLOCK);
	tap_check(again == losses, "%d of %d calls in flight were sent again", again, losses);
	tap_point("calls that were in flight when a connection was lost are sent again with their "
		  "XIDs, one before the first reply (RFC 8166, 3.3.3, 4.5.5)");
}

void test_credits(void)
{
	begin();
	grants();
	sent_again();
	end();
	tap_point("replies in any order have their data at the right place (RFC 8166, 3.3.1)");
}
