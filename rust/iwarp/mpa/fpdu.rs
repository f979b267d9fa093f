// SPDX-License-Identifier: GPL-2.0

//! Builds FPDUs (RFC 5044 §4): their maximum size, length field, pad, CRC and markers.

use crate::mpa::marker::Cadence;
use crate::traits::{Crc, Crc32c, Framing, Gather};
use crate::types::{copy, count, size, split};
use crate::wire::mpa::Marker;
use core::marker::PhantomData;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::IntoBytes;

/// Octets of the length field.
pub const LENGTH_LEN: usize = 2;
/// Octets of the CRC field.
pub const CRC_LEN: usize = 4;
/// Maximum octets of pad.
const PAD_MAX: usize = 3;
/// Maximum octets of an FPDU in the stream: the longest ULPDU, with a marker in front of the FPDU
/// and one behind each 508 octets of it.
pub const FPDU_MAX: usize = 65_544 + 4 * (65_544 / 508 + 1);
/// Maximum octets at the front of an FPDU that tell how long it is: its length field, with a marker
/// in front. An FPDU is longer in any case.
pub const FPDU_HEAD_MAX: usize = 4 + LENGTH_LEN;
/// Minimum MULPDU, however small the TCP segment (RFC 5044 §4.5).
pub const MULPDU_MIN: u16 = 128;

/// Returns the pad of a ULPDU of `len` octets: length field, ULPDU and pad make a multiple of 4.
#[inline]
pub fn pad_len(len: u16) -> usize {
    match (len & 3).wrapping_add(2) & 3 {
        0 => 0,
        over => usize::from(4_u16.saturating_sub(over)),
    }
}

/// Returns the longest ULPDU whose FPDU fits in a TCP segment of `emss` octets (RFC 5044 §4.5).
///
/// The result is capped: the ULPDU by its 16-bit length field, and with markers the whole FPDU by
/// the 16-bit FPDUPTR.
pub fn mulpdu(emss: u32, markers: bool) -> u16 {
    // Without markers, 65534 is the longest ULPDU that needs no pad: an FPDU of 65540.
    let emss = emss.min(if markers { 65_532 } else { 65_540 });
    let mut over = (emss & 3).saturating_add(6);
    if markers {
        over = over.saturating_add(emss.div_ceil(512).saturating_mul(4));
    }
    u16::try_from(emss.saturating_sub(over))
        .unwrap_or(u16::MAX)
        .max(MULPDU_MIN)
}

/// Framing of the stream, as the startup negotiated it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxConfig {
    /// Send CRCs. Otherwise the CRC field is zero.
    pub crc: bool,
    /// Send markers, because the peer requested them.
    pub markers: bool,
    /// The current TCP segment size in octets.
    pub emss: u32,
}

/// The sending side of MPA in full operation.
pub struct FpduFramer<C> {
    crc: bool,
    mulpdu: u16,
    cadence: Cadence,
    engine: PhantomData<fn() -> C>,
}

impl<C: Crc32c> FpduFramer<C> {
    /// Creates a framer at the start of a stream.
    pub fn new(config: TxConfig) -> Self {
        Self {
            crc: config.crc,
            mulpdu: mulpdu(config.emss, config.markers),
            cadence: Cadence::new(config.markers),
            engine: PhantomData,
        }
    }

    /// Sets the TCP segment size to `emss` octets, from the next FPDU on.
    pub fn set_emss(&mut self, emss: u32) {
        self.mulpdu = mulpdu(emss, self.cadence.enabled());
    }
}

impl<C: Crc32c> Framing for FpduFramer<C> {
    const PREFIX_LEN: usize = LENGTH_LEN;

    #[inline]
    fn mulpdu(&self) -> u16 {
        self.mulpdu
    }

    /// Writes one FPDU. An error leaves the stream position unchanged.
    fn emit<G: Gather>(
        &mut self,
        head: &mut [u8],
        offset: u32,
        len: u32,
        out: &mut G,
    ) -> Result<u32, G::Error> {
        let ulpdu = count(head.len().saturating_sub(LENGTH_LEN)).saturating_add(len);
        let ulpdu = u16::try_from(ulpdu).unwrap_or(u16::MAX);
        copy(head, &ulpdu.to_be_bytes());
        let mut writer = Writer::<C, G> {
            out,
            cadence: self.cadence,
            crc: self.crc.then(Crc::new),
            octets: 0,
            engine: PhantomData,
        };
        writer.bytes(head)?;
        writer.payload(offset, len)?;
        writer.trailer(pad_len(ulpdu))?;
        writer.cadence.end_fpdu();
        let octets = writer.octets;
        self.cadence = writer.cadence;
        Ok(octets)
    }
}

/// An FPDU being written.
struct Writer<'a, C, G> {
    out: &'a mut G,
    cadence: Cadence,
    crc: Option<Crc>,
    octets: u32,
    engine: PhantomData<fn() -> C>,
}

impl<C: Crc32c, G: Gather> Writer<'_, C, G> {
    /// Writes octets and includes them in the CRC.
    fn put(&mut self, data: &[u8]) -> Result<(), G::Error> {
        self.crc = self.crc.map(|crc| crc.update::<C>(data));
        self.octets = self.octets.saturating_add(count(data.len()));
        self.out.bytes(data)
    }

    /// Writes a marker if one is due.
    fn marker(&mut self) -> Result<(), G::Error> {
        if self.cadence.room() != 0 {
            return Ok(());
        }
        let marker = Marker {
            reserved: U16::ZERO,
            fpduptr: U16::new(self.cadence.pointer()),
        };
        self.put(marker.as_bytes())?;
        self.cadence.pass_marker();
        Ok(())
    }

    /// Writes octets of the FPDU and the markers between them.
    fn bytes(&mut self, data: &[u8]) -> Result<(), G::Error> {
        let mut rest = data;
        while !rest.is_empty() {
            self.marker()?;
            let (part, after) = split(rest, size(self.cadence.room()));
            self.put(part)?;
            self.cadence.pass(part.len());
            rest = after;
        }
        Ok(())
    }

    /// Lets the embedder append payload, and writes the markers between.
    fn payload(&mut self, offset: u32, len: u32) -> Result<(), G::Error> {
        let (mut offset, mut left) = (offset, len);
        while left != 0 {
            self.marker()?;
            let part = left.min(self.cadence.room());
            let crc = self.out.payload(offset, part, self.crc)?;
            // If CRCs are not used, ignore the returned value.
            self.crc = self.crc.and(crc);
            self.octets = self.octets.saturating_add(part);
            self.cadence.pass(size(part));
            offset = offset.wrapping_add(part);
            left = left.saturating_sub(part);
        }
        Ok(())
    }

    /// Writes pad and CRC field. The field is zero if CRCs are not used. A marker between pad and
    /// CRC is in the CRC; a marker behind the CRC belongs to the next FPDU (RFC 5044 §4.4).
    fn trailer(&mut self, pad: usize) -> Result<(), G::Error> {
        let mut trailer = [0; PAD_MAX + CRC_LEN];
        let mut crc_at = pad;
        if size(self.cadence.room()) <= pad {
            self.bytes(split(&trailer, pad).0)?;
            self.marker()?;
            crc_at = 0;
        }
        let padding = split(&trailer, crc_at).0;
        self.crc = self.crc.map(|crc| crc.update::<C>(padding));
        let field = self.crc.map_or([0; CRC_LEN], Crc::wire);
        copy(trailer.get_mut(crc_at..).unwrap_or(&mut []), &field);
        let trailer = split(&trailer, crc_at.saturating_add(CRC_LEN)).0;
        self.cadence.pass(trailer.len());
        self.octets = self.octets.saturating_add(count(trailer.len()));
        self.out.bytes(trailer)
    }
}
