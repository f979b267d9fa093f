// SPDX-License-Identifier: GPL-2.0

//! The counters that users see: `rdma statistic`, and `hw_counters/` in sysfs.
//!
//! To add one, add its line to the list below, call [`Counters::inc`] or
//! [`Counters::add_several`] where it happens, and describe it in `Documentation/operating.md`.

use iwarp::{
    error::{LAYER_DDP, LAYER_RDMAP},
    DdpTagged, DdpUntagged, Error, Mpa, Rdmap, Sctp, TermCode,
};
use kernel::{prelude::*, sync::Arc};
use kernel_ext::{
    percpu::{Batch, PerCpuCounters},
    sync::BhSpinLockGuard,
};
use rdma::stats::StatDesc;

/// Defines [`Counter`] and the names that users see from one list.
macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $counter:ident = $name:literal,)+) => {
        /// A counter. Its value is its place in the list that users see.
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
    // its last segment is gathered for the socket, or placed; its payload with each segment. All
    // messages of the wire count, messages that only open a stream included (RFC 6581, section 5).
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
    /// Requests of atomic additions of this side, masked or not.
    TxFetchAdds = c"tx_fetch_adds",
    /// Requests of atomic comparisons and swaps of this side, masked or not.
    TxCmpSwaps = c"tx_cmp_swaps",
    /// Responses to atomic operations of the peer.
    TxAtomicResponses = c"tx_atomic_responses",
    /// Immediate Data, each of 8 bytes.
    TxImmediates = c"tx_immediates",
    /// Transmit runs in the context of the thread that posted, without those that only let messages
    /// wait.
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
    /// Requests of atomic additions of the peer, masked or not.
    RxFetchAdds = c"rx_fetch_adds",
    /// Requests of atomic comparisons and swaps of the peer, masked or not.
    RxCmpSwaps = c"rx_cmp_swaps",
    /// Responses to atomic operations of this side.
    RxAtomicResponses = c"rx_atomic_responses",
    /// Immediate Data, each of 8 bytes.
    RxImmediates = c"rx_immediates",
    /// FPDUs of all messages, Terminates included. Invalid FPDUs do not count.
    RxFpdus = c"rx_fpdus",
    /// Payload that was copied to where it belongs, in bytes.
    RxCopiedBytes = c"rx_copied_bytes",
    /// Messages for which no receive was posted when they arrived, and which waited for one.
    RxWaits = c"rx_waits",

    // The device: a counter that a queue pair is bound to has none of these.
    /// Completion queues that have overflowed, because their process did not keep up.
    CqOverflows = c"cq_overflows",

    // The device: Terminates, by the layer that found the error.
    /// Sent, for errors that RDMAP found.
    TxTerminatesRdmap = c"tx_terminates_rdmap",
    /// Sent, for errors that DDP found.
    TxTerminatesDdp = c"tx_terminates_ddp",
    /// Sent, for errors that MPA found.
    TxTerminatesMpa = c"tx_terminates_mpa",
    /// Received, for errors that the peer's RDMAP found.
    RxTerminatesRdmap = c"rx_terminates_rdmap",
    /// Received, for errors that the peer's DDP found.
    RxTerminatesDdp = c"rx_terminates_ddp",
    /// Received, for errors that the peer's MPA found, or an unknown layer.
    RxTerminatesMpa = c"rx_terminates_mpa",

    // The device: streams that ended in an error, each once, by the first reason.
    /// The CRC of an FPDU was wrong.
    StreamErrorsCrc = c"stream_errors_crc",
    /// A marker was wrong, or an FPDU too short for its headers; over SCTP, a chunk was wrong, or
    /// not allowed at that point of the session.
    StreamErrorsFraming = c"stream_errors_framing",
    /// Over SCTP, the DDP-SSN of a chunk was used before, too far ahead, or out of order.
    StreamErrorsSsn = c"stream_errors_ssn",
    /// Over SCTP, chunks ahead of a missing one took too much memory.
    StreamErrorsHeld = c"stream_errors_held",
    /// An STag was not valid, or of another protection domain.
    StreamErrorsStag = c"stream_errors_stag",
    /// An access was outside of its region, or wrapped around.
    StreamErrorsBounds = c"stream_errors_bounds",
    /// A region did not grant the right, or could not be invalidated.
    StreamErrorsAccess = c"stream_errors_access",
    /// No receive was posted for a Send, in its time.
    StreamErrorsNoReceive = c"stream_errors_no_receive",
    /// The peer had more reads and atomic operations outstanding than the IRD, or requested one
    /// after this side had begun to close.
    StreamErrorsReadLimit = c"stream_errors_read_limit",
    /// A message was longer than its buffer.
    StreamErrorsTooLong = c"stream_errors_too_long",
    /// An untagged segment had a wrong MSN, message offset or queue.
    StreamErrorsSequence = c"stream_errors_sequence",
    /// A wrong version or opcode, or a message cut short.
    StreamErrorsProtocol = c"stream_errors_protocol",
    /// This side failed: a work request, memory, or a completion queue.
    StreamErrorsLocal = c"stream_errors_local",
    /// The peer sent a Terminate.
    StreamErrorsPeer = c"stream_errors_peer",
    /// The connection was reset.
    StreamErrorsReset = c"stream_errors_reset",
    /// The peer did not answer.
    StreamErrorsTimeout = c"stream_errors_timeout",
    /// The peer closed inside a message, or with work of this side outstanding.
    StreamErrorsClosedEarly = c"stream_errors_closed_early",

    // The device: connections. Each counts once, when it is established or when it fails.
    /// Established; this side connected.
    ConnectionsOpened = c"connections_opened",
    /// Established; this side accepted.
    ConnectionsAccepted = c"connections_accepted",
    /// Rejected by this side's consumer, or for it: it has closed.
    ConnectionsRejected = c"connections_rejected",
    /// Rejected by the peer's consumer.
    ConnectionsRefused = c"connections_refused",
    /// Ended by `connect_timeout`, `startup_timeout` or `accept_timeout`.
    ConnectionsTimedOut = c"connections_timed_out",
    /// Ended to make room for other half-open connections, or because the listener closed.
    ConnectionsEvicted = c"connections_evicted",
    /// The peer's startup frame was malformed, its session control over SCTP was wrong, or its
    /// stream failed at the first FPDU.
    StartupErrorsFrame = c"startup_errors_frame",
    /// The peer's revision of MPA is not supported.
    StartupErrorsRevision = c"startup_errors_revision",
    /// The peer requires CRCs, and they are off on this side.
    StartupErrorsCrc = c"startup_errors_crc",
    /// No RTR indication in common.
    StartupErrorsRtr = c"startup_errors_rtr",
    /// The peer's ORD exceeds the largest IRD of this side.
    StartupErrorsIrd = c"startup_errors_ird",
    /// The peer closed or reset the connection.
    StartupErrorsClosed = c"startup_errors_closed",
    /// SCTP connected, but the peer does not announce DDP (RFC 5043, section 7.1), or has too many
    /// addresses.
    StartupErrorsAdaptation = c"startup_errors_adaptation",
    /// The handshake of TLS failed, or could not be made.
    StartupErrorsTls = c"startup_errors_tls",
    /// The transport did not connect.
    StartupErrorsUnreachable = c"startup_errors_unreachable",
    /// This side failed, its consumer gave up, or its device was removed.
    StartupErrorsLocal = c"startup_errors_local",
}

// CAST: Places in the list.
const TX_COPIED_BYTES: usize = Counter::TxCopiedBytes as usize;
const RX_COPIED_BYTES: usize = Counter::RxCopiedBytes as usize;

/// The counters of a device, or of the queue pairs that are bound to one counter.
pub(crate) struct Counters {
    values: PerCpuCounters<{ NAMES.len() }>,
    /// Counts the same events, and those of others.
    total: Option<Arc<Counters>>,
}

impl Counter {
    /// The counter of Terminates sent for errors that this layer found.
    pub(crate) fn tx_terminates(code: TermCode) -> Self {
        match code.layer {
            LAYER_RDMAP => Self::TxTerminatesRdmap,
            LAYER_DDP => Self::TxTerminatesDdp,
            _ => Self::TxTerminatesMpa,
        }
    }

    /// The counter of Terminates received for errors that this layer found.
    pub(crate) fn rx_terminates(code: TermCode) -> Self {
        match code.layer {
            LAYER_RDMAP => Self::RxTerminatesRdmap,
            LAYER_DDP => Self::RxTerminatesDdp,
            _ => Self::RxTerminatesMpa,
        }
    }

    /// The counter of streams that ended in this error, which this side found. Any context.
    pub(crate) fn stream_errors(error: Error) -> Self {
        match error {
            Error::Mpa(Mpa::Crc) => Self::StreamErrorsCrc,
            Error::Mpa(Mpa::Marker | Mpa::Length)
            | Error::Sctp(
                Sctp::Length | Sctp::Ppid | Sctp::Function | Sctp::PrivateData | Sctp::Sequence,
            ) => Self::StreamErrorsFraming,
            Error::Sctp(Sctp::Duplicate | Sctp::TooFar | Sctp::Order) => Self::StreamErrorsSsn,
            Error::Sctp(Sctp::TooManyHeld) => Self::StreamErrorsHeld,
            Error::LlpClosed => Self::StreamErrorsClosedEarly,
            Error::DdpTagged(DdpTagged::InvalidStag | DdpTagged::StagNotAssociated)
            | Error::Rdmap(Rdmap::InvalidStag | Rdmap::StagNotAssociated) => Self::StreamErrorsStag,
            Error::DdpTagged(DdpTagged::Bounds | DdpTagged::ToWrap)
            | Error::Rdmap(Rdmap::Bounds | Rdmap::ToWrap) => Self::StreamErrorsBounds,
            Error::DdpTagged(DdpTagged::AccessRights)
            | Error::Rdmap(
                Rdmap::AccessRights
                | Rdmap::CannotInvalidate
                | Rdmap::OperationCannotInvalidate
                | Rdmap::ProtectionUnspecified,
            ) => Self::StreamErrorsAccess,
            Error::DdpUntagged(DdpUntagged::NoBuffer) => Self::StreamErrorsNoReceive,
            Error::DdpUntagged(DdpUntagged::TooManyReads) => Self::StreamErrorsReadLimit,
            Error::DdpUntagged(DdpUntagged::TooLong) => Self::StreamErrorsTooLong,
            Error::DdpUntagged(
                DdpUntagged::InvalidQn | DdpUntagged::InvalidMsnRange | DdpUntagged::InvalidMo,
            ) => Self::StreamErrorsSequence,
            Error::Local(_) | Error::DdpLocalCatastrophic | Error::Mpa(Mpa::LocalCatastrophic) => {
                Self::StreamErrorsLocal
            }
            Error::DdpTagged(DdpTagged::InvalidVersion)
            | Error::DdpUntagged(DdpUntagged::InvalidVersion)
            | Error::Mpa(Mpa::Startup | Mpa::InsufficientIrd | Mpa::NoRtr)
            | Error::Rdmap(
                Rdmap::InvalidVersion
                | Rdmap::UnexpectedOpcode
                | Rdmap::CatastrophicStream
                | Rdmap::UnalignedAtomic
                | Rdmap::CatastrophicGlobal
                | Rdmap::Unspecified
                | Rdmap::WrongResponse,
            ) => Self::StreamErrorsProtocol,
        }
    }
}

impl Counters {
    /// The number of counters of streams, the first ones of the list.
    // CAST: A place in the list.
    pub(crate) const STREAM_COUNTERS: usize = Counter::CqOverflows as usize;

    /// The descriptions for ib_core.
    pub(crate) const DESCRIPTIONS: &'static [StatDesc] = {
        static LIST: [StatDesc; NAMES.len()] = StatDesc::list(NAMES);
        &LIST
    };

    /// Creates counters, charged to the memory cgroup of the calling process. What they count,
    /// `total` counts, too. Process context; may sleep. Fails with `ENOMEM` without memory.
    pub(crate) fn new(total: Option<Arc<Self>>) -> Result<Arc<Self>> {
        let values = PerCpuCounters::new()?;

        Ok(Arc::new(Self { values, total }, GFP_KERNEL_ACCOUNT)?)
    }

    /// Counts one more. Any context.
    pub(crate) fn inc(&self, counter: Counter) {
        // CAST: The place in the list.
        self.values.add(counter as usize, 1);
        if let Some(total) = &self.total {
            total.inc(counter);
        }
    }

    /// Counts several events. Process context or softirq. No hard interrupt may count them, too.
    #[inline]
    pub(crate) fn add_several(&self, counts: &[(Counter, u64)]) {
        self.values.add_several(|batch| add_all(batch, counts));
        if let Some(total) = &self.total {
            total.values.add_several(|batch| add_all(batch, counts));
        }
    }

    /// As [`Self::add_several`], for the holder of a lock that disables softirqs already.
    #[inline]
    pub(crate) fn add_several_locked<T>(
        &self,
        lock: &BhSpinLockGuard<'_, T>,
        counts: &[(Counter, u64)],
    ) {
        self.values
            .add_several_locked(lock, |batch| add_all(batch, counts));
        if let Some(total) = &self.total {
            total
                .values
                .add_several_locked(lock, |batch| add_all(batch, counts));
        }
    }

    /// Returns the value at this place of the list. Any context.
    pub(crate) fn get(&self, index: usize) -> u64 {
        // All payload is copied.
        let copied: &[Counter] = match index {
            TX_COPIED_BYTES => &[
                Counter::TxSendBytes,
                Counter::TxWriteBytes,
                Counter::TxReadResponseBytes,
            ],
            RX_COPIED_BYTES => &[
                Counter::RxSendBytes,
                Counter::RxWriteBytes,
                Counter::RxReadResponseBytes,
            ],
            _ => return self.values.sum(index),
        };

        copied.iter().fold(0, |sum, counter| {
            // CAST: The place in the list.
            sum.wrapping_add(self.values.sum(*counter as usize))
        })
    }
}

#[inline]
fn add_all(batch: &Batch<'_, { NAMES.len() }>, counts: &[(Counter, u64)]) {
    for (counter, n) in counts.iter().filter(|(_, n)| *n != 0) {
        // CAST: The place in the list.
        batch.add(*counter as usize, *n);
    }
}
