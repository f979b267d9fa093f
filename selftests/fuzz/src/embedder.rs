// SPDX-License-Identifier: GPL-2.0

//! An embedder with little memory that checks every call.

use crate::{placement::Placement, Unread};
use iwarp::{
    Access, AtomicRequest, AtomicResponse, DdpUntagged, Error, Outstanding, Rdmap,
    ReadRequest, Region, Segment, Stag, Terminated,
};
use std::ops::Range;

/// The protection domain of the stream.
const PD: u64 = 7;
/// The region that the peer may write and read: 64 octets that begin at 0x40 of `memory`.
pub const REGION: Region = Region {
    stag: Stag(0x101),
    pd: PD,
    base: 0x1000,
    len: 64,
    access: Access::from_bits(0xf),
    valid: true,
};
const REGION_AT: usize = 0x40;
/// The sink of this side's reads: 64 octets at 0xc0.
pub const SINK: Stag = Stag(0x202);
const SINK_AT: usize = 0xc0;
/// Reads outstanding at the start, each of this many octets.
const READS: u64 = 4;
const READ_LEN: u32 = 16;
/// Receive buffers of this many octets each, at 0x140.
const BUFFER_LEN: u32 = 96;
const BUFFER_AT: usize = 0x140;
const MEMORY: usize = 0x1c0;
/// Contents of memory that must not be written.
const CANARY: u8 = 0xa5;

/// The embedder.
#[derive(PartialEq, Debug)]
pub struct Embedder {
    memory: [u8; MEMORY],
    /// The current segment, its position in memory, and its octets so far.
    open: Option<(Segment, usize, u32)>,
    /// MSN and length so far of the message in the receive buffer.
    send: Option<(u32, u32)>,
    reads: u64,
    read: Outstanding,
    /// The last MSN of queues 0, 1 and 3.
    msn: [u32; 3],
    /// No further call is allowed.
    closed: bool,
    terminate: Option<Terminated>,
    /// Digest of all calls and their arguments.
    digest: u64,
}

fn outstanding(number: u64) -> Outstanding {
    Outstanding::new(SINK, number * u64::from(READ_LEN), READ_LEN)
}

impl Embedder {
    pub fn new() -> Self {
        Self {
            memory: [CANARY; MEMORY],
            open: None,
            send: None,
            reads: 0,
            read: outstanding(0),
            msn: [0; 3],
            closed: false,
            terminate: None,
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Forbids further calls. Checks that nothing was written outside the buffers.
    pub fn close(&mut self) {
        self.closed = true;
        for wall in [
            0..REGION_AT,
            REGION_AT + 64..SINK_AT,
            SINK_AT + 64..BUFFER_AT,
        ] {
            assert!(self.memory[wall].iter().all(|octet| *octet == CANARY));
        }
        assert!(self.memory[BUFFER_AT + 96..]
            .iter()
            .all(|octet| *octet == CANARY));
    }

    /// Returns the peer's Terminate, if received.
    pub fn terminate(&self) -> Option<Terminated> {
        self.terminate
    }

    fn note(&mut self, value: u64) {
        self.digest = (self.digest ^ value)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(23);
    }

    /// Refuses a call, which ends the stream.
    fn refuse(&mut self, error: Error) -> Error {
        self.closed = true;
        error
    }

    fn called(&mut self, what: u64) {
        assert!(!self.closed, "a call on a dead stream");
        self.note(what);
    }

    /// Handles a message without payload.
    fn message(&mut self, what: u64, queue: usize, msn: u32) {
        self.called(what);
        assert!(self.open.is_none(), "a message within a segment");
        assert_eq!(msn, self.msn[queue].wrapping_add(1));
        self.msn[queue] = msn;
        self.note(msn.into());
    }

    /// Returns the position of a segment in memory.
    fn place_of(&mut self, segment: &Segment) -> Result<usize, Error> {
        match *segment {
            Segment::Send { msn, mo, len, .. } => {
                let have = match self.send {
                    Some((open, have)) => {
                        assert_eq!(msn, open);
                        have
                    }
                    None => {
                        assert_eq!(msn, self.msn[0].wrapping_add(1));
                        0
                    }
                };
                assert_eq!(mo, have, "a hole in a message");
                self.send = Some((msn, have));
                if mo > BUFFER_LEN || len > BUFFER_LEN - mo {
                    return Err(DdpUntagged::TooLong.into());
                }
                Ok(BUFFER_AT + mo as usize)
            }
            Segment::Write { stag, to, len, .. } => REGION
                .check(stag, PD, Access::REMOTE_WRITE, to, len)
                .map(|at| REGION_AT + at as usize)
                .map_err(|denied| denied.tagged()),
            Segment::ReadResponse {
                stag,
                to,
                len,
                last,
            } => {
                if self.reads == READS {
                    return Err(Rdmap::UnexpectedOpcode.into());
                }
                let before = self.read.done();
                let done = self.read.accept(stag, to, len, last)?;
                assert_eq!(done, last);
                assert_eq!(self.read.done(), before + len);
                let at = self.reads * u64::from(READ_LEN) + u64::from(before);
                if last {
                    assert_eq!(self.read.done(), READ_LEN);
                    self.reads += 1;
                    self.read = outstanding(self.reads);
                }
                Ok(SINK_AT + at as usize)
            }
        }
    }
}

impl Default for Embedder {
    fn default() -> Self {
        Self::new()
    }
}

impl Placement for Embedder {
    type Stream<'s> = Unread;

    fn begin(&mut self, segment: &Segment) -> Result<(), Error> {
        self.called(1);
        assert!(self.open.is_none(), "begin within a segment");
        let at = self.place_of(segment).map_err(|error| self.refuse(error))?;
        self.note(at as u64);
        self.note(u64::from(segment.len()) << 1 | u64::from(segment.last()));
        self.open = Some((*segment, at, 0));
        Ok(())
    }

    fn place(
        &mut self,
        segment: &Segment,
        offset: u32,
        stream: &Unread,
        from: Range<usize>,
    ) -> Result<(), Error> {
        let data = stream.octets(from);
        assert!(!self.closed, "placed on a dead stream");
        let (begun, at, have) = self.open.as_mut().expect("place without begin");
        assert_eq!(begun, segment);
        assert_eq!(offset, *have, "placed out of order");
        assert!(!data.is_empty());
        *have += u32::try_from(data.len()).unwrap();
        assert!(*have <= segment.len(), "placed more than announced");
        let at = *at + offset as usize;
        self.memory[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn end(&mut self, segment: &Segment) -> Result<(), Error> {
        self.called(2);
        let (begun, _, have) = self.open.take().expect("end without begin");
        assert_eq!(&begun, segment);
        assert_eq!(have, segment.len(), "end before all came");
        if let Segment::Send {
            msn,
            len,
            last,
            solicited,
            invalidate,
            ..
        } = *segment
        {
            self.send = match self.send {
                Some((msn, have)) if !last => Some((msn, have + len)),
                _ => None,
            };
            if last {
                self.msn[0] = msn;
            }
            self.note(u64::from(solicited));
            self.note(invalidate.map_or(0, |stag| u64::from(stag.0) | 1 << 32));
            if invalidate.is_some_and(|stag| stag == SINK) {
                return Err(self.refuse(Rdmap::CannotInvalidate.into()));
            }
        }
        Ok(())
    }

    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error> {
        self.message(3, 1, msn);
        self.note(request.sink_to ^ u64::from(request.sink_stag.0));
        let source = REGION.check(
            request.src_stag,
            PD,
            Access::REMOTE_READ,
            request.src_to,
            request.len,
        );
        match source {
            Ok(at) => {
                assert!(at + u64::from(request.len) <= REGION.len);
                Ok(())
            }
            Err(denied) => Err(self.refuse(denied.read_source())),
        }
    }

    fn atomic_request(&mut self, request: &AtomicRequest, msn: u32) -> Result<(), Error> {
        self.message(4, 1, msn);
        self.note(request.op.apply(request.to) ^ u64::from(request.id));
        match REGION.check(request.stag, PD, Access::REMOTE_ATOMIC, request.to, 8) {
            Ok(at) => {
                assert!(at + 8 <= REGION.len);
                Ok(())
            }
            Err(denied) => Err(self.refuse(denied.read_source())),
        }
    }

    fn atomic_response(&mut self, response: &AtomicResponse, msn: u32) -> Result<(), Error> {
        self.message(5, 2, msn);
        self.note(response.original ^ u64::from(response.id));
        Ok(())
    }

    fn immediate(&mut self, data: [u8; 8], solicited: bool, msn: u32) -> Result<(), Error> {
        assert!(self.send.is_none(), "Immediate Data within a Send");
        self.message(6, 0, msn);
        self.note(u64::from_be_bytes(data) ^ u64::from(solicited));
        Ok(())
    }

    fn terminated(&mut self, terminate: &Terminated) {
        self.called(7);
        assert!(self.open.is_none(), "a Terminate within a segment");
        self.note(u64::from(terminate.code.code));
        let quote = &terminate.quote;
        assert!(quote.ddp().is_empty() == quote.header().is_none());
        self.note(quote.request().map_or(0, |request| request.src_to));
        self.terminate = Some(*terminate);
        self.closed = true;
    }
}
