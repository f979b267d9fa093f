/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations of rdma_cm and of queue pairs; both ends are in this process. For want_X() and do_X() see objects.h.
 */
#ifndef CONNECTIONS_H
#define CONNECTIONS_H

/* Names the address of both ends. Once, before the others. */
void connections_init(const char *address);

/* Destroys all of both ends, and the listener. */
void connections_drop(void);

void want_bound(void);
void want_listener(void);
void want_route(void);
void want_qp(void);
void want_unbound(void);
void want_request(void);
void want_connection(void);
void want_receive(void);

int do_listen(void);
int do_qp(void);
int do_destroy_qp(void);
int do_query_qp(void);
int do_modify_qp(void);
int do_bind(void);
int do_connect(void);
int do_accept(void);
int do_reject(void);
int do_post_small(void);
int do_post_large(void);
int do_post_read(void);
int do_post_recv(void);
int do_disconnect(void);
int do_drop(void);

/* After a post that returned `status`: whatever was posted completes. */
void completes(int status);

#endif
