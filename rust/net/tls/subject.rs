// SPDX-License-Identifier: GPL-2.0

//! The subject of a peer's certificate, as text.

use super::name::PeerName;
use core::fmt::Write;
use riw_bindings as bindings;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/subject.rs"]
mod kunit;

/// Maximum length of a subject in DER, in bytes, without its header. A longer one has no text.
const DER_MAX: usize = 512;
/// Relative distinguished names that are a part of the text: the last ones, which are the most
/// specific.
const RDNS_MAX: usize = 16;

/// Tags of DER (X.690, section 8).
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Tags of strings whose bytes are ASCII, or a superset of it: UTF8String, PrintableString,
/// TeletexString, IA5String.
const STRINGS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];

/// The types of attributes that have a name, as DER of their object identifiers (RFC 4514, section
/// 3; RFC 4519; PKCS #9 for the last one).
const ATTRIBUTES: [(&[u8], &str); 10] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 100, 1, 1], "UID"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 100, 1, 25], "DC"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 9, 1], "emailAddress"),
];

/// The subject as RFC 4514 writes it: the most specific name first.
impl PeerName {
    /// Returns the subject of the certificate for which the key `serial` was made. `None` if there
    /// is no such key, it was not made for a certificate of X.509, or the subject is empty,
    /// malformed or longer than 512 bytes. May sleep.
    pub(super) fn of_certificate(serial: i32) -> Option<Self> {
        let mut der = [0; DER_MAX];
        // SAFETY: `der` is a local array, and so valid for writes of its length.
        let len = unsafe { bindings::tls_subject(serial, der.as_mut_ptr(), der.len()) };

        Self::decode(der.get(..usize::try_from(len).ok()?)?)
    }

    /// Decodes the content of a `Name` (RFC 5280, section 4.1.2.4). `None` if it is empty or
    /// malformed.
    fn decode(mut rdns: &[u8]) -> Option<Self> {
        let mut last: [&[u8]; RDNS_MAX] = [&[]; RDNS_MAX];
        let mut count = 0usize;

        while !rdns.is_empty() {
            let (rdn, rest) = take(rdns, SET)?;

            last.rotate_right(1);
            *last.first_mut()? = rdn;
            rdns = rest;
            count = count.saturating_add(1);
        }
        let mut text = Self::new();

        for (place, rdn) in last.iter().take(count).enumerate() {
            if place != 0 {
                text.push(b",");
            }
            text.push_rdn(rdn)?;
        }
        if count > RDNS_MAX {
            text.push(b",...");
        }
        (!text.is_empty()).then_some(text)
    }

    /// Appends the attributes of a relative distinguished name. `None` if it is malformed.
    fn push_rdn(&mut self, mut rdn: &[u8]) -> Option<()> {
        loop {
            let (attribute, rest) = take(rdn, SEQUENCE)?;

            self.push_attribute(attribute)?;
            if rest.is_empty() {
                return Some(());
            }
            self.push(b"+");
            rdn = rest;
        }
    }

    /// Appends an attribute: as RFC 4514, section 2.4, says, in hexadecimal digits if its type has
    /// no name here, or its value is not a string. `None` if it is malformed.
    fn push_attribute(&mut self, attribute: &[u8]) -> Option<()> {
        let (kind, value) = take(attribute, OBJECT_IDENTIFIER)?;
        let tag = *value.first()?;
        let content = take_whole(value, tag)?;
        let name = ATTRIBUTES.iter().find(|(oid, _)| *oid == kind);

        match name {
            Some((_, name)) if STRINGS.contains(&tag) => {
                self.push(name.as_bytes());
                self.push(b"=");
                self.push_escaped(content);
            }
            _ => {
                match name {
                    Some((_, name)) => self.push(name.as_bytes()),
                    None => self.push_oid(kind)?,
                }
                self.push(b"=#");
                value.iter().for_each(|byte| self.push_hex(*byte));
            }
        }
        Some(())
    }

    /// Appends an object identifier as numbers (X.690, section 8.19). `None` if it is malformed, or
    /// a number has more than 32 bits.
    fn push_oid(&mut self, oid: &[u8]) -> Option<()> {
        let mut arc = 0u32;
        let mut is_first = true;

        // The last byte of an arc has no top bit.
        (oid.last()? & 0x80 == 0).then_some(())?;
        for byte in oid {
            arc = arc.checked_mul(0x80)? | u32::from(byte & 0x7f);
            if byte & 0x80 != 0 {
                continue;
            }
            // It never fails.
            let _ = match (is_first, arc) {
                (true, 0..80) => write!(self, "{}.{}", arc / 40, arc % 40),
                (true, _) => write!(self, "2.{}", arc.saturating_sub(80)),
                (false, _) => write!(self, ".{arc}"),
            };
            is_first = false;
            arc = 0;
        }
        Some(())
    }
}

/// Takes a value of this tag from the front of `der`. Returns its content, and what is behind it;
/// `None` if it is another one or malformed.
fn take(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (len, rest) = match der {
        [first, len @ ..=0x7f, rest @ ..] if *first == tag => (usize::from(*len), rest),
        [first, 0x81, len, rest @ ..] if *first == tag => (usize::from(*len), rest),
        [first, 0x82, high, low, rest @ ..] if *first == tag => {
            (usize::from(u16::from_be_bytes([*high, *low])), rest)
        }
        _ => return None,
    };

    rest.split_at_checked(len)
}

/// As [`take`], with nothing behind the value.
fn take_whole(der: &[u8], tag: u8) -> Option<&[u8]> {
    match take(der, tag)? {
        (content, []) => Some(content),
        _ => None,
    }
}
