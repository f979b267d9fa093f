// SPDX-License-Identifier: GPL-2.0

//! Trace events, counters and log lines of a connection.

use super::{endpoint::Phase, reason::EndReason, Endpoint};
use crate::{driver::Riw, link::AddrPair};
use kernel::prelude::*;
use rdma::Device;
use trace::{CmPhase, PhaseChange, Source};

impl Endpoint {
    /// Traces that `phase` follows `before`, unless it is the same. May sleep.
    pub(super) fn note_phase(&self, before: CmPhase, phase: &Phase) {
        if trace::cm_phase_enabled() && phase.name() != before {
            self.trace_change(before, phase.name(), self.addrs_of(phase), ("", None));
        }
    }

    /// Traces the end in phase `last`. Counts and logs it, unless the connection was established:
    /// its stream has the reason then. May sleep.
    pub(super) fn note_end(&self, last: &Phase, reason: EndReason) {
        let established = matches!(last, Phase::Rdma { .. });
        let addrs = self.addrs_of(last);

        if trace::cm_phase_enabled() {
            let text = match established {
                // The peer may have closed since.
                true if self.qp.as_ref().is_some_and(|qp| qp.has_failed()) => {
                    EndReason::Stream.end_of_established()
                }
                true => reason.end_of_established(),
                false => reason.rule(),
            };
            let error = (!established).then(|| reason.to_error());

            self.trace_change(last.name(), CmPhase::Closed, addrs, (text, error));
        }
        if !established {
            self.dev.counters.inc(reason.counter());
            self.log_failure(addrs, reason);
        }
    }

    /// Logs that the connection was not established: as a warning if only this side knows why,
    /// otherwise at level debug. May sleep.
    fn log_failure(&self, addrs: Option<&AddrPair>, reason: EndReason) {
        let (log, rule) = (&self.dev.log, reason.rule());

        self.with_device(|device| match (device, addrs) {
            (Some(device), Some(addrs)) if reason.is_found_here() => log.warn_startup(
                device.as_dev(),
                fmt!("connection {addrs} not established: {rule}"),
            ),
            (Some(device), Some(addrs)) => {
                log.debug(device, fmt!("connection {addrs} not established: {rule}"))
            }
            (Some(device), None) => log.debug(device, fmt!("connection not established: {rule}")),
            (None, _) => {}
        });
    }

    /// Returns the addresses of the connection in `phase`, as far as they are known.
    fn addrs_of<'a>(&'a self, phase: &'a Phase) -> Option<&'a AddrPair> {
        match phase {
            Phase::Connecting(opening) | Phase::AwaitReply(opening) => Some(&opening.addrs),
            Phase::AwaitRequest(request) => Some(&request.incoming.addrs),
            Phase::Queued(undecided) | Phase::Reported(undecided) => {
                Some(&undecided.incoming.addrs)
            }
            Phase::AwaitFirst { .. } | Phase::Rdma { .. } => self.addrs.as_ref(),
            Phase::New | Phase::Closed => None,
        }
    }

    /// Traces a change of phase. `reason`: why the connection ends, and the error if it has not
    /// been established. May sleep.
    #[cold]
    fn trace_change(
        &self,
        from: CmPhase,
        to: CmPhase,
        addrs: Option<&AddrPair>,
        (reason, error): (&str, Option<Error>),
    ) {
        self.with_device(|device| {
            trace::cm_phase(&PhaseChange {
                device,
                // CAST: Both have 64 bits.
                endpoint: self.token as u64,
                qpn: self.qp.as_ref().map(|qp| qp.number),
                from,
                to,
                reason,
                error,
                local: addrs.map(|addrs| addrs.local),
                remote: addrs.map(|addrs| addrs.remote),
            });
        });
    }

    /// Calls `f` with the RDMA device, if it is registered. May sleep.
    fn with_device(&self, f: impl FnOnce(Option<&Device<Riw>>)) {
        match self.qp.as_ref() {
            Some(qp) => f(Some(qp.device())),
            None => f(self.dev.registered().as_deref()),
        }
    }
}
