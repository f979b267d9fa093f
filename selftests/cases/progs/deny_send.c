// SPDX-License-Identifier: GPL-2.0
/*
 * Acts as a security policy that refuses sends of the kernel's own sockets: a BPF program at the
 * hook of sendmsg() that returns EPERM for sockets without a file. Writes a line when the program
 * is active. Ends, and removes it, when stdin ends.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint8_t *btf;
static size_t btf_size;

static void die(const char *what)
{
	printf("failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void read_btf(void)
{
	FILE *file = fopen("/sys/kernel/btf/vmlinux", "r");
	size_t room = 64 << 20;

	btf = malloc(room);
	if (!file || !btf)
		die("/sys/kernel/btf/vmlinux");
	btf_size = fread(btf, 1, room, file);
	fclose(file);
}

/* Returns the number of bytes that follow a type. */
static size_t extra(const struct btf_type *type)
{
	size_t count = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return count * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return count * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return count * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return count * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return count * sizeof(struct btf_var_secinfo);
	default:
		return 0;
	}
}

/* Finds a type and its ID by kind and name. */
static const struct btf_type *find(uint32_t kind, const char *name, uint32_t *id)
{
	const struct btf_header *header = (const void *)btf;
	const char *names = (const char *)btf + header->hdr_len + header->str_off;
	const uint8_t *at = btf + header->hdr_len + header->type_off, *end = at + header->type_len;

	for (*id = 1; at < end; ++*id) {
		const struct btf_type *type = (const void *)at;

		if (BTF_INFO_KIND(type->info) == kind && !strcmp(names + type->name_off, name))
			return type;
		at += sizeof(*type) + extra(type);
	}
	errno = ENOENT;
	die(name);
	return NULL;
}

static int offset_of(const char *name, const char *member)
{
	const struct btf_header *header = (const void *)btf;
	const char *names = (const char *)btf + header->hdr_len + header->str_off;
	uint32_t id;
	const struct btf_type *type = find(BTF_KIND_STRUCT, name, &id);
	const struct btf_member *members = (const void *)(type + 1);

	for (uint32_t i = 0; i < BTF_INFO_VLEN(type->info); i++)
		if (!strcmp(names + members[i].name_off, member))
			return members[i].offset / 8;
	errno = ENOENT;
	die(member);
	return 0;
}

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int load(void)
{
	static char log[65536];
	struct bpf_insn program[] = {
		/* The hook's first argument, and its file. */
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 2, .src_reg = 1 },
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 2, .src_reg = 2,
		  .off = offset_of("socket", "file") },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 2, .off = 1, .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = -EPERM },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_LSM,
		.expected_attach_type = BPF_LSM_MAC,
		.insns = (uintptr_t)program,
		.insn_cnt = sizeof(program) / sizeof(*program),
		.license = (uintptr_t)"GPL",
		.log_buf = (uintptr_t)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int fd;

	find(BTF_KIND_FUNC, "bpf_lsm_socket_sendmsg", &attr.attach_btf_id);
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0) {
		printf("%s\n", log);
		die("BPF_PROG_LOAD");
	}
	return fd;
}

int main(void)
{
	union bpf_attr attr = {};
	char end;

	setvbuf(stdout, NULL, _IOLBF, 0);
	read_btf();
	attr.raw_tracepoint.prog_fd = load();
	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0)
		die("BPF_RAW_TRACEPOINT_OPEN");
	printf("refusing\n");
	return read(0, &end, 1) < 0;
}
