// SPDX-License-Identifier: GPL-2.0

//! The parameters and the memory with which a stream starts.

use super::{
    reads::{Reads, ReadsRoom},
    tx_state::Sender,
    Stream,
};
use crate::link::{Framer, Link};
use core::mem::MaybeUninit;
use iwarp::{startup::Parameters, Message};
use kernel::{prelude::*, sync::Arc};

/// How a stream starts.
pub(crate) struct Start<'a> {
    pub(crate) link: &'a Arc<Link>,
    pub(crate) framer: Framer,
    pub(crate) parameters: &'a Parameters,
    /// The frame that the peer waits for before any other.
    pub(crate) first: Option<Message>,
    /// This side may send before it has received.
    pub(crate) may_send: bool,
}

/// Memory for a stream that starts later. Whoever connects or accepts allocates it: the stream may
/// start in a worker that all connections share, and which must not wait for the memory of a
/// process.
pub(crate) struct StartRoom {
    reads: ReadsRoom,
    /// In a box, so that `Qp` fits a slab of 2 KiB.
    sender: KVBox<MaybeUninit<Sender>>,
}

impl Stream {
    /// Allocates memory for a stream that starts with an ORD of at most `ord`, and an IRD of at
    /// most `ird`, or of at most `ird_max` if the peer requests that. Process context; may sleep.
    /// Fails with `ENOMEM` without memory.
    pub(crate) fn start_room(&self, ord: u32, ird: u32, ird_max: u32) -> Result<StartRoom> {
        Ok(StartRoom {
            reads: ReadsRoom::new(&self.memcg, ord, ird, ird_max)?,
            sender: self.memcg.boxed(MaybeUninit::uninit())?,
        })
    }
}

impl StartRoom {
    /// Fills the memory. Frees what the stream does not need. Process context. Fails with `EINVAL`
    /// if the depths exceed those that it was allocated for.
    pub(super) fn fill(self, start: Start<'_>) -> Result<(Reads, KVBox<Sender>)> {
        let Parameters { ord, ird, .. } = *start.parameters;

        Ok((
            self.reads.take(ord, ird)?,
            KVBox::write(self.sender, Sender::new(start)),
        ))
    }
}
