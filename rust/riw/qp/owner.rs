// SPDX-License-Identifier: GPL-2.0

//! The consumer that may connect a queue pair.

use crate::queue::QpObject;
use kernel::{mm::Mm, prelude::*, sync::aref::ARef};
use rdma::iw::Consumer;

/// The consumer that created a queue pair. Only it may connect the queue pair.
///
/// rdma_cm passes on the number of a queue pair as a process supplies it, so it may belong to
/// another consumer. iw_cm looks it up and calls the driver in the context of that process
/// (`rdma_connect()`, `rdma_accept()`), but does not pass the file of the device that the process
/// has open, if any. Only the caller can be compared.
pub(crate) enum Owner {
    /// A process, identified by its address space.
    ///
    /// The address space is compared rather than the user: containers without a user namespace
    /// share users. This breaks no working program:
    ///
    /// - The queues of a queue pair are mapped in the address space that created it.
    /// - A child of `fork()`, or a process that has changed its credentials, cannot use its old
    ///   rdma_cm files: they refuse a `write()` with other credentials than at `open()`. A process
    ///   that was passed such a file is refused likewise.
    /// - Threads, and io_uring work on their behalf, share the address space.
    ///
    /// A process that connects on behalf of another one is refused: nothing shows that the other
    /// one agreed.
    Process(ARef<Mm>),
    /// A kernel user. It runs in the context of any process, but passes its queue pair to rdma_cm:
    /// [`Consumer`].
    Kernel,
}

impl Owner {
    /// Returns the calling process. Process context. Fails with `EOPNOTSUPP` for a kernel thread.
    pub(crate) fn current() -> Result<Self> {
        let task = current!();
        let mm: &Mm = task.mm().ok_or(EOPNOTSUPP)?;

        // The reference also keeps the address of the mm from being reused.
        Ok(Self::Process(ARef::from(mm)))
    }

    /// Whether this is a kernel user. Any context.
    pub(crate) fn is_kernel(&self) -> bool {
        matches!(self, Self::Kernel)
    }

    /// Whether the calling task may act for the owner. Process context, maybe with a spin lock
    /// held.
    pub(crate) fn may_be_current(&self) -> bool {
        match self {
            Self::Process(owner) => current!()
                .mm()
                .is_some_and(|mm| core::ptr::eq::<Mm>(&**mm, &**owner)),
            Self::Kernel => Consumer::may_be_kernel(),
        }
    }

    /// Whether `consumer` is the owner of `qp`, for which [`Self::may_be_current`] has been true in
    /// this call: iw_cm does not name the consumer when it looks `qp` up. Any context.
    pub(crate) fn is(&self, consumer: &Consumer, qp: &QpObject) -> bool {
        match self {
            // The task has the address space of the process.
            Self::Process(_) => true,
            // So far it is only a task that may be a kernel user's.
            Self::Kernel => consumer.owns(qp),
        }
    }
}
