// SPDX-License-Identifier: GPL-2.0

//! Whatever the identity of a pre-shared key is, its text is short, has no bytes that mean
//! something to a reader of lines and words, and is no subject of a certificate.

use super::{PeerName, TEXT_MAX};
use kernel::prelude::*;

#[kunit_tests(net_tls_name)]
mod tests {
    use super::*;

    fn text_of(identity: &[u8]) -> Result<PeerName> {
        PeerName::of_identity(identity).ok_or(EINVAL)
    }

    /// Most identities are their own text.
    #[test]
    fn an_identity_is_the_name() -> Result {
        assert!(text_of(b"riw:host-1.example_a@b/c*")?.text() == c"riw:host-1.example_a@b/c*");
        assert!(PeerName::of_identity(b"").is_none());
        Ok(())
    }

    /// Nobody can take it for a subject, or for other words of a line.
    #[test]
    fn an_identity_cannot_look_like_a_subject() -> Result {
        assert!(
            text_of(b"CN=a, b\n\x1b[\\\xc3")?.text() == c"CN\\3Da\\2C\\20b\\0A\\1B\\5B\\5C\\C3"
        );
        Ok(())
    }

    /// One that is too long shows that it is cut off; one that just fits does not.
    #[test]
    fn a_long_identity_is_cut_off() -> Result {
        let fits = text_of(&[b'x'; TEXT_MAX - 1])?;
        let longer = text_of(&[b'x'; TEXT_MAX])?;

        assert!(fits.text().to_bytes() == [b'x'; TEXT_MAX - 1]);
        assert_eq!(longer.text().to_bytes().len(), TEXT_MAX - 1);
        assert!(longer.text().to_bytes().ends_with(b"x..."));
        Ok(())
    }
}
