// SPDX-License-Identifier: GPL-2.0

//! Every protocol error. Only this file maps errors to the wire.
//!
//! There is a variant for each code of the RFCs. Neither this crate nor the driver returns
//! [`Error::DdpLocalCatastrophic`], [`Mpa::Startup`], and [`ProtectionUnspecified`],
//! [`CatastrophicGlobal`], [`OperationCannotInvalidate`] and [`Unspecified`] of RDMAP: other errors
//! fit, or the connection ends without a Terminate. Another lower layer
//! ([`Deframing`](crate::Deframing)) may return any error.
//!
//! [`ProtectionUnspecified`]: Rdmap::ProtectionUnspecified
//! [`CatastrophicGlobal`]: Rdmap::CatastrophicGlobal
//! [`OperationCannotInvalidate`]: Rdmap::OperationCannotInvalidate
//! [`Unspecified`]: Rdmap::Unspecified

/// The error code in a Terminate Message (RFC 5040 §4.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TermCode {
    /// The layer that found the error, 4 bits: 0 RDMAP, 1 DDP, 2 the lower layer (MPA).
    pub layer: u8,
    /// The error type within the layer, 4 bits.
    pub etype: u8,
    /// The error code within the type.
    pub code: u8,
}

impl TermCode {
    const fn new(layer: u8, etype: u8, code: u8) -> Self {
        Self { layer, etype, code }
    }
}

/// Layer number of RDMAP in a Terminate.
pub const LAYER_RDMAP: u8 = 0;
/// Layer number of DDP in a Terminate.
pub const LAYER_DDP: u8 = 1;
/// Layer number of the lower layer, here MPA, in a Terminate.
pub const LAYER_LLP: u8 = 2;

/// RDMAP error type: local catastrophic.
pub const RDMAP_LOCAL: u8 = 0;
/// RDMAP error type: remote protection.
pub const RDMAP_PROTECTION: u8 = 1;
/// RDMAP error type: remote operation.
pub const RDMAP_OPERATION: u8 = 2;

/// An error of one of the three layers. It ends the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Found by MPA, or while a connection is set up over any lower layer.
    Mpa(Mpa),
    /// Found by the DDP adaptation of SCTP.
    Sctp(Sctp),
    /// The connection of the lower layer was closed, reset or lost. On the wire it is MPA's error,
    /// over any lower layer.
    LlpClosed,
    /// Found by DDP in a segment for a Tagged Buffer.
    DdpTagged(DdpTagged),
    /// Found by DDP in a segment for an Untagged Buffer.
    DdpUntagged(DdpUntagged),
    /// Found by RDMAP.
    Rdmap(Rdmap),
    /// DDP cannot continue because of a local failure.
    DdpLocalCatastrophic,
    /// RDMAP cannot continue because of a local failure.
    Local(Local),
}

/// Failures of this side. On the wire all are one error, RDMAP's local catastrophic error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Local {
    /// A work request is malformed, or not possible in this stream.
    Request,
    /// A work request names memory that it may not access.
    Buffer,
    /// A completion was lost.
    Completion,
    /// There is no memory.
    Memory,
    /// The lower layer fails to send or to receive, although the connection has not ended.
    LowerLayer,
}

/// MPA errors (RFC 5044 §8, RFC 6581 §8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mpa {
    /// The CRC of an FPDU is wrong.
    Crc,
    /// A marker does not point to the start of its FPDU.
    Marker,
    /// The ULPDU is too short for its header. MPA has no code for this; it is reported as 3, the
    /// code for framing that disagrees with the ULPDU length.
    Length,
    /// A startup frame is malformed.
    Startup,
    /// This side failed during connection setup.
    LocalCatastrophic,
    /// The peer's ORD exceeds the largest IRD of this side.
    InsufficientIrd,
    /// The two sides have no ready-to-receive indication in common.
    NoRtr,
}

/// Errors of the DDP adaptation of SCTP (RFC 5043). It has no codes for them: on the wire all are
/// one error, RDMAP's catastrophic error of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sctp {
    /// A chunk is too short for its headers, or too long.
    Length,
    /// The payload protocol identifier of a chunk is not one of DDP's.
    Ppid,
    /// The function code of a session control chunk is unknown.
    Function,
    /// The private data of a session control chunk is too long, too short for the control words, or
    /// not allowed.
    PrivateData,
    /// A chunk has the DDP-SSN of an earlier one.
    Duplicate,
    /// The DDP-SSN of a chunk is too far ahead of the missing one.
    TooFar,
    /// Chunks ahead of a missing one take too much memory.
    TooManyHeld,
    /// A segment chunk is handed over out of order.
    Order,
    /// No legal sequence of a session has this chunk here (RFC 5043 §6).
    Sequence,
}

/// DDP errors of the Tagged Buffer model (RFC 5041 §7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DdpTagged {
    /// No buffer has this STag.
    InvalidStag,
    /// The buffer does not grant the right. DDP has no code for this; it is reported as 0, the code
    /// for an STag that does not allow placement.
    AccessRights,
    /// The access exceeds the buffer.
    Bounds,
    /// The STag belongs to another protection domain or stream.
    StagNotAssociated,
    /// Tagged Offset plus length exceeds 2^64.
    ToWrap,
    /// The DDP version is not 1.
    InvalidVersion,
}

/// DDP errors of the Untagged Buffer model (RFC 5041 §7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DdpUntagged {
    /// No such queue, or not the queue for this operation.
    InvalidQn,
    /// No buffer is posted for this message.
    NoBuffer,
    /// A Read Request or Atomic Request exceeds the IRD: it is the same error on the wire.
    TooManyReads,
    /// Not the next MSN of the queue.
    InvalidMsnRange,
    /// Not the next offset of the message.
    InvalidMo,
    /// The message is longer than its buffer.
    TooLong,
    /// The DDP version is not 1.
    InvalidVersion,
}

/// RDMAP errors (RFC 5040 §4.8, figure 9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rdmap {
    /// Protection: no buffer has this STag.
    InvalidStag,
    /// Protection: the access exceeds the buffer.
    Bounds,
    /// Protection: the buffer does not grant the right.
    AccessRights,
    /// Protection: the STag belongs to another protection domain or stream.
    StagNotAssociated,
    /// Protection: Tagged Offset plus length exceeds 2^64.
    ToWrap,
    /// Protection: the STag cannot be invalidated.
    CannotInvalidate,
    /// Protection: none of the others.
    ProtectionUnspecified,
    /// Operation: the RDMAP version is not 1.
    InvalidVersion,
    /// Operation: the opcode is unknown, unsupported, or not allowed here.
    UnexpectedOpcode,
    /// Operation: the stream cannot continue.
    CatastrophicStream,
    /// Operation: the address of the target of an Atomic Request is no multiple of 8. RFC 7306
    /// §8.2 gives it the code of [`Self::CatastrophicStream`].
    UnalignedAtomic,
    /// Operation: the peer's RNIC cannot continue.
    CatastrophicGlobal,
    /// Operation: the STag cannot be invalidated.
    OperationCannotInvalidate,
    /// Operation: none of the others.
    Unspecified,
    /// Operation: a response does not belong to the oldest outstanding request. It has the code of
    /// [`Self::Unspecified`].
    WrongResponse,
}

impl Error {
    /// Returns the Terminate code of this error (RFC 5040 §4.8, RFC 5041 §7.2, RFC 5044 §8 with
    /// the numbering of RFC 6580 §3.3, RFC 6581 §8).
    pub const fn term(self) -> TermCode {
        match self {
            Self::Mpa(e) => TermCode::new(LAYER_LLP, 0, e.code()),
            Self::Sctp(_) => Rdmap::CatastrophicStream.term(),
            Self::LlpClosed => TermCode::new(LAYER_LLP, 0, 1),
            Self::DdpTagged(e) => TermCode::new(LAYER_DDP, 1, e.code()),
            Self::DdpUntagged(e) => TermCode::new(LAYER_DDP, 2, e.code()),
            Self::Rdmap(e) => e.term(),
            Self::DdpLocalCatastrophic => TermCode::new(LAYER_DDP, 0, 0),
            Self::Local(_) => TermCode::new(LAYER_RDMAP, RDMAP_LOCAL, 0),
        }
    }
}

impl Mpa {
    const fn code(self) -> u8 {
        match self {
            Self::Crc => 2,
            Self::Marker | Self::Length => 3,
            Self::Startup => 4,
            Self::LocalCatastrophic => 5,
            Self::InsufficientIrd => 6,
            Self::NoRtr => 7,
        }
    }
}

impl DdpTagged {
    const fn code(self) -> u8 {
        match self {
            Self::InvalidStag | Self::AccessRights => 0,
            Self::Bounds => 1,
            Self::StagNotAssociated => 2,
            Self::ToWrap => 3,
            Self::InvalidVersion => 4,
        }
    }
}

impl DdpUntagged {
    const fn code(self) -> u8 {
        match self {
            Self::InvalidQn => 1,
            Self::NoBuffer | Self::TooManyReads => 2,
            Self::InvalidMsnRange => 3,
            Self::InvalidMo => 4,
            Self::TooLong => 5,
            Self::InvalidVersion => 6,
        }
    }
}

impl Rdmap {
    const fn term(self) -> TermCode {
        let (etype, code) = match self {
            Self::InvalidStag => (RDMAP_PROTECTION, 0x00),
            Self::Bounds => (RDMAP_PROTECTION, 0x01),
            Self::AccessRights => (RDMAP_PROTECTION, 0x02),
            Self::StagNotAssociated => (RDMAP_PROTECTION, 0x03),
            Self::ToWrap => (RDMAP_PROTECTION, 0x04),
            Self::CannotInvalidate => (RDMAP_PROTECTION, 0x09),
            Self::ProtectionUnspecified => (RDMAP_PROTECTION, 0xff),
            Self::InvalidVersion => (RDMAP_OPERATION, 0x05),
            Self::UnexpectedOpcode => (RDMAP_OPERATION, 0x06),
            Self::CatastrophicStream | Self::UnalignedAtomic => (RDMAP_OPERATION, 0x07),
            Self::CatastrophicGlobal => (RDMAP_OPERATION, 0x08),
            Self::OperationCannotInvalidate => (RDMAP_OPERATION, 0x09),
            Self::Unspecified | Self::WrongResponse => (RDMAP_OPERATION, 0xff),
        };
        TermCode::new(LAYER_RDMAP, etype, code)
    }
}

impl From<Mpa> for Error {
    fn from(e: Mpa) -> Self {
        Self::Mpa(e)
    }
}

impl From<Sctp> for Error {
    fn from(e: Sctp) -> Self {
        Self::Sctp(e)
    }
}

impl From<DdpTagged> for Error {
    fn from(e: DdpTagged) -> Self {
        Self::DdpTagged(e)
    }
}

impl From<DdpUntagged> for Error {
    fn from(e: DdpUntagged) -> Self {
        Self::DdpUntagged(e)
    }
}

impl From<Local> for Error {
    fn from(e: Local) -> Self {
        Self::Local(e)
    }
}

impl From<Rdmap> for Error {
    fn from(e: Rdmap) -> Self {
        Self::Rdmap(e)
    }
}
