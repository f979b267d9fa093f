// SPDX-License-Identifier: GPL-2.0

//! The CRC of an FPDU: CRC32c as iSCSI defines it (RFC 5044 §4.4). The embedder supplies the
//! engine, because it has a faster one than a portable crate.

/// A CRC32c engine (polynomial 0x1EDC6F41, reflected).
pub trait Crc32c {
    /// Continues the CRC `crc` over `data`, as Linux's `crc32c()` does. Inverts neither its input
    /// nor its result.
    fn update(crc: u32, data: &[u8]) -> u32;
}

/// A running CRC.
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
