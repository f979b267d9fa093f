// SPDX-License-Identifier: GPL-2.0

//! The lock of a connection's phase.
//!
//! A call of the consumer may hold it for long: a process at the limit of its memory cgroup waits
//! for memory in the midst of an accept. Work items do not wait for such a call, since all
//! connections share the workers: an item that finds the phase locked ends, and the holder queues
//! it again.

use super::{endpoint::Phase, Endpoint};
use core::ops::{Deref, DerefMut};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc, Mutex, MutexGuard,
    },
};

/// A phase, and its lock.
#[pin_data]
pub(super) struct PhaseLock {
    #[pin]
    phase: Mutex<Phase>,
    /// A work item has found the phase locked.
    missed: Atomic<bool>,
}

/// The phase of an endpoint, locked. The drop may sleep.
pub(super) struct PhaseGuard<'a> {
    // Dropped in this order: the phase is unlocked first.
    phase: MutexGuard<'a, Phase>,
    _repeat: Repeat<'a>,
}

/// Queues the work item that has found the phase locked, when this is dropped.
struct Repeat<'a>(&'a Arc<Endpoint>);

impl PhaseLock {
    /// Creates the lock of a connection in phase `New`. Any context.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            phase <- new_mutex!(Phase::New, "riw::cm::Endpoint::phase"),
            missed: Atomic::new(false),
        })
    }
}

impl Endpoint {
    /// Locks the phase. Process context; may sleep. Not for work items, except that of a listener:
    /// it locks the phase of an endpoint that nobody else has yet.
    pub(super) fn lock_phase(self: &Arc<Self>) -> PhaseGuard<'_> {
        PhaseGuard {
            phase: self.phase.phase.lock(),
            _repeat: Repeat(self),
        }
    }

    /// Locks the phase for a work item, unless it is locked. Then the holder queues the work item
    /// again: the model is `selftests/litmus/phase_lock.litmus`. Also returns `None` once the
    /// device is being shut down: the shutdown ends the connection, and gives the reason. Process
    /// context.
    pub(super) fn try_lock_phase(self: &Arc<Self>) -> Option<PhaseGuard<'_>> {
        let PhaseLock { phase, missed } = &self.phase;

        if self.link.is_shut_down() {
            return None;
        }
        let phase = phase.try_lock().or_else(|| {
            // A full barrier: either the holder sees this when it has unlocked the phase, or this
            // finds it unlocked.
            missed.xchg(true, ordering::Full);
            phase.try_lock()
        })?;

        Some(PhaseGuard {
            phase,
            _repeat: Repeat(self),
        })
    }
}

impl Drop for Repeat<'_> {
    // The model is `selftests/litmus/phase_lock.litmus`.
    fn drop(&mut self) {
        let Self(endpoint) = self;

        if endpoint.phase.missed.xchg(false, ordering::Full) {
            endpoint.kick();
        }
    }
}

impl Deref for PhaseGuard<'_> {
    type Target = Phase;

    fn deref(&self) -> &Phase {
        &self.phase
    }
}

impl DerefMut for PhaseGuard<'_> {
    fn deref_mut(&mut self) -> &mut Phase {
        &mut self.phase
    }
}
