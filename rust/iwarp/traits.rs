// SPDX-License-Identifier: GPL-2.0

//! The traits of the crate: its interfaces with the embedder, and of DDP with a lower layer.
//!
//! An embedder supplies a [`Crc32c`] engine, a [`Gather`] to send, and [`Octets`] to receive. A
//! lower layer has a [`Framing`] and a [`Deframing`]; this crate implements both in
//! [`mpa`](crate::mpa) and [`sctp`](crate::sctp).

use crate::ddp::{FrameHead, Ulpdu};
use crate::error::Error;

/// A CRC32c engine (polynomial 0x1EDC6F41, reflected): the CRC of an FPDU, as iSCSI defines it (RFC
/// 5044 §4.4). The embedder supplies it, because it has a faster one than a portable crate.
pub trait Crc32c {
    /// Continues the CRC `crc` over `data`, as Linux's `crc32c()` does. Inverts neither its input
    /// nor its result.
    fn update(crc: u32, data: &[u8]) -> u32;
}

/// A running CRC.
///
/// ```
/// use iwarp::{Crc, Crc32c};
///
/// /// CRC32c, bit by bit.
/// struct Engine;
///
/// impl Crc32c for Engine {
///     fn update(crc: u32, data: &[u8]) -> u32 {
///         data.iter().fold(crc, |crc, octet| {
///             (0..8).fold(crc ^ u32::from(*octet), |crc, _| {
///                 (crc >> 1) ^ (0x82f6_3b78 * (crc & 1))
///             })
///         })
///     }
/// }
///
/// // The FPDU of RFC 5044, figure 5, up to its CRC: a marker, and a Send of 24 zeros.
/// let mut fpdu = [0; 48];
/// fpdu[5..8].copy_from_slice(&[42, 0x41, 0x43]);
/// fpdu[19] = 1;
///
/// let (header, payload) = fpdu.split_at(24);
/// let crc = Crc::new().update::<Engine>(header);
/// assert_eq!(
///     crc.update::<Engine>(payload).wire(),
///     [0x52, 0x23, 0x99, 0x83]
/// );
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crc(u32);

impl Crc {
    /// The CRC of no octets: all ones.
    pub const fn new() -> Self {
        Self(!0)
    }

    /// Resumes a CRC from the value of [`Crc::raw`].
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns the running value, not inverted.
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Continues the CRC over `data`.
    #[must_use]
    pub fn update<C: Crc32c>(self, data: &[u8]) -> Self {
        Self(C::update(self.0, data))
    }

    /// Returns the four octets of the FPDU's CRC field.
    pub const fn wire(self) -> [u8; 4] {
        (!self.0).to_le_bytes()
    }
}

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}

/// The sink for the octets of a frame. Calls come in stream order.
pub trait Gather {
    /// The reason the sink refuses octets.
    type Error;

    /// Appends octets that are not payload: headers, markers, pad, CRC. `bytes` is valid only
    /// during the call.
    ///
    /// # Errors
    ///
    /// The octets cannot be taken; the frame is abandoned.
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Appends octets `offset` to `offset` + `len` of the message; `len` is not 0. If `crc` is
    /// given, continues it over them and returns it.
    ///
    /// # Errors
    ///
    /// The octets cannot be taken; the frame is abandoned.
    fn payload(
        &mut self,
        offset: u32,
        len: u32,
        crc: Option<Crc>,
    ) -> Result<Option<Crc>, Self::Error>;
}

/// The sending side of a lower layer: puts each DDP segment in a frame of its own (RFC 5041 §3).
/// The segmenter is its only caller.
pub trait Framing {
    /// Octets of a frame in front of the segment. At most 2, which the compiler checks.
    const PREFIX_LEN: usize;

    /// Returns MULPDU: the longest segment that fits in a frame now, in octets. At least 128, so
    /// that a message without payload is one segment.
    fn mulpdu(&self) -> u16;

    /// Writes one frame to `out`: `head`, and then `len` octets of the message at `offset`. `head`
    /// begins with [`PREFIX_LEN`](Self::PREFIX_LEN) octets, which this fills in; the headers of the
    /// segment follow. The segment is not longer than MULPDU. Returns the octets of the frame.
    ///
    /// # Errors
    ///
    /// Errors of `out`. They leave the framing unchanged, so that the frame can be written again.
    fn emit<G: Gather>(
        &mut self,
        head: &mut [u8],
        offset: u32,
        len: u32,
        out: &mut G,
    ) -> Result<u32, G::Error>;
}

/// The receiving side of a lower layer: takes DDP segments out of their frames.
///
/// A layer over a byte stream finds the frames in it. If the layer below receives messages, a
/// message is one frame, and the stream is that message. Frames come in the order in which they
/// were sent; a layer that receives them in any order has to sort them first.
pub trait Deframing {
    /// The error for a segment that is too short for its DDP header.
    const SHORT: Error;

    /// Takes the frame at the front of `stream` if it is complete, checks it, and moves past it.
    /// Copies the first octets of the frame to `head`.
    ///
    /// # Errors
    ///
    /// The frame is invalid, or its octets cannot be read. The stream is then dead.
    fn next<S: Octets>(&mut self, stream: &S, head: &mut FrameHead) -> Result<Deframed, Error>;

    /// Returns whether the stream may end with `unread` octets behind the last frame.
    fn may_end(&self, unread: usize) -> bool;
}

/// The front of a stream.
pub enum Deframed {
    /// The segment of a complete, checked frame.
    Frame(Ulpdu),
    /// An incomplete frame.
    Incomplete {
        /// Octets that the stream must hold before the next try. More than it holds now.
        needed: usize,
    },
}

/// The received octets of the stream that are not consumed yet, in place.
///
/// Others may write to that memory: for example, a process that sends from its own pages over a
/// loopback device. So octets are only copied out, never borrowed, and two copies of one octet may
/// differ.
pub trait Octets {
    /// Returns the number of octets.
    fn len(&self) -> usize;

    /// Returns whether there are no octets.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the octets from `at` on to `to`. The caller ensures that there are enough. Returns
    /// `None` if they cannot be read.
    fn copy(&self, at: usize, to: &mut [u8]) -> Option<()>;

    /// Continues `crc` over the `len` octets at `at`. The caller ensures that there are enough.
    /// Returns `None` if they cannot be read.
    fn crc(&self, crc: Crc, at: usize, len: usize) -> Option<Crc>;
}
