// SPDX-License-Identifier: GPL-2.0

//! Immediate Data.

/// The data that follows an RDMA Write (RFC 7306, section 6): 32 bits, as the verbs have them, in
/// network byte order. The wire has room for 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Immediate(pub(crate) [u8; 4]);

impl Immediate {
    /// Returns the octets on the wire. The RFC leaves open which of them are the data: Chelsio's
    /// adapters use the first four. Any context.
    pub(crate) fn to_wire(self) -> [u8; 8] {
        let [a, b, c, d] = self.0;

        [a, b, c, d, 0, 0, 0, 0]
    }

    /// Returns the data that a peer has sent. If the first four octets are zero, a peer may use the
    /// others. Any context.
    pub(crate) fn from_wire([a, b, c, d, rest @ ..]: [u8; 8]) -> Self {
        match [a, b, c, d] {
            [0, 0, 0, 0] => Self(rest),
            first => Self(first),
        }
    }
}

/// Immediate Data to be sent.
#[derive(Clone, Copy)]
pub(crate) struct SendImmediate {
    pub(crate) data: Immediate,
    /// It triggers an event at the peer.
    pub(crate) solicited: bool,
}
