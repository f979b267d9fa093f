// SPDX-License-Identifier: GPL-2.0

//! The module sctp.ko.

use crate::Pernet;
use kernel::{error::to_result, prelude::*};
use riw_bindings as bindings;

impl Pernet {
    /// Loads SCTP, and keeps it loaded as long as this registration exists. Process context; waits
    /// for `modprobe`. The module waits until network namespaces are dismantled, and these for
    /// their netdevs. So the caller may hold no lock, and nothing that the unregistration of a
    /// netdev waits for, such as a file of sysfs that is being written to. `EPROTONOSUPPORT` or
    /// `ESOCKTNOSUPPORT` if the kernel has no SCTP; otherwise the errors of `sock_create_kern()`.
    pub fn load_sctp(&self) -> Result {
        // SAFETY: The function has no preconditions but the context. `sctp_unload()` is called
        // in the drop of the only registration, so not at the same time.
        to_result(unsafe { bindings::sctp_load() })
    }

    /// Whether [`load_sctp`](Self::load_sctp) has succeeded. Any context.
    pub(super) fn has_sctp(&self) -> bool {
        // SAFETY: The function reads a flag.
        unsafe { bindings::sctp_is_loaded() }
    }

    /// Gives SCTP up, if it has been loaded. May sleep.
    pub(crate) fn unload_sctp(&mut self) {
        // SAFETY: `&mut self` is exclusive: no socket has a reference to the registration, of which
        // there is one at most, and `load_sctp` does not run.
        unsafe { bindings::sctp_unload() };
    }
}
