/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations of verbs that need no connection. want_X() makes what do_X() needs, or X itself for other operations, and
 * ends the program if that fails. do_X() returns 0 or a negative errno.
 */
#ifndef OBJECTS_H
#define OBJECTS_H

/* Names the device. Once, before the others. */
void objects_init(const char *device);

/* Destroys all objects. */
void objects_drop(void);

void want_open(void);
void want_pd(void);
void want_mr(void);
void want_dmabuf(void);
void want_mw(void);
void want_cq(void);
void want_srq(void);

int do_open(void);
int do_query_device(void);
int do_query_port(void);
int do_channel(void);
int do_pd(void);
int do_dealloc_pd(void);
int do_mr(void);
int do_rereg(void);
int do_dmabuf(void);
int do_dereg(void);
int do_mw(void);
int do_dealloc_mw(void);
int do_cq(void);
int do_extended_cq(void);
int do_resize(void);
int do_destroy_cq(void);
int do_srq(void);
int do_modify_srq(void);
int do_query_srq(void);
int do_post_srq_recv(void);
int do_destroy_srq(void);

#endif
