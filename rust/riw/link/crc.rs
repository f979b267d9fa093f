// SPDX-License-Identifier: GPL-2.0

//! The CRC of FPDUs, by the kernel's library.

/// CRC32c as the CPU does it best.
pub(crate) struct Kernel;

impl iwarp::Crc32c for Kernel {
    fn update(crc: u32, data: &[u8]) -> u32 {
        net::Fragment::from(data).crc32c(crc)
    }
}
