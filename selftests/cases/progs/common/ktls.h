/* SPDX-License-Identifier: GPL-2.0 */
/* TLS of the kernel with fixed keys, for connections of TCP alone: without a handshake, and without secrecy. */
#ifndef COMMON_KTLS_H
#define COMMON_KTLS_H

#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#ifndef SOL_TLS
#define SOL_TLS 282
#endif

/* Lets the kernel use TLS for a connection. Returns 0, or -1 with errno. */
static inline int ktls_begin(int sock)
{
	return setsockopt(sock, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls"));
}

/* Gives one direction, TLS_TX or TLS_RX, a key for AES-256-GCM, as tlshd would. Returns 0, or -1 with errno. */
static inline int ktls_set_key(int sock, int direction)
{
	static const struct tls12_crypto_info_aes_gcm_256 key = {
		.info = { .version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_256 },
	};

	return setsockopt(sock, SOL_TLS, direction, &key, sizeof(key));
}

#endif
