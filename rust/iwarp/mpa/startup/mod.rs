// SPDX-License-Identifier: GPL-2.0

//! The startup frames (RFC 5044 §7.1) and their negotiation (RFC 6581).
//!
//! Each side feeds a [`Reader`] exactly the octets that it requests, so that an FPDU directly
//! behind the frame stays in the socket. The [`Initiator`] sends a Request and checks the Reply;
//! the [`Responder`] checks a Request and builds the Reply. The embedder handles time-outs.

mod error;
mod frame;
mod initiator;
mod parameters;
mod policy;
mod responder;

pub use crate::negotiation::{Depths, Rtr, RtrTypes, DEPTH_MAX, NO_NEGOTIATION};
pub use error::StartupError;
pub use frame::{Frame, Kind, OutFrame, Reader};
pub use initiator::{Initiator, Outcome};
pub use parameters::Parameters;
pub use policy::{CrcPolicy, Policy};
pub use responder::{Refusal, Responder};
