// SPDX-License-Identifier: GPL-2.0

//! Octets that were decrypted, for the stream to pull FPDUs out of.
//!
//! They stay here until an FPDU is complete and its CRC is right. While the stream does not take
//! one, nothing more is read, so TCP's window closes and holds the peer back.

use super::super::{
    budget::RunBudget,
    crc,
    octets::DeframerOctets,
    segments::{Inflow, LinkRx, Pause, Segments},
    tcp::MpaRx,
};
use iwarp::{
    ddp::{FrameHead, Ulpdu},
    mpa::{fpdu::FPDU_MAX, FpduDeframer},
    Deframed, Deframing, Error,
};
use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;
use net::Unread;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../kunit/tls_inlet.rs"]
mod kunit;

/// The length of the buffer in bytes: room for the longest FPDU, and for several records behind
/// what is left of the one before.
const SIZE: usize = 128 * 1024;
/// Fewer bytes than these are not read at a time, but are made room for.
const READ_MIN: usize = 32 * 1024;

const _: () = assert!(FPDU_MAX + READ_MIN <= SIZE);

/// The memory of an inlet.
pub(super) struct InletMemory(KVVec<u8>);

impl InletMemory {
    /// Allocates it, charged to `memcg`. May sleep. `ENOMEM` without memory.
    pub(super) fn new(memcg: &MemCgroup) -> Result<Self> {
        Ok(Self(memcg.zeroed(SIZE)?))
    }
}

/// The receiving side of a connection with TLS.
pub(crate) struct RecordInlet {
    /// No memory before the first read.
    bytes: KVVec<u8>,
    /// The first octet that is not taken.
    start: usize,
    /// Behind the last one.
    end: usize,
    /// The stream has yet to take the FPDU at the front.
    is_blocked: bool,
    /// The last run has spent its budget: complete FPDUs may be left.
    has_rest: bool,
    /// The peer has ended its direction.
    pub(super) is_closed: bool,
}

impl RecordInlet {
    /// An inlet without memory. Any context.
    pub(super) fn new() -> Self {
        Self {
            bytes: KVVec::new(),
            start: 0,
            end: 0,
            is_blocked: false,
            has_rest: false,
            is_closed: false,
        }
    }

    /// Whether the stream has yet to take the FPDU at the front. Any context.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Whether the last run has left a rest to receive. Any context.
    pub(super) fn has_rest(&self) -> bool {
        self.has_rest
    }

    /// Whether no octet is left. Any context.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether the inlet has memory. Any context.
    pub(super) fn has_memory(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Gives the inlet its memory. Any context.
    pub(super) fn give(&mut self, memory: InletMemory) {
        self.bytes = memory.0;
    }

    /// Returns the room behind the last octet; empty without memory. Process context.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.bytes.len().saturating_sub(self.end) < READ_MIN {
            let start = self.start;

            if let Some(used) = self
                .bytes
                .get_mut(..self.end)
                .filter(|used| start <= used.len())
            {
                used.copy_within(start.., 0);
                self.end = self.end.saturating_sub(start);
                self.start = 0;
            }
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// Notes that `count` octets have been written to the room. Any context.
    pub(super) fn add(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.bytes.len());
    }

    /// Returns the octets that are not taken. Any context.
    fn octets(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Takes octets. Any context.
    fn take(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }
}

impl Inflow for RecordInlet {
    fn segments<'a>(&'a mut self, rx: &'a mut LinkRx) -> Option<impl Segments + 'a> {
        let rx = rx.mpa()?;

        self.has_rest = false;
        Some(Records {
            inlet: self,
            rx,
            budget: RunBudget::new(),
        })
    }

    fn discard(&mut self) {
        self.take(self.end);
        self.is_blocked = false;
        self.has_rest = false;
    }
}

/// The FPDUs in the octets of an inlet.
struct Records<'a> {
    inlet: &'a mut RecordInlet,
    rx: &'a mut MpaRx,
    budget: RunBudget,
}

impl Segments for Records<'_> {
    const SHORT: Error = <FpduDeframer<crc::Kernel>>::SHORT;

    fn next(&mut self, head: &mut FrameHead) -> Result<Option<Ulpdu>, Error> {
        if self.inlet.is_empty() {
            return Ok(None);
        }
        if self.budget.is_spent() {
            self.inlet.has_rest = true;
            return Ok(None);
        }
        let octets = DeframerOctets(self.inlet.octets().into());

        Ok(match self.rx.deframer().next(&octets, head)? {
            Deframed::Frame(ulpdu) => Some(ulpdu),
            Deframed::Incomplete { .. } => None,
        })
    }

    fn octets(&self) -> Unread<'_> {
        self.inlet.octets().into()
    }

    fn advance(&mut self, octets: usize) {
        self.inlet.take(octets);
        self.budget.take(octets);
    }

    fn finish(self, blocked: bool) -> Result<Pause, Error> {
        self.rx.set_left(self.inlet.octets().len());
        self.inlet.is_blocked = blocked;
        Ok(Pause::Event)
    }
}
