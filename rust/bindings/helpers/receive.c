// SPDX-License-Identifier: GPL-2.0
/*
 * C wrappers for rust/net: the receive queue of a TCP socket.
 *
 * The walk is in C. The kernel has inline functions and macros for the parts of an skb. From Rust
 * each would be a call, some ten for a piece, on the path of each message. tcp_read_sock() is no
 * way: it takes what it has walked, while riw looks at bytes that stay in the queue.
 */
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <net/tcp.h>

#include "net.h"

static size_t riw_rx_size(const struct riw_rx_place *place)
{
	if (!place->frag)
		return skb_headlen(place->skb);
	return skb_frag_size(&skb_shinfo(place->skb)->frags[place->frag - 1]);
}

/*
 * Moves to the next piece. Returns false if there is none, or if the CPU cannot read it. Also if an
 * skb of a frag_list has a frag_list of its own: a segment in IP fragments may, if these came in
 * fragments themselves. It takes a tunnel in a tunnel, or a hostile peer, and ends the stream.
 */
static bool riw_rx_next(struct sock *sk, struct riw_rx_place *place)
{
	const struct sk_buff *next;

	if (place->skb != place->head && skb_has_frag_list(place->skb))
		return false;
	if (place->frag < skb_shinfo(place->skb)->nr_frags) {
		/* Not readable: device memory. */
		if (!skb_frags_readable(place->skb))
			return false;
		place->frag++;
		return true;
	}

	next = place->skb == place->head ? skb_shinfo(place->skb)->frag_list : place->skb->next;
	if (!next) {
		if (skb_queue_is_last(&sk->sk_receive_queue, place->head))
			return false;
		next = skb_queue_next(&sk->sk_receive_queue, place->head);
		/* The skbs may overlap: skip the part of the next one that this one has. */
		place->offset += TCP_SKB_CB(place->head)->seq + place->head->len -
				 TCP_SKB_CB(next)->seq;
		place->head = next;
	}
	place->skb = next;
	place->frag = 0;
	return true;
}

/* Moves to the piece that holds the next byte. Returns false if there is none. */
static bool riw_rx_settle(struct sock *sk, struct riw_rx_place *place)
{
	size_t size;

	while (place->offset >= (size = riw_rx_size(place))) {
		place->offset -= size;
		if (!riw_rx_next(sk, place)) {
			place->offset += size;
			return false;
		}
	}
	return true;
}

/* Moves to the piece that holds the next byte, and notes the contiguous bytes from there on. */
static void riw_rx_enter(struct sock *sk, struct riw_rx_place *place)
{
	const skb_frag_t *frag;

	place->run = 0;
	if (!riw_rx_settle(sk, place))
		return;
	if (!place->frag) {
		place->data = place->skb->data + place->offset;
	} else {
		frag = &skb_shinfo(place->skb)->frags[place->frag - 1];
		/* riw_helper_rx_each() maps it. */
		if (PageHighMem(skb_frag_page(frag)))
			return;
		place->data = (const u8 *)skb_frag_address(frag) + place->offset;
	}
	place->run = riw_rx_size(place) - place->offset;
}

/*
 * Moves to the first byte that is not taken. Returns the number of bytes from there on, up to
 * urgent data. The socket must be locked.
 */
size_t riw_helper_rx_begin(struct sock *sk, struct riw_rx_place *place)
{
	u32 offset;
	int count;

	place->run = 0;
	place->head = tcp_recv_skb(sk, tcp_sk(sk)->copied_seq, &offset);
	if (!place->head)
		return 0;
	place->skb = place->head;
	place->frag = 0;
	place->offset = offset;
	count = tcp_inq(sk);
	if (count <= 0)
		return 0;
	riw_rx_enter(sk, place);
	return count;
}

/* Moves over `count` bytes. The caller guarantees that more bytes follow. */
void riw_helper_rx_advance(struct sock *sk, struct riw_rx_place *place, size_t count)
{
	place->offset += count;
	riw_rx_enter(sk, place);
}

/*
 * Calls the actor for `len` bytes, from `skip` bytes behind `from` on, piece by piece. The caller
 * guarantees that the bytes exist. Returns the number of bytes passed: fewer than `len` if the CPU
 * cannot read the rest. The actor must not sleep.
 */
size_t riw_helper_rx_each(struct sock *sk, const struct riw_rx_place *from, size_t skip, size_t len,
			  riw_rx_actor_t actor, void *ctx)
{
	struct riw_rx_place place = *from;
	size_t done, n, offset;
	const skb_frag_t *frag;
	struct page *page;
	void *address;

	place.offset += skip;
	for (done = 0; done < len && riw_rx_settle(sk, &place); done += n) {
		n = min(riw_rx_size(&place) - place.offset, len - done);
		if (!place.frag) {
			actor(ctx, place.skb->data + place.offset, n);
		} else {
			frag = &skb_shinfo(place.skb)->frags[place.frag - 1];
			page = skb_frag_page(frag);
			offset = skb_frag_off(frag) + place.offset;
			if (skb_frag_must_loop(page)) {
				page += offset >> PAGE_SHIFT;
				offset = offset_in_page(offset);
				n = min(n, PAGE_SIZE - offset);
			}
			address = kmap_local_page(page);
			actor(ctx, address + offset, n);
			kunmap_local(address);
		}
		place.offset += n;
	}
	return done;
}

/*
 * Returns zeroed memory for received data, to be freed by kvfree(). A peer decides when it is
 * needed, and the caller tries again later: so the OOM killer is not called for it, and no reclaim
 * is repeated. In C: as riw_helper_kvzalloc_charged().
 */
void *riw_helper_recv_buf_alloc(size_t size)
{
	return kvzalloc(size, GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_NORETRY);
}
