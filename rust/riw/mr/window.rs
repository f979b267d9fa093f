// SPDX-License-Identifier: GPL-2.0

//! Memory windows: parts of a process's region that peers may access, until they are invalidated.
//!
//! A window has an index (the upper 24 bits of its STags) in the table of regions. A WR binds it to
//! a region under an STag, whose lower 8 bits the consumer chooses.

use super::{
    grant::{BindRequest, Grant, Grantor},
    memory::LentMemory,
    user::{MrDetails, UserRegion, REMOTE_RIGHTS},
    Mr, MrMemory, MrObject,
};
use iwarp::{Access, Denied, Region, Stag};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering, Atomic},
        Arc,
    },
};
use kernel_ext::sync::{new_bh_spinlock, BhSpinLock};
use rdma::mw::MwKind;

/// `IB_ACCESS_ZERO_BASED`: the first byte of the window has the address 0.
const ZERO_BASED: u32 = 1 << 5;

/// The number of windows that are bound to a region, which must not be deregistered meanwhile.
pub(super) struct WindowCount(Atomic<u32>);

impl WindowCount {
    /// A bit. The region is about to end: no window can be bound to it.
    const RETIRED: u32 = 1 << 31;

    pub(super) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Counts one window. Any context. Returns whether the region may have it.
    fn add(&self) -> bool {
        let mut count = self.0.load(ordering::Relaxed);

        loop {
            match count.checked_add(1) {
                Some(more) if more < Self::RETIRED => {
                    match self.0.cmpxchg(count, more, ordering::Full) {
                        Ok(_) => return true,
                        Err(now) => count = now,
                    }
                }
                _ => return false,
            }
        }
    }

    /// Keeps windows from being bound. Any context. Fails with `EBUSY` if there is one.
    pub(super) fn retire(&self) -> Result {
        match self.0.cmpxchg(0, Self::RETIRED, ordering::Full) {
            Ok(_) => Ok(()),
            Err(_) => Err(EBUSY),
        }
    }

    /// Undoes [`Self::retire`]. Any context.
    pub(super) fn keep(&self) {
        self.0.store(0, ordering::Release);
    }

    /// Keeps further windows from being bound. Any context. Returns how many are. Called at most
    /// once, and not after [`Self::retire`].
    pub(super) fn close(&self) -> u32 {
        self.0.fetch_add(Self::RETIRED, ordering::Full)
    }
}

/// A memory window.
#[pin_data]
pub(super) struct Window {
    kind: MwKind,
    /// Held while data is copied to or from the memory: an invalidation waits for a copy.
    #[pin]
    current: BhSpinLock<WindowState>,
}

struct WindowState {
    binding: Option<Binding>,
    /// Counts bindings.
    generation: u64,
}

/// The binding of a window to a part of a region.
struct Binding {
    /// Counted in [`WindowCount`]: deregistration fails, or ends the binding, before it would wait
    /// for this reference.
    region: ARef<MrObject>,
    stag: Stag,
    /// Offset of the first byte in the region.
    offset: u64,
    /// The address of the first byte, as the wire names it.
    base: u64,
    len: u64,
    access: Access,
    /// The queue pair that has bound it. A window of type 2B serves no other one, and ends with its
    /// stream.
    grant: Grant,
}

impl Binding {
    /// Checks the request of a WR. Process context or softirq. Fails with `InvalidStag` if the
    /// region cannot have a window, `Rights` if it does not allow this one, `Bounds` or `Wrap` if
    /// it does not contain the window.
    fn new(
        region: ARef<MrObject>,
        bind: &BindRequest,
        kind: MwKind,
        grantor: &Arc<Grantor>,
    ) -> Result<Self, Denied> {
        let MrMemory::User(memory) = &region.memory else {
            return Err(Denied::InvalidStag);
        };
        let flags = match kind {
            MwKind::One => REMOTE_RIGHTS,
            MwKind::TwoB => REMOTE_RIGHTS | ZERO_BASED,
        };

        // Programs request local access, too. A window grants none.
        if bind.access & !(flags | Access::LOCAL_WRITE.bits()) != 0 {
            return Err(Denied::Rights);
        }
        let access = Access::from_bits(bind.access & REMOTE_RIGHTS);
        let offset = memory.check_window(region.pd, bind, access)?;
        let base = match bind.access & ZERO_BASED {
            0 => bind.addr,
            _ => 0,
        };

        if !region.windows.add() {
            return Err(Denied::InvalidStag);
        }
        Ok(Self {
            region,
            stag: bind.stag,
            offset,
            base,
            len: bind.len,
            access,
            grant: grantor.grant(),
        })
    }

    /// Returns the region that an access is checked against, in protection domain `pd`. Any
    /// context.
    fn region(&self, pd: u64) -> Region {
        Region {
            stag: self.stag,
            pd,
            base: self.base,
            len: self.len,
            access: self.access,
            valid: true,
        }
    }

    /// Whether the region is this one.
    fn is_to(&self, region: &Mr) -> bool {
        core::ptr::eq::<Mr>(&**self.region, region)
    }

    /// Whether `stag` names the binding, and the queue pair `grantor` has made it.
    fn may_end(&self, stag: Stag, grantor: &Arc<Grantor>) -> Result<(), Denied> {
        if self.stag != stag {
            return Err(Denied::InvalidStag);
        }
        match self.grant.is_of(grantor) {
            true => Ok(()),
            false => Err(Denied::Rights),
        }
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        self.region.windows.0.fetch_sub(1, ordering::Full);
    }
}

impl Window {
    /// Creates a window that is not bound. Any context.
    pub(super) fn new(kind: MwKind) -> impl PinInit<Self> {
        let current = WindowState {
            binding: None,
            generation: 0,
        };

        pin_init!(Self {
            kind,
            current <- new_bh_spinlock!(current, "riw::Window::current"),
        })
    }

    /// Binds the window to `region` for the queue pair `grantor`, or ends its binding. Process
    /// context or softirq. Fails as [`Regions::bind`](super::Regions::bind) does.
    pub(super) fn bind(
        &self,
        region: Option<ARef<MrObject>>,
        bind: &BindRequest,
        grantor: &Arc<Grantor>,
    ) -> Result<(), Denied> {
        if self.kind == MwKind::TwoB && region.is_none() {
            return Err(Denied::Bounds);
        }
        let _old = {
            let mut current = self.current.lock();

            if self.kind == MwKind::TwoB && self.in_force(&current).is_some() {
                // It has to be invalidated first.
                return Err(Denied::InvalidStag);
            }
            // Under the lock: `end_binding_to` finds each binding that is counted.
            let binding = region
                .map(|region| Binding::new(region, bind, self.kind, grantor))
                .transpose()?;

            current.generation = current.generation.wrapping_add(1);
            core::mem::replace(&mut current.binding, binding)
        };
        Ok(())
    }

    /// Ends the binding `stag` for the consumer of the queue pair `grantor`. Process context or
    /// softirq. Fails with `InvalidStag` if the window is of type 1 or has another STag, `Rights`
    /// if another queue pair has bound it. It may be unbound: a peer can invalidate it, too.
    pub(super) fn invalidate_local(
        &self,
        stag: Stag,
        grantor: &Arc<Grantor>,
    ) -> Result<(), Denied> {
        self.end_binding(|binding| match binding {
            Some(binding) => binding.may_end(stag, grantor),
            None => Ok(()),
        })
    }

    /// Ends the binding `stag` for the peer of the queue pair `grantor`. Process context or
    /// softirq. Fails as [`Self::invalidate_local`] does, and if the window is not bound.
    pub(super) fn invalidate_remote(
        &self,
        stag: Stag,
        grantor: &Arc<Grantor>,
    ) -> Result<(), Denied> {
        self.end_binding(|binding| {
            let binding = binding.ok_or(Denied::InvalidStag)?;

            binding.may_end(stag, grantor)
        })
    }

    /// Returns the binding in force. Any context.
    fn in_force<'a>(&self, current: &'a WindowState) -> Option<&'a Binding> {
        let binding = current.binding.as_ref();

        match self.kind {
            MwKind::One => binding,
            MwKind::TwoB => binding.filter(|binding| binding.grant.is_in_force()),
        }
    }

    fn end_binding(
        &self,
        check: impl FnOnce(Option<&Binding>) -> Result<(), Denied>,
    ) -> Result<(), Denied> {
        if self.kind == MwKind::One {
            return Err(Denied::InvalidStag);
        }
        let _old = {
            let mut current = self.current.lock();

            check(self.in_force(&current))?;
            current.binding.take()
        };
        Ok(())
    }

    /// Ends the binding if it is one to `region`. Process context or softirq.
    pub(super) fn end_binding_to(&self, region: &Mr) {
        let _old = {
            let mut current = self.current.lock();

            current.binding.take_if(|binding| binding.is_to(region))
        };
    }

    /// Drops the binding if it is one to `region`, and has ended with its stream. Process context
    /// or softirq.
    pub(super) fn drop_ended_binding_to(&self, region: &Mr) {
        let _old = {
            let mut current = self.current.lock();

            match self.in_force(&current) {
                Some(_) => None,
                None => current.binding.take_if(|binding| binding.is_to(region)),
            }
        };
    }

    /// Calls `check` with the window as it is bound, in protection domain `pd`, for the peer of the
    /// queue pair `grantor`. Process context or softirq; `check` must not sleep. Returns the offset
    /// that it returns, and the generation of the binding.
    ///
    /// Fails with `InvalidStag` if the window is not bound, or for an access of this side, which
    /// has no business with windows; `PdMismatch` if another queue pair has bound a window of type
    /// 2B.
    pub(super) fn check(
        &self,
        pd: u64,
        grantor: Option<&Arc<Grantor>>,
        want: Access,
        check: impl FnOnce(&Region) -> Result<u64, Denied>,
    ) -> Result<(u64, u64), Denied> {
        let current = self.current.lock();
        let binding = self.in_force(&current).ok_or(Denied::InvalidStag)?;

        if want.bits() & REMOTE_RIGHTS == 0 {
            return Err(Denied::InvalidStag);
        }
        let offset = check(&binding.region(pd))?;
        let is_own = grantor.is_some_and(|own| binding.grant.is_of(own));

        match self.kind == MwKind::One || is_own {
            true => Ok((offset, current.generation)),
            false => Err(Denied::PdMismatch),
        }
    }

    /// Calls `f` with the memory of binding `generation` and the offset of the window in it, unless
    /// that is not in force any more. Process context or softirq; `f` must not sleep. Fails with
    /// `InvalidStag`, or `Bounds` if `f` fails.
    pub(super) fn copy<R>(
        &self,
        generation: u64,
        f: impl FnOnce(LentMemory<'_>, u64) -> Result<R>,
    ) -> Result<R, Denied> {
        let current = self.current.lock();

        match self.in_force(&current) {
            Some(binding) if current.generation == generation => {
                let region: &UserRegion = match &binding.region.memory {
                    MrMemory::User(region) => region,
                    _ => return Err(Denied::InvalidStag),
                };

                region.copy(&binding.region.copies, |memory| f(memory, binding.offset))
            }
            _ => Err(Denied::InvalidStag),
        }
    }

    /// Returns STag and address of the byte `offset` bytes from the start of the window. Process
    /// context or softirq.
    pub(super) fn name(&self, offset: u64) -> (Stag, u64) {
        match &self.current.lock().binding {
            Some(binding) => (binding.stag, binding.base.wrapping_add(offset)),
            None => (Stag(0), offset),
        }
    }

    /// Returns the details. Process context or softirq.
    pub(super) fn details(&self) -> MrDetails {
        let current = self.current.lock();
        let binding = self.in_force(&current);

        MrDetails {
            access: binding.map_or(0, |binding| binding.access.bits()),
            pages: 0,
            valid: binding.is_some(),
        }
    }
}
