// SPDX-License-Identifier: GPL-2.0

//! Shared test code: a CRC engine, a sink that copies, a placement that records, and helpers.

#![allow(dead_code)]

pub mod messages;
pub mod placement;
pub mod sctp;
pub mod startup;
pub mod unread;

use iwarp::*;
pub use placement::{consume, Admission, Framed, Placement, Progress};
use std::ops::Range;
pub use unread::Unread;

/// An RDMA Read Request with a different number in each field.
pub const READ_REQUEST: ReadRequest = ReadRequest {
    sink_stag: Stag(1),
    sink_to: 2,
    len: 3,
    src_stag: Stag(4),
    src_to: 5,
};

/// Checks the rules that errors name: each is unique, and a clause at the end of a log line.
pub fn check_rules(rules: impl IntoIterator<Item = &'static str>) {
    let mut seen = std::collections::BTreeSet::new();
    for rule in rules {
        assert!(seen.insert(rule), "twice: {rule}");
        assert!(rule.starts_with(|c: char| c.is_ascii_lowercase()), "{rule}");
        assert!(
            rule.ends_with(|c: char| c.is_ascii_alphanumeric()),
            "{rule}"
        );
        assert!(rule.contains(' ') && rule.len() < 70, "{rule}");
    }
    assert!(!seen.is_empty());
}

/// CRC32c by a table that is built on first use.
pub struct Soft;

impl Crc32c for Soft {
    fn update(crc: u32, data: &[u8]) -> u32 {
        use std::sync::OnceLock;
        static TABLE: OnceLock<[u32; 256]> = OnceLock::new();
        let table = TABLE.get_or_init(|| {
            let mut table = [0; 256];
            for (i, entry) in table.iter_mut().enumerate() {
                let mut c = u32::try_from(i).unwrap();
                for _ in 0..8 {
                    c = if c & 1 != 0 {
                        (c >> 1) ^ 0x82f6_3b78
                    } else {
                        c >> 1
                    };
                }
                *entry = c;
            }
            table
        });
        data.iter().fold(crc, |crc, byte| {
            table[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8)
        })
    }
}

/// Copies FPDUs into one buffer.
pub struct Copy<'a> {
    pub message: &'a [u8],
    pub wire: Vec<u8>,
}

impl Gather for Copy<'_> {
    type Error = std::convert::Infallible;

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.wire.extend_from_slice(bytes);
        Ok(())
    }

    fn payload(
        &mut self,
        offset: u32,
        len: u32,
        crc: Option<Crc>,
    ) -> Result<Option<Crc>, Self::Error> {
        let at = offset as usize;
        let part = &self.message[at..at + len as usize];
        assert!(!part.is_empty());
        self.wire.extend_from_slice(part);
        Ok(crc.map(|crc| crc.update::<Soft>(part)))
    }
}

/// A segmenter over MPA.
pub type Tx = Segmenter<mpa::FpduFramer<Soft>>;

/// Sends one whole message. Returns its FPDUs one by one.
pub fn send(tx: &mut Tx, message: Message, payload: &[u8]) -> Vec<Vec<u8>> {
    tx.start(message, u32::try_from(payload.len()).unwrap())
        .unwrap();
    let mut fpdus = Vec::new();
    loop {
        let mut out = Copy {
            message: payload,
            wire: Vec::new(),
        };
        let Ok(emitted) = tx.poll_transmit(&mut out);
        let emitted = emitted.expect("a message is at hand");
        assert_eq!(emitted.bytes as usize, out.wire.len());
        fpdus.push(out.wire);
        assert_eq!(tx.busy(), !emitted.last);
        if emitted.last {
            return fpdus;
        }
    }
}

/// A call that the placement received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A segment with its placed payload.
    Segment(Segment, Vec<u8>),
    ReadRequest(ReadRequest, u32),
    AtomicRequest(AtomicRequest, u32),
    AtomicResponse(AtomicResponse, u32),
    Immediate([u8; 8], bool, u32),
    Terminated(Terminated),
}

/// Records calls, checks their order, and refuses on request.
#[derive(Default)]
pub struct Recorder {
    pub events: Vec<Event>,
    /// The header of each segment, and the octets behind it.
    pub headers: Vec<(ddp::Header, u32)>,
    /// The current segment and its payload so far.
    pub open: Option<(Segment, Vec<u8>)>,
    /// Number of calls of all methods but `received` and `take_receive`.
    pub calls: usize,
    /// Number of calls of `take_receive`, and how many of the next ones put the message off.
    pub take_receive_calls: usize,
    pub last_taker: Option<Taker>,
    pub put_off: usize,
    pub waits: bool,
    /// Returned by `take_receive`, when no more are put off.
    pub refuse_receive: Option<Error>,
    /// Returned by `begin`.
    pub refuse_begin: Option<Error>,
    /// Returned by `place`.
    pub refuse_place: Option<Error>,
    /// Returned by `end` and for messages without payload.
    pub refuse_end: Option<Error>,
}

fn refuse(error: Option<Error>) -> Result<(), Error> {
    error.map_or(Ok(()), Err)
}

/// A receiver and its unconsumed octets.
pub struct Rx {
    inner: Framed<mpa::FpduDeframer<Soft>>,
    unread: Unread,
}

impl Rx {
    /// Adds `data` and lets the receiver consume as much as it can.
    pub fn consume<P: for<'s> Placement<Stream<'s> = Unread>>(
        &mut self,
        data: &[u8],
        placement: &mut P,
    ) -> Result<usize, Error> {
        self.unread.receive(data, &mut self.inner, placement)?;
        Ok(data.len())
    }

    pub fn at_boundary(&self) -> bool {
        self.inner.at_boundary(self.unread.len())
    }

    pub fn started(&self) -> bool {
        self.inner.started()
    }

    pub fn quote(&self) -> Quote {
        self.inner.quote()
    }
}

impl Placement for Recorder {
    type Stream<'s> = Unread;

    fn received(&mut self, header: &ddp::Header, len: u32) {
        assert!(self.open.is_none(), "a header within a segment");
        if self.waits {
            assert_eq!(self.headers.last(), Some(&(*header, len)));
            return;
        }
        self.headers.push((*header, len));
    }

    fn take_receive(&mut self, taker: Taker) -> Result<Admission, Error> {
        assert!(self.open.is_none(), "a message within a segment");
        self.take_receive_calls += 1;
        self.last_taker = Some(taker);
        self.waits = self.put_off > 0;
        if self.waits {
            self.put_off -= 1;
            return Ok(Admission::Later);
        }
        refuse(self.refuse_receive)?;
        Ok(Admission::Now)
    }

    fn begin(&mut self, segment: &Segment) -> Result<(), Error> {
        self.calls += 1;
        refuse(self.refuse_begin)?;
        assert!(self.open.is_none(), "begin within a segment");
        self.open = Some((*segment, Vec::new()));
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
        self.calls += 1;
        refuse(self.refuse_place)?;
        let (begun, placed) = self.open.as_mut().expect("place without begin");
        assert_eq!(begun, segment);
        assert_eq!(offset as usize, placed.len(), "placed out of order");
        assert!(!data.is_empty());
        placed.extend_from_slice(data);
        assert!(placed.len() <= segment.len() as usize, "placed too much");
        Ok(())
    }

    fn end(&mut self, segment: &Segment) -> Result<(), Error> {
        self.calls += 1;
        let (begun, placed) = self.open.take().expect("end without begin");
        assert_eq!(&begun, segment);
        assert_eq!(placed.len(), segment.len() as usize, "end before all came");
        self.events.push(Event::Segment(begun, placed));
        refuse(self.refuse_end)
    }

    fn read_request(&mut self, request: &ReadRequest, msn: u32) -> Result<(), Error> {
        self.calls += 1;
        self.events.push(Event::ReadRequest(*request, msn));
        refuse(self.refuse_end)
    }

    fn atomic_request(&mut self, request: &AtomicRequest, msn: u32) -> Result<(), Error> {
        self.calls += 1;
        self.events.push(Event::AtomicRequest(*request, msn));
        refuse(self.refuse_end)
    }

    fn atomic_response(&mut self, response: &AtomicResponse, msn: u32) -> Result<(), Error> {
        self.calls += 1;
        self.events.push(Event::AtomicResponse(*response, msn));
        refuse(self.refuse_end)
    }

    fn immediate(&mut self, data: [u8; 8], solicited: bool, msn: u32) -> Result<(), Error> {
        self.calls += 1;
        self.events.push(Event::Immediate(data, solicited, msn));
        refuse(self.refuse_end)
    }

    fn terminated(&mut self, terminate: &Terminated) {
        self.calls += 1;
        self.events.push(Event::Terminated(*terminate));
    }
}

/// Returns the message in the recorded segments.
pub fn joined(events: &[Event]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| match event {
            Event::Segment(_, data) => data.clone(),
            other => panic!("not a segment: {other:?}"),
        })
        .collect()
}

/// Returns `n` octets in a recognizable pattern.
pub fn pattern(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// Feeds a receiver at once or octet by octet.
pub fn receive(
    rx: &mut Rx,
    recorder: &mut Recorder,
    stream: &[u8],
    chunk: usize,
) -> Result<(), Error> {
    for part in stream.chunks(chunk.max(1)) {
        assert_eq!(rx.consume(part, recorder)?, part.len());
    }
    Ok(())
}

/// A plain Send.
pub const SEND: Message = Message::Send {
    solicited: false,
    invalidate: None,
};

/// Creates a segmenter with these settings.
pub fn segmenter(crc: bool, markers: bool, emss: u32) -> Tx {
    Segmenter::new(mpa::FpduFramer::new(TxConfig { crc, markers, emss }))
}

/// Creates a receiver with these settings.
pub fn receiver(crc: bool, markers: bool) -> Rx {
    Rx {
        inner: Framed::new(mpa::FpduDeframer::new(RxConfig { crc, markers })),
        unread: Unread::default(),
    }
}

/// Frames a ULPDU in an FPDU with a correct CRC and without markers.
pub fn frame(ulpdu: &[u8]) -> Vec<u8> {
    let mut fpdu = u16::try_from(ulpdu.len()).unwrap().to_be_bytes().to_vec();
    fpdu.extend_from_slice(ulpdu);
    while fpdu.len() % 4 != 0 {
        fpdu.push(0);
    }
    let crc = Crc::new().update::<Soft>(&fpdu).wire();
    fpdu.extend_from_slice(&crc);
    fpdu
}

/// A hand-built untagged DDP segment.
#[derive(Clone, Copy)]
pub struct Untagged<'a> {
    pub control: u8,
    pub rdmap: u8,
    pub invalidate: u32,
    pub qn: u32,
    pub msn: u32,
    pub mo: u32,
    pub payload: &'a [u8],
}

impl<'a> Untagged<'a> {
    /// Creates a single segment, the last of its message.
    pub fn new(opcode: u8, qn: u32, msn: u32, payload: &'a [u8]) -> Self {
        Self {
            control: 0x41,
            rdmap: 0x40 | opcode,
            invalidate: 0,
            qn,
            msn,
            mo: 0,
            payload,
        }
    }

    /// Changes it to a segment at `mo` that is not the last.
    pub fn more(self, mo: u32) -> Self {
        Self {
            control: 0x01,
            mo,
            ..self
        }
    }

    /// Changes it to the last segment, at `mo`.
    pub fn at(self, mo: u32) -> Self {
        Self { mo, ..self }
    }

    pub fn ulpdu(&self) -> Vec<u8> {
        let mut out = vec![self.control, self.rdmap];
        for word in [self.invalidate, self.qn, self.msn, self.mo] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(self.payload);
        out
    }
}

/// A hand-built tagged DDP segment.
#[derive(Clone, Copy)]
pub struct Tagged<'a> {
    pub control: u8,
    pub rdmap: u8,
    pub stag: u32,
    pub to: u64,
    pub payload: &'a [u8],
}

impl<'a> Tagged<'a> {
    /// Creates a single segment, the last of its message.
    pub fn new(opcode: u8, stag: u32, to: u64, payload: &'a [u8]) -> Self {
        Self {
            control: 0xc1,
            rdmap: 0x40 | opcode,
            stag,
            to,
            payload,
        }
    }

    /// Changes it to a segment that is not the last.
    pub fn more(self) -> Self {
        Self {
            control: 0x81,
            ..self
        }
    }

    pub fn ulpdu(&self) -> Vec<u8> {
        let mut out = vec![self.control, self.rdmap];
        out.extend_from_slice(&self.stag.to_be_bytes());
        out.extend_from_slice(&self.to.to_be_bytes());
        out.extend_from_slice(self.payload);
        out
    }
}

/// The result of a receiver for some ULPDUs: the first error and the recorded calls.
pub struct Verdict {
    pub error: Option<Error>,
    pub events: Vec<Event>,
    pub calls: usize,
    pub quote: Quote,
    pub at_boundary: bool,
}

/// Feeds these ULPDUs to a receiver, framed, with and without CRC, whole and octet by octet. Checks
/// that all results are equal.
pub fn judge(ulpdus: &[Vec<u8>]) -> Verdict {
    let stream: Vec<u8> = ulpdus.iter().flat_map(|u| frame(u)).collect();
    let mut verdicts = Vec::new();
    for (crc, chunk) in [
        (true, stream.len()),
        (true, 1),
        (false, stream.len()),
        (false, 1),
    ] {
        let mut rx = receiver(crc, false);
        let mut got = Recorder::default();
        let error = receive(&mut rx, &mut got, &stream, chunk).err();
        verdicts.push(Verdict {
            error,
            events: got.events,
            calls: got.calls,
            quote: rx.quote(),
            at_boundary: rx.at_boundary(),
        });
    }
    let first = verdicts.remove(0);
    for other in verdicts {
        assert_eq!(first.error, other.error);
        assert_eq!(first.events, other.events);
        assert_eq!(first.quote, other.quote);
        assert_eq!(first.at_boundary, other.at_boundary);
    }
    first
}

/// Returns the error for these ULPDUs. All but the last must be valid.
pub fn error_of(ulpdus: &[Vec<u8>]) -> Error {
    let good = judge(&ulpdus[..ulpdus.len() - 1]);
    assert_eq!(good.error, None);
    let verdict = judge(ulpdus);
    assert_eq!(
        verdict.events, good.events,
        "nothing of the bad one is reported"
    );
    let error = verdict.error.expect("the last one is bad");
    assert!(!verdict.at_boundary);
    error
}

/// Feeds `stream` to a receiver whole and octet by octet: error and recorded calls must be equal.
/// Returns both, and the number of calls.
pub fn error_at(crc: bool, markers: bool, stream: &[u8]) -> (Option<Error>, Vec<Event>, usize) {
    let mut verdicts = [stream.len(), 1].map(|chunk| {
        let mut rx = receiver(crc, markers);
        let mut got = Recorder::default();
        let error = receive(&mut rx, &mut got, stream, chunk).err();
        (error, got.events, got.calls)
    });
    assert_eq!(verdicts[0].0, verdicts[1].0);
    assert_eq!(verdicts[0].1, verdicts[1].1);
    std::mem::take(&mut verdicts[0])
}
