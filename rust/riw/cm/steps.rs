// SPDX-License-Identifier: GPL-2.0

//! The work items of a connection, the steps that they take, and its timer.

use super::{end::End, endpoint::Phase, phase_lock::PhaseGuard, reason::EndReason, Endpoint};
use kernel::{prelude::*, sync::Arc, workqueue::WorkItem};
use kernel_ext::{
    memalloc::without_io,
    memcg::forget_excess,
    workqueue::{cancel_delayed_work, mod_delayed_work},
};

/// The result of a step.
pub(super) enum Step {
    /// The connection is in this phase now.
    Next(Phase),
    /// The connection ends in this phase.
    End(Phase, End),
}

impl Endpoint {
    /// Passes the phase to `f`, and leaves the result of its step as the phase. `phase` must be the
    /// phase of this endpoint, locked. May sleep. Returns the second result of `f`.
    pub(super) fn step<R>(
        self: &Arc<Self>,
        phase: &mut Phase,
        f: impl FnOnce(Phase) -> (Step, R),
    ) -> R {
        let before = phase.name();
        let (step, result) = f(phase.take());

        match step {
            Step::Next(next) => {
                *phase = next;
                self.note_phase(before, phase);
            }
            Step::End(last, end) => {
                *phase = last;
                self.note_phase(before, phase);
                self.end(phase, &end);
            }
        }
        result
    }

    /// Continues with a connection that has `begun`, or ends it if that has failed. Returns
    /// the error of `begun`. May sleep.
    pub(super) fn proceed(
        self: &Arc<Self>,
        mut phase: PhaseGuard<'_>,
        begun: Result<(), EndReason>,
    ) -> Result {
        match begun {
            // The next event of the connection queues it. If it were queued now, it would be ahead
            // of connections whose events come earlier, and consumers rely on their order. The link
            // had its owner before it began to connect, so an event reports that it is established.
            Ok(()) if self.link.has_received_nothing() => self.arm(&phase),
            // The awaited event may have happened before the link had an owner.
            Ok(()) => {
                drop(phase);
                self.kick();
            }
            Err(reason) => self.end(&mut phase, &End::abort(reason)),
        }
        begun.map_err(EndReason::to_error)
    }

    /// Does a work item's step, and sets the timer for the phase that it leaves. If the deadline
    /// has passed, first takes the step of [`Self::expire`]. May sleep.
    pub(super) fn step_and_arm(self: &Arc<Self>, phase: &mut Phase, f: impl FnOnce(Phase) -> Step) {
        self.step(phase, |phase| (f(phase), ()));
        if phase.deadline().is_some_and(|d| d.left().is_none()) {
            self.step(phase, |phase| (self.expire(phase), ()));
        }
        self.arm(phase);
    }

    /// Sets the timer for `phase`, which is the endpoint's, locked. Process context.
    fn arm(self: &Arc<Self>, phase: &Phase) {
        let Some(deadline) = phase.deadline() else {
            return cancel_delayed_work::<Self, 2>(self);
        };
        // If it has passed in the meantime, the timer expires at once.
        let left = deadline.left().unwrap_or(0);
        let retry = match phase {
            Phase::Connecting(_) | Phase::AwaitRequest(_) => self.link.retry_time(),
            _ => None,
        };

        mod_delayed_work::<Self, 2>(self, retry.map_or(left, |retry| left.min(retry)));
    }

    /// The step of a phase whose deadline has passed. May sleep.
    fn expire(self: &Arc<Self>, phase: Phase) -> Step {
        match phase {
            Phase::Connecting(opening) => self.fall_back(opening, EndReason::Timeout),
            Phase::Queued(undecided) => {
                self.refuse_with(undecided, Phase::Queued, EndReason::Timeout)
            }
            Phase::Reported(undecided) => {
                self.refuse_with(undecided, Phase::Reported, EndReason::Timeout)
            }
            Phase::Rdma {
                id,
                ending: Some(mut ending),
                watch,
            } => {
                let extended = self.extend_ending(&mut ending);
                let phase = Phase::Rdma {
                    id,
                    ending: Some(ending),
                    watch,
                };

                match extended {
                    true => Step::Next(phase),
                    false => Step::End(phase, End::graceful(EndReason::Timeout)),
                }
            }
            Phase::Rdma {
                id,
                ending: None,
                watch: Some(mut watch),
            } => {
                let silent = watch.finds_silence(&self.link);
                let phase = Phase::Rdma {
                    id,
                    ending: None,
                    watch: Some(watch),
                };

                match silent {
                    true => Step::End(phase, End::abort(EndReason::Timeout)),
                    false => Step::Next(phase),
                }
            }
            phase => Step::End(phase, End::abort(EndReason::Timeout)),
        }
    }
}

impl WorkItem<0> for Endpoint {
    type Pointer = Arc<Self>;

    /// Sets the connection up. May sleep, but must not wait for a peer or a stream.
    fn run(this: Arc<Self>) {
        // `start` has queued `stream_work`.
        if this.is_stream_active() {
            return;
        }
        // The next item may be of a connection that I/O waits for, and of another user.
        forget_excess();
        without_io(|| {
            let Some(mut phase) = this.try_lock_phase() else {
                return;
            };

            this.step_and_arm(&mut phase, |phase| match phase {
                Phase::Connecting(_) | Phase::AwaitReply(_) => this.step_connect(phase),
                Phase::AwaitRequest(_) | Phase::Queued(_) | Phase::Reported(_) => {
                    this.step_accept(phase)
                }
                phase => Step::Next(phase),
            });
        });
    }
}

impl WorkItem<1> for Endpoint {
    type Pointer = Arc<Self>;

    /// Ends the stream, and the connection with it. May sleep, but must not wait for a peer.
    fn run(this: Arc<Self>) {
        without_io(|| {
            let Some(mut phase) = this.try_lock_phase() else {
                return;
            };

            this.step_and_arm(&mut phase, |phase| match phase {
                Phase::AwaitFirst { .. } | Phase::Rdma { .. } => this.step_stream(phase),
                phase => Step::Next(phase),
            });
        });
    }
}

impl WorkItem<2> for Endpoint {
    type Pointer = Arc<Self>;

    /// The deadline may have passed.
    fn run(this: Arc<Self>) {
        this.kick();
    }
}
