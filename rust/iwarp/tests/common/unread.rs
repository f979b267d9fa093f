// SPDX-License-Identifier: GPL-2.0

//! Received octets that lie in memory. selftests/fuzz has this file as a module, too, with a CRC
//! engine of its own.

use super::placement::{consume, Framed, Placement, Progress};
use super::Soft;
use iwarp::{mpa::fpdu::FPDU_MAX, mpa::FpduDeframer, Crc, Error, Octets};
use std::ops::Range;

/// Received octets of a stream that are not consumed yet.
#[derive(Default)]
pub struct Unread(Vec<u8>);

impl Octets for Unread {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn copy(&self, at: usize, to: &mut [u8]) -> Option<()> {
        to.copy_from_slice(&self.0[at..at + to.len()]);
        Some(())
    }

    fn crc(&self, crc: Crc, at: usize, len: usize) -> Option<Crc> {
        Some(crc.update::<Soft>(&self.0[at..at + len]))
    }
}

impl From<&[u8]> for Unread {
    fn from(octets: &[u8]) -> Self {
        Self(octets.to_vec())
    }
}

impl Unread {
    /// Returns the octets of a range.
    pub fn octets(&self, range: Range<usize>) -> &[u8] {
        &self.0[range]
    }

    /// Adds `part` and lets the receiver consume as much as it can.
    pub fn receive<P: for<'s> Placement<Stream<'s> = Self>>(
        &mut self,
        part: &[u8],
        rx: &mut Framed<FpduDeframer<Soft>>,
        placement: &mut P,
    ) -> Result<(), Error> {
        self.0.extend_from_slice(part);
        while !self.0.is_empty() {
            match consume(rx, self, placement)? {
                Progress::Consumed(octets) => {
                    assert_ne!(octets, 0);
                    drop(self.0.drain(..octets));
                }
                Progress::Incomplete { needed } => {
                    assert!(needed > self.0.len() && needed <= FPDU_MAX);
                    break;
                }
                Progress::Blocked => break,
            }
        }
        Ok(())
    }
}
