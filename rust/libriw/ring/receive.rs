// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Receive queues, of a queue pair or shared.

use super::post::Posts;
use super::send::Refused;
use core::sync::atomic::AtomicU64;
use riw_abi::udata::RingMap;
use riw_abi::wr::{Rqe, Sge};

/// A receive queue or an SRQ. Threads that post exclude each other.
pub(crate) struct ReceiveQueue<M> {
    posts: Posts<M>,
    max_sge: usize,
}

impl<M: AsRef<[AtomicU64]>> ReceiveQueue<M> {
    /// Returns `None` if the memory does not have the layout that the kernel has reported.
    pub(crate) fn new(memory: M, map: &RingMap) -> Option<Self> {
        let posts = Posts::new(memory, map)?;
        let max_sge = Rqe::max_sge(posts.stride());

        Some(Self { posts, max_sge })
    }

    /// Adds a WR. The queue is as before if it is refused.
    #[inline]
    pub(crate) fn post<S>(&mut self, wr_id: u64, sges: S) -> Result<(), Refused>
    where
        S: ExactSizeIterator<Item = Sge>,
    {
        let count = Some(sges.len()).filter(|count| *count <= self.max_sge);
        let head = Rqe {
            wr_id,
            sge_count: count
                .and_then(|count| u32::try_from(count).ok())
                .ok_or(Refused::Invalid)?,
            reserved: 0,
        };

        self.posts.begin()?;
        self.posts.write(0, head.to_words());
        self.posts.write(Rqe::DATA, sges.flat_map(Sge::to_words));
        Ok(())
    }

    /// Gives all added WRs to the kernel. Returns whether the doorbell must ring.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        self.posts.publish()
    }
}
