// SPDX-License-Identifier: GPL-2.0

//! A queue pair as the owner of what it grants to its peer.

use super::{
    grant::Grantor,
    user::{KNOWN_ACCESS, RIGHTS},
};
use crate::driver::Riw;
use iwarp::{Access, Denied, Region, Stag};
use kernel::{prelude::*, sync::Arc};
use rdma::mr::{Registrar, Terms, Unregistered};

/// A queue pair as the owner of what it grants to its peer.
pub(crate) enum Granting {
    /// Of a process, which binds windows.
    Process(Arc<Grantor>),
    /// Of a kernel user, which registers memory.
    Kernel(Registrar<Riw>),
}

impl Granting {
    /// Returns the owner of a new queue pair; `registrar` is the one of a kernel user. Process
    /// context; may sleep. Fails with `ENOMEM` without memory.
    pub(crate) fn new(registrar: Option<Registrar<Riw>>) -> Result<Self> {
        Ok(match registrar {
            Some(registrar) => Self::Kernel(registrar),
            None => Self::Process(Grantor::new()?),
        })
    }

    /// Returns the owner of windows. Fails with `PdMismatch` for a kernel user: no window is in its
    /// protection domain.
    pub(super) fn of_process(&self) -> Result<&Arc<Grantor>, Denied> {
        match self {
            Self::Process(grantor) => Ok(grantor),
            Self::Kernel(_) => Err(Denied::PdMismatch),
        }
    }

    /// Returns the owner of registrations. Fails with `PdMismatch` for a process: no registration
    /// is in its protection domain.
    pub(super) fn of_kernel(&self) -> Result<&Registrar<Riw>, Denied> {
        match self {
            Self::Process(_) => Err(Denied::PdMismatch),
            Self::Kernel(registrar) => Ok(registrar),
        }
    }

    /// Returns the owner of windows; `None` for a kernel user.
    pub(super) fn grantor(&self) -> Option<&Arc<Grantor>> {
        self.of_process().ok()
    }

    /// Whether what a kernel user has registered has ended. Any context.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self, Self::Kernel(registrar) if registrar.has_ended())
    }

    /// Ends what the queue pair has granted. Process context or softirq. The caller has stopped the
    /// stream: it does not send, and places nothing.
    pub(super) fn revoke(&self) {
        match self {
            Self::Process(grantor) => grantor.revoke(),
            Self::Kernel(registrar) => registrar.revoke(),
        }
    }
}

/// An invalidation by the peer, for the completion of the receive that reports it.
pub(crate) enum Invalidated {
    Process(Stag),
    Kernel(rdma::mr::Invalidated),
}

impl Invalidated {
    /// Returns the STag. Any context.
    pub(crate) fn stag(&self) -> Stag {
        match self {
            Self::Process(stag) => *stag,
            Self::Kernel(invalidated) => Stag(invalidated.stag()),
        }
    }
}

/// Returns the region, in protection domain `pd`, that an access to a registration is checked
/// against. Any context.
pub(super) fn region_of(terms: &Terms, pd: u64) -> Region {
    Region {
        stag: Stag(terms.stag),
        pd,
        base: terms.base,
        len: terms.len,
        access: Access::from_bits(terms.access & RIGHTS),
        valid: true,
    }
}

/// Checks what a WR is to register. Any context. Fails with `EINVAL` for an access that cannot be.
pub(crate) fn check_terms(terms: &Terms) -> Result {
    match terms.access & !KNOWN_ACCESS {
        0 => Ok(()),
        _ => Err(EINVAL),
    }
}

/// Returns the same reason in the terms of iwarp.
pub(super) fn denied(why: Unregistered) -> Denied {
    match why {
        Unregistered::Stag => Denied::InvalidStag,
        Unregistered::Owner => Denied::PdMismatch,
        Unregistered::Rights => Denied::Rights,
        Unregistered::Bounds => Denied::Bounds,
    }
}
