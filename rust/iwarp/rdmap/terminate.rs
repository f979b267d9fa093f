// SPDX-License-Identifier: GPL-2.0

//! The Terminate Message (RFC 5040 §4.8, §5.4): its error code and the headers that it quotes.

use crate::ddp::{self, Header};
use crate::error::{Error, TermCode};
use crate::rdmap::read::ReadRequest;
use crate::types::{copy, split};
use crate::wire::ddp as wire_ddp;
use crate::wire::rdmap as wire_rdmap;
use crate::wire::terminate as wire;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, IntoBytes};

/// The known headers of the segment that caused an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quote {
    segment_len: Option<u16>,
    ddp: [u8; wire_ddp::UNTAGGED_LEN],
    ddp_len: u8,
    rdmap: Option<[u8; wire_rdmap::READ_REQUEST_LEN]>,
}

impl Quote {
    /// Nothing to quote: no received segment caused the error.
    pub const NONE: Self = Self {
        segment_len: None,
        ddp: [0; wire_ddp::UNTAGGED_LEN],
        ddp_len: 0,
        rdmap: None,
    };

    /// Quotes a segment of `len` octets. `ddp` is its whole DDP header or empty. `rdmap` is the
    /// header of a complete Read Request.
    pub(crate) fn new(len: Option<u16>, ddp: &[u8], rdmap: Option<&[u8]>) -> Self {
        let mut quote = Self {
            segment_len: len,
            ..Self::NONE
        };
        let n = copy(&mut quote.ddp, ddp);
        quote.ddp_len = u8::try_from(n).unwrap_or(0);
        quote.rdmap = rdmap.and_then(|r| r.first_chunk().copied());
        quote
    }

    /// Quotes the Read Request `request`, received with MSN `msn`. For errors found while its
    /// response is sent; `request` is then [`ReadRequest::advanced`] by the octets sent.
    pub fn read_request(msn: u32, request: &ReadRequest) -> Self {
        Self::request_header(
            wire_rdmap::OP_READ_REQUEST,
            msn,
            wire_rdmap::READ_REQUEST_LEN,
            Some(request.wire().as_bytes()),
        )
    }

    /// Quotes an Atomic Request, received with MSN `msn`. For errors found when it is executed. A
    /// Terminate quotes no RDMAP header of it (RFC 7306 §8.1).
    pub fn atomic_request(msn: u32) -> Self {
        Self::request_header(
            wire_rdmap::OP_ATOMIC_REQUEST,
            msn,
            wire_rdmap::ATOMIC_REQUEST_LEN,
            None,
        )
    }

    /// Quotes a message on the queue of requests, with `body` octets behind its DDP header.
    fn request_header(opcode: u8, msn: u32, body: usize, rdmap: Option<&[u8]>) -> Self {
        let ddp = wire_ddp::UntaggedHeader {
            control: wire_ddp::LAST | wire_ddp::VERSION,
            rdmap: wire_rdmap::VERSION | opcode,
            invalidate: U32::ZERO,
            qn: U32::new(wire_rdmap::QN_READ_REQUEST),
            msn: U32::new(msn),
            mo: U32::ZERO,
        };
        let len = wire_ddp::UNTAGGED_LEN.saturating_add(body);
        Self::new(u16::try_from(len).ok(), ddp.as_bytes(), rdmap)
    }

    /// Returns the length of the DDP segment in octets, if known.
    pub const fn segment_len(&self) -> Option<u16> {
        self.segment_len
    }

    /// Returns the octets of the DDP header; empty if unknown.
    pub fn ddp(&self) -> &[u8] {
        split(&self.ddp, usize::from(self.ddp_len)).0
    }

    /// Returns the DDP header, if known.
    pub fn header(&self) -> Option<Header> {
        Header::parse(self.ddp())
    }

    /// Returns the MSN of the quoted Read Request or Atomic Request; `None` if the segment is
    /// neither or its DDP header is not quoted.
    pub fn request_msn(&self) -> Option<u32> {
        let Header::Untagged(h) = self.header()? else {
            return None;
        };
        match h.rdmap & wire_rdmap::OPCODE_MASK {
            wire_rdmap::OP_READ_REQUEST | wire_rdmap::OP_ATOMIC_REQUEST => Some(h.msn.get()),
            _ => None,
        }
    }

    /// Returns the octets of the RDMAP header, if the segment is a Read Request.
    pub fn rdmap(&self) -> Option<&[u8]> {
        self.rdmap.as_ref().map(|r| r.as_slice())
    }

    /// Returns the quoted Read Request, if any.
    pub fn request(&self) -> Option<ReadRequest> {
        ReadRequest::parse(self.rdmap()?)
    }
}

/// A Terminate Message.
///
/// ```
/// use iwarp::sctp::ChunkFramer;
/// use iwarp::{
///     Crc, Error, Gather, Message, Quote, Rdmap, ReadRequest, Segmenter, Stag, Terminate,
/// };
///
/// /// A sink for messages without payload.
/// struct Sink(Vec<u8>);
///
/// impl Gather for Sink {
///     type Error = ();
///
///     fn bytes(&mut self, bytes: &[u8]) -> Result<(), ()> {
///         self.0.extend_from_slice(bytes);
///         Ok(())
///     }
///
///     fn payload(&mut self, _: u32, _: u32, _: Option<Crc>) -> Result<Option<Crc>, ()> {
///         Err(())
///     }
/// }
///
/// // The peer's first Read Request exceeds the region.
/// let request = ReadRequest {
///     sink_stag: Stag(0x0100),
///     sink_to: 0,
///     len: 4096,
///     src_stag: Stag(0x0200),
///     src_to: 0,
/// };
/// let quote = Quote::read_request(1, &request);
/// let terminate = Terminate::new(Error::Rdmap(Rdmap::Bounds), quote);
/// assert_eq!(terminate.quote.request(), Some(request));
///
/// let mut tx = Segmenter::new(ChunkFramer::new(1452));
/// assert_eq!(tx.start(Message::Terminate(terminate), 0), Ok(()));
/// let mut out = Sink(Vec::new());
/// assert!(tx
///     .poll_transmit(&mut out)?
///     .is_some_and(|emitted| emitted.last));
/// // Behind the DDP-SSN and the DDP header: layer 0 (RDMAP) and error type 1, error code 1, and
/// // the flags of all three quoted parts.
/// assert_eq!(out.0[2 + 18..][..4], [0x01, 0x01, 0xe0, 0]);
/// # Ok::<(), ()>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terminate {
    /// The error code.
    pub code: TermCode,
    /// The segment that caused the error.
    pub quote: Quote,
}

/// A Terminate Message from the peer.
pub type Terminated = Terminate;

impl Terminate {
    /// Creates the Terminate for `error`, found in the segment that `quote` describes.
    ///
    /// RFC 5040 §4.8, figure 10, and §7.1 fix how much of `quote` is included: nothing for an
    /// error of the lower layer or a local error; length and DDP header for the others; the RDMAP
    /// header too if RDMAP found the error in a Read Request.
    pub fn new(error: Error, quote: Quote) -> Self {
        let quote = match error {
            Error::Mpa(_)
            | Error::Sctp(_)
            | Error::LlpClosed
            | Error::Local(_)
            | Error::DdpLocalCatastrophic => Quote::NONE,
            Error::DdpTagged(_) | Error::DdpUntagged(_) => Quote {
                rdmap: None,
                ..quote
            },
            Error::Rdmap(_) => quote,
        };
        Self {
            code: error.term(),
            // A length without the DDP header is useless.
            quote: if quote.ddp_len == 0 {
                Quote::NONE
            } else {
                quote
            },
        }
    }

    /// Writes the header. Returns its length in octets.
    pub(crate) fn emit(&self, out: &mut [u8; wire::TERMINATE_MAX]) -> usize {
        let quote = &self.quote;
        let mut hdrct = 0;
        if quote.segment_len.is_some() {
            hdrct |= wire::HDR_LENGTH;
        }
        if quote.ddp_len != 0 {
            hdrct |= wire::HDR_DDP;
        }
        if quote.rdmap.is_some() {
            hdrct |= wire::HDR_RDMAP;
        }
        let fixed = wire::TerminateHeader {
            layer_etype: ((self.code.layer & 0xf) << 4) | (self.code.etype & 0xf),
            code: self.code.code,
            hdrct,
            reserved: 0,
        };
        let length = U16::new(quote.segment_len.unwrap_or(0));
        let length: &[u8] = if hdrct & (wire::HDR_LENGTH | wire::HDR_DDP) != 0 {
            length.as_bytes()
        } else {
            &[]
        };
        let mut used: usize = 0;
        for part in [
            fixed.as_bytes(),
            length,
            quote.ddp(),
            quote.rdmap().unwrap_or(&[]),
        ] {
            if let Some(rest) = out.get_mut(used..) {
                used = used.saturating_add(copy(rest, part));
            }
        }
        used
    }

    /// Parses a Terminate header at the start of `data`. A part that is announced but missing
    /// counts as not quoted; octets behind the header are ignored. Returns `None` if the error code
    /// is missing.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let (fixed, mut rest) = wire::TerminateHeader::read_from_prefix(data).ok()?;
        let mut quote = Quote::NONE;
        // The length field is present if either it or the DDP header is announced.
        if fixed.hdrct & (wire::HDR_LENGTH | wire::HDR_DDP) != 0 {
            let (length, after) = split(rest, 2);
            rest = after;
            if fixed.hdrct & wire::HDR_LENGTH != 0 {
                quote.segment_len = U16::read_from_bytes(length).ok().map(U16::get);
            }
        }
        if fixed.hdrct & wire::HDR_DDP != 0 {
            let want = rest.first().map_or(0, |c| ddp::header_len(*c));
            let (header, after) = split(rest, want);
            rest = after;
            if header.len() == want {
                quote.ddp_len = u8::try_from(copy(&mut quote.ddp, header)).unwrap_or(0);
            }
        }
        if fixed.hdrct & wire::HDR_RDMAP != 0 {
            quote.rdmap = rest.first_chunk().copied();
        }
        Some(Self {
            code: TermCode {
                layer: fixed.layer_etype >> 4,
                etype: fixed.layer_etype & 0xf,
                code: fixed.code,
            },
            quote,
        })
    }
}
