// SPDX-License-Identifier: GPL-2.0
#include "link.h"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/tap.h"

static const char *device, *netdev, *type;

void link_init(const char *device_name, const char *netdev_name, const char *type_name)
{
	device = device_name;
	netdev = netdev_name;
	type = type_name;
}

/* A request for a command; attributes can be added. */
struct request {
	struct nlmsghdr head;
	char attributes[500];
};

static struct request request(int command, int flags)
{
	return (struct request){ .head = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.nlmsg_flags = NLM_F_REQUEST | flags,
	} };
}

static void attribute(struct request *request, int kind, const void *value, size_t bytes)
{
	struct nlattr *attr = (void *)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len));

	attr->nla_type = kind;
	attr->nla_len = NLA_HDRLEN + bytes;
	memcpy((char *)attr + NLA_HDRLEN, value, bytes);
	request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + NLA_ALIGN(attr->nla_len);
}

static void text_attribute(struct request *request, int kind, const char *text)
{
	attribute(request, kind, text, strlen(text) + 1);
}

/* Sends a request. Returns the bytes of the answer, or a negative errno. */
static int ask(const struct request *request, void *answer, size_t size)
{
	int status, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd < 0)
		return -errno;
	status = send(fd, request, request->head.nlmsg_len, 0);
	/* The answer is there at once, unless its allocation failed. */
	if (status >= 0)
		status = recv(fd, answer, size, MSG_DONTWAIT);
	if (status < 0)
		status = -errno;
	close(fd);
	return status;
}

/* ask() for requests that are only acknowledged. */
static int tell(const struct request *request)
{
	char answer[1024] = "";
	struct nlmsghdr *head = (void *)answer;
	int status = ask(request, answer, sizeof(answer));

	if (status < 0)
		return status;
	return head->nlmsg_type == NLMSG_ERROR ? ((struct nlmsgerr *)NLMSG_DATA(head))->error : 0;
}

int link_add(void)
{
	struct request add = request(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);

	text_attribute(&add, RDMA_NLDEV_ATTR_DEV_NAME, device);
	text_attribute(&add, RDMA_NLDEV_ATTR_LINK_TYPE, type);
	text_attribute(&add, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	return tell(&add);
}

/* Returns the device index in a message of the list, or -1 if it is not our device. */
static int number_in(const struct nlmsghdr *message)
{
	const char *at = NLMSG_DATA(message), *end = (char *)message + message->nlmsg_len;
	int number = -1;
	bool ours = false;

	while (end - at >= NLA_HDRLEN) {
		const struct nlattr *attr = (void *)at;

		if (attr->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX)
			memcpy(&number, at + NLA_HDRLEN, sizeof(number));
		else if (attr->nla_type == RDMA_NLDEV_ATTR_DEV_NAME)
			ours = !strcmp(at + NLA_HDRLEN, device);
		at += NLA_ALIGN(attr->nla_len);
	}
	return ours ? number : -1;
}

int link_number(void)
{
	struct request list = request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	char answer[8192];
	struct nlmsghdr *message = (void *)answer;
	int number = -1, bytes = ask(&list, answer, sizeof(answer));

	if (bytes < 0)
		tap_bail("list of devices: %s", strerror(-bytes));
	for (; NLMSG_OK(message, (unsigned int)bytes); message = NLMSG_NEXT(message, bytes))
		if (message->nlmsg_type == list.head.nlmsg_type && number < 0)
			number = number_in(message);
	return number;
}

void link_delete(void)
{
	struct request delete = request(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);
	int status, number = link_number();

	if (number < 0)
		return;
	attribute(&delete, RDMA_NLDEV_ATTR_DEV_INDEX, &number, sizeof(number));
	status = tell(&delete);
	if (status)
		tap_bail("link delete: %s", strerror(-status));
}

void link_must_be(void)
{
	int status = link_add();

	if (status && status != -EEXIST)
		tap_bail("link add: %s", strerror(-status));
}

int link_bind_counter(int number, uint32_t qp_num)
{
	struct request set = request(RDMA_NLDEV_CMD_STAT_SET, NLM_F_ACK);
	uint32_t port = 1, mode = RDMA_COUNTER_MODE_MANUAL, kind = RDMA_NLDEV_ATTR_RES_QP;

	attribute(&set, RDMA_NLDEV_ATTR_DEV_INDEX, &number, sizeof(number));
	attribute(&set, RDMA_NLDEV_ATTR_PORT_INDEX, &port, sizeof(port));
	attribute(&set, RDMA_NLDEV_ATTR_STAT_MODE, &mode, sizeof(mode));
	attribute(&set, RDMA_NLDEV_ATTR_STAT_RES, &kind, sizeof(kind));
	attribute(&set, RDMA_NLDEV_ATTR_RES_LQPN, &qp_num, sizeof(qp_num));
	return tell(&set);
}
