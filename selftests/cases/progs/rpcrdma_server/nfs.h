/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server of NFS version 3 (RFC 1813) with one folder in memory, and as much of the protocol as
 * the kernel's client needs. Checks in each call which data are in chunks (RFC 8267), and whether
 * there is room for the longest reply.
 */
#ifndef NFS_H
#define NFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../rpcrdma/xdr.h"
#include "session.h"

#define NFS_PROGRAM 100003
#define ACL_PROGRAM 100227
#define NFS_VERSION 3

enum nfs_procedure {
	NFS_NULL, NFS_GETATTR, NFS_SETATTR, NFS_LOOKUP, NFS_ACCESS, NFS_READLINK, NFS_READ, NFS_WRITE,
	NFS_CREATE, NFS_MKDIR, NFS_SYMLINK, NFS_MKNOD, NFS_REMOVE, NFS_RMDIR, NFS_RENAME, NFS_LINK,
	NFS_READDIR, NFS_READDIRPLUS, NFS_FSSTAT, NFS_FSINFO, NFS_PATHCONF, NFS_COMMIT,
	NFS_PROCEDURES,
	ACL_SET = 100,		/* SETACL of the other program, for the counters */
};

enum nfs_status { NFS_OK, NFS_NOENT = 2, NFS_IO = 5, NFS_EXIST = 17, NFS_NOTSUPP = 10004 };
enum nfs_type { NFS_FILE = 1, NFS_FOLDER = 2, NFS_LINK_TEXT = 5 };

#define FILE_BYTES (4 << 20)	/* of the longest file */
#define NAME_BYTES 64

struct file {
	uint32_t type, mode;
	char name[NAME_BYTES];
	uint8_t *bytes;		/* the content, or the text of a link */
	uint64_t size;
	uint32_t changes;
};

/* The largest READ and WRITE, and the largest reply to READDIR, that the server announces. */
extern uint32_t nfs_block;

/* Makes a file with random content, or returns the one with this name. */
struct file *file_make(const char *name, size_t size);
struct file *file_find(const char *name);

/* Makes a symbolic link. */
struct file *link_make(const char *name, const void *text, size_t length);

/* Returns the number of files with a name. */
int files_listed(void);

/* Removes all files. */
void files_forget(void);

/* Appends the file handle of the root. */
void nfs_put_root(struct xdr *x);

/*
 * What a call was, as nfs_do() found it. `position` and `length` are those of the data of WRITE or
 * SYMLINK in the unreduced Payload stream; of a READ, `length` is its count.
 */
struct nfs_call {
	uint32_t procedure;	/* enum nfs_procedure */
	struct file *file;
	uint64_t offset;
	uint32_t position, length, stable;
};

/*
 * Pulls a call, checks it, does what it asks for and makes the reply. Fails a check if the call
 * breaks a rule.
 */
bool nfs_do(const struct request *request, struct nfs_call *call, struct payload *payload);

/* Does a call and replies. */
bool nfs_serve(const struct request *request);

/* Returns whether a call is of a procedure of NFS. */
bool is_call(const struct request *request, enum nfs_procedure procedure);

/* Calls that were done, by procedure. */
extern int nfs_calls[ACL_SET + 1];

#endif
