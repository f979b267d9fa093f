// SPDX-License-Identifier: GPL-2.0

//! The FPDU's check value: CRC32c as iSCSI defines it (RFC 5044 §4.4). The engine is the
//! embedder's, who has a faster one than a portable crate can be.

/// A CRC32c engine (polynomial 0x1EDC6F41, reflected).
pub trait Crc32c {
    /// Runs the CRC `crc` on over `data`, as Linux's `crc32c()` does: neither inverts the value
    /// it is given nor the one it returns.
    fn update(crc: u32, data: &[u8]) -> u32;
}

/// A CRC under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crc(u32);

impl Crc {
    /// The CRC of nothing yet: all ones.
    pub const fn new() -> Self {
        Self(!0)
    }

    /// Takes up a CRC where [`Crc::raw`] left it.
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// The running value, not inverted.
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Runs the CRC on over `data`.
    #[must_use]
    pub fn update<C: Crc32c>(self, data: &[u8]) -> Self {
        Self(C::update(self.0, data))
    }

    /// The four octets of the FPDU's CRC field.
    pub const fn wire(self) -> [u8; 4] {
        (!self.0).to_le_bytes()
    }
}

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}
