// SPDX-License-Identifier: GPL-2.0

//! Frames of MPA's startup, sent and received, and the Terminate that takes a startup back.

use super::{reason::EndReason, Endpoint};
use crate::link::{Batch, Framer};
use iwarp::{
    startup::{Kind, Reader},
    Crc, Gather, Message, Quote, Segmenter, Terminate, TxConfig,
};
use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;
use net::SendBuf;

impl Endpoint {
    /// Sends a startup frame or a Terminate, which `parts` make up. May sleep. `ENOBUFS` if TCP has no
    /// memory for it; otherwise fails as [`Carrier::send`](crate::link::transport::Carrier::send).
    pub(super) fn send_frame(&self, parts: [&[u8]; 2]) -> Result {
        let mut batch = Batch::charged_to(MemCgroup::none());

        for part in parts {
            batch.buf.append(part)?;
        }
        self.send_batch(&mut batch)
    }

    /// Sends a Terminate, as the first and only segment. `crc` and `markers` are for MPA. May sleep. Fails
    /// as [`Self::send_frame`].
    pub(super) fn send_terminate(&self, error: iwarp::Error, crc: bool, markers: bool) -> Result {
        let message = Message::Terminate(Terminate::new(error, Quote::NONE));
        let framer = self.link.with(|connection| {
            let emss = connection.mss();
            let config = TxConfig { crc, markers, emss };

            Ok(Framer::new(connection.transport(), config, None))
        })?;
        let mut batch = Batch::charged_to(MemCgroup::none());

        batch.clear(framer.has_messages());
        batch.begin_frame()?;
        let mut segmenter = Segmenter::new(framer);
        segmenter.start(message, 0).map_err(|_| EIO)?;
        let emitted = segmenter.poll_transmit(&mut Headers(&mut batch.buf))?;
        batch.end_frame(emitted.ok_or(EIO)?.bytes);
        self.send_batch(&mut batch)?;
        if let Some(qp) = self.qp.as_ref() {
            qp.note_terminate(error.term());
        }
        Ok(())
    }

    /// Sends what `batch` has. May sleep. Fails as [`Self::send_frame`].
    fn send_batch(&self, batch: &mut Batch) -> Result {
        // At most one such frame has been sent before, so only a lack of memory keeps this one out.
        self.link
            .with(|connection| connection.send(batch))
            .map_err(|e| if e == EAGAIN { ENOBUFS } else { e })
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
            let count = match self.link.with(|connection| connection.receive(room)) {
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

/// Gathers a frame without payload.
struct Headers<'a>(&'a mut SendBuf);

impl Gather for Headers<'_> {
    type Error = Error;

    fn bytes(&mut self, bytes: &[u8]) -> Result {
        self.0.append(bytes)
    }

    fn payload(&mut self, _offset: u32, _len: u32, crc: Option<Crc>) -> Result<Option<Crc>> {
        Ok(crc)
    }
}
