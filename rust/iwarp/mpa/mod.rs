// SPDX-License-Identifier: GPL-2.0

//! MPA (RFC 5044, RFC 6581): framing over TCP, and the startup frames.

pub mod deframe;
pub mod fpdu;
pub mod marker;
pub mod startup;

pub use deframe::{FpduDeframer, RxConfig};
pub use fpdu::{FpduFramer, TxConfig};
