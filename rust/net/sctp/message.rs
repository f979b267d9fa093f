// SPDX-License-Identifier: GPL-2.0

//! Received messages.

use super::socket::{Part, PartKind, SctpSocket};
use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;

/// Why no part of a message was received.
#[derive(Clone, Copy, Debug)]
pub enum NoPart {
    /// The buffer has as many bytes as the caller wants: the message is longer, or just as long.
    Full,
    /// The message cannot be received: `ENOMEM` if there is no memory for a larger buffer,
    /// `ECONNRESET` if SCTP has given it up after a part, and something else follows.
    Broken(Error),
    /// As [`SctpSocket::recv`] says.
    Socket(Error),
}

/// A buffer for one message. It grows with the messages.
pub struct MessageBuf {
    bytes: KVVec<u8>,
    /// The length of the received message, in bytes.
    used: usize,
    /// The received message is a notification.
    is_event: bool,
    memcg: MemCgroup,
}

impl MessageBuf {
    /// The initial size of the buffer in bytes.
    const SIZE_MIN: usize = 2048;

    /// Makes an empty buffer, whose memory is charged to `memcg`. Any context.
    pub fn new(memcg: MemCgroup) -> Self {
        Self {
            bytes: KVVec::new(),
            used: 0,
            is_event: false,
            memcg,
        }
    }

    /// Returns the received message. Any context.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }

    /// Drops the received message, and keeps the memory. Any context.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Receives the next part of a message from `socket`, of which at most `max` bytes are kept.
    /// May sleep.
    pub fn receive(&mut self, socket: &SctpSocket, max: usize) -> Result<Part, NoPart> {
        if self.used >= max {
            return Err(NoPart::Full);
        }
        if self.used == self.bytes.len() {
            self.grow(max).map_err(NoPart::Broken)?;
        }
        let room = self.bytes.get_mut(self.used..).ok_or(NoPart::Full)?;
        let part = socket.recv(room).map_err(NoPart::Socket)?;
        let is_event = part.kind == PartKind::Event;

        if self.used != 0 && is_event != self.is_event {
            return Err(NoPart::Broken(ECONNRESET));
        }
        self.is_event = is_event;
        self.used = self.used.saturating_add(part.len);
        Ok(part)
    }

    fn grow(&mut self, max: usize) -> Result {
        let size = self.used.saturating_mul(2).max(Self::SIZE_MIN).min(max);
        let mut bytes = self.memcg.zeroed(size)?;

        bytes
            .get_mut(..self.used)
            .ok_or(ENOMEM)?
            .copy_from_slice(self.bytes());
        self.bytes = bytes;
        Ok(())
    }
}
