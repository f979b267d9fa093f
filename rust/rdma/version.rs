// SPDX-License-Identifier: GPL-2.0

//! Driver versions.

/// The version of a driver. It is both the module's version (`MODULE_VERSION()`,
/// `include/linux/module.h`) and the firmware version of the driver's devices.
#[derive(Clone, Copy)]
pub struct Version {
    /// Raised for an incompatible change.
    pub major: u16,
    /// Raised for an addition.
    pub minor: u16,
    /// Raised for a fix.
    pub patch: u16,
}

impl Version {
    /// Encodes the version as rdma-core expects it in `fw_ver` of
    /// [`DeviceAttr`](crate::device::DeviceAttr) (`struct ib_device_attr`,
    /// `include/rdma/ib_verbs.h`): 16 bits for each part, `patch` in the lowest. Any context.
    pub const fn fw_ver(self) -> u64 {
        // CAST: Widens; `From` is not const.
        (self.major as u64) << 32 | (self.minor as u64) << 16 | self.patch as u64
    }

    /// Decodes a value of [`Self::fw_ver`]. Any context.
    pub(crate) const fn from_fw_ver(fw_ver: u64) -> Self {
        // CAST: The parts have 16 bits each.
        Self {
            major: (fw_ver >> 32) as u16,
            minor: (fw_ver >> 16) as u16,
            patch: fw_ver as u16,
        }
    }
}

/// Defines the version of the module `$module` as a constant, and adds it to the module's `modinfo`
/// as `MODULE_VERSION()` (`include/linux/module.h`) does.
#[macro_export]
macro_rules! module_version {
    ($module:literal, $name:ident: $major:literal, $minor:literal, $patch:literal) => {
        /// The version of the module.
        const $name: $crate::version::Version = $crate::version::Version {
            major: $major,
            minor: $minor,
            patch: $patch,
        };

        const _: () = {
            #[cfg(MODULE)]
            const TEXT: &str = concat!("version=", $major, ".", $minor, ".", $patch, "\0");
            // A kernel image has the entries of all modules: each begins with the module's name.
            #[cfg(not(MODULE))]
            const TEXT: &str =
                concat!($module, ".version=", $major, ".", $minor, ".", $patch, "\0");

            #[link_section = ".modinfo"]
            #[used(compiler)]
            static MODINFO: [u8; TEXT.len()] = match TEXT.as_bytes().first_chunk() {
                Some(text) => *text,
                // The length always fits.
                None => [0; TEXT.len()],
            };
        };
    };
}
