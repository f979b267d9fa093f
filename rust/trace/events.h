/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace events of riw. `device` is the name of the RDMA device, `qpn` and `cqn` are the numbers
 * that `rdma resource show` prints. No event has an address of the kernel: the `wr_id` of kernel
 * users, and the `addr` of their memory that is in no region, are hashed.
 *
 * `selftests/check_documents --write` writes the comment and the fields of each event into
 * Documentation/tracing.md.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM riw

#if !defined(RIW_TRACE_EVENTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define RIW_TRACE_EVENTS_H

#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>
#include "names.h"

/* Lets tools that parse the formats know the values of the enums. */
#undef riw_name
#undef riw_last
#define riw_name(value, name) TRACE_DEFINE_ENUM(value);
#define riw_last(value, name) TRACE_DEFINE_ENUM(value);

RIW_CM_PHASES
RIW_QP_STATES
RIW_QP_EVENTS
RIW_RDMAP_OPCODES
RIW_LAYERS
RIW_WC_OPCODES
RIW_WC_STATUSES
RIW_WR_FLAGS

#undef riw_name
#undef riw_last
#define riw_name(value, name) { value, name },
#define riw_last(value, name) { value, name }

/*
 * A connection enters another phase of its setup or end. `qpn` is 0 if it has no queue pair yet.
 */
TRACE_EVENT(cm_phase,
	TP_PROTO(
		const struct ib_device *dev,
		u64 endpoint,
		u32 qpn,
		u32 from,
		u32 to,
		int error,
		const char *reason,
		size_t reason_len,
		const struct __kernel_sockaddr_storage *local,
		const struct __kernel_sockaddr_storage *remote
	),

	TP_ARGS(dev, endpoint, qpn, from, to, error, reason, reason_len, local, remote),

	TP_STRUCT__entry(
		__string(device, dev ? dev->name : "?")
		__field(u64, endpoint)
		__field(u32, qpn)
		__field(u32, from)
		__field(u32, to)
		__field(int, error)
		__string_len(reason, reason, reason_len)
		__array(unsigned char, local, sizeof(struct sockaddr_in6))
		__array(unsigned char, remote, sizeof(struct sockaddr_in6))
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->endpoint = endpoint;
		__entry->qpn = qpn;
		__entry->from = from;
		__entry->to = to;
		__entry->error = error;
		__assign_str(reason);
		memcpy(__entry->local, local, sizeof(struct sockaddr_in6));
		memcpy(__entry->remote, remote, sizeof(struct sockaddr_in6));
	),

	TP_printk("device=%s endpoint=%llu qpn=%u %s -> %s local=%pISpc remote=%pISpc error=%d reason=%s",
		__get_str(device), __entry->endpoint, __entry->qpn,
		__print_symbolic(__entry->from, RIW_CM_PHASES),
		__print_symbolic(__entry->to, RIW_CM_PHASES),
		__entry->local, __entry->remote, __entry->error, __get_str(reason)
	)
);

/* A queue pair handles an event; the state may stay the same. */
TRACE_EVENT(qp_state,
	TP_PROTO(
		const struct ib_device *dev,
		u32 qpn,
		u32 from,
		u32 to,
		u32 event
	),

	TP_ARGS(dev, qpn, from, to, event),

	TP_STRUCT__entry(
		__string(device, dev->name)
		__field(u32, qpn)
		__field(u32, from)
		__field(u32, to)
		__field(u32, event)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->qpn = qpn;
		__entry->from = from;
		__entry->to = to;
		__entry->event = event;
	),

	TP_printk("device=%s qpn=%u %s -> %s event=%s",
		__get_str(device), __entry->qpn,
		__print_symbolic(__entry->from, RIW_QP_STATES),
		__print_symbolic(__entry->to, RIW_QP_STATES),
		__print_symbolic(__entry->event, RIW_QP_EVENTS)
	)
);

/*
 * A stream ends with an error: layer, type and code of the Terminate, and the rule that was broken.
 * After a reset or a time-out, or if this side has given the connection up, it has the code of "MPA
 * closed" (`layer=MPA type=0 code=0x01`), although no Terminate exists.
 */
TRACE_EVENT(stream_error,
	TP_PROTO(
		const struct ib_device *dev,
		u32 qpn,
		u8 layer,
		u8 etype,
		u8 code,
		const char *rule,
		size_t rule_len
	),

	TP_ARGS(dev, qpn, layer, etype, code, rule, rule_len),

	TP_STRUCT__entry(
		__string(device, dev->name)
		__string_len(rule, rule, rule_len)
		__field(u32, qpn)
		__field(u8, layer)
		__field(u8, etype)
		__field(u8, code)
	),

	TP_fast_assign(
		__assign_str(device);
		__assign_str(rule);
		__entry->qpn = qpn;
		__entry->layer = layer;
		__entry->etype = etype;
		__entry->code = code;
	),

	TP_printk("device=%s qpn=%u layer=%s type=%u code=0x%02x rule=%s",
		__get_str(device), __entry->qpn,
		__print_symbolic(__entry->layer, RIW_LAYERS),
		__entry->etype, __entry->code, __get_str(rule)
	)
);

DECLARE_EVENT_CLASS(riw_terminate_class,
	TP_PROTO(
		const struct ib_device *dev,
		u32 qpn,
		u8 layer,
		u8 etype,
		u8 code
	),

	TP_ARGS(dev, qpn, layer, etype, code),

	TP_STRUCT__entry(
		__string(device, dev->name)
		__field(u32, qpn)
		__field(u8, layer)
		__field(u8, etype)
		__field(u8, code)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->qpn = qpn;
		__entry->layer = layer;
		__entry->etype = etype;
		__entry->code = code;
	),

	TP_printk("device=%s qpn=%u layer=%s type=%u code=0x%02x",
		__get_str(device), __entry->qpn,
		__print_symbolic(__entry->layer, RIW_LAYERS),
		__entry->etype, __entry->code
	)
);

/* A Terminate is sent. */
DEFINE_EVENT(riw_terminate_class, terminate_tx,
	TP_PROTO(const struct ib_device *dev, u32 qpn, u8 layer, u8 etype, u8 code),
	TP_ARGS(dev, qpn, layer, etype, code));

/* A Terminate is received. */
DEFINE_EVENT(riw_terminate_class, terminate_rx,
	TP_PROTO(const struct ib_device *dev, u32 qpn, u8 layer, u8 etype, u8 code),
	TP_ARGS(dev, qpn, layer, etype, code));

/*
 * A kernel user posts a work request to queue pair `qpn`, or a receive to shared receive queue
 * `srqn`; the other number is 0. A process posts by a store to shared memory, which no event shows.
 */
TRACE_EVENT(wr_post,
	TP_PROTO(
		const struct ib_device *dev,
		u32 qpn,
		u32 srqn,
		u64 wr_id,
		u8 opcode
	),

	TP_ARGS(dev, qpn, srqn, wr_id, opcode),

	TP_STRUCT__entry(
		__string(device, dev->name)
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u32, srqn)
		__field(u8, opcode)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->wr_id = wr_id;
		__entry->qpn = qpn;
		__entry->srqn = srqn;
		__entry->opcode = opcode;
	),

	TP_printk("device=%s qpn=%u srqn=%u wr_id=0x%llx %s",
		__get_str(device), __entry->qpn, __entry->srqn, __entry->wr_id,
		__print_symbolic(__entry->opcode, RIW_WC_OPCODES)
	)
);

/*
 * A process rings the doorbell of the receive queue of `qpn`, or of the shared one `srqn`. Only
 * riw's own user ABI has one. It rings only if riw waits for a receive, or has to flush.
 */
TRACE_EVENT(recv_doorbell,
	TP_PROTO(const struct ib_device *dev, u32 qpn, u32 srqn),

	TP_ARGS(dev, qpn, srqn),

	TP_STRUCT__entry(
		__string(device, dev->name)
		__field(u32, qpn)
		__field(u32, srqn)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->qpn = qpn;
		__entry->srqn = srqn;
	),

	TP_printk("device=%s qpn=%u srqn=%u", __get_str(device), __entry->qpn, __entry->srqn)
);

/* A process rings the doorbell of a send queue. It need not ring for each request. */
TRACE_EVENT(doorbell,
	TP_PROTO(const struct ib_device *dev, u32 qpn),

	TP_ARGS(dev, qpn),

	TP_STRUCT__entry(
		__string(device, dev->name)
		__field(u32, qpn)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->qpn = qpn;
	),

	TP_printk("device=%s qpn=%u", __get_str(device), __entry->qpn)
);

/* A work request leaves the send queue: its message is next. */
TRACE_EVENT(wr_begin,
	TP_PROTO(
		const struct ib_device *dev,
		u32 qpn,
		u64 wr_id,
		u8 opcode,
		u32 bytes,
		u16 flags
	),

	TP_ARGS(dev, qpn, wr_id, opcode, bytes, flags),

	TP_STRUCT__entry(
		__string(device, dev->name)
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u32, bytes)
		__field(u16, flags)
		__field(u8, opcode)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->wr_id = wr_id;
		__entry->qpn = qpn;
		__entry->bytes = bytes;
		__entry->flags = flags;
		__entry->opcode = opcode;
	),

	TP_printk("device=%s qpn=%u wr_id=0x%llx %s bytes=%u flags=%s",
		__get_str(device), __entry->qpn, __entry->wr_id,
		__print_symbolic(__entry->opcode, RIW_WC_OPCODES),
		__entry->bytes,
		__print_flags(__entry->flags, "|", RIW_WR_FLAGS)
	)
);

/* A completion is about to be added to a completion queue that has room. */
TRACE_EVENT(wr_complete,
	TP_PROTO(
		const struct ib_cq *cq,
		u32 qpn,
		u64 wr_id,
		u8 opcode,
		u16 status,
		u32 bytes
	),

	TP_ARGS(cq, qpn, wr_id, opcode, status, bytes),

	TP_STRUCT__entry(
		__string(device, cq->device->name)
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u32, cqn)
		__field(u32, bytes)
		__field(u16, status)
		__field(u8, opcode)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->wr_id = wr_id;
		__entry->qpn = qpn;
		__entry->cqn = cq->res.id;
		__entry->bytes = bytes;
		__entry->status = status;
		__entry->opcode = opcode;
	),

	TP_printk("device=%s qpn=%u cqn=%u wr_id=0x%llx %s %s bytes=%u",
		__get_str(device), __entry->qpn, __entry->cqn, __entry->wr_id,
		__print_symbolic(__entry->opcode, RIW_WC_OPCODES),
		__print_symbolic(__entry->status, RIW_WC_STATUSES),
		__entry->bytes
	)
);

/*
 * The headers of an FPDU (RFC 5041, section 4). `len` counts the octets behind the DDP header. A
 * tagged segment has `stag` and `to`; an untagged one has `queue`, `msn`, `mo`, and in `stag` the
 * field that a Send with Invalidate uses. The other fields are 0.
 */
DECLARE_EVENT_CLASS(riw_fpdu_class,
	TP_PROTO(
		const struct ib_device *dev,
		u32 qpn,
		u8 opcode,
		bool last,
		u32 len,
		u32 stag,
		u64 to,
		u32 queue,
		u32 msn,
		u32 mo
	),

	TP_ARGS(dev, qpn, opcode, last, len, stag, to, queue, msn, mo),

	TP_STRUCT__entry(
		__string(device, dev->name)
		__field(u64, to)
		__field(u32, qpn)
		__field(u32, len)
		__field(u32, stag)
		__field(u32, queue)
		__field(u32, msn)
		__field(u32, mo)
		__field(u8, opcode)
		__field(bool, last)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->to = to;
		__entry->qpn = qpn;
		__entry->len = len;
		__entry->stag = stag;
		__entry->queue = queue;
		__entry->msn = msn;
		__entry->mo = mo;
		__entry->opcode = opcode;
		__entry->last = last;
	),

	TP_printk("device=%s qpn=%u %s last=%d len=%u stag=0x%08x to=0x%llx queue=%u msn=%u mo=%u",
		__get_str(device), __entry->qpn,
		__print_symbolic(__entry->opcode, RIW_RDMAP_OPCODES),
		__entry->last, __entry->len, __entry->stag, __entry->to,
		__entry->queue, __entry->msn, __entry->mo
	)
);

/* An FPDU, or a segment chunk of SCTP, is ready for the socket. */
DEFINE_EVENT(riw_fpdu_class, fpdu_tx,
	TP_PROTO(const struct ib_device *dev, u32 qpn, u8 opcode, bool last, u32 len, u32 stag,
		 u64 to, u32 queue, u32 msn, u32 mo),
	TP_ARGS(dev, qpn, opcode, last, len, stag, to, queue, msn, mo));

/*
 * An FPDU is received whole, with the right CRC, if the connection uses CRCs; or a segment chunk of
 * SCTP, in its turn. Its headers are not checked yet.
 */
DEFINE_EVENT(riw_fpdu_class, fpdu_rx,
	TP_PROTO(const struct ib_device *dev, u32 qpn, u8 opcode, bool last, u32 len, u32 stag,
		 u64 to, u32 queue, u32 msn, u32 mo),
	TP_ARGS(dev, qpn, opcode, last, len, stag, to, queue, msn, mo));

/*
 * Payload of a received segment, or the part of it in one buffer, is placed at `addr` of the memory
 * region `stag`.
 */
TRACE_EVENT(place,
	TP_PROTO(const struct ib_device *dev, u32 qpn, u32 stag, u64 addr, u32 len),

	TP_ARGS(dev, qpn, stag, addr, len),

	TP_STRUCT__entry(
		__string(device, dev->name)
		__field(u64, addr)
		__field(u32, qpn)
		__field(u32, stag)
		__field(u32, len)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->addr = addr;
		__entry->qpn = qpn;
		__entry->stag = stag;
		__entry->len = len;
	),

	TP_printk("device=%s qpn=%u stag=0x%08x addr=0x%llx len=%u",
		__get_str(device), __entry->qpn, __entry->stag, __entry->addr, __entry->len
	)
);

/*
 * A kernel user arms a completion queue. A process arms by a store to shared memory, which no event
 * shows.
 */
TRACE_EVENT(cq_arm,
	TP_PROTO(const struct ib_cq *cq, bool solicited),

	TP_ARGS(cq, solicited),

	TP_STRUCT__entry(
		__string(device, cq->device->name)
		__field(u32, cqn)
		__field(bool, solicited)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->cqn = cq->res.id;
		__entry->solicited = solicited;
	),

	TP_printk("device=%s cqn=%u for=%s", __get_str(device), __entry->cqn,
		__entry->solicited ? "SOLICITED" : "NEXT"
	)
);

/*
 * The consumer is notified: its completion queue was armed for a completion that was added. Several
 * events while the handler of a kernel user runs cause one more call of it.
 */
TRACE_EVENT(cq_notify,
	TP_PROTO(const struct ib_cq *cq),

	TP_ARGS(cq),

	TP_STRUCT__entry(
		__string(device, cq->device->name)
		__field(u32, cqn)
	),

	TP_fast_assign(
		__assign_str(device);
		__entry->cqn = cq->res.id;
	),

	TP_printk("device=%s cqn=%u", __get_str(device), __entry->cqn)
);

#endif /* RIW_TRACE_EVENTS_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE events
#include <trace/define_trace.h>
