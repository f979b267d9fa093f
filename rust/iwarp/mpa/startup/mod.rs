// SPDX-License-Identifier: GPL-2.0

//! The startup frames (RFC 5044 §7.1) and their negotiation (RFC 6581).
//!
//! Each side feeds a [`Reader`] exactly the octets that it requests, so that an FPDU directly
//! behind the frame stays in the socket. The [`Initiator`] sends a Request and checks the Reply;
//! the [`Responder`] checks a Request and builds the Reply. The embedder handles time-outs.
//!
//! # Example
//!
//! ```
//! use iwarp::startup::{Initiator, Kind, Outcome, Policy, Reader, Responder, StartupError};
//!
//! /// Returns a reader with the whole frame.
//! fn read(kind: Kind, frame: [&[u8]; 2]) -> Result<Reader, StartupError> {
//!     let mut reader = Reader::new(kind);
//!     for part in frame {
//!         reader.push(part)?;
//!     }
//!     Ok(reader)
//! }
//!
//! // The initiator accepts 8 Read Requests at a time, and wants 4 outstanding.
//! let initiator = Initiator::new(&Policy::DEFAULT, 8, 4)?;
//! let frame = initiator.request(b"hello")?;
//! assert!(frame.parts()[0].starts_with(b"MPA ID Req Frame"));
//!
//! // The responder accepts 2, and could keep 16 outstanding.
//! let request = read(Kind::Request, frame.parts())?;
//! assert_eq!(request.private_data(), b"hello");
//! let responder = Responder::request(&request, &Policy::DEFAULT).map_err(|e| e.error)?;
//! let (frame, theirs) = responder.accept(2, 16, b"welcome")?;
//!
//! let reply = read(Kind::Reply, frame.parts())?;
//! assert_eq!(reply.private_data(), b"welcome");
//! let Outcome::Established(ours) = initiator.reply(&reply)? else {
//!     panic!("rejected");
//! };
//! assert_eq!((ours.ird, ours.ord), (8, 2));
//! assert_eq!((theirs.ird, theirs.ord), (2, 8));
//! assert!(ours.crc && theirs.crc);
//! # Ok::<(), StartupError>(())
//! ```

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
