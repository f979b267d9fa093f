// SPDX-License-Identifier: GPL-2.0

//! DDP over SCTP (RFC 5043): the chunks, the session that they form, and their order.
//!
//! SCTP keeps the boundaries of messages and has a CRC32c of its own, so a DDP segment needs no
//! length, pad, CRC or marker: a chunk is a sequence number (DDP-SSN) and a segment. Chunks are
//! sent unordered, so they may come in any order; the DDP-SSN counts them by stream and direction,
//! from 0 in each session. Session control chunks count, too.
//!
//! # Use
//!
//! One [`Session`] and one [`Window`] for each DDP stream session, and a [`Receiver`] and a
//! [`Segmenter`] as over any lower layer, with [`ChunkDeframer`] and [`ChunkFramer`].
//!
//! To receive, for each message of the stream:
//!
//! 1. [`ssn`] reads its DDP-SSN, and [`Window::arrive`] judges it. A chunk that is ahead of a
//!    missing one is kept by the embedder; the window bounds their number and memory.
//! 2. The chunk that is next goes through [`Chunk::parse`] to [`Session::handle`]. If that says
//!    [`SessionAction::Deliver`], the message goes to [`Receiver::next`].
//! 3. As long as [`Window::due`] names a kept chunk, that one follows.
//!
//! So each rule is applied in the order of the DDP-SSNs (RFC 5043 §6.1), whatever the order of
//! arrival. Errors of step 1 and of the parser go to [`Session::handle`] as a received chunk does:
//! it knows how the session ends.
//!
//! To send, a session control chunk is the [`Encoded`] one that the session hands out, and a
//! segment comes from the segmenter. The Terminate Chunk takes its DDP-SSN from
//! [`ChunkFramer::next_ssn`].
//!
//! The embedder also keeps the rules about sockets and associations: the Adaptation Indication
//! ([`ADAPTATION_DDP`](wire::ADAPTATION_DDP)), unordered chunks, stream counts, and at most 32767
//! unacknowledged chunks of a stream.
//!
//! # Readings of the RFCs
//!
//! - Segments before the answer to the Initiate are illegal: RFC 5043 §6.2 lists the answer first.
//! - An unknown function code or payload protocol identifier is in none of the legal sequences. So
//!   a responder that does not know RFC 6581 answers an Enhanced Initiate with a Terminate; the
//!   initiator may then begin a new session with a plain Initiate.
//! - An Enhanced Reject has control words: RFC 6581 §7 lets a responder state its RTR indications
//!   in it, and §9.1 its depths. One with less than four octets of private data has none, and is
//!   taken as a plain Reject.
//! - A plain Reject may answer an Enhanced Initiate.
//! - After its Terminate Chunk a side sends nothing more; the other side may send until its own.
//!
//! # Early placement
//!
//! RFC 5041 §5.3 allows to place payload in any order and demands to deliver in order. In step 1
//! the embedder may therefore place the payload of a held RDMA Write at once, if the session is
//! open: [`early_write`] finds it. It then keeps only the first [`HEAD_LEN`] octets of the chunk,
//! and gives the memory of the rest back by [`Window::shrink`]. When the turn of the chunk comes,
//! the [`Octets`] that go to [`Receiver::next`] still have the length of the whole chunk, and the
//! embedder skips the payload. All checks are made again then, so that an STag that an earlier Send
//! has invalidated ends the session.
//!
//! Applications must not look for the end of a Write in its last octet, which may be placed first
//! (RFC 5040 §5.5). Some do, so an embedder should let the administrator choose.
//!
//! [`Octets`]: crate::Octets
//! [`Receiver`]: crate::Receiver
//! [`Receiver::next`]: crate::Receiver::next
//! [`Segmenter`]: crate::Segmenter

mod chunk;
mod early;
mod framing;
mod session;
mod window;
pub mod wire;

pub use chunk::{ssn, Body, Chunk, Control, Encoded};
pub use early::{early_write, HEAD_LEN};
pub use framing::{mulpdu, ChunkDeframer, ChunkFramer, BUNDLE_ROOM, MULPDU_MIN};
pub use session::{Form, Session, SessionAction, SessionEvent, Unfit};
pub use window::{Arrival, Window};
