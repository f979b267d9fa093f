// SPDX-License-Identifier: GPL-2.0

//! The version of a driver.

/// The version of a driver: of its module, and of the firmware of its devices.
///
/// Made by [`module_version!`](crate::module_version).
#[derive(Clone, Copy)]
pub struct Version {
    /// Raised when something that users rely on changes.
    pub major: u16,
    /// Raised when something is added.
    pub minor: u16,
    /// Raised when something is mended.
    pub patch: u16,
}

impl Version {
    /// The version as rdma-core expects it in `fw_ver` of [`DeviceAttr`](crate::device::DeviceAttr):
    /// 16 bits for each part, `patch` in the lowest.
    pub const fn fw_ver(self) -> u64 {
        // CAST: Widens; `From` is not const.
        (self.major as u64) << 32 | (self.minor as u64) << 16 | self.patch as u64
    }

    /// The opposite of [`Self::fw_ver`].
    pub(crate) const fn from_fw_ver(fw_ver: u64) -> Self {
        // CAST: The parts have 16 bits each.
        Self {
            major: (fw_ver >> 32) as u16,
            minor: (fw_ver >> 16) as u16,
            patch: fw_ver as u16,
        }
    }
}

/// Defines the version of the module as a constant and puts it into the module's `modinfo`, as
/// `MODULE_VERSION()` does.
///
/// ```ignore
/// rdma::module_version!(VERSION: 1, 2, 3);
/// ```
#[macro_export]
macro_rules! module_version {
    ($name:ident: $major:literal, $minor:literal, $patch:literal) => {
        /// The version of the module.
        const $name: $crate::version::Version = $crate::version::Version {
            major: $major,
            minor: $minor,
            patch: $patch,
        };

        const _: () = {
            const TEXT: &str = concat!("version=", $major, ".", $minor, ".", $patch, "\0");

            #[link_section = ".modinfo"]
            #[used]
            static MODINFO: [u8; TEXT.len()] = match TEXT.as_bytes().first_chunk() {
                Some(text) => *text,
                // It has just that length.
                None => [0; TEXT.len()],
            };
        };
    };
}
