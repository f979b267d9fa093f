// SPDX-License-Identifier: GPL-2.0

//! Who may connect a queue pair.

use kernel::{mm::Mm, prelude::*, sync::aref::ARef};

/// The process that made a queue pair, known by its address space: only its threads may connect it.
///
/// rdma_cm passes a queue pair's number on as a process gives it, so it may be another process's.
/// iw_cm looks the number up and calls the driver in the context of that process (`rdma_connect()`,
/// `rdma_accept()`), but does not say which file of the device it has open, if any. What is left to
/// compare is the caller.
///
/// The address space, rather than the user: containers without a user namespace share their users.
/// This takes nothing from a program that works:
///
/// - The queues of a queue pair are mapped in the address space that made it.
/// - A child of `fork()`, or a process that has changed its credentials, can use neither the files of
///   uverbs nor those of rdma_cm that it had before: both refuse a `write()` with other credentials
///   than those of `open()`, and the doorbell is one. A process that was passed such a file is
///   refused likewise.
/// - Threads, and what io_uring does for them, share the address space.
///
/// A process that connects on behalf of another one is refused: nothing would say that the other
/// one has agreed.
pub(crate) struct Owner(ARef<Mm>);

impl Owner {
    /// The calling process; `EOPNOTSUPP` if a kernel thread calls. Process context.
    pub(crate) fn current() -> Result<Self> {
        let task = current!();
        let mm: &Mm = task.mm().ok_or(EOPNOTSUPP)?;

        // The reference also keeps the address from being another process's later.
        Ok(Self(ARef::from(mm)))
    }

    /// Whether this is the calling process. Process context, also with a spin lock held.
    pub(crate) fn is_current(&self) -> bool {
        current!()
            .mm()
            .is_some_and(|mm| core::ptr::eq::<Mm>(&**mm, &*self.0))
    }
}
