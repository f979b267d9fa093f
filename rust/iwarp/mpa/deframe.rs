// SPDX-License-Identifier: GPL-2.0

//! Takes FPDUs apart (RFC 5044 §4, §6): length, ULPDU, pad and CRC, with markers between.

use crate::crc::{Crc, Crc32c};
use crate::ddp::{More, SegmentSink};
use crate::error::{Error, Mpa};
use crate::mpa::fpdu::pad_len;
use crate::mpa::marker::{Cadence, MARKER_LEN};
use crate::types::{copy, size, split};
use core::marker::PhantomData;

/// What comes next in the stream, markers aside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Length,
    Ulpdu,
    Pad,
    Crc,
    /// Nothing more is wanted.
    Closed,
}

/// The receiving side of MPA in full operation.
pub struct Deframer<C: Crc32c> {
    check_crc: bool,
    phase: Phase,
    started: bool,
    crc: Crc,
    /// The length or the CRC, as far as it has come.
    field: [u8; 4],
    field_have: usize,
    /// Octets of the ULPDU or of the pad that are still to come.
    left: usize,
    /// Length of the ULPDU.
    len: u16,
    cadence: Cadence,
    /// The marker, as far as it has come.
    marker: [u8; MARKER_LEN],
    marker_have: usize,
    /// A marker of this FPDU pointed elsewhere.
    marker_bad: bool,
    /// An error that is reported when the FPDU is here whole, if its CRC is right.
    pending: Option<Error>,
    engine: PhantomData<fn() -> C>,
}

impl<C: Crc32c> Deframer<C> {
    /// At the start of a stream, with or without CRC and markers.
    pub const fn new(crc: bool, markers: bool) -> Self {
        Self {
            check_crc: crc,
            phase: Phase::Length,
            started: false,
            crc: Crc::new(),
            field: [0; 4],
            field_have: 0,
            left: 0,
            len: 0,
            cadence: Cadence::new(markers),
            marker: [0; MARKER_LEN],
            marker_have: 0,
            marker_bad: false,
            pending: None,
            engine: PhantomData,
        }
    }

    /// Whether the stream is open and between FPDUs.
    pub fn at_boundary(&self) -> bool {
        self.phase == Phase::Length && self.field_have == 0 && self.marker_have == 0
    }

    /// Whether a valid FPDU has come, whatever is in it.
    pub const fn started(&self) -> bool {
        self.started
    }

    /// Takes the next `data` of the stream. Discards it once the stream is closed.
    ///
    /// # Errors
    ///
    /// A wrong CRC, a wrong marker, or what `sink` refuses. They close the stream.
    pub fn feed<S: SegmentSink>(&mut self, data: &[u8], sink: &mut S) -> Result<(), Error> {
        let mut rest = data;
        while !rest.is_empty() && self.phase != Phase::Closed {
            let room = self.cadence.room();
            let used = if room == 0 {
                self.take_marker(rest)
            } else {
                let (run, _) = split(rest, size(room));
                match self.step(run, sink) {
                    Ok(used) => used,
                    Err(error) => {
                        self.phase = Phase::Closed;
                        return Err(error);
                    }
                }
            };
            rest = split(rest, used).1;
        }
        Ok(())
    }

    /// Takes octets of a marker. It counts into the CRC of the FPDU that it is in, or of the one
    /// that follows it (RFC 5044 §4.4).
    fn take_marker(&mut self, data: &[u8]) -> usize {
        let n = copy(
            self.marker.get_mut(self.marker_have..).unwrap_or(&mut []),
            data,
        );
        self.marker_have = self.marker_have.saturating_add(n);
        if self.marker_have == MARKER_LEN {
            let marker = self.marker;
            self.update_crc(&marker);
            let [_, _, high, low] = marker;
            // The low two bits are reserved, and zero in what is compared with.
            if u16::from_be_bytes([high, low]) & !3 != self.cadence.pointer() {
                self.marker_bad = true;
            }
            self.cadence.pass_marker();
            self.marker_have = 0;
        }
        n
    }

    /// Takes octets of the FPDU, at least one of the `run`, which no marker interrupts.
    fn step<S: SegmentSink>(&mut self, run: &[u8], sink: &mut S) -> Result<usize, Error> {
        match self.phase {
            Phase::Length => {
                let n = self.take_field(run, 2);
                if self.field_have == 2 {
                    let [high, low, ..] = self.field;
                    self.update_crc(&[high, low]);
                    self.len = u16::from_be_bytes([high, low]);
                    self.enter(Phase::Ulpdu, usize::from(self.len));
                    let outcome = sink.start(self.len);
                    self.defer(outcome)?;
                }
                Ok(n)
            }
            Phase::Ulpdu => {
                let (part, _) = split(run, self.left);
                self.pass(part);
                if self.pending.is_none() {
                    let outcome = sink.data(part);
                    self.defer(outcome)?;
                }
                if self.left == 0 {
                    self.enter(Phase::Pad, pad_len(self.len));
                }
                Ok(part.len())
            }
            Phase::Pad => {
                let (part, _) = split(run, self.left);
                self.pass(part);
                if self.left == 0 {
                    self.enter(Phase::Crc, 0);
                }
                Ok(part.len())
            }
            Phase::Crc => {
                let n = self.take_field(run, 4);
                if self.field_have == 4 {
                    self.finish(sink)?;
                }
                Ok(n)
            }
            Phase::Closed => Ok(run.len()),
        }
    }

    /// Goes on to `phase`, or past it when it has no octets.
    fn enter(&mut self, phase: Phase, left: usize) {
        self.field_have = 0;
        self.left = left;
        self.phase = match phase {
            Phase::Ulpdu if left == 0 => {
                self.left = pad_len(self.len);
                Phase::Pad
            }
            Phase::Pad if left == 0 => Phase::Crc,
            other => other,
        };
    }

    /// Octets of ULPDU or pad pass.
    fn pass(&mut self, part: &[u8]) {
        self.update_crc(part);
        self.left = self.left.saturating_sub(part.len());
        self.cadence.pass(part.len());
    }

    fn update_crc(&mut self, data: &[u8]) {
        if self.check_crc {
            self.crc = self.crc.update::<C>(data);
        }
    }

    /// Takes octets of a field that is `want` long.
    fn take_field(&mut self, run: &[u8], want: usize) -> usize {
        let room = self.field.get_mut(self.field_have..want);
        let n = copy(room.unwrap_or(&mut []), run);
        self.field_have = self.field_have.saturating_add(n);
        self.cadence.pass(n);
        n
    }

    /// Keeps an error until the CRC is known, if there is one, or the first FPDU is here whole: a
    /// responder may not answer before (RFC 5044 §7.1.2).
    fn defer(&mut self, outcome: Result<(), Error>) -> Result<(), Error> {
        if self.check_crc || !self.started {
            self.pending = outcome.err();
            Ok(())
        } else {
            outcome
        }
    }

    /// The FPDU is here whole.
    fn finish<S: SegmentSink>(&mut self, sink: &mut S) -> Result<(), Error> {
        if self.check_crc && self.field != self.crc.wire() {
            return Err(Mpa::Crc.into());
        }
        if self.marker_bad {
            return Err(Mpa::Marker.into());
        }
        self.started = true;
        if let Some(error) = self.pending {
            return Err(error);
        }
        let more = sink.end()?;
        self.crc = Crc::new();
        self.field_have = 0;
        self.cadence.end_fpdu();
        self.phase = match more {
            More::Continue => Phase::Length,
            More::Stop => Phase::Closed,
        };
        Ok(())
    }
}
