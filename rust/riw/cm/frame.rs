// SPDX-License-Identifier: GPL-2.0

//! Frames of MPA's startup, sent and received, and the Terminate that takes a startup back.

use super::{reason::EndReason, Endpoint};
use crate::link::{crc, Batch, Transport};
use iwarp::{
    mpa, sctp,
    startup::{Kind, Reader},
    Framing, Gather, Message, Quote, Segmenter, Terminate, TxConfig,
};
use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;

impl Endpoint {
    /// Sends a startup frame or a Terminate, which `parts` make up. May sleep. `ENOBUFS` if TCP has no
    /// memory for it; otherwise fails as [`Link::send`](crate::link::Link::send).
    pub(super) fn send_frame(&self, parts: [&[u8]; 2]) -> Result {
        let mut batch = Batch::charged_to(MemCgroup::none());

        for part in parts {
            batch.buf.append(part)?;
        }
        // At most one such frame has been sent before, so only a lack of memory keeps this one out.
        self.link
            .send(&mut batch)
            .map_err(|e| if e == EAGAIN { ENOBUFS } else { e })
    }

    /// Sends a Terminate, as the first and only segment. `crc` and `markers` are for MPA. May sleep. Fails
    /// as [`Self::send_frame`].
    pub(super) fn send_terminate(&self, error: iwarp::Error, crc: bool, markers: bool) -> Result {
        let mss = self.link.mss()?;

        match self.link.transport()? {
            Transport::Tcp => {
                let framer = mpa::FpduFramer::<crc::Kernel>::new(TxConfig {
                    crc,
                    markers,
                    emss: mss,
                });
                self.send_frame([Frame::terminate(framer, error)?.octets(), &[]])?;
            }
            Transport::Sctp => {
                let frame = Frame::terminate(sctp::ChunkFramer::new(mss), error)?;
                self.link.send_segment(frame.octets())?;
            }
        }
        if let Some(qp) = self.qp.as_ref() {
            qp.note_terminate(error.term());
        }
        Ok(())
    }

    /// Receives octets of a startup frame, and none behind it: those belong to the stream. May
    /// sleep.
    ///
    /// Returns whether the frame is complete, or why it never will be. After the peer's FIN that is
    /// `ECONNRESET`.
    pub(super) fn receive_frame(&self, reader: &mut Reader) -> Result<bool, EndReason> {
        let mut bytes = [0; 128];

        loop {
            let wanted = reader.wanted().min(bytes.len());
            let room = bytes.get_mut(..wanted).unwrap_or_default();
            let count = match self.link.receive(room) {
                Ok(0) => return Err(EndReason::Closed(ECONNRESET)),
                Ok(count) => count,
                Err(e) if e == EAGAIN => return Ok(false),
                Err(e) => return Err(EndReason::link(e)),
            };

            match reader.push(bytes.get(..count).unwrap_or_default()) {
                Ok(false) => {}
                Ok(true) => return Ok(true),
                Err(e) => return Err(EndReason::Startup(e)),
            }
        }
    }
}

/// Returns a reader for a startup frame of this kind. May sleep.
// Not inlined: a reader has 550 bytes, which a caller would keep on its stack.
#[inline(never)]
pub(super) fn new_reader(kind: Kind) -> Result<KBox<Reader>> {
    Ok(KBox::new(Reader::new(kind), GFP_KERNEL_ACCOUNT)?)
}

/// Collects the octets of a frame without payload.
struct Frame {
    bytes: [u8; 64],
    len: usize,
}

impl Frame {
    /// Returns the frame of a Terminate that quotes nothing.
    fn terminate(framing: impl Framing, error: iwarp::Error) -> Result<Self> {
        let mut segmenter = Segmenter::new(framing);
        let mut frame = Self {
            bytes: [0; 64],
            len: 0,
        };
        let message = Message::Terminate(Terminate::new(error, Quote::NONE));

        segmenter.start(message, 0).map_err(|_| EIO)?;
        while segmenter.poll_transmit(&mut frame)?.is_some() {}
        Ok(frame)
    }

    fn octets(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Gather for Frame {
    type Error = Error;

    fn bytes(&mut self, bytes: &[u8]) -> Result {
        let end = self.len.checked_add(bytes.len()).ok_or(EMSGSIZE)?;

        self.bytes
            .get_mut(self.len..end)
            .ok_or(EMSGSIZE)?
            .copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    fn payload(
        &mut self,
        _offset: u32,
        _len: u32,
        crc: Option<iwarp::Crc>,
    ) -> Result<Option<iwarp::Crc>> {
        Ok(crc)
    }
}
