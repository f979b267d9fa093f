// SPDX-License-Identifier: GPL-2.0

//! The negotiation of two sides that connect: read depths and the connection model (RFC 6581 §9),
//! whatever lower layer carries the control words.
//!
//! The initiator sends the control words of its [`Proposal`]. The responder answers by its
//! [`Request`]. Both then have the same [`Agreed`].

mod agreed;
mod depths;
mod proposal;
mod request;
mod rtr;
mod words;

pub use agreed::{Agreed, Disagreement};
pub use depths::{Depths, DEPTH_MAX, NO_NEGOTIATION};
pub use proposal::Proposal;
pub use request::Request;
pub use rtr::{Rtr, RtrTypes};
pub use words::Words;
