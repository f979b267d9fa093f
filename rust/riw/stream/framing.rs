// SPDX-License-Identifier: GPL-2.0

//! The framing of segments by the lower layer: MPA over TCP, or SCTP's chunks.

use super::{crc, octets::RxOctets, start::Start};
use crate::link::Transport;
use iwarp::{
    mpa, sctp, startup::Parameters, Error, Framing, Gather, Next, Quote, Receiver, RxConfig,
    TxConfig,
};

/// The sending side.
pub(super) enum TxFraming {
    /// The longest FPDU is a TCP segment, or of the length that is set.
    Mpa {
        framer: mpa::FpduFramer<crc::Kernel>,
        fpdu_max: Option<u32>,
    },
    Sctp(sctp::ChunkFramer),
}

impl TxFraming {
    /// A framing at the start of a stream.
    pub(super) fn new(start: &Start<'_>) -> Self {
        match start.transport {
            Transport::Tcp => Self::Mpa {
                framer: mpa::FpduFramer::new(TxConfig {
                    crc: start.parameters.crc,
                    markers: start.parameters.tx_markers,
                    emss: start.fpdu_max.unwrap_or(start.mss),
                }),
                fpdu_max: start.fpdu_max,
            },
            Transport::Sctp => Self::Sctp(sctp::ChunkFramer::new(start.mss)),
        }
    }

    /// Sets the payload of a full TCP segment or SCTP chunk, in bytes. The setting `fpdu_max` takes precedence.
    pub(super) fn set_room(&mut self, room: u32) {
        match self {
            Self::Mpa { framer, fpdu_max } => framer.set_emss(fpdu_max.unwrap_or(room)),
            Self::Sctp(framer) => framer.set_chunk(room),
        }
    }

    /// Whether the lower layer sends each frame as a message.
    pub(super) fn has_messages(&self) -> bool {
        matches!(self, Self::Sctp(_))
    }
}

impl Framing for TxFraming {
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

/// The receiving side.
pub(super) enum RxFraming {
    Mpa(Receiver<mpa::FpduDeframer<crc::Kernel>>),
    Sctp(Receiver<sctp::ChunkDeframer>),
}

impl RxFraming {
    /// A receiver at the start of a stream.
    pub(super) fn new(transport: Transport, parameters: &Parameters) -> Self {
        match transport {
            Transport::Tcp => Self::Mpa(Receiver::new(mpa::FpduDeframer::new(RxConfig {
                crc: parameters.crc,
                markers: parameters.rx_markers,
            }))),
            Transport::Sctp => Self::Sctp(Receiver::new(sctp::ChunkDeframer::new())),
        }
    }

    /// See [`Receiver::next`].
    #[inline]
    pub(super) fn next(&mut self, octets: &RxOctets<'_>) -> Result<Next<'_>, Error> {
        match self {
            Self::Mpa(receiver) => receiver.next(octets),
            Self::Sctp(receiver) => receiver.next(octets),
        }
    }

    /// See [`Receiver::at_boundary`].
    pub(super) fn at_boundary(&self, unread: usize) -> bool {
        match self {
            Self::Mpa(receiver) => receiver.at_boundary(unread),
            Self::Sctp(receiver) => receiver.at_boundary(unread),
        }
    }

    /// See [`Receiver::started`].
    #[inline]
    pub(super) fn started(&self) -> bool {
        match self {
            Self::Mpa(receiver) => receiver.started(),
            Self::Sctp(receiver) => receiver.started(),
        }
    }

    /// See [`Receiver::quote`].
    pub(super) fn quote(&self) -> Quote {
        match self {
            Self::Mpa(receiver) => receiver.quote(),
            Self::Sctp(receiver) => receiver.quote(),
        }
    }
}
