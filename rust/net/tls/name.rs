// SPDX-License-Identifier: GPL-2.0

//! The name of a peer, as text.

use core::fmt::{self, Write};
use kernel::prelude::*;
use riw_bindings as bindings;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/name.rs"]
mod kunit;

/// Maximum length of the text in bytes, with its NUL.
pub(super) const TEXT_MAX: usize = 128;

/// The name of a peer: the subject of its certificate, or the identity of the pre-shared key that
/// it has used.
///
/// The text has at most 127 bytes, all of them printable ASCII. Of a value of the subject, or of
/// the identity, all but letters, digits and `-._:/@*` is escaped, spaces too. So an identity has
/// no `=`, which each subject has. A text that is too long is cut off, and ends in `...`.
#[derive(Clone, Copy)]
pub struct PeerName {
    /// The last byte stays 0.
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl PeerName {
    /// An empty name.
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; TEXT_MAX],
            len: 0,
        }
    }

    /// Returns the identity of the pre-shared key `serial`. `None` if there is no such key, or it
    /// has no identity. May sleep.
    pub(super) fn of_psk(serial: i32) -> Option<Self> {
        // One byte more than fits, so that a longer one is seen to be cut off.
        let mut identity = [0; TEXT_MAX];
        // SAFETY: `identity` is a local array, and so valid for writes of its length.
        let len =
            unsafe { bindings::tls_psk_identity(serial, identity.as_mut_ptr(), identity.len()) };

        Self::of_identity(identity.get(..usize::try_from(len).ok()?)?)
    }

    /// Returns the name for an identity. `None` if it is empty.
    fn of_identity(identity: &[u8]) -> Option<Self> {
        let mut name = Self::new();

        name.push_escaped(identity);
        (!name.is_empty()).then_some(name)
    }

    /// Returns the text. Any context.
    pub fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }

    /// Whether it has no text.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a value. A byte that may mean something else to a reader is escaped.
    pub(super) fn push_escaped(&mut self, value: &[u8]) {
        for byte in value {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => self.push(&[*byte]),
                b'-' | b'.' | b'_' | b':' | b'/' | b'@' | b'*' => self.push(&[*byte]),
                _ => {
                    self.push(b"\\");
                    self.push_hex(*byte);
                }
            }
        }
    }

    /// Appends a byte in hexadecimal digits.
    pub(super) fn push_hex(&mut self, byte: u8) {
        // It never fails.
        let _ = write!(self, "{byte:02X}");
    }

    /// Appends text. What does not fit is left out, and makes the text end in `...`.
    pub(super) fn push(&mut self, text: &[u8]) {
        for byte in text {
            // But for the NUL.
            let Some((_, room)) = self.bytes.split_last_mut() else {
                return;
            };

            match room.get_mut(self.len) {
                Some(to) => *to = *byte,
                None => {
                    room.iter_mut().rev().take(3).for_each(|to| *to = b'.');
                    return;
                }
            }
            self.len = self.len.saturating_add(1);
        }
    }
}

impl Write for PeerName {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
