// SPDX-License-Identifier: GPL-2.0

//! Queue pairs as the owners of what their kernel users register.

use super::{
    grant::Grant,
    mapping::PostedMapping,
    registration::{InForce, Invalidated, KernelRegion, Unregistered},
    MrTable,
};
use crate::{ops::Driver, wr::WrId};
use kernel::{prelude::*, sync::Arc};

/// A queue pair of a kernel user as the owner of what is registered by its WRs. The registrations
/// serve only this queue pair, and end with its stream.
pub struct Registrar<T: Driver> {
    mrs: Arc<MrTable<T>>,
    grant: Arc<Grant>,
}

impl<T: Driver> Registrar<T> {
    /// Returns the owner of what is registered by WRs of a queue pair. Any context.
    pub(crate) fn new(mrs: &Arc<MrTable<T>>, grant: &Arc<Grant>) -> Self {
        Self {
            mrs: mrs.clone(),
            grant: grant.clone(),
        }
    }

    /// Whether the queue pair has registered it. The peers of others have no business with it (RFC
    /// 5040 §8.1.1). Any context.
    pub fn owns(&self, registration: &InForce) -> bool {
        registration.is_of(&self.grant)
    }

    /// Whether the WR with `id` was posted to the send queue of the queue pair.
    fn has_posted(&self, id: &WrId) -> bool {
        Arc::ptr_eq(id.queue(), &self.grant.send)
    }

    /// Executes a WR that registers memory. Process context or softirq. Fails with `Stag` if the
    /// region does not exist any more, a registration is in force, a later WR has invalidated it
    /// already, or the mapping is of another WR; `Owner` if the region is in another protection
    /// domain, or the WR is of another queue pair.
    pub fn register(&self, mapping: PostedMapping, id: &mut WrId) -> Result<(), Unregistered> {
        let region = mapping.region().clone();

        if !mapping.is_of(id) {
            return Err(Unregistered::Stag);
        }
        if !self.has_posted(id) || !region.is_in(self.grant.pd) {
            return Err(Unregistered::Owner);
        }

        id.note_executed();
        region.register(mapping, self.grant.clone())
    }

    /// Ends the registration that a WR invalidates, if it is to end one. Call it before the
    /// completion of the WR, also if the WR has failed. On return no copy to or from the memory is
    /// running or begins. Process context or softirq; the caller must not be in a copy of any
    /// region.
    ///
    /// Fails with `Stag` if the region does not exist or has another STag now, `Owner` if it is in
    /// another protection domain, or the WR is of another queue pair.
    pub fn invalidate(&self, id: &mut WrId) -> Result<(), Unregistered> {
        let Some(stag) = id.invalidates() else {
            return Ok(());
        };
        if !self.has_posted(id) {
            return Err(Unregistered::Owner);
        }

        id.note_executed();
        let mr = self.mrs.get(stag).ok_or(Unregistered::Stag)?;
        let region = mr.registrations().ok_or(Unregistered::Stag)?;

        match region.is_in(self.grant.pd) {
            true => region.invalidate_local(stag, id),
            false => Err(Unregistered::Owner),
        }
    }

    /// Invalidates a registration for the peer, if it has one of `rights` to it. On return no copy
    /// to or from the memory is running or begins. Process context or softirq; the caller must not
    /// be in a copy of any region.
    ///
    /// Fails with `Stag` if none with this STag is in force, `Rights` if another queue pair has
    /// registered it or the peer has no right to it.
    pub fn invalidate_remote(
        &self,
        region: &Arc<KernelRegion>,
        stag: u32,
        rights: u32,
    ) -> Result<Invalidated, Unregistered> {
        region.invalidate_remote(stag, &self.grant, rights)
    }

    /// Ends what the queue pair has registered. Process context or softirq; not within a copy. On
    /// return no access to the memory is in progress or begins, and flushed completions of the
    /// queue pair are accepted.
    pub fn revoke(&self) {
        self.grant.revoke();
    }

    /// Whether [`Self::revoke`] has returned. The crate calls it, too: when the consumer moves the
    /// queue pair to ERROR, since it takes completions of later WRs for the end. Any context.
    pub fn has_ended(&self) -> bool {
        self.grant.has_ended()
    }
}
