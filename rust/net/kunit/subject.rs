// SPDX-License-Identifier: GPL-2.0

//! Whatever is in a certificate, its subject is a short text without bytes that mean something to a
//! reader of lines and words.

use super::{super::name::TEXT_MAX, PeerName};
use kernel::prelude::*;

/// Puts a value of DER together, which is shorter than 128 bytes.
fn der(tag: u8, parts: &[&[u8]]) -> Result<KVec<u8>> {
    let mut value = KVec::new();

    value.extend_from_slice(&[tag, 0], GFP_KERNEL)?;
    for part in parts {
        value.extend_from_slice(part, GFP_KERNEL)?;
    }
    let len = u8::try_from(value.len() - 2).map_err(|_| EINVAL)?;

    value[1] = len;
    Ok(value)
}

/// Puts relative distinguished names together.
fn subject(rdns: &[&[u8]]) -> Result<KVec<u8>> {
    let mut subject = KVec::new();

    for rdn in rdns {
        subject.extend_from_slice(rdn, GFP_KERNEL)?;
    }
    Ok(subject)
}

/// A relative distinguished name with an attribute of type 2.5.4.`kind`.
fn rdn(kind: u8, tag: u8, value: &[u8]) -> Result<KVec<u8>> {
    let attribute = der(0x30, &[&[6, 3, 0x55, 4, kind], &der(tag, &[value])?])?;

    der(0x31, &[&attribute])
}

#[kunit_tests(net_tls_subject)]
mod tests {
    use super::*;

    fn text_of(name: &[u8]) -> Option<PeerName> {
        PeerName::decode(name)
    }

    fn is(name: &[u8], text: &CStr) -> bool {
        text_of(name).is_some_and(|name| name.text() == text)
    }

    /// The most specific name comes first, and several attributes of one name stay together.
    #[test]
    fn a_subject_has_the_order_of_rfc_4514() -> Result {
        let common = der(0x30, &[&[6, 3, 0x55, 4, 3], &der(0x13, &[b"disk-1"])?])?;
        let unit = der(0x30, &[&[6, 3, 0x55, 4, 11], &der(0x0c, &[b"Storage"])?])?;
        let name = subject(&[
            &rdn(6, 0x13, b"DE")?,
            &rdn(10, 0x0c, b"Riw")?,
            &der(0x31, &[&common, &unit])?,
        ])?;

        assert!(is(&name, c"CN=disk-1+OU=Storage,O=Riw,C=DE"));
        Ok(())
    }

    /// Control characters, spaces, separators and all that is not ASCII are escaped.
    #[test]
    fn a_value_has_no_byte_that_means_more() -> Result {
        let name = subject(&[&rdn(3, 0x0c, b"a b,c\n\0=\\\"\xc3\xa4")?])?;

        assert!(is(&name, c"CN=a\\20b\\2Cc\\0A\\00\\3D\\5C\\22\\C3\\A4"));
        Ok(())
    }

    /// A type without a name is a number; a value that is not a string of bytes is in digits.
    #[test]
    fn other_types_are_numbers() -> Result {
        let other = der(
            0x30,
            &[&[6, 5, 0x2b, 0x86, 0x48, 0x83, 1], &der(0x0c, &[b"x"])?],
        )?;
        let name = subject(&[&der(0x31, &[&other])?, &rdn(3, 0x1e, &[0, 0x61])?])?;

        assert!(is(&name, c"CN=#1E020061,1.3.840.385=#0C0178"));
        Ok(())
    }

    /// A text that is too long shows that it is cut off.
    #[test]
    fn a_long_text_is_cut_off() -> Result {
        let name = subject(&[&rdn(3, 0x0c, &[b'x'; 100])?])?;
        let escaped = subject(&[&rdn(3, 0x0c, &[b' '; 100])?])?;

        assert!(text_of(&name).is_some_and(|name| name.text().to_bytes().len() == 103));
        let cut = text_of(&escaped).ok_or(EINVAL)?;
        assert_eq!(cut.text().to_bytes().len(), TEXT_MAX - 1);
        assert!(cut.text().to_bytes().ends_with(b"..."));
        Ok(())
    }

    /// More names than there is room for: the last ones count.
    #[test]
    fn the_most_specific_names_are_left() -> Result {
        let mut names = KVec::new();

        for letter in b'a'..=b't' {
            names.extend_from_slice(&rdn(3, 0x13, &[letter])?, GFP_KERNEL)?;
        }
        assert!(is(
            &names,
            c"CN=t,CN=s,CN=r,CN=q,CN=p,CN=o,CN=n,CN=m,CN=l,CN=k,CN=j,CN=i,CN=h,CN=g,CN=f,CN=e,..."
        ));
        Ok(())
    }

    /// No part of a subject can be missing, or be longer than what it is in.
    #[test]
    fn a_malformed_subject_has_no_name() -> Result {
        /// The bytes that are a length, or the tag of a value that has others in it.
        const HEADERS: [usize; 7] = [0, 1, 2, 3, 4, 5, 10];
        let name = subject(&[&rdn(3, 0x0c, b"riw")?])?;

        assert!(is(&name, c"CN=riw"));
        for len in 0..name.len() {
            assert!(text_of(&name[..len]).is_none());
            // Another tag, length or content.
            let mut longer = KVec::new();

            longer.extend_from_slice(&name, GFP_KERNEL)?;
            longer[len] = longer[len].wrapping_add(0x20);
            assert_eq!(text_of(&longer).is_none(), HEADERS.contains(&len));
        }
        // An empty name, an indefinite length, and one of three bytes.
        assert!(text_of(&[0x31, 0]).is_none());
        assert!(text_of(&[0x31, 0x80, 0, 0]).is_none());
        assert!(text_of(&[0x31, 0x83, 0, 0, 0]).is_none());
        Ok(())
    }

    /// A length may have one or two bytes of its own.
    #[test]
    fn a_length_may_be_long() -> Result {
        let name = rdn(3, 0x0c, b"riw")?;
        let short = name.get(2..).ok_or(EINVAL)?;
        let len = [short.len() as u8];

        assert!(is(&subject(&[&[0x31, 0x81], &len, short])?, c"CN=riw"));
        assert!(is(&subject(&[&[0x31, 0x82, 0], &len, short])?, c"CN=riw"));
        Ok(())
    }
}
