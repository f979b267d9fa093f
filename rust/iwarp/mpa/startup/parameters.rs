// SPDX-License-Identifier: GPL-2.0

//! The parameters that both sides have agreed on.

use crate::negotiation::Rtr;

/// The negotiated parameters, from this side's view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// CRCs are used in both directions.
    pub crc: bool,
    /// Received data has markers.
    pub rx_markers: bool,
    /// Sent data must have markers.
    pub tx_markers: bool,
    /// Read Requests that this side must accept at a time.
    pub ird: u32,
    /// Read Requests that this side may keep outstanding.
    pub ord: u32,
    /// The revision in use.
    pub revision: u8,
    /// Set in the peer-to-peer model: the indication that the initiator sends first.
    pub rtr: Option<Rtr>,
    /// The IRD in the peer's frame, if negotiated.
    pub peer_ird: Option<u32>,
    /// The ORD in the peer's frame, if negotiated.
    pub peer_ord: Option<u32>,
}
