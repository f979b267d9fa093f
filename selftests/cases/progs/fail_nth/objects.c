// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "objects.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/access.h"
#include "common/device.h"
#include "common/post.h"
#include "common/tap.h"
#include "inject.h"
#include "link.h"

#define BYTES (256 << 10)

static const char *device;
static struct ibv_context *ctx;
static struct ibv_comp_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static struct ibv_srq *srq;
static uint8_t bytes[BYTES];

void objects_init(const char *name)
{
	device = name;
}

int do_open(void)
{
	ctx = device_open(device);
	return ctx ? 0 : -errno;
}

void want_open(void)
{
	link_must_be();
	if (do_open())
		tap_bail("ibv_open_device %s: %m", device);
}

int do_query_device(void)
{
	struct ibv_device_attr_ex attr;

	return -ibv_query_device_ex(ctx, NULL, &attr);
}

int do_query_port(void)
{
	struct ibv_port_attr attr;

	return -ibv_query_port(ctx, 1, &attr);
}

int do_channel(void)
{
	channel = ibv_create_comp_channel(ctx);
	return channel ? 0 : -errno;
}

int do_pd(void)
{
	pd = ibv_alloc_pd(ctx);
	return pd ? 0 : -errno;
}

void want_pd(void)
{
	want_open();
	if (do_pd())
		tap_bail("ibv_alloc_pd: %m");
}

int do_dealloc_pd(void)
{
	int status = ibv_dealloc_pd(pd);

	if (!status)
		pd = NULL;
	return -status;
}

int do_mr(void)
{
	mr = ibv_reg_mr(pd, bytes, BYTES, ALL);
	return mr ? 0 : -errno;
}

void want_mr(void)
{
	want_pd();
	if (do_mr())
		tap_bail("ibv_reg_mr: %m");
}

int do_rereg(void)
{
	int flags = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;

	return ibv_rereg_mr(mr, flags, NULL, bytes, BYTES / 2, ALL) ? -errno : 0;
}

static int buffer = -1;

void want_dmabuf(void)
{
	struct udmabuf_create create = { .size = BYTES };
	int dev;

	want_pd();
	if (buffer >= 0)
		return;
	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	create.memfd = memfd_create("fail_nth", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (dev < 0 || ftruncate(create.memfd, BYTES) || fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		tap_bail("udmabuf: %m");
	buffer = ioctl(dev, UDMABUF_CREATE, &create);
	if (buffer < 0)
		tap_bail("UDMABUF_CREATE: %m");
	close(create.memfd);
	close(dev);
}

int do_dmabuf(void)
{
	mr = ibv_reg_dmabuf_mr(pd, 0, BYTES, 0, buffer, ALL);
	return mr ? 0 : -errno;
}

int do_dereg(void)
{
	int status = ibv_dereg_mr(mr);

	if (!status)
		mr = NULL;
	return -status;
}

int do_mw(void)
{
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	return mw ? 0 : -errno;
}

void want_mw(void)
{
	want_pd();
	if (do_mw())
		tap_bail("ibv_alloc_mw: %m");
}

int do_dealloc_mw(void)
{
	int status = ibv_dealloc_mw(mw);

	if (!status)
		mw = NULL;
	return -status;
}

int do_cq(void)
{
	cq = ibv_create_cq(ctx, 100, NULL, NULL, 0);
	return cq ? 0 : -errno;
}

void want_cq(void)
{
	want_open();
	if (do_cq())
		tap_bail("ibv_create_cq: %m");
}

int do_extended_cq(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 100, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_cq_ex *extended = ibv_create_cq_ex(ctx, &init);

	cq = extended ? ibv_cq_ex_to_cq(extended) : NULL;
	return cq ? 0 : -errno;
}

int do_resize(void)
{
	return -ibv_resize_cq(cq, 5000);
}

int do_destroy_cq(void)
{
	int status = ibv_destroy_cq(cq);

	if (!status)
		cq = NULL;
	return -status;
}

int do_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 2 } };

	srq = ibv_create_srq(pd, &init);
	return srq ? 0 : -errno;
}

void want_srq(void)
{
	want_mr();
	if (do_srq())
		tap_bail("ibv_create_srq: %m");
}

int do_modify_srq(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 1 };

	return -ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

int do_query_srq(void)
{
	struct ibv_srq_attr attr;

	return -ibv_query_srq(srq, &attr);
}

int do_post_srq_recv(void)
{
	struct ibv_sge to = { (uintptr_t)bytes, BYTES, mr->lkey };

	return -post_srq_recv(srq, 1, &to, 1);
}

int do_destroy_srq(void)
{
	int status = ibv_destroy_srq(srq);

	if (!status)
		srq = NULL;
	return -status;
}

void objects_drop(void)
{
	bool all = true;

	all &= !mr || is_destroyed(ibv_dereg_mr(mr));
	all &= !mw || is_destroyed(ibv_dealloc_mw(mw));
	all &= !srq || is_destroyed(ibv_destroy_srq(srq));
	all &= !cq || is_destroyed(ibv_destroy_cq(cq));
	all &= !pd || is_destroyed(ibv_dealloc_pd(pd));
	all &= !channel || !ibv_destroy_comp_channel(channel);
	all &= !ctx || !ibv_close_device(ctx);
	tap_check(all, "something could not be destroyed: %m");
	mr = NULL, mw = NULL, srq = NULL, cq = NULL, pd = NULL, channel = NULL, ctx = NULL;
}
