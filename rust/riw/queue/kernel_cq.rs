// SPDX-License-Identifier: GPL-2.0

//! Completion queues of kernel users: a list that the consumer polls by a verb.

use crate::{
    driver::Riw,
    mr::Invalidated,
    queue::{
        completion::{Arm, Completion, FillLevel, PendingNotify},
        fifo::Fifo,
        wr::WrId,
        QpObject,
    },
};
use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{aref::ARef, SpinLockIrq},
    warn_on,
};
use rdma::wc::{Wc, WcEx, WcRoom};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/kernel_cq.rs"]
mod kunit;

/// The completions for a kernel user, which polls and arms in any context: the lock disables
/// interrupts.
#[pin_data]
pub(super) struct KernelCq {
    #[pin]
    state: SpinLockIrq<KernelCqState>,
}

struct KernelCqState {
    entries: Fifo<KernelCqe>,
    /// A completion was lost, because the consumer did not keep up. No more are added.
    overflowed: bool,
    arm: Option<Arm>,
}

/// A completion, and the queue pair that it names. It must be removed before the queue pair is
/// gone: see [`KernelCq::forget`].
struct KernelCqe {
    completion: Completion,
    qp: ARef<QpObject>,
}

impl KernelCq {
    /// Creates a queue of at least `len` entries. Process context; may sleep. Fails with `ENOMEM`
    /// without memory.
    pub(super) fn new(len: u32) -> Result<impl PinInit<Self>> {
        let state = KernelCqState {
            entries: Fifo::new(len)?,
            overflowed: false,
            arm: None,
        };

        Ok(pin_init!(Self {
            state <- new_spinlock_irq!(state, "riw::KernelCq::state"),
        }))
    }

    /// Returns the size in entries. Any context.
    pub(super) fn len(&self) -> u32 {
        self.state.lock().entries.size()
    }

    /// Adds a completion of `qp`. Calls `trace` before the consumer can see it. Any context.
    pub(super) fn add(
        &self,
        completion: Completion,
        qp: &ARef<QpObject>,
        solicited: bool,
        trace: impl FnOnce(&Completion),
    ) -> PendingNotify {
        let mut state = self.state.lock();
        let met = (state.arm).is_some_and(|arm| arm.is_met(&completion, solicited));
        let mut pending = PendingNotify::default();

        if state.overflowed || state.entries.is_full() {
            pending.lost = true;
            pending.overflow = !core::mem::replace(&mut state.overflowed, true);
            return pending;
        }
        trace(&completion);
        let qp = qp.clone();
        // It fits.
        let _ = state.entries.push(KernelCqe { completion, qp });
        if met {
            state.arm = None;
            pending.event = true;
        }
        pending
    }

    /// Moves completions to `to`, as far as there is room. Any context.
    pub(super) fn poll(&self, to: &mut WcRoom<'_, Riw>) {
        let mut state = self.state.lock();

        while to.left() != 0 {
            let Some(KernelCqe { completion, qp }) = state.entries.pop() else {
                break;
            };
            // Only kernel users have queue pairs that use this queue.
            let WrId::Kernel(id) = completion.id else {
                warn_on!(true);
                continue;
            };
            let pushed = to.push(Wc {
                id,
                opcode: completion.opcode,
                status: completion.status,
                bytes: completion.bytes,
                ex: match (completion.invalidated, completion.immediate) {
                    (Some(Invalidated::Kernel(ended)), _) => WcEx::Invalidated(ended),
                    (_, Some(immediate)) => WcEx::Immediate(immediate.data.0),
                    // Only a process has a region that is invalidated otherwise.
                    (Some(Invalidated::Process(_)) | None, None) => WcEx::None,
                },
                qp: &qp,
            });

            // There is room, and the WR was posted to a queue of this queue pair. If a fault of riw
            // lost one, its consumer would wait for ever: so it has to be seen.
            warn_on!(pushed.is_err());
        }
    }

    /// Arms the queue. Any context. Returns whether there is a completion already.
    pub(super) fn arm(&self, arm: Arm) -> bool {
        let mut state = self.state.lock();

        // A request for any completion stays in force.
        if state.arm != Some(Arm::Next) {
            state.arm = Some(arm);
        }
        !state.entries.is_empty()
    }

    /// Removes the completions that name `qp`. Any context.
    pub(super) fn forget(&self, qp: &QpObject) {
        let keep = |entry: &KernelCqe| !core::ptr::eq(&*entry.qp, qp);

        self.state.lock().entries.retain(keep);
    }

    /// Returns how full the queue is. Any context.
    pub(super) fn fill_level(&self) -> FillLevel {
        let state = self.state.lock();

        FillLevel {
            used: state.entries.len(),
            overflowed: state.overflowed,
            armed: state.arm,
        }
    }
}
