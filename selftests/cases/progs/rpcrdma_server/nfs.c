// SPDX-License-Identifier: GPL-2.0
#include "nfs.h"

#include <stdlib.h>
#include <string.h>

#include "../common/tap.h"
#include "rpc.h"

#define MAX_FILES 512
#define ROOT_ID 1		/* of files: the first is 2 */
#define FILES_BEGIN 2
#define HANDLE_WORDS 4
#define HANDLE_MAGIC 0x72697721
#define FILE_SYNC 2
#define SET_TO_CLIENT 2		/* of the times in SETATTR */
#define EXCLUSIVE 2		/* of CREATE */
#define ALL_ACCESS 0x3f
#define LONGEST_TEXT 4096
#define PROPERTIES 0x1b		/* of FSINFO: links, symbolic links, homogeneous, times can be set */
#define SETACL 2

uint32_t nfs_block = 1 << 20;
int nfs_calls[ACL_SET + 1];

static struct file files[MAX_FILES];
static int file_count;
static struct file root = { .type = NFS_FOLDER, .mode = 0755 };

/* --- files */

struct file *file_find(const char *name)
{
	for (int i = 0; i < file_count; i++)
		if (files[i].type && !strcmp(files[i].name, name))
			return &files[i];
	return NULL;
}

static struct file *new_file(const char *name, uint32_t type)
{
	struct file *file = &files[file_count];

	if (file_count == MAX_FILES || strlen(name) >= sizeof(file->name))
		tap_bail("too many files, or a long name");
	file_count++;
	*file = (struct file){ .type = type, .mode = 0644 };
	strcpy(file->name, name);
	root.changes++;
	return file;
}

/* Gives a file memory for its content. */
static uint8_t *content(struct file *file)
{
	if (!file->bytes)
		file->bytes = calloc(1, FILE_BYTES);
	if (!file->bytes)
		tap_bail("memory");
	return file->bytes;
}

struct file *file_make(const char *name, size_t size)
{
	struct file *file = file_find(name);

	if (file)
		return file;
	file = new_file(name, NFS_FILE);
	if (size)
		rng_fill(&rng, content(file), size);
	file->size = size;
	return file;
}

struct file *link_make(const char *name, const void *text, size_t length)
{
	struct file *file = new_file(name, NFS_LINK_TEXT);

	memcpy(content(file), text, length);
	file->size = length;
	return file;
}

int files_listed(void)
{
	int count = 0;

	for (int i = 0; i < file_count; i++)
		count += files[i].name[0] != '\0';
	return count;
}

void files_forget(void)
{
	while (file_count)
		free(files[--file_count].bytes);
	root.changes++;
}

static uint32_t id_of(const struct file *file)
{
	return file == &root ? ROOT_ID : FILES_BEGIN + (file - files);
}

/* --- XDR */

static void put_handle(struct xdr *x, const struct file *file)
{
	xdr_put(x, HANDLE_WORDS * WORD);
	xdr_put(x, HANDLE_MAGIC);
	xdr_put(x, id_of(file));
	xdr_put(x, 0);
	xdr_put(x, ~id_of(file));
}

void nfs_put_root(struct xdr *x)
{
	put_handle(x, &root);
}

/* Takes the handle of a file. Returns NULL, and fails a check, if it is none of this server. */
static struct file *get_handle(struct xdr *x)
{
	uint32_t length = xdr_get(x), magic = xdr_get(x), id = xdr_get(x);

	xdr_get(x);
	if (!tap_check(!x->failed && length == HANDLE_WORDS * WORD && magic == HANDLE_MAGIC &&
		       xdr_get(x) == ~id, "a handle of %u bytes, for file %u", length, id))
		return NULL;
	if (id == ROOT_ID)
		return &root;
	id -= FILES_BEGIN;
	return tap_check(id < (uint32_t)file_count, "a handle for file %u of %d", id, file_count)
		? &files[id] : NULL;
}

static bool get_name(struct xdr *x, char *name)
{
	uint32_t length;
	const uint8_t *bytes = xdr_get_opaque(x, &length);

	if (!tap_check(bytes && length < NAME_BYTES, "a name of %u bytes", length))
		return false;
	memcpy(name, bytes, length);
	name[length] = '\0';
	return true;
}

static void put_attributes(struct xdr *x, const struct file *file)
{
	xdr_put(x, file->type);
	xdr_put(x, file->mode);
	xdr_put(x, 1);			/* links */
	xdr_put(x, 0);			/* owner, group */
	xdr_put(x, 0);
	xdr_put64(x, file->size);
	xdr_put64(x, file->size);
	xdr_put64(x, 0);		/* device number */
	xdr_put64(x, HANDLE_MAGIC);	/* the file system */
	xdr_put64(x, id_of(file));
	for (int i = 0; i < 3; i++) {	/* times */
		xdr_put(x, 1);
		xdr_put(x, file->changes);
	}
}

static void put_present_attributes(struct xdr *x, const struct file *file)
{
	xdr_put(x, true);
	put_attributes(x, file);
}

/* What a file was before an operation. */
struct before {
	uint64_t size;
	uint32_t changes;
};

static struct before before(const struct file *file)
{
	return (struct before){ file->size, file->changes };
}

/* Appends the attributes before and after an operation. */
static void put_change(struct xdr *x, struct before was, const struct file *file)
{
	xdr_put(x, true);
	xdr_put64(x, was.size);
	for (int i = 0; i < 2; i++) {
		xdr_put(x, 1);
		xdr_put(x, was.changes);
	}
	put_present_attributes(x, file);
}

/* --- procedures. Each takes its arguments, and appends its results. */

struct arguments {
	struct xdr *in, *out;
	const struct request *request;
	struct nfs_call *call;
	struct payload *payload;
};

/* Takes the handle that arguments begin with. */
static bool take_file(struct arguments *a)
{
	a->call->file = get_handle(a->in);
	return a->call->file;
}

static bool do_null(struct arguments *a)
{
	(void)a;
	return true;
}

static bool do_getattr(struct arguments *a)
{
	if (!take_file(a))
		return false;
	xdr_put(a->out, NFS_OK);
	put_attributes(a->out, a->call->file);
	return true;
}

/* Takes attributes to be set, and sets mode and size. */
static void take_attributes(struct xdr *in, struct file *file)
{
	uint64_t size;

	if (xdr_get(in))
		file->mode = xdr_get(in);
	for (int i = 0; i < 2; i++)
		if (xdr_get(in))
			xdr_get(in);
	if (xdr_get(in)) {
		size = xdr_get64(in);
		if (size <= FILE_BYTES && size < file->size)
			memset(file->bytes + size, 0, file->size - size);
		if (size <= FILE_BYTES) {
			content(file);
			file->size = size;
		}
	}
	for (int i = 0; i < 2; i++)
		if (xdr_get(in) == SET_TO_CLIENT)
			xdr_get64(in);
}

static bool do_setattr(struct arguments *a)
{
	struct before was;

	if (!take_file(a))
		return false;
	was = before(a->call->file);
	take_attributes(a->in, a->call->file);
	if (xdr_get(a->in))
		xdr_get64(a->in);
	a->call->file->changes++;
	xdr_put(a->out, NFS_OK);
	put_change(a->out, was, a->call->file);
	return true;
}

static bool do_lookup(struct arguments *a)
{
	char name[NAME_BYTES];
	struct file *file;

	if (!take_file(a) || !get_name(a->in, name))
		return false;
	file = file_find(name);
	xdr_put(a->out, file ? NFS_OK : NFS_NOENT);
	if (file) {
		put_handle(a->out, file);
		put_present_attributes(a->out, file);
	}
	put_present_attributes(a->out, a->call->file);
	return true;
}

static bool do_access(struct arguments *a)
{
	if (!take_file(a))
		return false;
	xdr_put(a->out, NFS_OK);
	put_present_attributes(a->out, a->call->file);
	xdr_put(a->out, xdr_get(a->in) & ALL_ACCESS);
	return true;
}

static bool do_readlink(struct arguments *a)
{
	if (!take_file(a))
		return false;
	xdr_put(a->out, NFS_OK);
	put_present_attributes(a->out, a->call->file);
	xdr_put_opaque(a->out, a->call->file->bytes, a->call->file->size);
	return true;
}

/* Appends the data item of the reply. */
static void put_item(struct arguments *a, const uint8_t *bytes, uint32_t length)
{
	xdr_put(a->out, length);
	a->payload->has_item = true;
	a->payload->item = a->out->at;
	a->payload->item_length = length;
	xdr_put_bytes(a->out, bytes, length);
}

static bool do_read(struct arguments *a)
{
	struct nfs_call *call = a->call;
	const struct file *file;
	uint32_t length = 0;

	if (!take_file(a))
		return false;
	file = call->file;
	call->offset = xdr_get64(a->in);
	call->length = xdr_get(a->in);
	if (!tap_check(call->length <= nfs_block, "a READ of %u bytes", call->length))
		return false;
	if (call->offset < file->size)
		length = file->size - call->offset < call->length ? file->size - call->offset
								 : call->length;
	xdr_put(a->out, NFS_OK);
	put_present_attributes(a->out, file);
	xdr_put(a->out, length);
	xdr_put(a->out, call->offset + length >= file->size);
	put_item(a, length ? file->bytes + call->offset : NULL, length);
	return true;
}

/* Checks that the Read chunk of a call, if it has one, is its data item (RFC 8166, section 3.4.5). */
static void check_item(struct arguments *a)
{
	const struct header *h = &a->request->header;
	uint32_t length = 0;

	if (h->procedure != RDMA_MSG || !h->reads)
		return;
	for (int i = 0; i < h->reads; i++) {
		tap_check(h->read[i].position == a->call->position,
			  "a Read chunk at position %u, the data item is at %u", h->read[i].position,
			  a->call->position);
		length += h->read[i].segment.length;
	}
	tap_check(length == a->call->length, "a Read chunk of %u bytes for an item of %u", length,
		  a->call->length);
}

/* Takes the data item of a call. */
static const uint8_t *take_item(struct arguments *a)
{
	const uint8_t *bytes = xdr_get_opaque(a->in, &a->call->length);

	if (!tap_check(bytes, "a data item of %u bytes does not end", a->call->length))
		return NULL;
	a->call->position = bytes - a->in->bytes;
	check_item(a);
	return bytes;
}

static bool do_write(struct arguments *a)
{
	struct nfs_call *call = a->call;
	struct before was;
	uint32_t count;
	const uint8_t *bytes;

	if (!take_file(a))
		return false;
	call->offset = xdr_get64(a->in);
	count = xdr_get(a->in);
	call->stable = xdr_get(a->in);
	bytes = take_item(a);
	if (!bytes || !tap_check(count == call->length, "a WRITE of %u bytes with %u", count,
				 call->length) ||
	    !tap_check(call->offset + count <= FILE_BYTES && count <= nfs_block,
		       "a WRITE of %u bytes", count))
		return false;
	was = before(call->file);
	memcpy(content(call->file) + call->offset, bytes, count);
	if (call->file->size < call->offset + count)
		call->file->size = call->offset + count;
	call->file->changes++;
	xdr_put(a->out, NFS_OK);
	put_change(a->out, was, call->file);
	xdr_put(a->out, count);
	xdr_put(a->out, call->stable);
	xdr_put64(a->out, HANDLE_MAGIC);
	return true;
}

/* Appends the results of CREATE and SYMLINK. */
static void put_created(struct arguments *a, struct before was, const struct file *file)
{
	xdr_put(a->out, NFS_OK);
	xdr_put(a->out, true);
	put_handle(a->out, file);
	put_present_attributes(a->out, file);
	put_change(a->out, was, a->call->file);
}

static bool do_create(struct arguments *a)
{
	struct before was = before(&root);
	char name[NAME_BYTES];
	struct file *file;

	if (!take_file(a) || !get_name(a->in, name))
		return false;
	file = file_make(name, 0);
	if (xdr_get(a->in) == EXCLUSIVE)
		xdr_get64(a->in);
	else
		take_attributes(a->in, file);
	put_created(a, was, file);
	return true;
}

static bool do_symlink(struct arguments *a)
{
	struct before was = before(&root);
	struct file ignored = {};
	char name[NAME_BYTES];
	const uint8_t *text;

	if (!take_file(a) || !get_name(a->in, name))
		return false;
	take_attributes(a->in, &ignored);
	text = take_item(a);
	if (!text || !tap_check(!file_find(name), "a second file %s", name))
		return false;
	put_created(a, was, link_make(name, text, a->call->length));
	return true;
}

static bool do_remove(struct arguments *a)
{
	struct before was = before(&root);
	char name[NAME_BYTES];
	struct file *file;

	if (!take_file(a) || !get_name(a->in, name))
		return false;
	file = file_find(name);
	if (file) {
		/* Its handle remains valid, as files may be open. */
		file->name[0] = '\0';
		root.changes++;
	}
	xdr_put(a->out, file ? NFS_OK : NFS_NOENT);
	put_change(a->out, was, &root);
	return true;
}

/* READDIR and READDIRPLUS. The cookie of an entry is its index in `files`, plus 1. */
static bool list(struct arguments *a, bool plus)
{
	uint64_t cookie;
	uint32_t limit;
	size_t entry, start = a->out->at;
	int i;

	if (!take_file(a))
		return false;
	cookie = xdr_get64(a->in);
	xdr_get64(a->in);
	if (plus)
		xdr_get(a->in);
	limit = xdr_get(a->in);
	a->call->length = limit;
	xdr_put(a->out, NFS_OK);
	put_present_attributes(a->out, &root);
	xdr_put64(a->out, 0);
	for (i = cookie; i < file_count; i++) {
		if (!files[i].name[0])
			continue;
		entry = a->out->at;
		xdr_put(a->out, true);
		xdr_put64(a->out, id_of(&files[i]));
		xdr_put_text(a->out, files[i].name);
		xdr_put64(a->out, i + 1);
		if (plus) {
			put_present_attributes(a->out, &files[i]);
			xdr_put(a->out, true);
			put_handle(a->out, &files[i]);
		}
		/* the end of the list, and whether it is that of the folder */
		if (a->out->at + 2 * WORD - start > limit) {
			a->out->at = entry;
			break;
		}
	}
	xdr_put(a->out, false);
	xdr_put(a->out, i == file_count);
	return true;
}

static bool do_readdir(struct arguments *a)
{
	return list(a, false);
}

static bool do_readdirplus(struct arguments *a)
{
	return list(a, true);
}

static bool do_fsstat(struct arguments *a)
{
	if (!take_file(a))
		return false;
	xdr_put(a->out, NFS_OK);
	put_present_attributes(a->out, a->call->file);
	for (int i = 0; i < 6; i++)
		xdr_put64(a->out, 1 << 30);
	xdr_put(a->out, 0);
	return true;
}

static bool do_fsinfo(struct arguments *a)
{
	if (!take_file(a))
		return false;
	xdr_put(a->out, NFS_OK);
	put_present_attributes(a->out, a->call->file);
	for (int i = 0; i < 2; i++) {	/* READ and WRITE: most, preferred, unit */
		xdr_put(a->out, nfs_block);
		xdr_put(a->out, nfs_block);
		xdr_put(a->out, 4096);
	}
	xdr_put(a->out, nfs_block);	/* READDIR, preferred */
	xdr_put64(a->out, FILE_BYTES);
	xdr_put(a->out, 0);		/* the precision of times: 1 ns */
	xdr_put(a->out, 1);
	xdr_put(a->out, PROPERTIES);
	return true;
}

static bool do_pathconf(struct arguments *a)
{
	if (!take_file(a))
		return false;
	xdr_put(a->out, NFS_OK);
	put_present_attributes(a->out, a->call->file);
	xdr_put(a->out, 1);			/* links */
	xdr_put(a->out, NAME_BYTES - 1);
	xdr_put(a->out, true);			/* long names are refused */
	xdr_put(a->out, true);			/* only root may give files away */
	xdr_put(a->out, false);			/* case matters, and is kept */
	xdr_put(a->out, true);
	return true;
}

static bool do_commit(struct arguments *a)
{
	struct before was;

	if (!take_file(a))
		return false;
	a->call->offset = xdr_get64(a->in);
	a->call->length = xdr_get(a->in);
	was = before(a->call->file);
	xdr_put(a->out, NFS_OK);
	put_change(a->out, was, a->call->file);
	xdr_put64(a->out, HANDLE_MAGIC);
	return true;
}

static bool (*const procedures[NFS_PROCEDURES])(struct arguments *a) = {
	[NFS_NULL] = do_null,
	[NFS_GETATTR] = do_getattr,
	[NFS_SETATTR] = do_setattr,
	[NFS_LOOKUP] = do_lookup,
	[NFS_ACCESS] = do_access,
	[NFS_READLINK] = do_readlink,
	[NFS_READ] = do_read,
	[NFS_WRITE] = do_write,
	[NFS_CREATE] = do_create,
	[NFS_SYMLINK] = do_symlink,
	[NFS_REMOVE] = do_remove,
	[NFS_READDIR] = do_readdir,
	[NFS_READDIRPLUS] = do_readdirplus,
	[NFS_FSSTAT] = do_fsstat,
	[NFS_FSINFO] = do_fsinfo,
	[NFS_PATHCONF] = do_pathconf,
	[NFS_COMMIT] = do_commit,
};

/* Takes one list of SETACL: its length twice, and entries of type, owner and permissions. */
static void take_acl(struct xdr *in)
{
	uint32_t count;

	xdr_get(in);
	for (count = xdr_get(in); count && !in->failed; count--)
		for (int i = 0; i < 3; i++)
			xdr_get(in);
}

/* The program of access control lists: accepts SETACL, and has no list to give. */
static bool do_acl(struct arguments *a)
{
	if (a->request->procedure == NFS_NULL)
		return true;
	if (!take_file(a))
		return false;
	xdr_get(a->in);
	if (a->request->procedure == SETACL) {
		a->call->procedure = ACL_SET;
		take_acl(a->in);
		take_acl(a->in);
		tap_check(!a->in->failed && !xdr_left(a->in), "SETACL does not end with the message");
	}
	xdr_put(a->out, a->request->procedure == SETACL ? NFS_OK : NFS_NOTSUPP);
	put_present_attributes(a->out, a->call->file);
	return true;
}

/* --- calls */

/* Besides data or entries, a reply has two headers and a status at least. */
#define LEAST_REST (SHORTEST + 7 * WORD)

/* Returns the length of data or entries in the longest reply to a call. */
static uint32_t longest_result(const struct request *r, const struct nfs_call *call)
{
	if (r->program != NFS_PROGRAM)
		return 0;
	switch (call->procedure) {
	case NFS_READ:
	case NFS_READDIR:
	case NFS_READDIRPLUS:
		return call->length;
	case NFS_READLINK:
		return LONGEST_TEXT;
	default:
		return 0;
	}
}

/* Checks the chunks of a call whose arguments have been taken. */
static void check_chunks(const struct request *r, const struct nfs_call *call)
{
	const struct header *h = &r->header;
	uint32_t longest = longest_result(r, call), p = call->procedure;
	bool nfs = r->program == NFS_PROGRAM;

	/* RFC 8267, section 4 */
	tap_check(h->procedure != RDMA_MSG || !h->reads ||
		  (nfs && (p == NFS_WRITE || p == NFS_SYMLINK)),
		  "a Read chunk in a call of procedure %u", p);
	tap_check(!h->writes || (h->writes == 1 && nfs && (p == NFS_READ || p == NFS_READLINK)),
		  "%d Write chunks in a call of procedure %u", h->writes, p);

	if (h->writes)
		tap_check(chunk_length(&h->write[0]) >= longest,
			  "a Write chunk of %u bytes for a result of up to %u",
			  chunk_length(&h->write[0]), longest);
	else if (h->has_reply)
		tap_check(chunk_length(&h->reply) >= longest,
			  "a Reply chunk of %u bytes for a result of up to %u",
			  chunk_length(&h->reply), longest);
	else
		tap_check(longest + LEAST_REST <= settings.reply_limit,
			  "procedure %u: no chunk for a result of up to %u bytes", p, longest);
}

bool nfs_do(const struct request *r, struct nfs_call *call, struct payload *payload)
{
	struct xdr in;
	struct arguments a = { .in = &in, .out = &payload->body, .request = r, .call = call,
			       .payload = payload };
	bool done;

	*call = (struct nfs_call){ .procedure = r->procedure };
	payload_begin(payload);
	if (!call_pull(r, &in))
		return false;
	reply_begin(&payload->body, r);
	if (r->program == ACL_PROGRAM)
		done = do_acl(&a);
	else if (tap_check(r->program == NFS_PROGRAM && r->procedure < NFS_PROCEDURES &&
			   procedures[r->procedure], "a call of program %u, procedure %u",
			   r->program, r->procedure))
		done = procedures[r->procedure](&a);
	else
		return false;
	if (!done || !tap_check(!in.failed, "the arguments of procedure %u do not end", r->procedure))
		return false;
	check_chunks(r, call);
	if (r->program == NFS_PROGRAM || call->procedure == ACL_SET)
		nfs_calls[call->procedure]++;
	return true;
}

bool nfs_serve(const struct request *r)
{
	static struct payload payload;
	struct nfs_call call;

	return nfs_do(r, &call, &payload) && reply(r, &payload);
}

bool is_call(const struct request *r, enum nfs_procedure procedure)
{
	if (procedure == ACL_SET)
		return r->program == ACL_PROGRAM && r->procedure == SETACL;
	return r->program == NFS_PROGRAM && r->procedure == procedure;
}
