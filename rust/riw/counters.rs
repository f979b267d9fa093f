// SPDX-License-Identifier: GPL-2.0

//! The counters that users see: `rdma statistic`, and `hw_counters/` in sysfs.
//!
//! To add one, add its line to the list below, and call [`Counters::inc`] or [`Counters::add`] where it
//! happens.

use kernel::{prelude::*, sync::Arc};
use kernel_ext::percpu::PerCpuCounters;
use rdma::stats::StatDesc;

/// Defines [`Counter`] and the names that users see from one list.
macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $counter:ident = $name:literal,)+) => {
        /// What is counted. The value of each is its place in the list that users see.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub(crate) enum Counter {
            $($(#[doc = $doc])+ $counter,)+
        }

        /// The names, in the order of [`Counter`].
        const NAMES: &[&CStr; [$($name),+].len()] = &[$($name),+];
    };
}

counters! {
    // Streams. A queue pair that is bound to a counter counts these there. A message counts when
    // its last segment is gathered for TCP, or placed; its payload with each segment. All messages
    // of the wire count, those that only open a stream included (RFC 6581, section 5).
    /// Sends.
    TxSends = c"tx_sends",
    /// Their payload, in bytes.
    TxSendBytes = c"tx_send_bytes",
    /// RDMA Writes.
    TxWrites = c"tx_writes",
    /// Their payload, in bytes.
    TxWriteBytes = c"tx_write_bytes",
    /// Requests of RDMA Reads of this side.
    TxReadRequests = c"tx_read_requests",
    /// Responses to RDMA Reads of the peer.
    TxReadResponses = c"tx_read_responses",
    /// Their payload, in bytes.
    TxReadResponseBytes = c"tx_read_response_bytes",
    /// Transmit runs in the context of the thread that posted.
    TxInlineRuns = c"tx_inline_runs",
    /// Transmit runs in a worker.
    TxDeferredRuns = c"tx_deferred_runs",
    /// FPDUs of all messages, Terminates included.
    TxFpdus = c"tx_fpdus",
    /// Payload that was copied to be sent, in bytes.
    TxCopiedBytes = c"tx_copied_bytes",
    /// Sends.
    RxSends = c"rx_sends",
    /// Their payload, in bytes.
    RxSendBytes = c"rx_send_bytes",
    /// RDMA Writes.
    RxWrites = c"rx_writes",
    /// Their payload, in bytes.
    RxWriteBytes = c"rx_write_bytes",
    /// Requests of RDMA Reads of the peer.
    RxReadRequests = c"rx_read_requests",
    /// Responses to RDMA Reads of this side.
    RxReadResponses = c"rx_read_responses",
    /// Their payload, in bytes.
    RxReadResponseBytes = c"rx_read_response_bytes",
    /// FPDUs of all messages, Terminates included. Invalid FPDUs do not count.
    RxFpdus = c"rx_fpdus",
    /// Payload that was copied to where it belongs, in bytes.
    RxCopiedBytes = c"rx_copied_bytes",

    // The device.
    /// Completion queues that have overflowed, because their process did not keep up.
    CqOverflows = c"cq_overflows",
}

/// The counters of a device, or of the queue pairs that are bound to one counter.
pub(crate) struct Counters(PerCpuCounters<{ NAMES.len() }>);

impl Counters {
    /// The descriptions for ib_core.
    pub(crate) const DESCRIPTIONS: &'static [StatDesc] = {
        static LIST: [StatDesc; NAMES.len()] = StatDesc::list(NAMES);
        &LIST
    };

    /// Creates counters, charged to the memory cgroup of the calling process. Process context; may
    /// sleep. Fails with `ENOMEM` without memory.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(Self(PerCpuCounters::new()?), GFP_KERNEL)?)
    }

    /// Counts one more. Any context.
    pub(crate) fn inc(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Counts `n` more. Any context.
    #[inline]
    pub(crate) fn add(&self, counter: Counter, n: u64) {
        if n != 0 {
            // CAST: The place in the list.
            self.0.add(counter as usize, n);
        }
    }

    /// Returns the value at this place of the list. Any context.
    pub(crate) fn get(&self, index: usize) -> u64 {
        self.0.sum(index)
    }
}
