// SPDX-License-Identifier: GPL-2.0

//! Placement of RDMA Writes before their turn, and delivery in order (RFC 5041 §5.3): an embedder
//! with a region, between chunks in any order.

mod common;
use common::sctp::*;
use common::{consume, pattern, Framed, Placement, Progress, Tagged, Untagged, SEND};
use iwarp::sctp::*;
use iwarp::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

const REGION: Region = Region {
    stag: Stag(0x101),
    pd: 7,
    base: 0x1000,
    len: 0x1_0000,
    access: Access::REMOTE_WRITE,
    valid: true,
};

/// A chunk: whole, or only its head after its payload was placed.
struct Stored {
    octets: Vec<u8>,
    len: usize,
}

impl Stored {
    fn is_placed(&self) -> bool {
        self.octets.len() < self.len
    }
}

impl Octets for Stored {
    fn len(&self) -> usize {
        self.len
    }

    fn copy(&self, at: usize, to: &mut [u8]) -> Option<()> {
        to.copy_from_slice(self.octets.get(at..at + to.len())?);
        Some(())
    }

    fn crc(&self, _: Crc, _: usize, _: usize) -> Option<Crc> {
        None
    }
}

/// The memory of the region, and the delivered segments.
struct Memory {
    region: Region,
    octets: Vec<u8>,
    delivered: Vec<Segment>,
}

impl Memory {
    fn new() -> Self {
        Self {
            region: REGION,
            octets: vec![0; REGION.len as usize],
            delivered: Vec::new(),
        }
    }

    /// Returns where a segment goes, if it is a Write.
    fn place_of(&self, segment: &Segment) -> Result<Option<usize>, Error> {
        let Segment::Write { stag, to, len, .. } = *segment else {
            return Ok(None);
        };
        self.region
            .check(stag, 7, Access::REMOTE_WRITE, to, len)
            .map(|at| Some(at as usize))
            .map_err(Denied::tagged)
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        self.octets[at..at + data.len()].copy_from_slice(data);
    }
}

impl Placement for Memory {
    type Stream<'s> = Stored;

    fn begin(&mut self, segment: &Segment) -> Result<(), Error> {
        self.place_of(segment).map(|_| ())
    }

    fn place(
        &mut self,
        segment: &Segment,
        offset: u32,
        stream: &Stored,
        from: Range<usize>,
    ) -> Result<(), Error> {
        if stream.is_placed() {
            assert!(matches!(segment, Segment::Write { .. }));
            return Ok(());
        }
        if let Some(at) = self.place_of(segment)? {
            self.write(at + offset as usize, &stream.octets[from]);
        }
        Ok(())
    }

    fn end(&mut self, segment: &Segment) -> Result<(), Error> {
        self.delivered.push(*segment);
        let invalidated = matches!(
            segment,
            Segment::Send {
                invalidate: Some(REGION_STAG),
                ..
            }
        );
        self.region.valid &= !invalidated;
        Ok(())
    }

    fn read_request(&mut self, _: &ReadRequest, _: u32) -> Result<(), Error> {
        panic!("nobody reads");
    }

    fn terminated(&mut self, _: &Terminated) {
        panic!("nobody terminates");
    }
}

const REGION_STAG: Stag = REGION.stag;

/// A receiving side with an open session.
struct Sink {
    window: Window<64>,
    held: BTreeMap<u16, Stored>,
    rx: Framed<ChunkDeframer>,
    memory: Memory,
    early: usize,
    error: Option<Error>,
}

impl Sink {
    fn new() -> Self {
        let mut window = Window::new(u32::MAX);
        assert_eq!(window.arrive(0, 0), Ok(Arrival::Next));
        Self {
            window,
            held: BTreeMap::new(),
            rx: Framed::new(ChunkDeframer::new()),
            memory: Memory::new(),
            early: 0,
            error: None,
        }
    }

    fn arrive(&mut self, octets: Vec<u8>) {
        let (number, len) = (ssn(&octets).unwrap(), octets.len());
        match self.window.arrive(number, len as u32).unwrap() {
            Arrival::Next => self.consume(&Stored { octets, len }),
            Arrival::Held => {
                let octets = self.place_early(octets);
                self.held.insert(number, Stored { octets, len });
            }
        }
        while let Some(number) = self.window.due() {
            let chunk = self.held.remove(&number).unwrap();
            self.window.take(chunk.len as u32);
            self.consume(&chunk);
        }
    }

    /// Places the payload of a held chunk, if that is allowed. Returns the octets of the chunk to
    /// keep.
    fn place_early(&mut self, mut octets: Vec<u8>) -> Vec<u8> {
        if let Some((segment, from)) = early_write(&octets, octets.len()) {
            if let Ok(Some(at)) = self.memory.place_of(&segment) {
                assert_eq!(from.len(), segment.len() as usize);
                self.memory.write(at, &octets[from]);
                self.early += 1;
                octets.truncate(HEAD_LEN);
            }
        }
        octets
    }

    fn consume(&mut self, chunk: &Stored) {
        match consume(&mut self.rx, chunk, &mut self.memory) {
            Ok(progress) => assert_eq!(progress, Progress::Consumed(chunk.len)),
            Err(error) => self.error = Some(error),
        }
    }
}

#[test]
fn a_held_write_is_placed_at_once_and_delivered_in_order() {
    let data = pattern(300);
    let write = Tagged::new(0, 0x101, 0x1010, &data).ulpdu();
    let send = Untagged::new(3, 0, 2, b"done").ulpdu();
    let mut sink = Sink::new();
    sink.arrive(segment(3, &send).1);
    sink.arrive(segment(2, &write).1);
    assert_eq!(sink.memory.octets[0x10..0x10 + 300], data);
    assert_eq!(sink.memory.delivered, []);
    assert_eq!(sink.held[&2].octets.len(), HEAD_LEN);
    sink.arrive(segment(1, &Untagged::new(3, 0, 1, b"").ulpdu()).1);
    assert_eq!(sink.error, None);
    let lens: Vec<_> = sink.memory.delivered.iter().map(Segment::len).collect();
    assert_eq!(lens, [0, 300, 4]);
}

#[test]
fn what_may_not_be_placed_waits_for_its_turn() {
    for (to, len) in [(0xfff, 10), (0x1_0ff8, 9), (u64::MAX, 2)] {
        let mut sink = Sink::new();
        let data = pattern(len);
        sink.arrive(segment(2, &Tagged::new(0, 0x101, to, &data).ulpdu()).1);
        assert_eq!((sink.early, sink.error), (0, None));
        sink.arrive(segment(1, &Untagged::new(3, 0, 1, b"").ulpdu()).1);
        let error = sink.error.expect("its turn has come").term();
        assert_eq!((error.layer, error.etype), (1, 1));
        assert!(sink.memory.octets.iter().all(|octet| *octet == 0));
    }
}

/// The STag is valid when the payload comes, but no longer when its turn comes.
#[test]
fn an_stag_is_checked_again_in_order() {
    let mut sink = Sink::new();
    sink.arrive(segment(2, &Tagged::new(0, 0x101, 0x1000, b"late").ulpdu()).1);
    assert_eq!(sink.early, 1);
    let mut send = Untagged::new(4, 0, 1, b"");
    send.invalidate = 0x101;
    sink.arrive(segment(1, &send.ulpdu()).1);
    assert_eq!(sink.error, Some(DdpTagged::InvalidStag.into()));
    assert_eq!(sink.memory.delivered.len(), 1);
}

#[test]
fn only_writes_with_payload_are_placed_early() {
    let write = segment(5, &Tagged::new(0, 1, 2, b"abc").ulpdu()).1;
    let found = Segment::Write {
        stag: Stag(1),
        to: 2,
        len: 3,
        last: true,
    };
    assert_eq!(early_write(&write, 19), Some((found, 16..19)));
    // The head is enough.
    assert_eq!(early_write(&write[..16], 19), Some((found, 16..19)));
    let more = segment(5, &Tagged::new(0, 1, 2, b"abc").more().ulpdu()).1;
    let (part, _) = early_write(&more, 19).unwrap();
    assert!(!part.last());
    let longest = early_write(&write, 65_537).map(|(segment, _)| segment.len());
    assert_eq!(longest, Some(65_521));
    assert_eq!(early_write(&write, 65_538), None);

    let mut ddp_version = write.clone();
    ddp_version[2] ^= 3;
    let mut rdmap_version = write.clone();
    rdmap_version[3] ^= 0xc0;
    for other in [
        &[][..],
        &write[..1],
        &write[..15],
        // No payload.
        &write[..16],
        &ddp_version,
        &rdmap_version,
        // A Read Response, an unknown opcode, a Send.
        &segment(5, &Tagged::new(2, 1, 2, b"abc").ulpdu()).1,
        &segment(5, &Tagged::new(12, 1, 2, b"abc").ulpdu()).1,
        &segment(5, &Untagged::new(3, 0, 1, b"abc").ulpdu()).1,
    ] {
        assert_eq!(early_write(other, other.len()), None, "{other:?}");
    }
}

proptest! {
    /// Early placement changes neither the delivered segments nor the memory.
    #[test]
    fn early_placement_changes_nothing(
        messages in vec((any::<bool>(), 0_usize..3000), 1..12),
        moves in vec(0_usize..30, 1..20),
    ) {
        let (mut from, _) = open(Form::Plain);
        from.tx.framing_mut().set_chunk(0);
        for (slot, (write, len)) in messages.into_iter().enumerate() {
            let message = if write {
                Message::Write { stag: REGION_STAG, to: 0x1000 + slot as u64 * 0x1000 }
            } else {
                SEND
            };
            from.message(message, &pattern(len)[..]);
        }
        let chunks: Vec<_> = from.take().into_iter().map(|(_, data)| data).collect();
        let mut mixed = Vec::new();
        for (chunk, back) in chunks.iter().zip(moves.iter().cycle()) {
            mixed.insert(mixed.len() - (*back).min(mixed.len()), chunk.clone());
        }
        let (mut ordered, mut other) = (Sink::new(), Sink::new());
        for (chunk, mixed) in chunks.into_iter().zip(mixed) {
            ordered.arrive(chunk);
            other.arrive(mixed);
        }
        prop_assert_eq!(ordered.early, 0);
        prop_assert_eq!((ordered.error, other.error), (None, None));
        prop_assert!(other.held.is_empty());
        prop_assert_eq!(&ordered.memory.delivered, &other.memory.delivered);
        prop_assert!(ordered.memory.octets == other.memory.octets);
    }
}
