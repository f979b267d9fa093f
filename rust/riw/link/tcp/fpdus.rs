// SPDX-License-Identifier: GPL-2.0

//! FPDUs in the receive queue of a socket.
//!
//! An FPDU stays in the socket until it is complete and its CRC is right. The socket has room for
//! the largest one ([`RX_ROOM`](crate::bounds::RX_ROOM)), and calls back when the FPDU is complete.
//! Sometimes TCP cannot keep it all (a small `tcp_rmem`, no memory, very small segments). Then a
//! worker gives the stream a buffer for this one FPDU ([`MpaRx::hold`]).
//!
//! A run is bounded ([`RunBudget`]). When it has spent its budget, a worker receives the rest, one
//! run after the other, and callbacks of TCP leave it to the worker.

use super::super::{
    budget::RunBudget,
    crc,
    octets::DeframerOctets,
    segments::{Pause, Segments},
};
use core::num::NonZeroUsize;
use iwarp::{
    ddp::{FrameHead, Ulpdu},
    mpa::{
        fpdu::{FPDU_HEAD_MAX, FPDU_MAX},
        FpduDeframer,
    },
    startup::Parameters,
    Deframed, Deframing, Error, Local, Rdmap, RxConfig,
};
use kernel::prelude::*;
use net::{Reader, RecvBuf, Unread};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../kunit/fpdus.rs"]
mod kunit;

/// Why a stream receives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RxCause {
    /// TCP has called back for octets.
    Octets,
    /// TCP has called back for a change of its state: there need be no new octets. It also calls
    /// back while a worker unlocks the socket, for its backlog.
    State,
    /// A worker looks: there need be no new octets.
    Worker,
}

/// Where an incomplete FPDU lies, if there is one.
enum Incomplete {
    /// In the socket, which keeps it until it is complete.
    InSocket,
    /// In the socket, which has no room for all of it: it needs a buffer of this size. So many
    /// times there was no memory for one.
    NoRoom { size: NonZeroUsize, failures: u32 },
    /// In a buffer of its own.
    InBuffer(RecvBuf),
}

/// The receiving side of MPA, between two receives. The lock of the stream's receiving side
/// protects it.
pub(crate) struct MpaRx {
    deframer: FpduDeframer<crc::Kernel>,
    incomplete: Incomplete,
    /// Octets in the socket, or with TLS in the inlet: of an incomplete FPDU, or all from a waiting
    /// message on.
    left: usize,
    /// The message at the front waits for a receive WR.
    blocked: bool,
    /// The last run has spent its budget, and a worker receives the rest: complete FPDUs may be in
    /// the socket.
    rest: bool,
}

impl MpaRx {
    /// The receiving side at the start of a stream. Any context.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            deframer: FpduDeframer::new(RxConfig {
                crc: parameters.crc,
                markers: parameters.rx_markers,
            }),
            incomplete: Incomplete::InSocket,
            left: 0,
            blocked: false,
            rest: false,
        }
    }

    /// Returns the deframer, for octets that are not in the socket. Any context.
    pub(in crate::link) fn deframer(&mut self) -> &mut FpduDeframer<crc::Kernel> {
        &mut self.deframer
    }

    /// Notes the octets of an incomplete FPDU, or all from a waiting message on, that are not in
    /// the socket. Any context.
    pub(in crate::link) fn set_left(&mut self, octets: usize) {
        self.left = octets;
    }

    /// Whether a worker receives the rest of a run. Any context.
    #[inline]
    pub(crate) fn has_rest(&self) -> bool {
        self.rest
    }

    /// Whether the stream may end here, as what is not taken is no part of an FPDU. Any context.
    pub(crate) fn may_end(&self) -> bool {
        let held = match &self.incomplete {
            Incomplete::InBuffer(buffer) => buffer.len(),
            Incomplete::InSocket | Incomplete::NoRoom { .. } => 0,
        };

        self.deframer.may_end(held.saturating_add(self.left))
    }

    /// Returns the size of the buffer that the FPDU at the front needs; `None` if it needs none.
    /// Any context.
    pub(crate) fn buffer_size(&self) -> Option<NonZeroUsize> {
        match self.incomplete {
            Incomplete::NoRoom { size, .. } => Some(size),
            Incomplete::InSocket | Incomplete::InBuffer(_) => None,
        }
    }

    /// Gives the FPDU at the front its buffer of `size` bytes, if it still needs one. Any context.
    /// Without memory, fails with the number of failures since the need began.
    pub(crate) fn hold(&mut self, size: NonZeroUsize, buffer: Result<RecvBuf>) -> Result<(), u32> {
        match (&mut self.incomplete, buffer) {
            (Incomplete::NoRoom { size: needed, .. }, Ok(buffer)) if *needed == size => {
                self.incomplete = Incomplete::InBuffer(buffer);
                Ok(())
            }
            // Also if another FPDU needs one by now: a peer could have memory reclaimed without a
            // pause otherwise.
            (Incomplete::NoRoom { failures, .. }, Err(_)) => {
                *failures = failures.saturating_add(1);
                Err(*failures)
            }
            // Whoever has found another FPDU without room has requested its buffer, too.
            _ => Ok(()),
        }
    }

    /// Notes that the socket has room for the FPDU that it has, or the size of the buffer that the
    /// FPDU needs. Returns whether the buffer is to be requested now: when the need begins, or its
    /// size changes. Whoever finds no memory repeats the request.
    fn set_room(&mut self, needed: Option<NonZeroUsize>) -> bool {
        let failures = match (&self.incomplete, needed) {
            (Incomplete::InBuffer(_), _) => return false,
            (Incomplete::NoRoom { size, .. }, Some(needed)) if *size == needed => return false,
            (Incomplete::NoRoom { failures, .. }, Some(_)) => *failures,
            _ => 0,
        };
        self.incomplete = match needed {
            Some(size) => Incomplete::NoRoom { size, failures },
            None => Incomplete::InSocket,
        };
        needed.is_some()
    }
}

/// The FPDUs in a socket, or the one in a buffer and those behind it.
pub(super) struct Fpdus<'a> {
    reader: Reader<'a>,
    rx: &'a mut MpaRx,
    cause: RxCause,
    /// Octets in the socket at first.
    had: usize,
    budget: RunBudget,
    /// The FPDU at the front is incomplete. The socket must have so many octets before it can be.
    needed: Option<usize>,
    spent: bool,
}

impl<'a> Fpdus<'a> {
    #[inline]
    pub(super) fn new(reader: Reader<'a>, rx: &'a mut MpaRx, cause: RxCause) -> Self {
        Self {
            had: reader.unread().len(),
            reader,
            rx,
            cause,
            budget: RunBudget::new(),
            needed: None,
            spent: false,
        }
    }

    /// Finds the FPDU in the buffer, after it has taken the rest of it from the socket.
    #[cold]
    fn next_in_buffer(&mut self, head: &mut FrameHead) -> Result<Deframed, Error> {
        let Self { reader, rx, .. } = self;
        let MpaRx {
            deframer,
            incomplete: Incomplete::InBuffer(buffer),
            ..
        } = &mut **rx
        else {
            return Ok(Deframed::Incomplete { needed: 1 });
        };

        loop {
            match deframer.next(&DeframerOctets(buffer.bytes().into()), head)? {
                Deframed::Incomplete { needed } => {
                    let unread = reader.unread();
                    let count = needed.saturating_sub(buffer.len()).min(unread.len());

                    if count == 0 {
                        return Ok(Deframed::Incomplete { needed: 1 });
                    }
                    buffer
                        .append(&unread, count)
                        .map_err(|_| Local::LowerLayer)?;
                    reader.advance(count);
                }
                frame => return Ok(frame),
            }
        }
    }
}

impl Segments for Fpdus<'_> {
    const SHORT: Error = <FpduDeframer<crc::Kernel>>::SHORT;

    #[inline]
    fn next(&mut self, head: &mut FrameHead) -> Result<Option<Ulpdu>, Error> {
        let deframed = if let Incomplete::InBuffer(_) = self.rx.incomplete {
            self.next_in_buffer(head)?
        } else if self.reader.unread().is_empty() {
            Deframed::Incomplete { needed: 1 }
        } else if self.budget.is_spent() {
            self.spent = true;
            return Ok(None);
        } else {
            let octets = DeframerOctets(self.reader.unread());

            self.rx.deframer.next(&octets, head)?
        };

        Ok(match deframed {
            Deframed::Frame(ulpdu) => Some(ulpdu),
            Deframed::Incomplete { needed } => {
                self.needed = Some(needed);
                None
            }
        })
    }

    #[inline]
    fn octets(&self) -> Unread<'_> {
        match &self.rx.incomplete {
            Incomplete::InBuffer(buffer) => buffer.bytes().into(),
            Incomplete::InSocket | Incomplete::NoRoom { .. } => self.reader.unread(),
        }
    }

    #[inline]
    fn advance(&mut self, octets: usize) {
        if let Incomplete::InBuffer(_) = self.rx.incomplete {
            // The buffer has one FPDU.
            self.rx.incomplete = Incomplete::InSocket;
        } else {
            self.reader.advance(octets);
            self.budget.take(octets);
        }
    }

    /// Fails if urgent data has come: RDMAP has none, and nothing behind it can be read.
    #[inline]
    fn finish(self, blocked: bool) -> Result<Pause, Error> {
        let Self {
            reader,
            rx,
            cause,
            had,
            needed,
            spent,
            ..
        } = self;
        // If TCP had to drop octets, it calls back although it has no new ones. After a wait for a
        // receive WR, in which nothing was taken, it may do so without a drop. A change of state,
        // or a look by a worker, shows nothing new: what the last callback has found stays.
        let dropped = match cause {
            RxCause::Octets => !rx.blocked,
            RxCause::State | RxCause::Worker => rx.buffer_size().is_some(),
        } && had == rx.left;
        let left = reader.unread().len();
        // CAST: At most `FPDU_MAX`.
        let finished = reader.finish(needed.map(|needed| needed as u32));
        let has_room = left == 0 || finished.waits && !dropped;
        let size = match needed {
            Some(needed) if !has_room && needed > FPDU_HEAD_MAX => NonZeroUsize::new(needed),
            // The length of the FPDU is unknown yet.
            Some(_) if !has_room => NonZeroUsize::new(FPDU_MAX),
            _ => None,
        };
        let requests_buffer = rx.set_room(size);

        rx.left = left;
        rx.blocked = blocked;
        rx.rest = spent;
        if spent {
            Ok(Pause::Worker)
        } else if finished.has_urgent {
            Err(Rdmap::CatastrophicStream.into())
        } else if requests_buffer {
            Ok(Pause::Buffer)
        } else {
            Ok(Pause::Event)
        }
    }
}
