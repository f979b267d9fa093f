/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests share: the client's mount, and operations on it. Each test writes its points. */
#ifndef TESTS_H
#define TESTS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/pair.h"
#include "../common/region.h"
#include "nfs.h"
#include "session.h"
#include "work.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

/* Where the client mounts the server. */
extern struct side client, server, server6;
extern const char *folder;

/*
 * Mounts with the settings' and further options (which may be NULL), or unmounts. Unmounting also
 * checks that the client ends its connection. Both end the program on failure.
 */
void client_mount(const char *options);
void client_mount6(const char *options);
void client_unmount(void);

/* Returns the path of a file on the mount, until four more are made. */
const char *path_of(const char *name);

/* Opens a file, past the page cache (O_DIRECT). Ends the program on failure. */
int client_open(const char *name, int flags);
void client_close(int fd);

/* Makes the client ask for the attributes of an open file. Returns 0 or -errno. */
long client_stat(int fd);

/* Checks that this works. */
bool client_works(int fd);

/*
 * Makes a buffer of an application: not registered, filled with random bytes, at an offset into a
 * page. Its end checks that nothing but what was expected has changed.
 */
void buffer_open(struct region *buffer, size_t length, size_t offset);
void buffer_close(struct region *buffer);

/* Expects a part of a file in the buffer. */
void buffer_expect(struct region *buffer, const struct file *file, uint64_t offset, size_t length);

/* Starts to read a file into a buffer, or to write the buffer. */
void start_read(struct work *work, int fd, struct region *buffer, uint64_t offset);
void start_write(struct work *work, int fd, struct region *buffer, uint64_t offset);

/* Starts to ask for the attributes of an open file. */
void start_stat(struct work *work, int fd);

/* Serves until it is done, and checks the result. */
bool ends_with(struct work *work, long result);

/* Checks that a file has the bytes of a buffer. */
bool file_holds(const struct file *file, uint64_t offset, const struct region *buffer);

/* Serves until a call of a procedure arrives. Fails a check if `work` is done before. */
bool call_of(struct request *request, const struct work *work, enum nfs_procedure procedure);

/* Checks that no call arrives for SILENCE. */
bool no_call(void);

/* Returns a counter of the transport, by its place in /proc/self/mountstats. */
enum counter { CONNECTS = 2, LOCAL_INVALIDATES = 24 };
long client_counter(enum counter counter);

void test_basics(void);
void test_arguments(void);
void test_results(void);
void test_stags(void);
void test_credits(void);
void test_replies(void);
void test_connections(void);
void test_load(void);

#endif
