/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace events of riw. `device` is the name of the RDMA device, `qpn` and `cqn` are the numbers
 * that `rdma resource show` prints.
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

#undef riw_name
#undef riw_last
#define riw_name(value, name) { value, name },
#define riw_last(value, name) { value, name }

/* A connection enters another phase. `qpn` is 0 if it has no queue pair yet, `error` is
 * an errno and `reason` a text, if the connection ends. */
TRACE_EVENT(cm_phase,
	TP_PROTO(
		const char *device,
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

	TP_ARGS(device, endpoint, qpn, from, to, error, reason, reason_len, local, remote),

	TP_STRUCT__entry(
		__string(device, device)
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

	TP_printk("device=%s endpoint=%llu qpn=%u %s -> %s local=%pISpc remote=%pISpc error=%d reason=\"%s\"",
		__get_str(device), __entry->endpoint, __entry->qpn,
		__print_symbolic(__entry->from, RIW_CM_PHASES),
		__print_symbolic(__entry->to, RIW_CM_PHASES),
		__entry->local, __entry->remote, __entry->error, __get_str(reason)
	)
);

/* A queue pair handles an event. */
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

/* A stream ends with an error. Layer, type and code are those of a Terminate. */
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

	TP_printk("device=%s qpn=%u layer=%s type=%u code=0x%02x rule=\"%s\"",
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

#endif /* RIW_TRACE_EVENTS_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE events
#include <trace/define_trace.h>
