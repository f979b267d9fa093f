// SPDX-License-Identifier: GPL-2.0

//! The receiver: yields one segment after the other of a stream, with its frame and its headers checked.
//!
//! The embedder pulls. For each segment it calls [`Receiver::next`], then [`CheckedFrame::check`], places the payload,
//! delivers the message, and takes the segment by [`CheckedSegment::advance`].

mod rdmap;

use crate::ddp::{Header, Runs};
use crate::error::Error;
use crate::rdmap::content::Content;
use crate::rdmap::terminate::Quote;
use crate::traits::{Deframed, Deframing, Octets};
use rdmap::RdmapReceiver;

/// The front of the stream.
pub enum Next<'r> {
    /// A whole frame.
    Frame(CheckedFrame<'r>),
    /// The frame is incomplete. An FPDU of MPA has at most [`FPDU_MAX`](crate::mpa::fpdu::FPDU_MAX) octets.
    Incomplete {
        /// Octets that the stream must hold before the next try. More than it holds now.
        needed: usize,
    },
    /// Nothing: an error or a Terminate has ended the stream. All further octets are to be dropped.
    Ended,
}

/// A whole frame, which the lower layer has checked: of an FPDU, its CRC and its markers (RFC 5044 §6). If it is
/// dropped, it stays at the front of the stream.
pub struct CheckedFrame<'r> {
    rdmap: &'r mut RdmapReceiver,
    short: Error,
}

/// A segment whose headers are checked, too, but nothing that needs a memory table or a queue.
///
/// Header fields come from the copy that the CRC covered; the embedder reads the payload a second time. If the
/// segment is dropped, neither taken nor put off, the embedder has refused it: the stream has ended.
pub struct CheckedSegment<'r> {
    rdmap: &'r mut RdmapReceiver,
    content: Content,
    /// Octets of the DDP header.
    header_len: usize,
}

/// The receiving half of a stream. It begins behind the startup frame.
pub struct Receiver<D> {
    deframing: D,
    rdmap: RdmapReceiver,
}

impl<D: Deframing> Receiver<D> {
    /// Creates a receiver at the start of the stream.
    pub fn new(deframing: D) -> Self {
        Self {
            deframing,
            rdmap: RdmapReceiver::new(),
        }
    }

    /// Looks at the front of `stream`: the octets that are not taken, and any number behind them. If the lower
    /// layer receives messages, `stream` is one message. The same frame is checked only once.
    ///
    /// # Errors
    ///
    /// The lower layer's error, such as a wrong CRC, which takes precedence over all others of its frame, so that
    /// corruption by the network is reported as such (RFC 5044 §8). It ends the stream.
    #[inline]
    pub fn next<S: Octets>(&mut self, stream: &S) -> Result<Next<'_>, Error> {
        let rdmap = &mut self.rdmap;
        if rdmap.ended {
            return Ok(Next::Ended);
        }
        if !rdmap.at_front {
            rdmap.forget();
            match self.deframing.next(stream, &mut rdmap.head) {
                Ok(Deframed::Frame(ulpdu)) => rdmap.begin(ulpdu),
                Ok(Deframed::Incomplete { needed }) => return Ok(Next::Incomplete { needed }),
                Err(error) => {
                    rdmap.ended = true;
                    return Err(error);
                }
            }
        }
        let short = D::SHORT;
        Ok(Next::Frame(CheckedFrame { rdmap, short }))
    }

    /// Returns whether the stream may end here gracefully: between frames and inside no message.
    /// `unread` is the number of received octets that are not taken. False once the stream has ended.
    pub fn at_boundary(&self, unread: usize) -> bool {
        !self.rdmap.ended && self.deframing.may_end(unread) && self.rdmap.at_boundary()
    }

    /// Returns whether a valid frame has been received, whatever its contents. Over MPA a responder
    /// must not send before that (RFC 5044 §7.1.2 rule 4).
    #[inline]
    pub fn started(&self) -> bool {
        self.rdmap.started
    }

    /// Returns the headers that a Terminate quotes, of the segment that [`CheckedFrame::check`] or the embedder has just
    /// refused.
    pub fn quote(&self) -> Quote {
        self.rdmap.quote()
    }
}

impl<'r> CheckedFrame<'r> {
    /// Returns the header of the segment, of which nothing is checked but its frame, and the number of octets
    /// behind it. `None` if the segment is too short for it.
    pub fn header(&self) -> Option<(Header, u32)> {
        self.rdmap.header()
    }

    /// Checks the headers of the segment.
    ///
    /// # Errors
    ///
    /// The first rule that the segment breaks. It ends the stream.
    #[inline]
    pub fn check(self) -> Result<CheckedSegment<'r>, Error> {
        let Self { rdmap, short } = self;

        // Unless it is taken or put off.
        rdmap.ended = true;
        let (header, len) = rdmap.header().ok_or(short)?;
        let content = rdmap.classify(&header, len)?;
        Ok(CheckedSegment {
            rdmap,
            content,
            header_len: header.octets(),
        })
    }
}

impl CheckedSegment<'_> {
    /// Returns the content.
    #[inline]
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Returns where the payload lies in the stream.
    #[inline]
    pub fn payload(&self) -> Runs {
        self.rdmap.body(self.header_len)
    }

    /// Leaves the segment at the front of the stream. A message for which no receive WQE is posted may wait, and
    /// with it all that is behind it, so that the lower layer holds the peer back (RFC 5041 §7.1).
    pub fn put_off(self) {
        self.rdmap.ended = false;
    }

    /// Takes the segment, which is placed and delivered. Returns the octets of the stream that it takes.
    #[inline]
    pub fn advance(self) -> usize {
        self.rdmap.advance(&self.content)
    }
}
