// SPDX-License-Identifier: GPL-2.0

//! The receiver: takes complete, checked FPDUs off the stream and tells the embedder where the
//! payload goes.

use crate::error::Error;
use crate::mpa::deframe::{Deframer, Next};
use crate::rdmap::inbound::Inbound;
use crate::rdmap::terminate::Quote;
use crate::traits::{Crc32c, Octets, Placement};

/// Framing of the stream, as the startup negotiated it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxConfig {
    /// Check CRCs.
    pub crc: bool,
    /// The peer sends markers, because this side requested them.
    pub markers: bool,
}

/// The result of one look at the front of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// This many octets are consumed.
    Consumed(usize),
    /// Nothing is consumed: the FPDU at the front is incomplete. An FPDU has at most
    /// [`FPDU_MAX`](crate::mpa::fpdu::FPDU_MAX) octets.
    Incomplete {
        /// Octets that the stream must hold before the next try. More than it holds now.
        needed: usize,
    },
}

/// The receiving half of a stream. It begins behind the startup frame.
pub struct Receiver<C: Crc32c> {
    mpa: Deframer<C>,
    rdmap: Inbound,
    /// An error or a Terminate ended the stream.
    ended: bool,
}

impl<C: Crc32c> Receiver<C> {
    /// Creates a receiver at the start of the stream.
    pub fn new(config: RxConfig) -> Self {
        Self {
            mpa: Deframer::new(config.crc, config.markers),
            rdmap: Inbound::new(),
            ended: false,
        }
    }

    /// Consumes the FPDU at the front of `stream` if it is complete. The caller must not pass
    /// consumed octets again, and must pass all others again.
    ///
    /// After an error or a Terminate the stream is dead, and all further data is consumed.
    ///
    /// # Errors
    ///
    /// The first error of the stream. A wrong CRC takes precedence over all others, so that
    /// corruption by the network is reported as such (RFC 5044 §8).
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
        match self.mpa.next(stream)? {
            Next::Incomplete { needed } => Ok(Progress::Incomplete { needed }),
            Next::Fpdu { octets, ulpdu } => {
                self.ended = !self.rdmap.segment(&ulpdu, placement)?;
                Ok(Progress::Consumed(octets))
            }
        }
    }

    /// Returns whether the stream may end here gracefully: between FPDUs and inside no message.
    /// `unread` is the number of received octets that are not consumed. False once the stream is
    /// dead.
    pub fn at_boundary(&self, unread: usize) -> bool {
        !self.ended && self.mpa.may_end(unread) && self.rdmap.at_boundary()
    }

    /// Returns whether a valid FPDU has been received. Before that a responder must not send (RFC
    /// 5044 §7.1.2 rule 4).
    pub fn started(&self) -> bool {
        self.mpa.started()
    }

    /// Returns the headers that a Terminate quotes, of the segment for which `consume` just
    /// returned an error.
    pub fn quote(&self) -> Quote {
        self.rdmap.quote()
    }
}
