// SPDX-License-Identifier: GPL-2.0

//! Parses FPDUs (RFC 5044 §4, §6): length, ULPDU, pad and CRC, with markers between.

use crate::ddp::{FrameHead, Runs, Ulpdu, HEAD_LEN};
use crate::error::{Error, Local, Mpa};
use crate::mpa::fpdu::{pad_len, CRC_LEN, LENGTH_LEN};
use crate::mpa::marker::Cadence;
use crate::traits::{Crc, Crc32c, Deframed, Deframing, Octets};
use crate::types::{copy, split};
use crate::wire::mpa::MARKER_LEN;
use core::marker::PhantomData;

/// Octets of a stream with markers that hold a [`FrameHead`], with at most one marker before each
/// of its parts.
const MARKED_HEAD_LEN: usize = HEAD_LEN + 2 * MARKER_LEN;

/// Framing of the stream, as the startup negotiated it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxConfig {
    /// Check CRCs.
    pub crc: bool,
    /// The peer sends markers, because this side requested them.
    pub markers: bool,
}

/// The receiving side of MPA in full operation.
pub struct FpduDeframer<C> {
    check_crc: bool,
    /// Position of the next FPDU.
    cadence: Cadence,
    engine: PhantomData<fn() -> C>,
}

impl<C: Crc32c> FpduDeframer<C> {
    /// Creates a deframer at the start of a stream.
    pub const fn new(config: RxConfig) -> Self {
        Self {
            check_crc: config.crc,
            cadence: Cadence::new(config.markers),
            engine: PhantomData,
        }
    }
}

impl<C: Crc32c> Deframing for FpduDeframer<C> {
    const SHORT: Error = Error::Mpa(Mpa::Length);

    /// Parses the FPDU at the front of `stream`. Once it is complete, checks its CRC, if CRCs are
    /// used, then its markers, and moves past it.
    ///
    /// The CRC of length field and ULPDU front is computed over the copy in `head`. So the checked
    /// header is the one in use, even if someone writes to the stream's memory meanwhile.
    ///
    /// # Errors
    ///
    /// A wrong CRC, a wrong marker, or unreadable octets.
    fn next<S: Octets>(&mut self, stream: &S, head: &mut FrameHead) -> Result<Deframed, Error> {
        let needed = self.cadence.end(LENGTH_LEN);
        if stream.len() < needed {
            return Ok(Deframed::Incomplete { needed });
        }
        if self.cadence.enabled() {
            let mut marked = [0; MARKED_HEAD_LEN];
            let (marked, _) = marked.split_at_mut(stream.len().min(MARKED_HEAD_LEN));
            read(stream, 0, marked)?;
            self.cadence.copy(marked, head);
            self.fpdu(stream, marked, length(head))
        } else {
            let (head, _) = head.split_at_mut(stream.len().min(HEAD_LEN));
            read(stream, 0, head)?;
            self.fpdu(stream, head, length(head))
        }
    }

    /// Returns whether the stream may end with `unread` octets of the next FPDU: none, or only the
    /// marker in front of it.
    fn may_end(&self, unread: usize) -> bool {
        unread == 0 || unread == self.cadence.position(0)
    }
}

/// Returns the length field at the front of `head`.
fn length(head: &[u8]) -> u16 {
    u16::from_be_bytes(head.first_chunk().copied().unwrap_or_default())
}

impl<C: Crc32c> FpduDeframer<C> {
    /// Checks the FPDU of a ULPDU of `len` octets, as [`Self::next`] does. `front` is a copy of the
    /// stream's first octets.
    #[inline]
    fn fpdu<S: Octets>(&mut self, stream: &S, front: &[u8], len: u16) -> Result<Deframed, Error> {
        let layout = self.cadence;
        let body = LENGTH_LEN
            .saturating_add(usize::from(len))
            .saturating_add(pad_len(len));
        let content = body.saturating_add(CRC_LEN);
        let octets = layout.end(content);
        if stream.len() < octets {
            return Ok(Deframed::Incomplete { needed: octets });
        }
        if self.check_crc {
            check_crc::<C, S>(stream, front, octets.saturating_sub(CRC_LEN))?;
        }
        for (at, pointer) in layout.markers(octets) {
            let [_, _, high, low] = word(stream, front, at)?;
            // The low two bits are reserved, and zero in `pointer`.
            if u16::from_be_bytes([high, low]) & !3 != pointer {
                return Err(Mpa::Marker.into());
            }
        }

        self.cadence.pass_fpdu(content);
        let (at, until) = (layout.position(LENGTH_LEN), layout.run(LENGTH_LEN));
        Ok(Deframed::Frame(Ulpdu {
            octets,
            len,
            runs: Runs::between_markers(at, usize::from(len), until),
        }))
    }
}

/// Checks the CRC behind the first `covered` octets of the stream. `front` is a copy of the
/// stream's first octets.
fn check_crc<C: Crc32c, S: Octets>(stream: &S, front: &[u8], covered: usize) -> Result<(), Error> {
    let (begin, _) = split(front, covered);
    let mut crc = Crc::new().update::<C>(begin);
    let rest = covered.saturating_sub(begin.len());
    if rest != 0 {
        crc = stream
            .crc(crc, begin.len(), rest)
            .ok_or(Local::LowerLayer)?;
    }
    if word(stream, front, covered)? == crc.wire() {
        Ok(())
    } else {
        Err(Mpa::Crc.into())
    }
}

/// Copies octets of the stream. A failure is local, not the peer's fault.
fn read<S: Octets>(stream: &S, at: usize, to: &mut [u8]) -> Result<(), Error> {
    Ok(stream.copy(at, to).ok_or(Local::LowerLayer)?)
}

/// Reads four octets of the stream: a marker or the CRC. Prefers `front`, because the CRC covers
/// that copy.
fn word<S: Octets>(stream: &S, front: &[u8], at: usize) -> Result<[u8; 4], Error> {
    if let Some(word) = split_from(front, at).first_chunk() {
        return Ok(*word);
    }
    let mut word = [0; 4];
    read(stream, at, &mut word)?;
    Ok(word)
}

impl Cadence {
    /// Copies the first octets of the FPDU, between the markers, out of `front`, the first octets
    /// of the stream. Leaves the part of `head` unchanged that `front` does not reach.
    fn copy(&self, front: &[u8], head: &mut FrameHead) {
        let mut at = 0_usize;
        let mut left = head.as_mut_slice();
        while !left.is_empty() {
            let run = self.run(at).min(left.len());
            let from = split_from(front, self.position(at));
            let Some((now, later)) = left.split_at_mut_checked(run) else {
                return;
            };
            copy(now, from);
            at = at.saturating_add(run);
            left = later;
        }
    }
}

/// Returns `data` from `at` on.
fn split_from(data: &[u8], at: usize) -> &[u8] {
    data.get(at..).unwrap_or(&[])
}
