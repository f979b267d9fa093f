// SPDX-License-Identifier: GPL-2.0

//! The receiver: takes complete, checked frames off the stream and passes the target of the payload
//! to the embedder.

mod rdmap;

use crate::error::Error;
use crate::rdmap::terminate::Quote;
use crate::traits::{Admission, Deframed, Deframing, Octets, Placement};
use rdmap::{Accepted, RdmapReceiver};

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
    /// Nothing is consumed: the frame at the front begins a message that
    /// [`Placement::take_receive`] has put off. The next try calls it again.
    Blocked,
}

/// A checked frame at the front of the stream, whose segment is accepted.
struct Checked<L> {
    /// The octets of the stream that it takes.
    octets: usize,
    segment: Accepted,
    layout: L,
}

/// The receiving half of a stream. It begins behind the startup frame.
pub struct Receiver<D: Deframing> {
    deframing: D,
    rdmap: RdmapReceiver,
    /// The frame at the front, if its message is put off.
    blocked: Option<Checked<D::Layout>>,
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
            blocked: None,
            started: false,
            ended: false,
        }
    }

    /// Consumes the frame at the front of `stream` if it is complete. The caller must not pass
    /// consumed octets again, and must pass all others again. If the lower layer receives messages,
    /// `stream` is one message. After [`Progress::Blocked`], `stream` must begin with the same octets
    /// as before, and any number may follow them.
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
        let frame = match self.blocked.take() {
            Some(frame) => frame,
            None => match self.deframing.next(stream)? {
                Deframed::Incomplete { needed } => return Ok(Progress::Incomplete { needed }),
                Deframed::Frame { octets, ulpdu } => {
                    self.started = true;
                    let segment = self.rdmap.accept::<D, P>(&ulpdu, placement)?;
                    let layout = ulpdu.layout;
                    Checked {
                        octets,
                        segment,
                        layout,
                    }
                }
            },
        };
        if let Some(taker) = frame.segment.takes_receive() {
            if placement.take_receive(taker)? == Admission::Later {
                self.blocked = Some(frame);
                return Ok(Progress::Blocked);
            }
        }
        let Checked {
            octets,
            segment,
            layout,
        } = frame;
        self.ended = !self.rdmap.segment(segment, &layout, stream, placement)?;
        Ok(Progress::Consumed(octets))
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
