// SPDX-License-Identifier: GPL-2.0

//! Shared code of the fuzz targets: input parsing, a CRC engine, an embedder with memory.

mod embedder;
#[path = "../../../rust/iwarp/tests/common/placement.rs"]
pub mod placement;
#[path = "../../../rust/iwarp/tests/common/unread.rs"]
mod unread;

pub use embedder::Embedder;
pub use unread::Unread;
use placement::Framed;

use iwarp::{
    mpa::{FpduDeframer, FpduFramer}, Crc, Crc32c, Error, Gather, Message, Octets, Quote, RxConfig, Segmenter, Terminate,
    TxConfig,
};
use std::convert::Infallible;

/// CRC32c.
pub struct Soft;

impl Crc32c for Soft {
    fn update(crc: u32, data: &[u8]) -> u32 {
        // The crate inverts input and output.
        !crc32c::crc32c_append(!crc, data)
    }
}

/// The fuzzer's input, read from the front. Missing octets read as 0.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn octet(&mut self) -> u8 {
        let [octet] = self.array();
        octet
    }

    pub fn flag(&mut self) -> bool {
        self.octet() & 1 != 0
    }

    pub fn word(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let part = self.take(N);
        out[..part.len()].copy_from_slice(part);
        out
    }

    /// Returns at most `n` octets.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (part, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        part
    }
}

/// The split of a stream: lengths of parts, used cyclically; 0 means 256.
#[derive(Clone, Copy)]
pub struct Split(pub [u8; 3]);

impl Split {
    /// Yields the parts of `stream`. No part is empty.
    pub fn parts<'a>(&self, stream: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let mut lengths = self.0.into_iter().cycle();
        let mut rest = stream;
        std::iter::from_fn(move || {
            let want = match lengths.next()? {
                0 => 256,
                n => usize::from(n),
            };
            let (part, after) = rest.split_at(want.min(rest.len()));
            rest = after;
            (!part.is_empty()).then_some(part)
        })
    }
}

/// The result of a receiver for a stream.
#[derive(PartialEq, Debug)]
pub struct Verdict {
    pub error: Option<Error>,
    pub quote: Quote,
    pub at_boundary: bool,
    pub started: bool,
    pub embedder: Embedder,
}

/// Feeds these parts to a receiver. After an error it must accept any input and call nothing.
pub fn receive<'a>(config: RxConfig, parts: impl Iterator<Item = &'a [u8]>) -> Verdict {
    let mut rx = Framed::new(FpduDeframer::<Soft>::new(config));
    let mut embedder = Embedder::new();
    let mut error = None;
    let mut stream = Unread::default();
    for part in parts {
        if let Err(e) = stream.receive(part, &mut rx, &mut embedder) {
            assert_eq!(error, None, "a second error");
            error = Some(e);
            embedder.close();
            assert!(!rx.at_boundary(0));
        }
    }
    Verdict {
        error,
        quote: rx.quote(),
        at_boundary: rx.at_boundary(stream.len()),
        started: rx.started(),
        embedder,
    }
}

/// Checks that the split of the stream changes nothing. Returns the result.
pub fn judge(config: RxConfig, stream: &[u8], split: Split) -> Verdict {
    let whole = receive(config, std::iter::once(stream));
    let parts = receive(config, split.parts(stream));
    assert_eq!(whole, parts);
    if let Some(error) = whole.error {
        answer(config, &Terminate::new(error, whole.quote));
    }
    whole
}

/// Checks that the Terminate for an error arrives unchanged.
fn answer(config: RxConfig, terminate: &Terminate) {
    let mut tx = Segmenter::new(FpduFramer::<Soft>::new(TxConfig {
        crc: config.crc,
        markers: config.markers,
        emss: 1460,
    }));
    tx.start(Message::Terminate(*terminate), 0)
        .expect("nothing was sent");
    let mut wire = Wire(Vec::with_capacity(128));
    let Ok(emitted) = tx.poll_transmit(&mut wire);
    assert!(
        emitted.is_some_and(|emitted| emitted.last),
        "it is one FPDU"
    );
    let verdict = receive(config, std::iter::once(&wire.0[..]));
    assert_eq!(verdict.error, None);
    assert_eq!(verdict.embedder.terminate(), Some(*terminate));
}

/// Collects messages without payload.
struct Wire(Vec<u8>);

impl Gather for Wire {
    type Error = Infallible;

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn payload(&mut self, _: u32, _: u32, _: Option<Crc>) -> Result<Option<Crc>, Infallible> {
        panic!("a Terminate has no payload");
    }
}
