// SPDX-License-Identifier: GPL-2.0

//! Parses FPDUs (RFC 5044 §4, §6): length, ULPDU, pad and CRC, with markers between.

use crate::ddp::{Ulpdu, FRONT_LEN};
use crate::error::{Error, Local, Mpa};
use crate::mpa::fpdu::{pad_len, CRC_LEN, LENGTH_LEN};
use crate::mpa::marker::{Cadence, MARKER_LEN};
use crate::traits::{Crc, Crc32c, Deframed, Deframing, Layout, Octets};
use crate::types::{copy, split};
use core::marker::PhantomData;
use core::ops::Range;

/// Octets of the stream that hold the length field and the front of the ULPDU, with at most one
/// marker before each.
const HEAD_LEN: usize = LENGTH_LEN + FRONT_LEN + 2 * MARKER_LEN;

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
    /// Where markers interrupt the FPDU.
    type Layout = Cadence;

    const SHORT: Error = Error::Mpa(Mpa::Length);

    /// Parses the FPDU at the front of `stream`. Once it is complete, checks its CRC, if CRCs are
    /// used, then its markers, and moves past it.
    ///
    /// The CRC of length field and ULPDU front is computed over the returned copy. So the checked
    /// header is the one in use, even if someone writes to the stream's memory meanwhile.
    ///
    /// # Errors
    ///
    /// A wrong CRC, a wrong marker, or unreadable octets.
    fn next<S: Octets>(&mut self, stream: &S) -> Result<Deframed<Cadence>, Error> {
        let layout = self.cadence;
        let needed = layout.end(LENGTH_LEN);
        if stream.len() < needed {
            return Ok(Deframed::Incomplete { needed });
        }
        let mut head = [0; HEAD_LEN];
        let (head, _) = head.split_at_mut(stream.len().min(HEAD_LEN));
        read(stream, 0, head)?;
        let mut length = [0; LENGTH_LEN];
        layout.copy(head, 0, &mut length);
        let len = u16::from_be_bytes(length);

        let body = LENGTH_LEN
            .saturating_add(usize::from(len))
            .saturating_add(pad_len(len));
        let content = body.saturating_add(CRC_LEN);
        let octets = layout.end(content);
        if stream.len() < octets {
            return Ok(Deframed::Incomplete { needed: octets });
        }
        if self.check_crc {
            check_crc::<C, S>(stream, head, octets.saturating_sub(CRC_LEN))?;
        }
        for (at, pointer) in layout.markers(octets) {
            let [_, _, high, low] = word(stream, head, at)?;
            // The low two bits are reserved, and zero in `pointer`.
            if u16::from_be_bytes([high, low]) & !3 != pointer {
                return Err(Mpa::Marker.into());
            }
        }

        self.cadence.pass_fpdu(content);
        let mut front = [0; FRONT_LEN];
        layout.copy(head, LENGTH_LEN, &mut front);
        Ok(Deframed::Frame {
            octets,
            ulpdu: Ulpdu { len, front, layout },
        })
    }

    /// Returns whether the stream may end with `unread` octets of the next FPDU: none, or only the
    /// marker in front of it.
    fn may_end(&self, unread: usize) -> bool {
        unread == 0 || unread == self.cadence.position(0)
    }
}

/// The ULPDU lies behind the length field of the FPDU that begins at this position.
impl Layout for Cadence {
    #[inline]
    fn runs(&self, part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let layout = *self;
        let end = LENGTH_LEN.saturating_add(part.end);
        let mut at = LENGTH_LEN.saturating_add(part.start);
        core::iter::from_fn(move || {
            let len = layout.run(at).min(end.saturating_sub(at));
            let start = layout.position(at);
            at = at.saturating_add(len);
            (len != 0).then(|| start..start.saturating_add(len))
        })
    }
}

/// Checks the CRC behind the first `covered` octets of the stream. `head` is a copy of the stream's
/// first octets.
fn check_crc<C: Crc32c, S: Octets>(stream: &S, head: &[u8], covered: usize) -> Result<(), Error> {
    let (begin, _) = split(head, covered);
    let mut crc = Crc::new().update::<C>(begin);
    let rest = covered.saturating_sub(begin.len());
    if rest != 0 {
        crc = stream
            .crc(crc, begin.len(), rest)
            .ok_or(Local::LowerLayer)?;
    }
    if word(stream, head, covered)? == crc.wire() {
        Ok(())
    } else {
        Err(Mpa::Crc.into())
    }
}

/// Copies octets of the stream. A failure is local, not the peer's fault.
fn read<S: Octets>(stream: &S, at: usize, to: &mut [u8]) -> Result<(), Error> {
    Ok(stream.copy(at, to).ok_or(Local::LowerLayer)?)
}

/// Reads four octets of the stream: a marker or the CRC. Prefers `head`, because the CRC covers
/// that copy.
fn word<S: Octets>(stream: &S, head: &[u8], at: usize) -> Result<[u8; 4], Error> {
    if let Some(word) = split_from(head, at).first_chunk() {
        return Ok(*word);
    }
    let mut word = [0; 4];
    read(stream, at, &mut word)?;
    Ok(word)
}

impl Cadence {
    /// Copies octets of the FPDU from `at` on out of `head`, the first octets of the stream. Leaves
    /// the part of `to` unchanged that `head` does not reach.
    #[inline]
    fn copy(&self, head: &[u8], at: usize, to: &mut [u8]) {
        if self.enabled() {
            self.copy_runs(head, at, to);
        } else {
            copy(to, split_from(head, at));
        }
    }

    /// Copies as [`Self::copy`] does, between the markers.
    fn copy_runs(&self, head: &[u8], at: usize, to: &mut [u8]) {
        let mut at = at;
        let mut left = to;
        while !left.is_empty() {
            let run = self.run(at).min(left.len());
            let from = split_from(head, self.position(at));
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
