// SPDX-License-Identifier: GPL-2.0

//! Startup frames: collected from the stream, parsed, and built.

use super::error::StartupError;
use crate::negotiation::{Depths, RtrTypes, Words};
use crate::types::{copy, split};
use crate::wire::enhanced::ENHANCED_LEN;
use crate::wire::mpa as wire;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, IntoBytes};

const FRAME_MAX: usize = wire::STARTUP_LEN + wire::PRIVATE_DATA_MAX;
/// Octets of a frame in front of the ULP's private data, at most.
const HEAD_MAX: usize = wire::STARTUP_LEN + ENHANCED_LEN;

/// The two startup frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// From the initiator.
    Request,
    /// From the responder.
    Reply,
}

impl Kind {
    const fn key(self) -> [u8; 16] {
        match self {
            Self::Request => wire::KEY_REQUEST,
            Self::Reply => wire::KEY_REPLY,
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Request => Self::Reply,
            Self::Reply => Self::Request,
        }
    }
}

/// The contents of a startup frame without its private data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// M: the sender requests markers in its receive direction.
    pub markers: bool,
    /// C: the sender requires CRCs.
    pub crc: bool,
    /// R: the connection is rejected. Meaningless in a Request.
    pub reject: bool,
    /// The revision of MPA.
    pub revision: u8,
    /// The read depths, if the frame is enhanced.
    pub depths: Option<Depths>,
    /// The RTR indications, if the frame is enhanced and for the peer-to-peer model.
    pub rtr: Option<RtrTypes>,
}

impl Frame {
    /// Returns the control words, if the frame is enhanced.
    pub(super) fn words(&self) -> Option<Words> {
        let rtr = self.rtr;
        self.depths.map(|depths| Words { depths, rtr })
    }
}

/// Collects a startup frame. About 550 octets.
#[derive(Clone, Debug)]
pub struct Reader {
    kind: Kind,
    have: usize,
    bytes: [u8; FRAME_MAX],
}

impl Reader {
    /// Creates a reader for a frame of this kind.
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            have: 0,
            bytes: [0; FRAME_MAX],
        }
    }

    /// Forgets all octets: a new frame of this kind begins.
    pub fn clear(&mut self) {
        self.have = 0;
    }

    /// Returns whether no octet of the frame has come.
    pub const fn is_empty(&self) -> bool {
        self.have == 0
    }

    /// Returns the octets to read from the socket now without reading past the frame: first the
    /// fixed part, then the private data. 0 if the frame is complete.
    pub fn wanted(&self) -> usize {
        self.end().saturating_sub(self.have)
    }

    /// Takes octets of the frame, in any split. Returns whether the frame is complete. Octets
    /// behind the frame are ignored; a caller that reads at most [`Reader::wanted`] octets at a
    /// time never has any.
    ///
    /// # Errors
    ///
    /// As soon as the octets cannot become the expected frame: another key, or more than 512 octets
    /// of private data (RFC 5044 §7.1.1). The caller then closes the connection.
    pub fn push(&mut self, data: &[u8]) -> Result<bool, StartupError> {
        let mut rest = data;
        while !rest.is_empty() && self.wanted() != 0 {
            let (part, after) = split(rest, self.wanted());
            let room = self.bytes.get_mut(self.have..).unwrap_or(&mut []);
            self.have = self.have.saturating_add(copy(room, part));
            rest = after;
            self.check_key()?;
            if self.private_length() > wire::PRIVATE_DATA_MAX {
                return Err(StartupError::Length);
            }
        }
        Ok(self.wanted() == 0)
    }

    /// Returns the contents of the frame if it is complete.
    pub fn frame(&self) -> Option<Frame> {
        if self.wanted() != 0 {
            return None;
        }
        let header = self.header()?;
        let enhanced = self.enhanced();
        Some(Frame {
            markers: header.flags & wire::FLAG_MARKERS != 0,
            crc: header.flags & wire::FLAG_CRC != 0,
            reject: header.flags & wire::FLAG_REJECT != 0,
            revision: header.revision,
            depths: enhanced.map(|words| words.depths),
            rtr: enhanced.and_then(|words| words.rtr),
        })
    }

    /// Returns the ULP's private data, without the control words of an enhanced frame. Empty until
    /// the frame is complete.
    pub fn private_data(&self) -> &[u8] {
        let skip = if self.enhanced().is_some() {
            ENHANCED_LEN
        } else {
            0
        };
        split(self.all_private(), skip).1
    }

    /// Returns whether the frame has the enhanced flag but no room for the control words.
    pub(super) fn truncated(&self) -> bool {
        self.says_enhanced() && self.enhanced().is_none()
    }

    /// Returns the octets behind the fixed part. Empty until the frame is complete.
    fn all_private(&self) -> &[u8] {
        if self.wanted() != 0 {
            return &[];
        }
        split(split(&self.bytes, self.have).0, wire::STARTUP_LEN).1
    }

    /// Returns the S bit. In revision 1 it is reserved and ignored (RFC 6581 §6).
    fn says_enhanced(&self) -> bool {
        self.header()
            .is_some_and(|h| h.revision >= 2 && h.flags & wire::FLAG_ENHANCED != 0)
    }

    fn enhanced(&self) -> Option<Words> {
        if !self.says_enhanced() {
            return None;
        }
        Words::parse(self.all_private())
    }

    fn header(&self) -> Option<wire::StartupHeader> {
        let (header, _) =
            wire::StartupHeader::read_from_prefix(split(&self.bytes, self.have).0).ok()?;
        Some(header)
    }

    /// Returns the octets of private data; 0 until known.
    fn private_length(&self) -> usize {
        self.header().map_or(0, |h| usize::from(h.pd_length.get()))
    }

    /// Returns the known length of the frame in octets.
    fn end(&self) -> usize {
        wire::STARTUP_LEN.saturating_add(self.private_length())
    }

    /// Checks the received part of the key.
    fn check_key(&self) -> Result<(), StartupError> {
        let (key, _) = split(split(&self.bytes, self.have).0, wire::KEY_REQUEST.len());
        if self.kind.key().starts_with(key) {
            Ok(())
        } else if self.kind.other().key() == *key {
            Err(StartupError::WrongRole)
        } else if self.kind.other().key().starts_with(key) {
            // It may still be the other frame; the rest of the key decides.
            Ok(())
        } else {
            Err(StartupError::BadKey)
        }
    }
}

/// A startup frame to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutFrame<'a> {
    head: [u8; HEAD_MAX],
    head_len: usize,
    private: &'a [u8],
}

impl<'a> OutFrame<'a> {
    /// Builds a frame from `frame` and the ULP's private data.
    pub(super) fn new(kind: Kind, frame: &Frame, private: &'a [u8]) -> Result<Self, StartupError> {
        let mut flags = 0;
        for (set, flag) in [
            (frame.markers, wire::FLAG_MARKERS),
            (frame.crc, wire::FLAG_CRC),
            (frame.reject, wire::FLAG_REJECT),
            (frame.depths.is_some(), wire::FLAG_ENHANCED),
        ] {
            if set {
                flags |= flag;
            }
        }
        let words = frame.words().map(|words| words.wire());
        let words: &[u8] = words.as_ref().map_or(&[], IntoBytes::as_bytes);
        let pd_length = words.len().saturating_add(private.len());
        if pd_length > wire::PRIVATE_DATA_MAX {
            return Err(StartupError::PrivateData);
        }
        let header = wire::StartupHeader {
            key: kind.key(),
            flags,
            revision: frame.revision,
            pd_length: U16::new(u16::try_from(pd_length).unwrap_or(0)),
        };
        let mut out = Self {
            head: [0; HEAD_MAX],
            head_len: 0,
            private,
        };
        for part in [header.as_bytes(), words] {
            let room = out.head.get_mut(out.head_len..).unwrap_or(&mut []);
            out.head_len = out.head_len.saturating_add(copy(room, part));
        }
        Ok(out)
    }

    /// Returns the octets to send: the octets in front of the ULP's private data, and the private
    /// data.
    pub fn parts(&self) -> [&[u8]; 2] {
        [split(&self.head, self.head_len).0, self.private]
    }
}
