// SPDX-License-Identifier: GPL-2.0
/* C wrappers for rust/net: TLS by the kernel (kTLS), with handshakes by a process (tlshd). */
#include <linux/file.h>
#include <linux/key.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <net/tcp.h>
/* It needs the headers above. */
#include <net/handshake.h>
#include <net/tls.h>
#include <net/tls_prot.h>

#include "net.h"
#include "tls.h"

/*
 * Gives a socket a file, so that a process can get it, and a reference to its namespace. The file
 * copies `name`, which may be NULL. If that fails, the socket has been released; -ENONET if its
 * namespace is being dismantled.
 */
int riw_helper_socket_share(struct socket *sock, const char *name)
{
	bool memalloc = sock_flag(sock->sk, SOCK_MEMALLOC);
	/* Any socket keeps the struct, and a socket of the kernel not more. */
	struct net *net = maybe_get_net(sock_net(sock->sk));
	struct file *file;

	if (!net) {
		riw_helper_socket_release(sock);
		return -ENONET;
	}
	file = sock_alloc_file(sock, O_NONBLOCK, name);
	if (IS_ERR(file)) {
		put_net(net);
		/* As riw_helper_socket_release() does. */
		if (memalloc)
			static_branch_dec(&memalloc_socks_key);
		return PTR_ERR(file);
	}
	sk_net_refcnt_upgrade(sock->sk);
	put_net(net);
	return 0;
}

/*
 * Requests a handshake from tlshd. `named`: the name of the socket's file is that of the peer.
 * `ctx` must stay valid until `done` is called, once, or riw_helper_tls_cancel() returns true.
 * Neither happens if this fails.
 *
 * The kernel may still read the name after a cancel, while it hands the request to tlshd. It has a
 * reference to the file then.
 */
int riw_helper_tls_handshake(struct socket *sock, bool server, bool named, unsigned int timeout_ms,
			     riw_tls_done_t done, void *ctx)
{
	struct tls_handshake_args args = {
		.ta_sock = sock,
		.ta_done = done,
		.ta_data = ctx,
		.ta_peername = named ? sock->file->f_path.dentry->d_name.name : NULL,
		.ta_timeout_ms = timeout_ms,
		.ta_keyring = TLS_NO_KEYRING,
		.ta_my_cert = TLS_NO_CERT,
		.ta_my_privkey = TLS_NO_PRIVKEY,
	};
	void (*destruct)(struct sock *sk) = sock->sk->sk_destruct;
	int ret;

	if (server)
		ret = tls_server_hello_x509(&args, GFP_KERNEL);
	else
		ret = tls_client_hello_x509(&args, GFP_KERNEL);
	/* Some kernels leave the destructor of a request that they have refused. */
	if (ret)
		sock->sk->sk_destruct = destruct;
	return ret;
}

bool riw_helper_tls_cancel(struct sock *sk)
{
	return tls_handshake_cancel(sk);
}

#ifdef CONFIG_KEYS
#include <keys/asymmetric-type.h>

/*
 * The third identifier of a certificate's key is the content of the subject: see
 * x509_key_preparse().
 */
static int riw_tls_subject_of(const struct key *key, u8 *to, size_t len)
{
	const struct asymmetric_key_ids *ids;
	const struct asymmetric_key_id *id;

	/* No reference to the type itself: it may be in a module. A dead key has another type. */
	if (strcmp(key->type->name, "asymmetric") || !key_is_positive(key))
		return -EKEYREJECTED;
	ids = asymmetric_key_ids(key);
	id = ids ? ids->id[2] : NULL;
	if (!id || id->len > len)
		return -EKEYREJECTED;
	memcpy(to, id->data, id->len);
	return id->len;
}

/*
 * Copies the subject of the certificate for which a key was made: DER without the header. Returns
 * its length or a negative errno. May sleep. The lock keeps the key from being destroyed with its
 * type.
 */
int riw_helper_tls_subject(int serial, u8 *to, size_t len)
{
	struct key *key = key_lookup(serial);
	int ret;

	if (IS_ERR(key))
		return PTR_ERR(key);
	down_read(&key->sem);
	ret = riw_tls_subject_of(key, to, len);
	up_read(&key->sem);
	key_put(key);
	return ret;
}
#else
int riw_helper_tls_subject(int serial, u8 *to, size_t len)
{
	return -ENOKEY;
}
#endif

static struct tls_context *riw_tls_context(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);

	if (!icsk->icsk_ulp_ops || strcmp(icsk->icsk_ulp_ops->name, "tls"))
		return NULL;
	return tls_get_ctx(sk);
}

/* Returns the cipher (TLS_CIPHER_*) if both directions are encrypted by TLS 1.3; otherwise 0. */
u16 riw_helper_tls_cipher(struct sock *sk)
{
	const struct tls_context *ctx;
	u16 cipher = 0;

	lock_sock(sk);
	ctx = riw_tls_context(sk);
	if (ctx && ctx->tx_conf != TLS_BASE && ctx->rx_conf != TLS_BASE &&
	    ctx->prot_info.version == TLS_1_3_VERSION)
		cipher = ctx->prot_info.cipher_type;
	release_sock(sk);
	return cipher;
}

/*
 * Returns the number of bytes, of all that the socket receives, at which a read of `len` octets has
 * to end: see riw_helper_tls_limit_read(). A record has at most 22 bytes besides its content and
 * padding, so each octet may take 23. What the read does not take fits in the receive buffer.
 */
u64 riw_helper_tls_read_limit(struct sock *sk, size_t len)
{
	u64 limit;

	lock_sock(sk);
	limit = tcp_sk(sk)->bytes_received + 32 * (u64)len + SZ_64K + READ_ONCE(sk->sk_rcvbuf);
	release_sock(sk);
	return limit;
}

/*
 * Ends the read of a TLS socket that has received more than `limit` bytes: it fails with
 * -EKEYEXPIRED at the next record, and so does each later one. Otherwise a read goes on as long as
 * the peer sends records without content fast enough, and holds the lock of the socket. For the
 * callback sk_data_ready, in which TCP has locked the socket.
 */
void riw_helper_tls_limit_read(struct sock *sk, u64 limit)
{
	struct tls_context *ctx;

	if (likely(tcp_sk(sk)->bytes_received <= limit))
		return;
	ctx = riw_tls_context(sk);
	if (ctx && ctx->rx_conf != TLS_BASE)
		tls_sw_ctx_rx(ctx)->key_update_pending = true;
}

/* Whether TCP has not taken all records: a FIN would cut them off. */
bool riw_helper_tls_has_unsent(struct sock *sk)
{
	struct tls_context *ctx;
	bool unsent = false;

	lock_sock(sk);
	ctx = riw_tls_context(sk);
	if (ctx)
		unsent = ctx->partially_sent_record || ctx->pending_open_record_frags ||
			 (ctx->tx_conf == TLS_SW && !list_empty(&tls_sw_ctx_tx(ctx)->tx_list));
	release_sock(sk);
	return unsent;
}

/*
 * Receives octets of one record, as recv() with MSG_DONTWAIT does. `*type` is its type, or 0
 * without one; `*whole` tells whether these octets are its last ones.
 */
static int riw_tls_recv(struct socket *sock, u8 *to, size_t len, u8 *type, bool *whole)
{
	union {
		struct cmsghdr header;
		u8 space[CMSG_SPACE(sizeof(u8))];
	} control = {};
	struct msghdr msg = { .msg_control = &control, .msg_controllen = sizeof(control) };
	struct kvec vec = { .iov_base = to, .iov_len = len };
	int ret;

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &vec, 1, len);
	ret = sock_recvmsg(sock, &msg, MSG_DONTWAIT);
	*type = ret < 0 ? 0 : tls_get_record_type(sock->sk, &control.header);
	*whole = msg.msg_flags & MSG_EOR;
	return ret;
}

/*
 * Receives octets of one type of record, as recv() with MSG_DONTWAIT does. A record may have none:
 * then this returns 0, as at the end of the peer's half, and `*record` is its type. Of a record
 * that is no data, only what fits in `to` is returned. The rest is discarded: the next read would
 * take it for a record of its own.
 */
int riw_helper_tls_recv(struct socket *sock, u8 *to, size_t len, enum riw_tls_record *record)
{
	u8 type, rest[64];
	bool whole;
	int ret;

	ret = riw_tls_recv(sock, to, len, &type, &whole);
	if (ret < 0)
		return ret;

	switch (type) {
	case 0:
		*record = ret ? RIW_TLS_OTHER : RIW_TLS_NONE;
		break;
	case TLS_RECORD_TYPE_DATA:
		*record = RIW_TLS_DATA;
		break;
	case TLS_RECORD_TYPE_ALERT:
		*record = RIW_TLS_ALERT;
		break;
	case TLS_RECORD_TYPE_HANDSHAKE:
		*record = RIW_TLS_HANDSHAKE;
		break;
	default:
		*record = RIW_TLS_OTHER;
	}
	if (ret && *record != RIW_TLS_DATA)
		while (!whole && riw_tls_recv(sock, rest, sizeof(rest), &type, &whole) > 0)
			;
	return ret;
}

/*
 * Sends the alert that ends this side's direction (RFC 8446, section 6.1). Not
 * tls_handshake_close(), which does not say whether there was room for it.
 */
int riw_helper_tls_send_close_notify(struct socket *sock)
{
	u8 alert[] = { TLS_ALERT_LEVEL_WARNING, TLS_ALERT_DESC_CLOSE_NOTIFY };
	union {
		struct cmsghdr header;
		u8 space[CMSG_SPACE(sizeof(u8))];
	} control = {
		.header = {
			.cmsg_len = CMSG_LEN(sizeof(u8)),
			.cmsg_level = SOL_TLS,
			.cmsg_type = TLS_SET_RECORD_TYPE,
		},
	};
	struct msghdr msg = {
		.msg_control = &control,
		.msg_controllen = sizeof(control),
		.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL,
	};
	struct kvec vec = { .iov_base = alert, .iov_len = sizeof(alert) };

	*(u8 *)CMSG_DATA(&control.header) = TLS_RECORD_TYPE_ALERT;
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &vec, 1, sizeof(alert));
	return sock_sendmsg(sock, &msg);
}

/*
 * Waits until the code of no callback of an ended handshake runs any more. Its last act is to wake
 * whoever waits for it; a few instructions follow, and the module must not go before them.
 */
void riw_helper_tls_wait_for_callbacks(void)
{
	synchronize_rcu_tasks();
}
