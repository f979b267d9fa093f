// SPDX-License-Identifier: GPL-2.0

//! Receiving from a connection with TLS.

use super::{
    super::{
        budget::READ_TIME,
        deadline::Deadline,
        events::{LinkEnd, LinkEvents},
        transport::Connection,
        types::LinkState,
        Link,
    },
    connection::TlsConnection,
    inlet::RecordInlet,
};
use kernel::{prelude::*, sync::Arc};
use net::tls::TlsRecord;

/// The result of a read.
enum RecordRead {
    /// Records, with or without octets for the stream.
    Records,
    /// Nothing has arrived.
    Nothing,
    /// The connection or the peer's half has ended.
    End(LinkEnd),
}

/// All functions need process context and may sleep.
impl Link {
    fn with_tls<R>(&self, f: impl FnOnce(&mut TlsConnection) -> Result<R>) -> Result<R> {
        self.with(|connection| match connection {
            Connection::Tls(tls) => f(tls),
            _ => Err(ENOTCONN),
        })
    }

    /// Reads into `inlet`. `ENOTCONN` without a connection, or before the start of the stream;
    /// otherwise fails with the error that ended the connection.
    fn read(&self, inlet: &mut RecordInlet) -> Result<RecordRead> {
        self.with_tls(|connection| {
            if !inlet.has_memory() {
                inlet.give(connection.memory.take().ok_or(ENOTCONN)?);
            }
            Ok(match connection.socket.recv(inlet.room()) {
                Ok(TlsRecord::Data(count)) => {
                    inlet.add(count);
                    RecordRead::Records
                }
                Ok(TlsRecord::Handshake | TlsRecord::Empty) => RecordRead::Records,
                Ok(TlsRecord::CloseNotify) => {
                    inlet.is_closed = true;
                    RecordRead::End(LinkEnd::PeerClosed)
                }
                // Anybody on the way may have sent the FIN. The others end the session.
                Ok(TlsRecord::Truncation | TlsRecord::Alert(_) | TlsRecord::KeyUpdate) => {
                    RecordRead::End(LinkEnd::Closed(ECONNRESET))
                }
                Err(e) if e == EAGAIN => RecordRead::Nothing,
                // Not the error for a link without a connection.
                Err(e) if e == ENOTCONN => return Err(ECONNRESET),
                Err(e) => return Err(e),
            })
        })
    }

    /// Reports the end of a connection that is not read from: it ends the wait of a stream that
    /// does not take an FPDU. So does nothing else, as what has arrived has to be delivered.
    fn report_state<T: LinkEvents>(&self, inlet: &RecordInlet, owner: &Arc<T>) {
        match self.with_tls(|connection| Ok(connection.tcp_state())) {
            Ok(LinkState::Closed(e)) => owner.ended(LinkEnd::Closed(e)),
            Ok(_) if inlet.is_closed => owner.ended(LinkEnd::PeerClosed),
            _ => {}
        }
    }
}

impl RecordInlet {
    /// Lets `owner` receive what is in the inlet of `link`, and what has arrived. The owner may use
    /// the link only to send: it is not taken meanwhile. Process context, may sleep.
    pub(in crate::link) fn receive<T: LinkEvents>(&mut self, link: &Link, owner: &Arc<T>) {
        let limit = Deadline::new(READ_TIME);

        while limit.left().is_some() {
            if !self.is_empty() {
                owner.receive(self);
            }
            // The rest first. Bottom halves could run meanwhile: `Stream::rx` has been unlocked.
            if self.has_rest() {
                continue;
            }
            if self.is_blocked() || self.is_closed {
                return link.report_state(self, owner);
            }
            match link.read(self) {
                Ok(RecordRead::Records) => {}
                Ok(RecordRead::Nothing) => return,
                Ok(RecordRead::End(end)) => return owner.ended(end),
                // Whoever has taken the connection away ends the stream.
                Err(e) if e == ENOTCONN => return,
                Err(e) => return owner.ended(LinkEnd::Closed(e)),
            }
        }
        // Other work items run before the rest is received.
        owner.changed();
    }
}
