// SPDX-License-Identifier: GPL-2.0

//! The chunks (RFC 5043 §5.2, RFC 6581 §7), parsed and built without copying private data.

use super::wire;
use crate::error::Sctp;
use crate::negotiation::Words;
use crate::types::{copy, split};
use crate::wire::enhanced::ENHANCED_LEN;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, IntoBytes};

/// Octets of a session control chunk in front of the ULP's private data, at most.
const HEAD_MAX: usize = wire::CONTROL_LEN + ENHANCED_LEN;

/// Returns the DDP-SSN of a chunk. Both types begin with it.
///
/// # Errors
///
/// The chunk is too short.
pub fn ssn(chunk: &[u8]) -> Result<u16, Sctp> {
    let ssn = chunk.first_chunk().ok_or(Sctp::Length)?;
    Ok(u16::from_be_bytes(*ssn))
}

/// A chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chunk<'a> {
    /// A DDP segment, for [`Receiver::next`](crate::Receiver::next).
    Segment,
    /// A session control chunk.
    Control(Control<'a>),
}

impl<'a> Chunk<'a> {
    /// Parses a chunk with payload protocol identifier `ppid`. `chunk` is all of its user data; of
    /// a segment chunk nothing is looked at, so any part of it will do.
    ///
    /// # Errors
    ///
    /// It is no chunk of RFC 5043 or RFC 6581.
    pub fn parse(ppid: u32, chunk: &'a [u8]) -> Result<Self, Sctp> {
        match ppid {
            wire::PPID_SEGMENT => Ok(Self::Segment),
            wire::PPID_CONTROL => Control::parse(chunk).map(Self::Control),
            _ => Err(Sctp::Ppid),
        }
    }
}

/// A session control chunk without its DDP-SSN.
///
/// ```
/// use iwarp::sctp::wire::{PPID_CONTROL, PPID_SEGMENT};
/// use iwarp::sctp::{ssn, Body, Chunk, Control};
/// use iwarp::Sctp;
///
/// let accept = Control::Accept(Body {
///     words: None,
///     private: b"welcome",
/// });
/// let chunk = accept
///     .encode(0)
///     .map(|chunk| chunk.parts().concat())
///     .unwrap_or_default();
/// assert_eq!(chunk, b"\0\0\0\x02welcome");
///
/// assert_eq!(ssn(&chunk), Ok(0));
/// assert_eq!(
///     Chunk::parse(PPID_CONTROL, &chunk),
///     Ok(Chunk::Control(accept))
/// );
/// // Only the payload protocol identifier tells the two types of chunk apart.
/// assert_eq!(Chunk::parse(PPID_SEGMENT, &chunk), Ok(Chunk::Segment));
/// assert_eq!(Chunk::parse(0, &chunk), Err(Sctp::Ppid));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control<'a> {
    /// The initiator requests a session.
    Initiate(Body<'a>),
    /// The responder accepts.
    Accept(Body<'a>),
    /// The responder rejects, because its ULP does.
    Reject(Body<'a>),
    /// The sender ends its direction of the session, or refuses it.
    Terminate,
}

/// The octets behind the function code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Body<'a> {
    /// The control words. With them the chunk has the enhanced function code of RFC 6581.
    pub words: Option<Words>,
    /// The ULP's private data.
    pub private: &'a [u8],
}

impl<'a> Body<'a> {
    /// Returns the body of a chunk with these octets behind the function code.
    fn parse(enhanced: bool, octets: &'a [u8]) -> Result<Self, Sctp> {
        if octets.len() > wire::PRIVATE_DATA_MAX {
            return Err(Sctp::PrivateData);
        }
        let (words, private) = if enhanced {
            let words = Words::parse(octets).ok_or(Sctp::PrivateData)?;
            (Some(words), split(octets, ENHANCED_LEN).1)
        } else {
            (None, octets)
        };
        Ok(Self { words, private })
    }
}

impl<'a> Control<'a> {
    /// Parses a session control chunk.
    ///
    /// # Errors
    ///
    /// It is too short, its function code is unknown, or its private data is not valid.
    fn parse(chunk: &'a [u8]) -> Result<Self, Sctp> {
        let (header, octets) =
            wire::ControlHeader::read_from_prefix(chunk).map_err(|_| Sctp::Length)?;
        let body = |enhanced| Body::parse(enhanced, octets);
        Ok(match header.function.get() {
            wire::INITIATE => Self::Initiate(body(false)?),
            wire::ENHANCED_INITIATE => Self::Initiate(body(true)?),
            wire::ACCEPT => Self::Accept(body(false)?),
            wire::ENHANCED_ACCEPT => Self::Accept(body(true)?),
            wire::REJECT => Self::Reject(body(false)?),
            wire::ENHANCED_REJECT => Self::Reject(body(octets.len() >= ENHANCED_LEN)?),
            wire::TERMINATE if octets.is_empty() => Self::Terminate,
            wire::TERMINATE => return Err(Sctp::PrivateData),
            _ => return Err(Sctp::Function),
        })
    }

    /// Builds the chunk. Returns `None` if the private data does not fit: 512 octets, 508 behind
    /// control words.
    pub fn encode(&self, ssn: u16) -> Option<Encoded<'a>> {
        let (plain, enhanced, body) = match self {
            Self::Initiate(body) => (wire::INITIATE, wire::ENHANCED_INITIATE, body),
            Self::Accept(body) => (wire::ACCEPT, wire::ENHANCED_ACCEPT, body),
            Self::Reject(body) => (wire::REJECT, wire::ENHANCED_REJECT, body),
            Self::Terminate => return Some(Encoded::terminate(ssn)),
        };
        let function = if body.words.is_some() {
            enhanced
        } else {
            plain
        };
        let chunk = Encoded::new(ssn, function, body);
        (chunk.private_len() <= wire::PRIVATE_DATA_MAX).then_some(chunk)
    }
}

/// The user data of a session control chunk to send, with payload protocol identifier
/// [`PPID_CONTROL`](wire::PPID_CONTROL).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoded<'a> {
    head: [u8; HEAD_MAX],
    head_len: usize,
    private: &'a [u8],
}

impl<'a> Encoded<'a> {
    fn new(ssn: u16, function: u16, body: &Body<'a>) -> Self {
        let header = wire::ControlHeader {
            ssn: U16::new(ssn),
            function: U16::new(function),
        };
        let mut this = Self {
            head: [0; HEAD_MAX],
            head_len: wire::CONTROL_LEN,
            private: body.private,
        };
        copy(&mut this.head, header.as_bytes());
        if let Some(words) = &body.words {
            let (_, room) = this.head.split_at_mut(wire::CONTROL_LEN);
            copy(room, words.wire().as_bytes());
            this.head_len = HEAD_MAX;
        }
        this
    }

    /// Returns a Terminate Chunk. It has no private data (RFC 5043 §5.2.3).
    pub(super) fn terminate(ssn: u16) -> Self {
        let nothing = Body {
            words: None,
            private: &[],
        };
        Self::new(ssn, wire::TERMINATE, &nothing)
    }

    /// Returns the octets of private data, control words included.
    fn private_len(&self) -> usize {
        self.head_len
            .saturating_sub(wire::CONTROL_LEN)
            .saturating_add(self.private.len())
    }

    /// Returns the octets to send: the octets in front of the ULP's private data, and the private
    /// data.
    pub fn parts(&self) -> [&[u8]; 2] {
        [split(&self.head, self.head_len).0, self.private]
    }
}
