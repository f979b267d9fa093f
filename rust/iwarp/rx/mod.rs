// SPDX-License-Identifier: GPL-2.0

//! The receiver: takes complete, checked frames off the stream and tells the embedder where the
//! payload goes.

mod rdmap;

use crate::error::Error;
use crate::rdmap::terminate::Quote;
use crate::traits::{Deframed, Deframing, Octets, Placement};
use rdmap::RdmapReceiver;

/// The result of one look at the front of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// This many octets are consumed.
    Consumed(usize),
    /// Nothing is consumed: the frame at the front is incomplete. An FPDU of MPA has at most
    /// [`FPDU_MAX`](crate::mpa::fpdu::FPDU_MAX) octets.
    Incomplete {
        /// Octets that the stream must hold before the next try. More than it holds now.
        needed: usize,
    },
}

/// The receiving half of a stream. It begins behind the startup frame.
pub struct Receiver<D> {
    deframing: D,
    rdmap: RdmapReceiver,
    /// A valid frame has been received.
    started: bool,
    /// An error or a Terminate ended the stream.
    ended: bool,
}

impl<D: Deframing> Receiver<D> {
    /// Creates a receiver at the start of the stream.
    pub fn new(deframing: D) -> Self {
        Self {
            deframing,
            rdmap: RdmapReceiver::new(),
            started: false,
            ended: false,
        }
    }

    /// Consumes the frame at the front of `stream` if it is complete. The caller must not pass
    /// consumed octets again, and must pass all others again. If the lower layer receives messages,
    /// `stream` is one message.
    ///
    /// After an error or a Terminate the stream is dead, and all further data is consumed.
    ///
    /// # Errors
    ///
    /// The first error of the stream. An error of the lower layer, as a wrong CRC, takes precedence
    /// over all others of its frame, so that corruption by the network is reported as such (RFC
    /// 5044 §8).
    pub fn consume<P: Placement>(
        &mut self,
        stream: &P::Stream<'_>,
        placement: &mut P,
    ) -> Result<Progress, Error> {
        if self.ended {
            return Ok(Progress::Consumed(stream.len()));
        }
        let outcome = self.next(stream, placement);
        self.ended |= outcome.is_err();
        outcome
    }

    fn next<P: Placement>(
        &mut self,
        stream: &P::Stream<'_>,
        placement: &mut P,
    ) -> Result<Progress, Error> {
        match self.deframing.next(stream)? {
            Deframed::Incomplete { needed } => Ok(Progress::Incomplete { needed }),
            Deframed::Frame { octets, ulpdu } => {
                self.started = true;
                self.ended = !self.rdmap.segment::<D, P>(&ulpdu, stream, placement)?;
                Ok(Progress::Consumed(octets))
            }
        }
    }

    /// Returns whether the stream may end here gracefully: between frames and inside no message.
    /// `unread` is the number of received octets that are not consumed. False once the stream is
    /// dead.
    pub fn at_boundary(&self, unread: usize) -> bool {
        !self.ended && self.deframing.may_end(unread) && self.rdmap.at_boundary()
    }

    /// Returns whether a valid frame has been received, whatever its contents. Over MPA a responder
    /// must not send before that (RFC 5044 §7.1.2 rule 4).
    pub fn started(&self) -> bool {
        self.started
    }

    /// Returns the headers that a Terminate quotes, of the segment for which `consume` just
    /// returned an error.
    pub fn quote(&self) -> Quote {
        self.rdmap.quote()
    }
}
