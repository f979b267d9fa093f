// SPDX-License-Identifier: GPL-2.0
/*
 * C wrappers for rust/net: TLS by the kernel (kTLS), with handshakes by a process (tlshd).
 *
 * They look at members of struct sock and of kTLS's contexts, which riw does not bind: these have
 * bit fields, and inline functions find them. Each function reads them under one lock of the
 * socket. The macros of control messages are not for Rust, either.
 */
#include <linux/file.h>
#include <linux/key-type.h>
#include <linux/key.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
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
 * Keys. In C: without CONFIG_KEYS the functions are macros. The type of a key is in a union, and is
 * valid only under the lock of the key.
 */
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

/* As much of the description of a pre-shared key as there is room for. */
static int riw_tls_identity_of(const struct key *key, u8 *to, size_t len)
{
	len = strnlen(key->description, len);
	memcpy(to, key->description, len);
	return len;
}

/*
 * Calls `f` with a key, which the lock keeps from being destroyed with its type. Returns the result
 * or a negative errno. May sleep.
 */
static int riw_tls_with_key(int serial, int (*f)(const struct key *key, u8 *to, size_t len), u8 *to,
			    size_t len)
{
	struct key *key = key_lookup(serial);
	int ret;

	if (IS_ERR(key))
		return PTR_ERR(key);
	down_read(&key->sem);
	ret = f(key, to, len);
	up_read(&key->sem);
	key_put(key);
	return ret;
}

/*
 * Copies the subject of the certificate for which a key was made: DER without the header. Returns
 * its length or a negative errno. May sleep.
 */
int riw_helper_tls_subject(int serial, u8 *to, size_t len)
{
	return riw_tls_with_key(serial, riw_tls_subject_of, to, len);
}

/*
 * Copies the identity of a pre-shared key, without a NUL, as far as there is room. Returns its
 * length or a negative errno. May sleep.
 */
int riw_helper_tls_psk_identity(int serial, u8 *to, size_t len)
{
	return riw_tls_with_key(serial, riw_tls_identity_of, to, len);
}

static bool riw_is_keyring(const struct key *key)
{
	return key->type == &key_type_keyring;
}

/*
 * Whether the secret is as long as SHA-256 or SHA-384 makes it. With a secret of any other length,
 * tlshd lets the sides agree on keys that follow from the secret alone: whoever learns it later can
 * decrypt what has been recorded.
 */
static bool riw_psk_length_ok(const struct key *key)
{
	return key->datalen == 32 || key->datalen == 48;
}

static bool riw_is_psk(struct key *key)
{
	bool is_psk;

	/* The type is in a module: see riw_tls_subject_of(). */
	down_read(&key->sem);
	is_psk = key_is_positive(key) &&
		 (riw_is_keyring(key) ||
		  (!strcmp(key->type->name, "psk") && riw_psk_length_ok(key)));
	up_read(&key->sem);
	return is_psk;
}

/*
 * Finds a pre-shared key, or a keyring of such keys. The calling task must have the permission to
 * view it. Returns a reference or a negative errno: EINVAL for a key of another type or length,
 * otherwise as keyctl(KEYCTL_DESCRIBE) fails. May sleep.
 */
struct key *riw_helper_tls_psk_find(int serial)
{
	struct key *key;
	key_ref_t ref;

	/* A negative number stands for a keyring of the task. */
	if (serial <= 0)
		return ERR_PTR(-EINVAL);
	/* It does not wait for a key that is being made. */
	ref = lookup_user_key(serial, KEY_LOOKUP_PARTIAL, KEY_NEED_VIEW);
	if (IS_ERR(ref))
		return ERR_CAST(ref);
	key = key_ref_to_ptr(ref);
	if (!riw_is_psk(key)) {
		key_put(key);
		return ERR_PTR(-EINVAL);
	}
	return key;
}

void riw_helper_tls_psk_put(struct key *psk)
{
	key_put(psk);
}

int riw_helper_tls_psk_serial(const struct key *psk)
{
	return key_serial(psk);
}

/* Whether the keyring has a link to this key. May sleep. */
static bool riw_keyring_has(struct key *keyring, int serial)
{
	key_serial_t *serials;
	bool found = false;
	long size, len, i;

	down_read(&keyring->sem);
	size = key_type_keyring.read(keyring, NULL, 0);
	up_read(&keyring->sem);
	/* Not under the lock, whose other holders may need memory. Reclaim may wait for this. */
	serials = size > 0 ? kvmalloc(size, GFP_NOIO) : NULL;
	if (!serials)
		return false;
	down_read(&keyring->sem);
	len = key_type_keyring.read(keyring, (char *)serials, size);
	up_read(&keyring->sem);
	/* Links that were added meanwhile may be missing. */
	for (i = 0; i < min(size, len) / (long)sizeof(*serials) && !found; i++)
		found = serials[i] == serial;
	kvfree(serials);
	return found;
}

/*
 * Whether a peer that has used the key `serial` is accepted: it is `psk`, or `psk` is a keyring
 * with a link to it, and its secret has a length that riw takes. Neither may be revoked or have
 * expired. May sleep.
 */
bool riw_helper_tls_psk_accepts(struct key *psk, int serial)
{
	struct key *key;
	bool accepts;

	if (key_validate(psk))
		return false;
	if (!riw_is_keyring(psk))
		return key_serial(psk) == serial;
	key = key_lookup(serial);
	if (IS_ERR(key))
		return false;
	accepts = !key_validate(key) && riw_psk_length_ok(key) && riw_keyring_has(psk, serial);
	key_put(key);
	return accepts;
}
#else
int riw_helper_tls_subject(int serial, u8 *to, size_t len)
{
	return -ENOKEY;
}

int riw_helper_tls_psk_identity(int serial, u8 *to, size_t len)
{
	return -ENOKEY;
}

static bool riw_is_keyring(const struct key *key)
{
	return false;
}

struct key *riw_helper_tls_psk_find(int serial)
{
	return ERR_PTR(-EOPNOTSUPP);
}

void riw_helper_tls_psk_put(struct key *psk)
{
}

int riw_helper_tls_psk_serial(const struct key *psk)
{
	return 0;
}

bool riw_helper_tls_psk_accepts(struct key *psk, int serial)
{
	return false;
}
#endif

/* Checks whether a handshake can begin with a pre-shared key, or with one of a keyring. */
static int riw_tls_check_psk(const struct key *psk, bool server)
{
	if (key_validate(psk))
		return -EKEYREVOKED;
	/* A client has to offer one key. */
	return !server && riw_is_keyring(psk) ? -ENOKEY : 0;
}

/*
 * Requests a handshake from tlshd, with `psk`, or with certificates if it is NULL. `named`: the
 * name of the socket's file is that of the peer. `psk` must stay valid during the call, `ctx` until
 * `done` is called, once, or tls_handshake_cancel() returns true. Neither happens if this fails:
 * EKEYREVOKED if `psk` may not be used any more, ENOKEY if it is a keyring, and this is the client.
 *
 * The kernel may still read the name after a cancel, while it hands the request to tlshd. It has a
 * reference to the file then.
 *
 * In C: it uses the name of the file, and a member of struct sock. Which key fits is decided beside
 * the call that takes it.
 */
int riw_helper_tls_handshake(struct socket *sock, bool server, bool named, const struct key *psk,
			     unsigned int timeout_ms, riw_tls_done_t done, void *ctx)
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
	int ret = psk ? riw_tls_check_psk(psk, server) : 0;

	if (ret)
		return ret;
	/* A server names no key: tlshd finds the one that the client offers in its keyrings. */
	if (psk && !server) {
		args.ta_num_peerids = 1;
		args.ta_my_peerids[0] = key_serial(psk);
	}
	if (psk)
		ret = server ? tls_server_hello_psk(&args, GFP_KERNEL) :
			       tls_client_hello_psk(&args, GFP_KERNEL);
	else
		ret = server ? tls_server_hello_x509(&args, GFP_KERNEL) :
			       tls_client_hello_x509(&args, GFP_KERNEL);
	/* Some kernels leave the destructor of a request that they have refused. */
	if (ret)
		sock->sk->sk_destruct = destruct;
	return ret;
}

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
 *
 * The member is kTLS's own: kTLS sets it while it waits for new keys. There is no other way to end
 * tls_sw_recvmsg(). It has no limit on records, and while one is ready it looks at nothing else
 * that others can set: sk_err, sk_shutdown, timeouts and signals count only when it has to wait.
 * splice_read() takes one record at a time, but only into a pipe, and read_sock() takes empty ones
 * in a loop, too. Both fail at an alert. The callback cannot end the connection: tcp_abort() takes
 * the lock. kTLS clears the member only when it is given new keys, which riw never does.
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
 * Receives octets of one type of record, as recv() with MSG_DONTWAIT does. A record may have none:
 * then this returns 0, as at the end of the peer's half. `*type` is the type of the record, or 0
 * without one; `*whole` tells whether these octets are its last ones.
 */
int riw_helper_tls_recv(struct socket *sock, u8 *to, size_t len, u8 *type, bool *whole)
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
 *
 * A task may be preempted among them. Only Tasks RCU waits for it: without, synchronize_rcu_tasks()
 * is synchronize_rcu(). In the kernel's tree, Kconfig selects NEED_TASKS_RCU. Elsewhere, the kernel
 * must have an option that does so: BPF_SYSCALL, KPROBES or TRACING.
 */
static_assert(IS_ENABLED(CONFIG_TASKS_RCU) || !IS_ENABLED(CONFIG_PREEMPTION));

void riw_helper_tls_wait_for_callbacks(void)
{
	synchronize_rcu_tasks();
}
