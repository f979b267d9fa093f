// SPDX-License-Identifier: GPL-2.0

//! The framing of sent segments by the lower layer: MPA over TCP, or SCTP's chunks.

use super::{crc, Transport};
use iwarp::{mpa, sctp, startup::Parameters, Framing, Gather, TxConfig};

/// Frames the segments of a stream.
pub(crate) enum Framer {
    /// The longest FPDU is a TCP segment, or of the length that is set.
    Mpa {
        framer: mpa::FpduFramer<crc::Kernel>,
        fpdu_max: Option<u32>,
    },
    Sctp(sctp::ChunkFramer),
}

impl Framer {
    /// A framer at the start of a stream. `mss` is the payload of a full TCP segment or SCTP chunk, in bytes; the
    /// setting `fpdu_max` takes precedence.
    pub(crate) fn new(
        transport: Transport,
        parameters: &Parameters,
        mss: u32,
        fpdu_max: Option<u32>,
    ) -> Self {
        match transport {
            Transport::Tcp => Self::Mpa {
                framer: mpa::FpduFramer::new(TxConfig {
                    crc: parameters.crc,
                    markers: parameters.tx_markers,
                    emss: fpdu_max.unwrap_or(mss),
                }),
                fpdu_max,
            },
            Transport::Sctp => Self::Sctp(sctp::ChunkFramer::new(mss)),
        }
    }

    /// Sets the payload of a full segment or chunk.
    #[inline]
    pub(crate) fn set_mss(&mut self, mss: u32) {
        match self {
            Self::Mpa { framer, fpdu_max } => framer.set_emss(fpdu_max.unwrap_or(mss)),
            Self::Sctp(framer) => framer.set_chunk(mss),
        }
    }

    /// Whether the lower layer sends each frame as a message.
    pub(crate) fn has_messages(&self) -> bool {
        matches!(self, Self::Sctp(_))
    }
}

impl Framing for Framer {
    const PREFIX_LEN: usize = {
        assert!(<mpa::FpduFramer<crc::Kernel>>::PREFIX_LEN == sctp::ChunkFramer::PREFIX_LEN);
        sctp::ChunkFramer::PREFIX_LEN
    };

    #[inline]
    fn mulpdu(&self) -> u16 {
        match self {
            Self::Mpa { framer, .. } => framer.mulpdu(),
            Self::Sctp(framer) => framer.mulpdu(),
        }
    }

    #[inline]
    fn emit<G: Gather>(
        &mut self,
        head: &mut [u8],
        offset: u32,
        len: u32,
        out: &mut G,
    ) -> Result<u32, G::Error> {
        match self {
            Self::Mpa { framer, .. } => framer.emit(head, offset, len, out),
            Self::Sctp(framer) => framer.emit(head, offset, len, out),
        }
    }
}
