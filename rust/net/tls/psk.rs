// SPDX-License-Identifier: GPL-2.0

//! Pre-shared keys, which are keys of the kernel.
//!
//! C header: [`include/linux/key.h`](srctree/include/linux/key.h)

use core::ptr::NonNull;
use kernel::{error::from_err_ptr, prelude::*};
use riw_bindings as bindings;

/// A pre-shared key (PSK), or a keyring of such keys (`struct key`).
///
/// This holds a reference, so no other key gets the serial number. The key may be revoked or expire
/// all the same: it is checked at each use.
///
/// # Invariants
///
/// `key` is a key to which this object owns a reference.
pub struct Psk {
    key: NonNull<bindings::key>,
}

// SAFETY: Keys belong to no thread: any may use and put its reference.
unsafe impl Send for Psk {}
// SAFETY: `&self` allows only functions of the kernel that lock the key as far as they need.
unsafe impl Sync for Psk {}

impl Psk {
    /// Returns the key or keyring with this serial number. Process context, may sleep.
    ///
    /// `EINVAL` if it is neither a keyring nor of type `psk` with 32 or 48 bytes (with others, the
    /// process would agree on keys without forward secrecy); `ENOKEY` if it does not exist,
    /// `EKEYREVOKED` or `EKEYEXPIRED` if it may not be used any more, `EACCES` if the calling task
    /// may not view it, `EOPNOTSUPP` if the kernel has no keys.
    pub fn find(serial: u32) -> Result<Self> {
        let serial = i32::try_from(serial).map_err(|_| EINVAL)?;
        // SAFETY: The function has no preconditions but the context.
        let key = from_err_ptr(unsafe { bindings::tls_psk_find(serial) })?;

        // INVARIANT: The helper has returned a reference.
        Ok(Self {
            key: NonNull::new(key).ok_or(ENOKEY)?,
        })
    }

    /// Returns the serial number. Any context.
    pub fn serial(&self) -> u32 {
        // SAFETY: By the type invariant the key is alive. Its serial number never changes.
        let serial = unsafe { bindings::tls_psk_serial(self.key.as_ptr()) };

        // Serial numbers are positive.
        serial.unsigned_abs()
    }

    /// Whether a peer is authentic that has proved to know the key `serial`: it is this key, or a
    /// link of this keyring, and may still be used. May sleep.
    pub(super) fn accepts(&self, serial: i32) -> bool {
        // SAFETY: By the type invariant the key is alive.
        unsafe { bindings::tls_psk_accepts(self.key.as_ptr(), serial) }
    }

    /// Returns the pointer to the C struct, valid as long as `self`.
    pub(super) fn as_raw(&self) -> *mut bindings::key {
        self.key.as_ptr()
    }
}

impl Drop for Psk {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the reference is this object's, which ends here.
        unsafe { bindings::tls_psk_put(self.key.as_ptr()) };
    }
}
