// SPDX-License-Identifier: GPL-2.0
/* Creates the trace events, and for each event a function that Rust calls. */
#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "events.h"
