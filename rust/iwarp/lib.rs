// SPDX-License-Identifier: GPL-2.0

//! The iWARP protocols without I/O: MPA (RFC 5044, RFC 6581) and DDP's adaptation to SCTP (RFC
//! 5043), DDP (RFC 5041) and RDMAP (RFC 5040, with the wire formats of RFC 7306).
//!
//! Bytes go in, decisions come out; sockets, memory and time belong to the embedder.
//!
//! - [`startup`]: the frames that open a connection, and their negotiation.
//! - [`traits`]: the interfaces with the embedder, and of DDP with a lower layer.
//! - [`Segmenter`]: cuts messages into DDP segments and hands a [`Gather`] header bytes and payload
//!   ranges, framed by a [`Framing`].
//! - [`Receiver`]: finds DDP segments in the stream's [`Octets`] by a [`Deframing`], checks them,
//!   and yields one after the other with its [`Content`] and the place of its payload.
//! - [`mpa`]: the lower layer over TCP, whose frames are FPDUs.
//! - [`sctp`]: the lower layer over SCTP, whose frames are chunks.
//! - [`Region`]: checks accesses to registered memory.
//! - [`Error`]: every protocol error, its Terminate code and the rule that it breaks.
//! - [`qp`]: the states of a queue pair.
//!
//! No two files import each other. A file imports only from its own layer and from those before it:
//! - `types`, `error`, `rule`, `wire`, `ddp`, `rdmap`, `access`, `qp`, `negotiation`: values,
//!   headers, messages;
//! - `traits`;
//! - `tx` and `rx`, which use the lower layer by its traits, and `mpa` and `sctp`, which import
//!   neither them nor each other.
//!
//! No function allocates, blocks or panics, whatever the input. All state is of fixed size. Every
//! function may be called in any context; none takes a lock.
//!
//! # Example
//!
//! One side sends a message in several FPDUs, and the other one receives it. The embedder supplies
//! the CRC, a sink for the octets to send, and access to those received:
//!
//! ```
//! use iwarp::mpa::{FpduDeframer, FpduFramer};
//! use iwarp::{Content, Crc, Crc32c, Deframed, Deframing, Error, Gather, Message, Mpa, Octets};
//! use iwarp::{Receiver, RxConfig, Segmenter, TxConfig};
//!
//! /// CRC32c, bit by bit.
//! struct Engine;
//!
//! impl Crc32c for Engine {
//!     fn update(crc: u32, data: &[u8]) -> u32 {
//!         data.iter().fold(crc, |crc, octet| {
//!             (0..8).fold(crc ^ u32::from(*octet), |crc, _| {
//!                 (crc >> 1) ^ (0x82f6_3b78 * (crc & 1))
//!             })
//!         })
//!     }
//! }
//!
//! /// The message to send, and the octets of its FPDUs.
//! struct Sink<'a> {
//!     message: &'a [u8],
//!     stream: Vec<u8>,
//! }
//!
//! impl Gather for Sink<'_> {
//!     type Error = Error;
//!
//!     fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
//!         self.stream.extend_from_slice(bytes);
//!         Ok(())
//!     }
//!
//!     fn payload(&mut self, at: u32, len: u32, crc: Option<Crc>) -> Result<Option<Crc>, Error> {
//!         let payload = &self.message[at as usize..][..len as usize];
//!         self.stream.extend_from_slice(payload);
//!         Ok(crc.map(|crc| crc.update::<Engine>(payload)))
//!     }
//! }
//!
//! /// Received octets that are not consumed yet.
//! struct Unread<'a>(&'a [u8]);
//!
//! impl Octets for Unread<'_> {
//!     fn len(&self) -> usize {
//!         self.0.len()
//!     }
//!
//!     fn copy(&self, at: usize, to: &mut [u8]) -> Option<()> {
//!         to.copy_from_slice(self.0.get(at..)?.get(..to.len())?);
//!         Some(())
//!     }
//!
//!     fn crc(&self, crc: Crc, at: usize, len: usize) -> Option<Crc> {
//!         Some(crc.update::<Engine>(self.0.get(at..)?.get(..len)?))
//!     }
//! }
//!
//! fn send(message: &[u8]) -> Result<Vec<u8>, Error> {
//!     let config = TxConfig {
//!         crc: true,
//!         markers: false,
//!         emss: 256,
//!     };
//!     let mut tx = Segmenter::new(FpduFramer::<Engine>::new(config));
//!     let mut out = Sink {
//!         message,
//!         stream: Vec::new(),
//!     };
//!
//!     let send = Message::Send {
//!         solicited: false,
//!         invalidate: None,
//!     };
//!     tx.start(send, message.len() as u32)
//!         .expect("no message is being sent");
//!     while let Some(fpdu) = tx.poll_transmit(&mut out)? {
//!         assert!(fpdu.bytes <= 256);
//!     }
//!     Ok(out.stream)
//! }
//!
//! fn receive(stream: &[u8]) -> Result<Vec<u8>, Error> {
//!     let config = RxConfig {
//!         crc: true,
//!         markers: false,
//!     };
//!     let mut deframer = FpduDeframer::<Engine>::new(config);
//!     let mut rx = Receiver::new();
//!     let (mut unread, mut message) = (Unread(stream), Vec::new());
//!
//!     while let Some(frame) = rx.next(FpduDeframer::<Engine>::SHORT, |head| {
//!         Ok(match deframer.next(&unread, head)? {
//!             Deframed::Frame(ulpdu) => Some(ulpdu),
//!             Deframed::Incomplete { .. } => None,
//!         })
//!     })? {
//!         let segment = frame.check()?;
//!         // A real embedder places the payload where the content says.
//!         assert!(matches!(segment.content(), Content::Payload(_)));
//!         for run in segment.payload() {
//!             message.extend_from_slice(&unread.0[run]);
//!         }
//!         unread = Unread(&unread.0[segment.advance()..]);
//!     }
//!     Ok(message)
//! }
//!
//! let message = [7; 1000];
//! let mut stream = send(&message)?;
//! assert_eq!(receive(&stream)?, message);
//!
//! // The CRC finds an octet that has changed on the way.
//! stream[300] ^= 1;
//! assert_eq!(receive(&stream), Err(Error::Mpa(Mpa::Crc)));
//! # Ok::<(), Error>(())
//! ```

#![cfg_attr(not(CONFIG_RUST), no_std)]
#![crate_name = "iwarp"]
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::as_conversions
)]

pub mod access;
pub mod ddp;
pub mod error;
pub mod mpa;
pub mod negotiation;
pub mod qp;
pub mod rdmap;
mod rule;
pub mod rx;
pub mod sctp;
pub mod traits;
pub mod tx;
pub mod types;
pub mod wire;

pub use access::{Access, Denied, Region};
pub use error::{DdpTagged, DdpUntagged, Error, Local, Mpa, Rdmap, Sctp, TermCode};
pub use mpa::{startup, RxConfig, TxConfig};
pub use rdmap::{AtomicOp, AtomicRequest, AtomicResponse, Message, Outstanding, ReadRequest};
pub use rdmap::{Content, Quote, Segment, Taker, Terminate, Terminated};
pub use rx::{CheckedFrame, CheckedSegment, Receiver};
pub use traits::{Crc, Crc32c, Deframed, Deframing, Framing, Gather, Octets};
pub use tx::{Busy, Emitted, Segmenter};
pub use types::Stag;
