/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RIW_HELPERS_TLS_H
#define RIW_HELPERS_TLS_H

#include <linux/key.h>
#include <linux/net.h>
#include <net/sock.h>
#include <net/tls_prot.h>

/* The type of a record, of which a read of a TLS socket has returned octets. There are others. */
enum riw_tls_record {
	/* None: octets that were not encrypted, or the end of the peer's half. */
	RIW_TLS_NONE = 0,
	RIW_TLS_ALERT = TLS_RECORD_TYPE_ALERT,
	RIW_TLS_HANDSHAKE = TLS_RECORD_TYPE_HANDSHAKE,
	RIW_TLS_DATA = TLS_RECORD_TYPE_DATA,
};

/*
 * A handshake has ended: `status` is 0 or negative, `peer` the key of the peer's certificate, or
 * the pre-shared key that it has used.
 */
typedef void (*riw_tls_done_t)(void *ctx, int status, int peer);

int riw_helper_socket_share(struct socket *sock, const char *name);
int riw_helper_tls_handshake(struct socket *sock, bool server, bool named, const struct key *psk,
			     unsigned int timeout_ms, riw_tls_done_t done, void *ctx);
int riw_helper_tls_subject(int serial, u8 *to, size_t len);
struct key *riw_helper_tls_psk_find(int serial);
void riw_helper_tls_psk_put(struct key *psk);
int riw_helper_tls_psk_serial(const struct key *psk);
bool riw_helper_tls_psk_accepts(struct key *psk, int serial);
int riw_helper_tls_psk_identity(int serial, u8 *to, size_t len);
void riw_helper_tls_wait_for_callbacks(void);
u16 riw_helper_tls_cipher(struct sock *sk);
u64 riw_helper_tls_read_limit(struct sock *sk, size_t len);
void riw_helper_tls_limit_read(struct sock *sk, u64 limit);
bool riw_helper_tls_has_unsent(struct sock *sk);
int riw_helper_tls_recv(struct socket *sock, u8 *to, size_t len, u8 *type, bool *whole);
int riw_helper_tls_send_close_notify(struct socket *sock);

#endif
