// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use crate::{
    abi::{self, siw, Provider},
    counters::Counter,
    driver::Riw,
    limits::{self, ObjectCharge},
    mr::Invalidated,
    queue::{
        kernel_cq::KernelCq,
        user_cq::UserCq,
        wr::{Immediate, WcOpcode, WcStatus, WrId},
        QpObject,
    },
};
use kernel::{prelude::*, sync::aref::ARef};
use kernel_ext::sync::without_softirqs;
use rdma::{
    cq::CqInitAttr,
    restrack::{Details, DetailsWriter, MessageFull},
    wc::WcRoom,
    ContextUdata, Device,
};

/// The verbs object of a completion queue.
pub(crate) type CqObject = rdma::cq::Cq<Riw>;

/// The driver's part of a completion queue.
pub(crate) struct Cq {
    entries: Entries,
    _charge: ObjectCharge,
}

/// The completions, by kind of consumer.
enum Entries {
    User(Pin<KBox<UserCq>>),
    Kernel(Pin<KBox<KernelCq>>),
}

/// A completion.
pub(crate) struct Completion {
    pub(crate) id: WrId,
    pub(crate) opcode: WcOpcode,
    pub(crate) status: WcStatus,
    /// Length of the message in bytes: at most the size of the WR's buffers.
    pub(crate) bytes: u32,
    /// The registration, region or window that a received message has invalidated.
    pub(crate) invalidated: Option<Invalidated>,
    /// The Immediate Data that was received.
    pub(crate) immediate: Option<ReceivedImmediate>,
    /// The number of the queue pair.
    pub(crate) qp: u32,
}

/// Immediate Data that was received.
pub(crate) struct ReceivedImmediate {
    pub(crate) data: Immediate,
    /// Length of the RDMA Write in front of it, in bytes. It may exceed the WR's buffers, which
    /// that Write has nothing to do with.
    pub(crate) written: u32,
}

impl Completion {
    /// Returns the length that a process gets: with Immediate Data, the length of the Write. Any
    /// context.
    pub(super) fn process_bytes(&self) -> u32 {
        match &self.immediate {
            Some(immediate) => immediate.written,
            None => self.bytes,
        }
    }
}

/// The notifications that added completions call for. They wait for [`Self::notify_cq`], as a
/// consumer is never notified under a lock.
#[derive(Clone, Copy, Default)]
#[must_use]
pub(crate) struct PendingNotify {
    /// The queue was armed for such a completion.
    pub(super) event: bool,
    /// The queue has just overflowed.
    pub(super) overflow: bool,
    /// A completion could not be added.
    pub(crate) lost: bool,
}

impl PendingNotify {
    /// Combines the notifications of two completions of one queue.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            event: self.event || other.event,
            overflow: self.overflow || other.overflow,
            lost: self.lost || other.lost,
        }
    }

    /// Notifies the consumer of `cq`. Process context or softirq; the caller must hold no lock that
    /// a verb takes, as the consumer may call verbs from its handler.
    pub(crate) fn notify_cq(self, cq: &CqObject) {
        if self.event {
            call_consumer(cq);
        }
        if self.overflow {
            cq.device().counters().inc(Counter::CqOverflows);
            cq.error();
        }
    }
}

/// How full a completion queue is, for an administrator to see.
pub(crate) struct FillLevel {
    /// Completions that the consumer has not polled.
    pub(super) used: u32,
    /// A completion was lost.
    pub(super) overflowed: bool,
    pub(super) armed: Option<Arm>,
}

impl Details for FillLevel {
    fn write(&self, to: &mut DetailsWriter<'_>) -> Result<(), MessageFull> {
        let armed: &CStr = match self.armed {
            Some(Arm::Next) => c"next",
            Some(Arm::Solicited) => c"solicited",
            None => c"no",
        };

        to.u32(c"used", self.used)?;
        to.u32(c"overflowed", self.overflowed.into())?;
        to.text(c"armed", armed)
    }
}

/// For which completions a consumer has armed a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arm {
    /// Solicited completions, and completions of failed WRs.
    Solicited,
    /// Any.
    Next,
}

impl Arm {
    pub(super) fn new(solicited_only: bool) -> Self {
        match solicited_only {
            true => Self::Solicited,
            false => Self::Next,
        }
    }

    /// Whether the completion triggers an event. An unsuccessful one always counts as solicited.
    pub(super) fn is_met(self, completion: &Completion, solicited: bool) -> bool {
        self == Self::Next || solicited || completion.status != WcStatus::Success
    }
}

impl Cq {
    /// Creates a queue of at least `attr.cqe` entries. Process context; may sleep.
    ///
    /// Fails with `EINVAL` for a size or flags that riw does not support, `ENOMEM` above the limit
    /// of queues or without memory.
    pub(crate) fn new(
        dev: &Device<Riw>,
        attr: &mut CqInitAttr,
        udata: Option<ContextUdata<'_, Riw>>,
    ) -> Result<Self> {
        if let Some(udata) = &udata {
            abi::check_request(dev.provider, udata)?;
        }
        let timestamps = attr.flags == rdma::cq::TIMESTAMPS && dev.provider == Provider::Own;

        if attr.cqe == 0 || attr.cqe > limits::MAX_CQE || (attr.flags != 0 && !timestamps) {
            return Err(EINVAL);
        }
        let charge = dev.limits.cq.charge()?;
        let entries = match udata {
            None => Entries::Kernel(KBox::pin_init(
                KernelCq::new(attr.cqe)?,
                GFP_KERNEL_ACCOUNT,
            )?),
            Some(udata) => {
                let queue =
                    UserCq::offer(dev.provider, attr.cqe, dev.next_cq_id(), timestamps, &udata)?;

                Entries::User(KBox::pin_init(queue, GFP_KERNEL_ACCOUNT)?)
            }
        };

        attr.cqe = match &entries {
            Entries::User(queue) => queue.len(),
            Entries::Kernel(queue) => queue.len(),
        };
        Ok(Self {
            entries,
            _charge: charge,
        })
    }

    /// Resizes the queue of a process to at least `len` entries, with its completions. Process
    /// context; may sleep. Returns the new size. Fails with `EINVAL` for a size that riw does not
    /// support, and as [`UserCq::resize`] does.
    pub(crate) fn resize(&self, len: u32, udata: &ContextUdata<'_, Riw>) -> Result<u32> {
        if len == 0 || len > limits::MAX_CQE {
            return Err(EINVAL);
        }
        match &self.entries {
            Entries::User(queue) => queue.resize(len, udata),
            Entries::Kernel(_) => Err(EOPNOTSUPP),
        }
    }

    /// Whether a completion can carry Immediate Data to the consumer. libsiw's CQE cannot. Any
    /// context.
    pub(crate) fn carries_immediate(&self) -> bool {
        match &self.entries {
            Entries::User(queue) => queue.carries_immediate(),
            Entries::Kernel(_) => true,
        }
    }

    /// Moves completions to a kernel user. Any context. Fails with `EOPNOTSUPP` for the queue of a
    /// process.
    pub(crate) fn poll(&self, to: &mut WcRoom<'_, Riw>) -> Result {
        match &self.entries {
            Entries::User(_) => Err(EOPNOTSUPP),
            Entries::Kernel(queue) => {
                queue.poll(to);
                Ok(())
            }
        }
    }

    /// Arms the queue. Any context for a kernel user; process context for a process, which usually
    /// does it by its control word. Returns whether there is a completion already.
    pub(crate) fn arm(&self, solicited_only: bool) -> bool {
        let arm = Arm::new(solicited_only);

        match &self.entries {
            Entries::User(queue) => queue.arm(arm),
            Entries::Kernel(queue) => queue.arm(arm),
        }
    }

    /// Removes the completions of a queue pair that is being destroyed, as they name it. A process
    /// only gets its number. Process context.
    pub(super) fn forget(&self, qp: &QpObject) {
        if let Entries::Kernel(queue) = &self.entries {
            queue.forget(qp);
        }
    }

    /// Returns how full the queue is. Process context or softirq.
    pub(crate) fn fill_level(&self) -> FillLevel {
        match &self.entries {
            Entries::User(queue) => queue.fill_level(),
            Entries::Kernel(queue) => queue.fill_level(),
        }
    }
}

/// Calls the completion handler of the consumer. Process context or softirq; the caller holds none
/// of the locks 14 to 23 (`Documentation/locking.md`).
fn call_consumer(cq: &CqObject) {
    trace::cq_notify(cq);
    match &cq.entries {
        Entries::User(_) => cq.notify(),
        // A handler that raises a softirq then runs it here, and need not wake ksoftirqd.
        Entries::Kernel(_) => without_softirqs(|| cq.notify()),
    }
}

/// Adds a completion of queue pair `qp` to `cq`. An unsuccessful one always counts as solicited.
/// Process context or softirq.
pub(crate) fn add_completion(
    cq: &CqObject,
    completion: Completion,
    qp: &ARef<QpObject>,
    solicited: bool,
) -> PendingNotify {
    let bytes = match &cq.entries {
        Entries::User(_) => completion.process_bytes(),
        Entries::Kernel(_) => completion.bytes,
    };
    // Before the consumer can see it.
    let trace = |completion: &Completion| {
        trace::wr_complete(cq, || trace::Completed {
            qpn: completion.qp,
            wr_id: completion.id.number(),
            opcode: siw::trace_opcode(completion.opcode),
            status: siw::wc_status(completion.status),
            bytes,
        });
    };

    match &cq.entries {
        Entries::User(queue) => queue.add(&completion, solicited, trace),
        Entries::Kernel(queue) => queue.add(completion, qp, solicited, trace),
    }
}
