// SPDX-License-Identifier: GPL-2.0

//! Embedders that handle one segment after the other. selftests/fuzz has this file as a module,
//! too.

use iwarp::{
    ddp, AtomicRequest, AtomicResponse, CheckedFrame, Content, Deframed, Deframing, Error, Octets,
    Quote, ReadRequest, Receiver, Segment, Taker, Terminated,
};
use std::ops::Range;

/// The result of one look at the front of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// This many octets are taken.
    Consumed(usize),
    /// The frame at the front is incomplete. The stream must hold so many octets before the next
    /// try.
    Incomplete { needed: usize },
    /// The message at the front is put off.
    Blocked,
}

/// The answer of an embedder to a message that takes a receive WQE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    Now,
    Later,
}

/// An embedder. An error of any method refuses the segment.
pub trait Placement {
    type Stream<'s>: Octets;

    /// A segment with `len` octets behind `header`, of which only the frame is checked.
    fn received(&mut self, _header: &ddp::Header, _len: u32) {}

    /// A message begins that takes a receive WQE.
    fn take_receive(&mut self, _taker: Taker) -> Result<Admission, Error> {
        Ok(Admission::Now)
    }

    /// A segment with payload begins.
    fn begin(&mut self, segment: &Segment) -> Result<(), Error>;

    /// Its octets `from` of `stream`, at `offset` octets into its payload.
    fn place(
        &mut self,
        segment: &Segment,
        offset: u32,
        stream: &Self::Stream<'_>,
        from: Range<usize>,
    ) -> Result<(), Error>;

    /// Its payload is placed.
    fn end(&mut self, segment: &Segment) -> Result<(), Error>;

    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error>;

    fn atomic_request(&mut self, request: &AtomicRequest, _msn: u32) -> Result<(), Error> {
        panic!("nobody sends {request:?}");
    }

    fn atomic_response(&mut self, response: &AtomicResponse, _msn: u32) -> Result<(), Error> {
        panic!("nobody sends {response:?}");
    }

    fn immediate(&mut self, data: [u8; 8], _solicited: bool, _msn: u32) -> Result<(), Error> {
        panic!("nobody sends {data:?}");
    }

    fn terminated(&mut self, terminate: &Terminated);
}

/// A receiver with its lower layer.
pub struct Framed<D> {
    deframer: D,
    receiver: Receiver,
}

/// The front of its stream.
pub enum Next<'r> {
    Frame(CheckedFrame<'r>),
    Incomplete { needed: usize },
    Ended,
}

impl<D: Deframing> Framed<D> {
    pub fn new(deframer: D) -> Self {
        let receiver = Receiver::new();
        Self { deframer, receiver }
    }

    pub fn next<S: Octets>(&mut self, stream: &S) -> Result<Next<'_>, Error> {
        let Self { deframer, receiver } = self;
        let mut incomplete = None;
        let frame = receiver.next(D::SHORT, |head| {
            Ok(match deframer.next(stream, head)? {
                Deframed::Frame(ulpdu) => Some(ulpdu),
                Deframed::Incomplete { needed } => {
                    incomplete = Some(needed);
                    None
                }
            })
        })?;
        Ok(match (frame, incomplete) {
            (Some(frame), _) => Next::Frame(frame),
            (None, Some(needed)) => Next::Incomplete { needed },
            (None, None) => Next::Ended,
        })
    }

    /// Whether the stream may end with `unread` octets that are not taken.
    pub fn at_boundary(&self, unread: usize) -> bool {
        self.receiver.at_boundary() && self.deframer.may_end(unread)
    }

    pub fn started(&self) -> bool {
        self.receiver.started()
    }

    pub fn quote(&self) -> Quote {
        self.receiver.quote()
    }
}

/// Lets `placement` handle the segment at the front of `stream`, as the driver does. Of a stream
/// that has ended, all octets are taken.
pub fn consume<D: Deframing, P: Placement>(
    rx: &mut Framed<D>,
    stream: &P::Stream<'_>,
    placement: &mut P,
) -> Result<Progress, Error> {
    let frame = match rx.next(stream)? {
        Next::Frame(frame) => frame,
        Next::Incomplete { needed } => return Ok(Progress::Incomplete { needed }),
        Next::Ended => return Ok(Progress::Consumed(stream.len())),
    };
    if let Some((header, len)) = frame.header() {
        placement.received(&header, len);
    }
    let checked = frame.check()?;
    if let Some(taker) = checked.content().takes_receive() {
        if placement.take_receive(taker)? == Admission::Later {
            checked.put_off();
            return Ok(Progress::Blocked);
        }
    }
    match checked.content() {
        Content::Payload(segment) => {
            placement.begin(segment)?;
            let mut offset = 0;
            for run in checked.payload() {
                let len = u32::try_from(run.len()).unwrap();
                placement.place(segment, offset, stream, run)?;
                offset += len;
            }
            placement.end(segment)?;
        }
        Content::ReadRequest { request, msn } => placement.read_request(request, *msn)?,
        Content::AtomicRequest { request, msn } => placement.atomic_request(request, *msn)?,
        Content::AtomicResponse { response, msn } => placement.atomic_response(response, *msn)?,
        Content::Immediate {
            data,
            solicited,
            msn,
        } => placement.immediate(*data, *solicited, *msn)?,
        Content::Terminate(terminate) => placement.terminated(terminate),
    }
    Ok(Progress::Consumed(checked.advance()))
}
