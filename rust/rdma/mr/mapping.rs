// SPDX-License-Identifier: GPL-2.0

//! Memory that a kernel user has mapped to a region, until a WR registers it.

use super::registration::KernelRegion;
use crate::{
    page_list::PageList,
    wr::{PostedQueue, WrId},
};
use kernel::{ffi::c_int, prelude::*, sync::Arc};

/// A registration, as its consumer has posted it.
#[derive(Clone, Copy)]
pub struct Terms {
    /// The STag.
    pub stag: u32,
    /// The address of the first byte, as work requests and the wire name it.
    pub base: u64,
    /// The length in bytes. `base + len` does not wrap.
    pub len: u64,
    /// The rights (`enum ib_access_flags`).
    pub access: u32,
}

/// The page lists that are not registered.
pub(super) struct Lists {
    /// The memory that the consumer has mapped last, unless a WR has taken it.
    mapped: Option<Mapped>,
    free: Option<PageList>,
    /// The WRs that have taken a list and not registered it.
    posted: [Option<RegisteringWr>; 2],
    /// Counts mappings.
    generation: u64,
}

/// A page list with memory that a consumer has mapped.
pub(super) struct Mapped {
    pub(super) list: PageList,
    /// Counts mappings: whether the consumer has mapped other memory since.
    generation: u64,
}

/// A WR that is to register a page list.
struct RegisteringWr {
    /// The generation of what is mapped.
    mapped: u64,
    /// The address of its queue, which [`PostedMapping`] keeps.
    queue: usize,
    /// The number of the WR in the queue.
    number: u64,
}

impl Lists {
    /// Creates lists for at most `max` blocks. Process context; may sleep. Fails with `ENOMEM`
    /// without memory.
    pub(super) fn new(max: u32) -> Result<Self> {
        Ok(Self {
            mapped: Some(Mapped {
                list: PageList::new(max)?,
                generation: 0,
            }),
            free: Some(PageList::new(max)?),
            posted: [None, None],
            generation: 0,
        })
    }

    /// Maps memory, to be registered next, and returns the result of `fill`. Any context. Fails
    /// with `EBUSY` if both lists are in use.
    pub(super) fn map(&mut self, fill: impl FnOnce(&mut PageList) -> c_int) -> Result<c_int> {
        let list = match self.mapped.take() {
            Some(mapped) => Some(mapped.list),
            None => self.free.take(),
        };
        let mut list = list.ok_or(EBUSY)?;
        let filled = fill(&mut list);

        // It does not wrap.
        self.generation = self.generation.wrapping_add(1);
        self.mapped = Some(Mapped {
            list,
            generation: self.generation,
        });
        Ok(filled)
    }

    /// Takes the list that was mapped last, for the WR with `id`, which registers it at the address
    /// `base`. Any context. Fails with `EINVAL` if nothing is mapped, or the range wraps.
    fn take(&mut self, id: &WrId, base: u64) -> Result<Mapped> {
        let mapped = self.mapped.as_ref().ok_or(EINVAL)?;
        let place = self.posted.iter_mut().find(|place| place.is_none());

        base.checked_add(mapped.list.len()).ok_or(EINVAL)?;
        // There is a place: a region has two lists.
        *place.ok_or(EBUSY)? = Some(RegisteringWr {
            mapped: mapped.generation,
            queue: address(id.queue()),
            number: id.number(),
        });
        self.mapped.take().ok_or(EINVAL)
    }

    /// Notes that the WR with `id` invalidates the region: those that were posted to the same queue
    /// before do not register it any more. Any context.
    pub(super) fn note_invalidation(&mut self, id: &WrId) {
        let (queue, number) = (address(id.queue()), id.number());

        self.forget_posted(|posted| posted.queue == queue && posted.number < number);
    }

    /// Forgets WRs for which a condition is true. Returns whether there was one.
    fn forget_posted(&mut self, condition: impl Fn(&RegisteringWr) -> bool) -> bool {
        let mut found = false;

        for place in &mut self.posted {
            found |= place.take_if(|posted| condition(posted)).is_some();
        }
        found
    }

    /// Takes a list back that is not used any more. Its memory can be registered again, unless the
    /// consumer has mapped other memory since. Any context.
    pub(super) fn give_back(&mut self, mapped: Mapped) {
        match mapped.generation == self.generation {
            true => self.mapped = Some(mapped),
            false => self.free = Some(mapped.list),
        }
    }
}

/// Returns the address of a queue, to be compared.
fn address(queue: &Arc<PostedQueue>) -> usize {
    core::ptr::from_ref(&**queue).addr()
}

/// Memory to be registered, by a WR that is posted. Returns to its region if it is dropped.
///
/// ```compile_fail,E0382
/// fn register_twice<T: rdma::Driver>(
///     owner: &rdma::mr::Registrar<T>,
///     mapping: rdma::mr::PostedMapping,
///     id: &mut rdma::wr::WrId,
/// ) {
///     let _ = owner.register(mapping, id);
///     let _ = owner.register(mapping, id);
/// }
/// ```
pub struct PostedMapping {
    /// `None` once it is registered.
    mapped: Option<Mapped>,
    region: Arc<KernelRegion>,
    terms: Terms,
    /// The queue to which the WR is posted, and its number there.
    queue: Arc<PostedQueue>,
    number: u64,
}

impl PostedMapping {
    /// Takes the memory that was mapped last in a region, to be registered by the WR with `id` as
    /// `stag` at the address `base`. Any context. Fails with `EINVAL` if nothing is mapped, or the
    /// range wraps.
    pub(crate) fn take(
        region: &Arc<KernelRegion>,
        id: &WrId,
        (stag, base, access): (u32, u64, u32),
    ) -> Result<Self> {
        let mapped = region.lists.lock().take(id, base)?;
        let terms = Terms {
            stag,
            base,
            len: mapped.list.len(),
            access,
        };

        Ok(Self {
            mapped: Some(mapped),
            region: region.clone(),
            terms,
            queue: id.queue().clone(),
            number: id.number(),
        })
    }

    /// Returns the region. Any context.
    pub(super) fn region(&self) -> &Arc<KernelRegion> {
        &self.region
    }

    /// Returns the attributes that the consumer has posted. Any context.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether the WR with `id` is to register it. Any context.
    pub(super) fn is_of(&self, id: &WrId) -> bool {
        id.number() == self.number && Arc::ptr_eq(id.queue(), &self.queue)
    }

    /// Takes the memory to register it. Any context. `None` if a WR that comes after this one has
    /// invalidated the region already.
    pub(super) fn take_mapped(&mut self) -> Option<Mapped> {
        let generation = self.mapped.as_ref()?.generation;
        let mut lists = self.region.lists.lock();
        let is_posted = lists.forget_posted(|posted| posted.mapped == generation);

        self.mapped.take_if(|_| is_posted)
    }
}

impl Drop for PostedMapping {
    fn drop(&mut self) {
        if let Some(mapped) = self.mapped.take() {
            let mut lists = self.region.lists.lock();

            lists.forget_posted(|posted| posted.mapped == mapped.generation);
            lists.give_back(mapped);
        }
    }
}
