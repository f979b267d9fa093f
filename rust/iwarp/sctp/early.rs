// SPDX-License-Identifier: GPL-2.0

//! Placement before delivery (RFC 5041 §5.3): which held chunks have payload that can be placed
//! before their turn.

use super::wire::SSN_LEN;
use crate::ddp::{Header, PREFIX_LEN};
use crate::rdmap::segment::Segment;
use crate::types::{count, Stag};
use crate::wire::ddp as wire_ddp;
use crate::wire::rdmap as wire;
use core::ops::Range;

/// Octets at the front of a segment chunk that [`Receiver::next`](crate::Receiver::next) copies, at
/// most. An embedder keeps only these octets of a chunk whose payload it has placed.
pub use crate::ddp::HEAD_LEN;
const _: () = assert!(SSN_LEN == PREFIX_LEN);

/// Returns the segment of an RDMA Write with payload, and the octets of the chunk that are its
/// payload, which may be placed before the chunk's turn. `head` is a copy of the first [`HEAD_LEN`]
/// octets of the segment chunk, or of all: the copy that the embedder keeps. `octets` is its
/// length.
///
/// Only the versions are checked. The embedder checks STag, rights and bounds as for any Write; if
/// they do not hold, the chunk waits for its turn, when the error is found again and reported in
/// order.
///
/// Returns `None` for any other chunk: an untagged segment needs its place in a queue, and a Read
/// Response the end of the one before it, without which the peer could write to any sink.
pub fn early_write(head: &[u8], octets: usize) -> Option<(Segment, Range<usize>)> {
    let Some(Header::Tagged(header)) = Header::parse(head.get(SSN_LEN..)?) else {
        return None;
    };
    let from = SSN_LEN.saturating_add(wire_ddp::TAGGED_LEN)..octets;
    if Header::Tagged(header).check_version().is_err()
        || header.rdmap & wire::VERSION_MASK != wire::VERSION
        || header.rdmap & wire::OPCODE_MASK != wire::OP_WRITE
        || u16::try_from(octets.saturating_sub(SSN_LEN)).is_err()
        || from.is_empty()
    {
        return None;
    }
    let segment = Segment::Write {
        stag: Stag(header.stag.get()),
        to: header.to.get(),
        len: count(from.len()),
        last: header.control & wire_ddp::LAST != 0,
    };
    Some((segment, from))
}
