// SPDX-License-Identifier: GPL-2.0

//! The receiver: yields one segment after the other of a stream, with its frame and its headers
//! checked.
//!
//! The embedder pulls. For each segment it calls [`Receiver::next`], then [`CheckedFrame::check`],
//! places the payload, delivers the message, and takes the segment by [`CheckedSegment::advance`].

mod rdmap;

use crate::ddp::{FrameHead, Header, Runs, Ulpdu};
use crate::error::Error;
use crate::rdmap::content::Content;
use crate::rdmap::terminate::Quote;
use rdmap::RdmapReceiver;

/// A whole frame, which the lower layer has checked: of an FPDU, its CRC and its markers (RFC 5044
/// §6). If it is dropped, it stays at the front of the stream.
pub struct CheckedFrame<'r> {
    rdmap: &'r mut RdmapReceiver,
    short: Error,
}

/// A segment whose headers are checked, too, but nothing that needs a memory table or a queue.
///
/// Header fields come from the copy that the CRC covered; the embedder reads the payload a second
/// time. If the segment is dropped, neither taken nor put off, the embedder has refused it: the
/// stream has ended.
pub struct CheckedSegment<'r> {
    rdmap: &'r mut RdmapReceiver,
    content: Content,
    /// Octets of the DDP header.
    header_len: usize,
}

/// The receiving half of a stream. It begins behind the startup frame.
pub struct Receiver(RdmapReceiver);

impl Receiver {
    /// Creates a receiver at the start of the stream.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(RdmapReceiver::new())
    }

    /// Returns the frame at the front of the stream. `next` gets it from the lower layer, with a
    /// copy of its first octets, and is called once for each frame; it returns `None` if there is
    /// no whole frame. `short` is the error for a segment that is too short for its DDP header.
    /// After an error or a Terminate, which end the stream, there is no frame: all further octets
    /// are to be dropped.
    ///
    /// # Errors
    ///
    /// Those of `next`, such as a wrong CRC, which take precedence over all others of the frame, so
    /// that corruption by the network is reported as such (RFC 5044 §8). They end the stream.
    #[inline]
    pub fn next(
        &mut self,
        short: Error,
        next: impl FnOnce(&mut FrameHead) -> Result<Option<Ulpdu>, Error>,
    ) -> Result<Option<CheckedFrame<'_>>, Error> {
        let rdmap = &mut self.0;
        if rdmap.ended {
            return Ok(None);
        }
        if !rdmap.at_front {
            rdmap.forget();
            match next(&mut rdmap.head) {
                Ok(Some(ulpdu)) => rdmap.begin(ulpdu),
                Ok(None) => return Ok(None),
                Err(error) => {
                    rdmap.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(Some(CheckedFrame { rdmap, short }))
    }

    /// Returns whether the stream may end here gracefully: inside no message, and no segment is put
    /// off. False once the stream has ended.
    pub fn at_boundary(&self) -> bool {
        !self.0.ended && !self.0.at_front && self.0.at_boundary()
    }

    /// Returns whether a valid frame has been received, whatever its contents. Over MPA a responder
    /// must not send before that (RFC 5044 §7.1.2 rule 4).
    #[inline]
    pub fn started(&self) -> bool {
        self.0.started
    }

    /// Returns the headers that a Terminate quotes, of the segment that [`CheckedFrame::check`] or
    /// the embedder has just refused.
    pub fn quote(&self) -> Quote {
        self.0.quote()
    }
}

impl<'r> CheckedFrame<'r> {
    /// Returns the header of the segment, of which nothing is checked but its frame, and the number
    /// of octets behind it. `None` if the segment is too short for it.
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

    /// Leaves the segment at the front of the stream. A message for which no receive WQE is posted
    /// may wait, and with it all that is behind it, so that the lower layer holds the peer back
    /// (RFC 5041 §7.1).
    pub fn put_off(self) {
        self.rdmap.ended = false;
    }

    /// Takes the segment, which is placed and delivered. Returns the octets of the stream that it
    /// takes.
    #[inline]
    pub fn advance(self) -> usize {
        self.rdmap.advance(&self.content)
    }
}
