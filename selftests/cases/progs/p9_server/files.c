// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Files that a client may name at a time, and steps of one walk. */
#define FILES 1024
#define STEPS 16

/* Attributes that a client can set (TSETATTR), and those that it gets (TGETATTR). */
enum {
	SET_MODE = 1 << 0,
	SET_UID = 1 << 1,
	SET_GID = 1 << 2,
	SET_SIZE = 1 << 3,
	SET_ATIME = 1 << 4,
	SET_MTIME = 1 << 5,
	SET_ATIME_TO = 1 << 7,
	SET_MTIME_TO = 1 << 8,
	GET_BASIC = 0x7ff,
};

/* A file that the client has named. */
struct file {
	bool used;
	uint32_t fid;
	int path;	/* opened with O_PATH */
	int open;	/* opened for use, or -1 */
};

static struct file files[FILES];
static int top = -1;

bool files_export(const char *folder)
{
	top = open(folder, O_PATH | O_DIRECTORY);
	return top >= 0;
}

static struct file *find(uint32_t fid)
{
	for (int i = 0; i < FILES; i++)
		if (files[i].used && files[i].fid == fid)
			return &files[i];
	return NULL;
}

/* Notes a file. Takes over `path`. */
static int add(uint32_t fid, int path)
{
	if (find(fid)) {
		close(path);
		return EINVAL;
	}
	for (int i = 0; i < FILES; i++) {
		if (files[i].used)
			continue;
		files[i] = (struct file){ .used = true, .fid = fid, .path = path, .open = -1 };
		return 0;
	}
	close(path);
	return EMFILE;
}

static void drop(struct file *file)
{
	close(file->path);
	if (file->open >= 0)
		close(file->open);
	file->used = false;
}

void files_forget(void)
{
	for (int i = 0; i < FILES; i++)
		if (files[i].used)
			drop(&files[i]);
}

/* The path by which a file can be opened that is known by O_PATH. */
struct link {
	char text[32];
};

static struct link link_of(const struct file *file)
{
	struct link link;

	snprintf(link.text, sizeof(link.text), "/proc/self/fd/%d", file->path);
	return link;
}

/* Reads a name in a folder. Returns false if it is none. */
static bool get_name(struct message *m, char name[P9_NAME])
{
	get_string(m, name, P9_NAME);
	return name[0] && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

/* --- names */

static int put_file(struct message *reply, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	put_qid(reply, &st);
	return 0;
}

static int attach(struct message *request, struct message *reply)
{
	uint32_t fid = get32(request);
	int path = openat(top, ".", O_PATH);
	int error;

	if (path < 0)
		return errno;
	error = add(fid, path);
	return error ? error : put_file(reply, path);
}

static int walk(struct file *from, struct message *request, struct message *reply)
{
	uint32_t fid = get32(request);
	uint16_t steps = get16(request), done;
	int next, path = dup(from->path);
	struct message count = *reply;
	char name[P9_NAME];

	if (path < 0)
		return errno;
	if (steps > STEPS) {
		close(path);
		return EINVAL;
	}
	put16(reply, 0);
	for (done = 0; done < steps; done++) {
		next = get_name(request, name) ? openat(path, name, O_PATH | O_NOFOLLOW) : -1;
		if (next < 0)
			break;
		close(path);
		path = next;
		if (put_file(reply, path))
			break;
	}
	put16(&count, done);
	if (done == steps) {
		if (fid == from->fid)
			drop(from);
		return add(fid, path);
	}
	close(path);
	return done ? 0 : ENOENT;
}

static int make_folder(struct file *in, struct message *request, struct message *reply)
{
	char name[P9_NAME];
	struct stat st;

	if (!get_name(request, name))
		return EINVAL;
	if (mkdirat(in->path, name, get32(request)) || fstatat(in->path, name, &st, 0))
		return errno;
	put_qid(reply, &st);
	return 0;
}

static int make_link(struct file *in, struct message *request, struct message *reply)
{
	char name[P9_NAME], target[4096];
	struct stat st;

	if (!get_name(request, name))
		return EINVAL;
	get_string(request, target, sizeof(target));
	if (request->overrun)
		return EINVAL;
	if (symlinkat(target, in->path, name) ||
	    fstatat(in->path, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno;
	put_qid(reply, &st);
	return 0;
}

static int read_link(struct file *file, struct message *reply)
{
	char target[4096];
	ssize_t length = readlinkat(file->path, "", target, sizeof(target) - 1);

	if (length < 0)
		return errno;
	target[length] = 0;
	put_string(reply, target);
	return 0;
}

static int rename_in(struct file *from, struct message *request)
{
	char old[P9_NAME], new[P9_NAME];
	struct file *to;

	if (!get_name(request, old))
		return EINVAL;
	to = find(get32(request));
	if (!to || !get_name(request, new))
		return EINVAL;
	return renameat(from->path, old, to->path, new) ? errno : 0;
}

static int unlink_in(struct file *in, struct message *request)
{
	char name[P9_NAME];

	if (!get_name(request, name))
		return EINVAL;
	return unlinkat(in->path, name, get32(request) & AT_REMOVEDIR) ? errno : 0;
}

/* --- contents */

static int open_file(struct file *file, struct message *request, struct message *reply)
{
	/* The client's page cache may have to read what it opens only to write. */
	uint32_t flags = get32(request) & (O_ACCMODE | O_TRUNC | O_DIRECTORY);

	if (file->open >= 0)
		return EINVAL;
	file->open = open(link_of(file).text, flags);
	if (file->open < 0)
		return errno;
	if (put_file(reply, file->open))
		return EIO;
	put32(reply, 0);
	return 0;
}

/* Makes a file in the folder `file`, which then is the file. */
static int create(struct file *file, struct message *request, struct message *reply)
{
	uint32_t flags, mode;
	char name[P9_NAME];
	int path, fd;

	if (!get_name(request, name))
		return EINVAL;
	flags = get32(request) & (O_ACCMODE | O_TRUNC | O_EXCL);
	mode = get32(request);
	fd = openat(file->path, name, flags | O_CREAT | O_NOFOLLOW, mode);
	if (fd < 0)
		return errno;
	path = openat(file->path, name, O_PATH | O_NOFOLLOW);
	if (path < 0) {
		close(fd);
		return EIO;
	}
	close(file->path);
	file->path = path;
	file->open = fd;
	if (put_file(reply, fd))
		return EIO;
	put32(reply, 0);
	return 0;
}

static int read_file(struct file *file, struct message *request, struct message *reply)
{
	uint64_t offset = get64(request);
	uint32_t count = get32(request);
	struct message length = *reply;
	uint8_t *to;
	ssize_t got;

	put32(reply, 0);
	to = put_room(reply, count);
	if (!to)
		return EINVAL;
	got = pread(file->open, to, count, offset);
	if (got < 0)
		return errno;
	put32(&length, got);
	reply->at = to + got;
	return 0;
}

static int write_file(struct file *file, struct message *request, struct message *reply)
{
	uint64_t offset = get64(request);
	uint32_t count = get32(request);
	const uint8_t *from = get_bytes(request, count);
	ssize_t done;

	if (!from)
		return EINVAL;
	done = pwrite(file->open, from, count, offset);
	if (done < 0)
		return errno;
	put32(reply, done);
	return 0;
}

/* An entry of a folder, as the kernel returns it. */
struct entry {
	uint64_t ino;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static int read_folder(struct file *file, struct message *request, struct message *reply)
{
	uint64_t offset = get64(request);
	uint32_t count = get32(request);
	struct message length = *reply, before;
	uint8_t buffer[8192], *first;
	long got;

	put32(reply, 0);
	first = reply->at;
	if (lseek(file->open, offset, SEEK_SET) < 0)
		return errno;
	got = syscall(SYS_getdents64, file->open, buffer, sizeof(buffer));
	if (got < 0)
		return errno;
	if ((size_t)(reply->end - first) > count)
		reply->end = first + count;
	for (long at = 0; at < got;) {
		struct entry *entry = (struct entry *)(buffer + at);
		struct stat st = { .st_ino = entry->ino };

		st.st_mode = entry->type == DT_DIR ? S_IFDIR : entry->type == DT_LNK ? S_IFLNK : 0;
		before = *reply;
		put_qid(reply, &st);
		put64(reply, entry->next);
		put8(reply, entry->type);
		put_string(reply, entry->name);
		if (reply->overrun) {
			/* The client asks for the rest. */
			*reply = before;
			break;
		}
		at += entry->bytes;
	}
	put32(&length, reply->at - first);
	return 0;
}

/* --- attributes */

static void put_time(struct message *m, struct timespec time)
{
	put64(m, time.tv_sec);
	put64(m, time.tv_nsec);
}

static int get_attributes(struct file *file, struct message *reply)
{
	struct stat st;

	if (fstat(file->path, &st))
		return errno;
	put64(reply, GET_BASIC);
	put_qid(reply, &st);
	put32(reply, st.st_mode);
	put32(reply, st.st_uid);
	put32(reply, st.st_gid);
	put64(reply, st.st_nlink);
	put64(reply, st.st_rdev);
	put64(reply, st.st_size);
	put64(reply, st.st_blksize);
	put64(reply, st.st_blocks);
	put_time(reply, st.st_atim);
	put_time(reply, st.st_mtim);
	put_time(reply, st.st_ctim);
	/* The time of creation, the generation, and the version of the data: not valid. */
	for (int i = 0; i < 4; i++)
		put64(reply, 0);
	return 0;
}

static struct timespec get_time(struct message *m, uint32_t valid, uint32_t set, uint32_t to)
{
	struct timespec time;

	time.tv_sec = get64(m);
	time.tv_nsec = get64(m);
	if (!(valid & set))
		time.tv_nsec = UTIME_OMIT;
	else if (!(valid & to))
		time.tv_nsec = UTIME_NOW;
	return time;
}

static int set_attributes(struct file *file, struct message *request)
{
	uint32_t valid = get32(request), mode = get32(request), uid = get32(request),
		 gid = get32(request);
	uint64_t size = get64(request);
	struct link link = link_of(file);
	struct timespec times[2];

	times[0] = get_time(request, valid, SET_ATIME, SET_ATIME_TO);
	times[1] = get_time(request, valid, SET_MTIME, SET_MTIME_TO);
	if (request->overrun)
		return EINVAL;
	if (valid & (SET_UID | SET_GID) &&
	    fchownat(file->path, "", valid & SET_UID ? uid : (uid_t)-1,
		     valid & SET_GID ? gid : (gid_t)-1, AT_EMPTY_PATH))
		return errno;
	if (valid & SET_MODE && chmod(link.text, mode & 07777))
		return errno;
	if (valid & SET_SIZE && truncate(link.text, size))
		return errno;
	if (valid & (SET_ATIME | SET_MTIME) && utimensat(AT_FDCWD, link.text, times, 0))
		return errno;
	return 0;
}

static int file_system(struct file *file, struct message *reply)
{
	struct statfs fs;

	if (fstatfs(file->path, &fs))
		return errno;
	put32(reply, fs.f_type);
	put32(reply, fs.f_bsize);
	put64(reply, fs.f_blocks);
	put64(reply, fs.f_bfree);
	put64(reply, fs.f_bavail);
	put64(reply, fs.f_files);
	put64(reply, fs.f_ffree);
	put64(reply, 0);
	put32(reply, fs.f_namelen);
	return 0;
}

/* Does a request that names a file first. */
static int file_do(uint8_t type, struct file *file, struct message *request, struct message *reply)
{
	switch (type) {
	case TWALK:
		return walk(file, request, reply);
	case TCLUNK:
		drop(file);
		return 0;
	case TMKDIR:
		return make_folder(file, request, reply);
	case TSYMLINK:
		return make_link(file, request, reply);
	case TREADLINK:
		return read_link(file, reply);
	case TRENAMEAT:
		return rename_in(file, request);
	case TUNLINKAT:
		return unlink_in(file, request);
	case TLOPEN:
		return open_file(file, request, reply);
	case TLCREATE:
		return create(file, request, reply);
	case TGETATTR:
		return get_attributes(file, reply);
	case TSETATTR:
		return set_attributes(file, request);
	case TSTATFS:
		return file_system(file, reply);
	}
	if (file->open < 0)
		return EBADF;
	switch (type) {
	case TREAD:
		return read_file(file, request, reply);
	case TWRITE:
		return write_file(file, request, reply);
	case TREADDIR:
		return read_folder(file, request, reply);
	case TFSYNC:
		return fsync(file->open) ? errno : 0;
	}
	/* The client does without extended attributes and locks. */
	return EOPNOTSUPP;
}

int files_do(uint8_t type, struct message *request, struct message *reply)
{
	struct file *file;

	switch (type) {
	case TATTACH:
		return attach(request, reply);
	case TFLUSH:
		/* Requests are done one after the other: the one to flush is done. */
		return 0;
	}
	file = find(get32(request));
	if (!file)
		return EBADF;
	return file_do(type, file, request, reply);
}
