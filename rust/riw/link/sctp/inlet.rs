// SPDX-License-Identifier: GPL-2.0

//! The receiving side of an association: its messages in the order of their DDP-SSNs, and the
//! session that they form.

use super::{
    super::Reorder,
    chunk::{EarlyChunk, SegmentChunk},
    held::{cost, Held, HeldChunks},
};
use crate::bounds::{FIRST_CHUNK_MAX, HELD_MAX};
use iwarp::{
    sctp::{
        ssn,
        wire::{PPID_SEGMENT, SSN_LEN},
        Arrival, Chunk, ChunkDeframer, Session, SessionAction, SessionEvent, Window,
    },
    startup::RtrTypes,
    Sctp,
};
use kernel::prelude::*;
use net::{
    sctp::{is_restart, MessageBuf, NoPart, Part, PartKind, Phase, SctpSocket},
    RecvBuf,
};

/// Maximum length of a chunk's user data in bytes, and one more, by which a longer one is known.
const MESSAGE_MAX: usize = SSN_LEN + u16::MAX as usize + 1;
/// Parts of a message that are skipped in a row. A message that is too long by more than that is
/// sent to keep the receiver busy.
const SKIPPED_MAX: u32 = 64;

/// Receives the messages of an association.
pub(crate) struct Inlet {
    pub(super) session: Session,
    deframer: ChunkDeframer,
    /// Linux drops a chunk that is more than 4096 ahead.
    window: Window<128>,
    /// Chunks that are ahead of a missing one.
    held: HeldChunks,
    /// The message that is being received, or was received last.
    message: MessageBuf,
    /// The most bytes of a message that are kept, one more than it may have.
    message_max: usize,
    /// The message is too long and has been refused: the rest of it is skipped.
    skips: bool,
    /// The parts of it that have been skipped.
    skipped: u32,
    current: Option<Current>,
    /// Nothing that is sent or received has a meaning any more: the association must be aborted.
    broken: bool,
    /// This side has accepted, and the initiator has sent nothing since then.
    accept_unanswered: bool,
    /// The error that has ended the association: the socket reports it once.
    error: Option<Error>,
    reorder: Reorder,
}

/// The next chunk in order, which is not handled yet.
enum Current {
    /// In `message`, with this payload protocol identifier.
    Message(u32),
    Held(Held),
    /// No chunk that may follow.
    Bad(Sctp),
}

/// The result of a look for the next chunk.
pub(super) enum Fetched {
    /// There is one.
    Chunk,
    /// None has arrived.
    Nothing,
    /// As many messages as allowed have been received, and none is next: there may be more.
    Spent,
    /// None will arrive: the peer has shut the association down, and none is missing.
    ShutDown,
    /// None will arrive. The reason.
    Closed(Error),
}

impl Inlet {
    /// An inlet without a session. Any context.
    pub(super) fn new() -> Self {
        let reorder = Reorder::none();

        Self {
            session: Session::Ended,
            deframer: ChunkDeframer::new(),
            window: Window::new(0),
            held: HeldChunks::new(),
            message: MessageBuf::new(reorder.memcg.clone()),
            message_max: MESSAGE_MAX,
            skips: false,
            skipped: 0,
            current: None,
            broken: false,
            accept_unanswered: false,
            error: None,
            reorder,
        }
    }

    /// Begins a session. It holds no chunks. May sleep.
    pub(super) fn begin(&mut self, session: Session) {
        // In place: the stack would have to hold the 1 KiB of a new window.
        let Self {
            session: current_session,
            deframer,
            window,
            held,
            message,
            message_max,
            skips,
            skipped,
            current,
            broken,
            accept_unanswered,
            error,
            reorder,
        } = self;

        *current_session = session;
        *deframer = ChunkDeframer::new();
        window.reset();
        *held = HeldChunks::new();
        *reorder = Reorder::none();
        *message = MessageBuf::new(reorder.memcg.clone());
        *message_max = MESSAGE_MAX;
        *skips = false;
        *skipped = 0;
        *current = None;
        *broken = false;
        *accept_unanswered = false;
        *error = None;
    }

    /// Begins a session that an initiator will request. It holds nothing: an initiator sends one
    /// chunk and waits. May sleep.
    pub(super) fn listen(&mut self, rtr: RtrTypes) {
        self.begin(Session::listen(rtr));
        self.message_max = FIRST_CHUNK_MAX;
    }

    /// Lets chunks be held from now on, as `reorder` says.
    pub(super) fn hold(&mut self, reorder: Reorder) {
        self.window.set_budget(HELD_MAX);
        self.message_max = MESSAGE_MAX;
        self.message = MessageBuf::new(reorder.memcg.clone());
        self.reorder = reorder;
    }

    /// Notes that this side accepts the session.
    pub(super) fn set_accepted(&mut self) {
        self.accept_unanswered = true;
    }

    /// Whether this side has accepted the session, and nothing that has arrived says that the
    /// initiator has the Accept.
    pub(super) fn is_accept_unanswered(&self) -> bool {
        self.accept_unanswered
    }

    /// Notes that the association must be aborted.
    pub(super) fn set_broken(&mut self) {
        self.broken = true;
    }

    /// Whether the association must be aborted.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Looks for the next chunk. Takes the number of parts that it receives from `budget`, which
    /// ends the look at 0. `with_socket` calls a function with the socket, if there still is one.
    /// `offer` gets each RDMA Write that has come before its turn and may be placed. May sleep.
    pub(super) fn fetch(
        &mut self,
        budget: &mut usize,
        mut with_socket: impl FnMut(&mut dyn FnMut(&SctpSocket) -> Result) -> Result,
        mut offer: impl FnMut(&mut EarlyChunk<'_>),
    ) -> Fetched {
        let mut closed = self.error.map(Fetched::Closed);

        loop {
            if self.current.is_some() {
                return Fetched::Chunk;
            }
            if let Some(held) = self.take_due() {
                self.current = Some(Current::Held(held));
                return Fetched::Chunk;
            }
            match budget.checked_sub(1) {
                Some(left) => *budget = left,
                None => return Fetched::Spent,
            }
            match self.receive_part(&mut with_socket) {
                Ok(part) => {
                    let taken = match self.skips {
                        true => self.skip_part(&part),
                        false => self.take_part(&part, &mut offer),
                    };
                    if let Err(e) = taken {
                        self.broken = true;
                        return Fetched::Closed(e);
                    }
                }
                Err(NoPart::Full) => self.refuse_message(),
                Err(NoPart::Broken(e)) => {
                    self.broken = true;
                    return Fetched::Closed(e);
                }
                // SCTP also reports errors that the association survives, such as a timer without
                // memory.
                Err(NoPart::Socket(e)) => match closed {
                    // Nothing can arrive after the look.
                    Some(Fetched::ShutDown) if self.window.is_holding() => {
                        return Fetched::Closed(ECONNRESET);
                    }
                    Some(end) => return end,
                    None => match ended(&mut with_socket, e) {
                        Some(end) => {
                            self.error = kept(&end);
                            closed = Some(end);
                        }
                        None => return Fetched::Nothing,
                    },
                },
            }
        }
    }

    /// Receives a part of a message from the socket. May sleep.
    fn receive_part(
        &mut self,
        with_socket: &mut impl FnMut(&mut dyn FnMut(&SctpSocket) -> Result) -> Result,
    ) -> Result<Part, NoPart> {
        let mut received = Err(NoPart::Socket(ENOTCONN));
        let (message, max) = (&mut self.message, self.message_max);

        with_socket(&mut |socket| {
            received = message.receive(socket, max);
            Ok(())
        })
        .map_err(NoPart::Socket)?;
        received
    }

    /// The message is too long: reports it, and lets the rest be skipped.
    fn refuse_message(&mut self) {
        self.message.clear();
        self.skips = true;
        self.skipped = 0;
        self.current = Some(Current::Bad(Sctp::Length));
    }

    /// Skips a part of a message that is too long. `ECONNRESET` if there are too many of them, or
    /// if SCTP has given up the message.
    fn skip_part(&mut self, part: &Part) -> Result {
        if part.kind == PartKind::Event {
            return Err(ECONNRESET);
        }
        self.message.clear();
        self.skips = !part.last;
        self.skipped = self.skipped.saturating_add(1);
        if self.skipped == SKIPPED_MAX {
            return Err(ECONNRESET);
        }
        Ok(())
    }

    /// Handles a part that was received. `ECONNRESET` if the peer has restarted, `ENOMEM`.
    fn take_part(&mut self, part: &Part, offer: &mut impl FnMut(&mut EarlyChunk<'_>)) -> Result {
        if !part.last {
            return Ok(());
        }
        match part.kind {
            PartKind::Event => {
                let restarted = is_restart(self.message.bytes());

                self.message.clear();
                if restarted {
                    return Err(ECONNRESET);
                }
            }
            PartKind::Data(ppid) => {
                if let Some(current) = self.sort(ppid, offer)? {
                    self.current = Some(current);
                } else {
                    self.message.clear();
                }
            }
        }
        Ok(())
    }

    /// Sorts the message in, which is complete. Returns it if it is next. `ENOMEM` if it cannot be
    /// held.
    fn sort(
        &mut self,
        ppid: u32,
        offer: &mut impl FnMut(&mut EarlyChunk<'_>),
    ) -> Result<Option<Current>> {
        let bytes = self.message.bytes();
        let arrived = ssn(bytes).and_then(|number| {
            let arrival = self.window.arrive(number, cost(bytes.len()))?;
            Ok((number, arrival))
        });

        match arrived {
            Ok((_, Arrival::Next)) => Ok(Some(Current::Message(ppid))),
            Ok((number, Arrival::Held)) => {
                let memcg = &self.reorder.memcg;
                // Before the answer to the Initiate no segment is legal.
                let is_early = self.reorder.early_placement && self.session == Session::Open;
                let kept = match is_early && ppid == PPID_SEGMENT {
                    true => kept_of(bytes, offer),
                    false => bytes,
                };
                let held = Held {
                    number,
                    ppid,
                    bytes: RecvBuf::copy_of(kept, memcg)?,
                    len: bytes.len(),
                };

                self.window
                    .shrink(cost(bytes.len()).saturating_sub(held.cost()));
                self.held.insert(self.window.next(), held, memcg)?;
                Ok(None)
            }
            Err(error) => Ok(Some(Current::Bad(error))),
        }
    }

    /// Takes the held chunk that is next, if there is one.
    fn take_due(&mut self) -> Option<Held> {
        let held = self.held.remove(self.window.due()?)?;

        self.window.take(held.cost());
        Some(held)
    }

    /// Calls `f` with the session's action for the current chunk, and with the chunk. `f` returns
    /// whether the chunk is handled; otherwise it stays the current one.
    pub(super) fn handle<R>(
        &mut self,
        f: impl FnOnce(SessionAction<'_>, SegmentChunk<'_>) -> (bool, R),
    ) -> Option<R> {
        let (ppid, bytes, len) = match self.current.as_ref()? {
            Current::Message(ppid) => {
                let bytes = self.message.bytes();

                (Ok(*ppid), bytes, bytes.len())
            }
            Current::Held(held) => (Ok(held.ppid), held.bytes.bytes(), held.len),
            Current::Bad(error) => (Err(*error), [].as_slice(), 0),
        };
        // No byte of a segment chunk is parsed, and all bytes of the others are there.
        let chunk = ppid.and_then(|ppid| Chunk::parse(ppid, bytes));
        let segment = SegmentChunk::new(&mut self.deframer, bytes, len);
        // A received chunk is never refused.
        let action = self
            .session
            .handle(SessionEvent::Received(chunk))
            .unwrap_or(SessionAction::Discard);
        let (handled, result) = f(action, segment);

        // An initiator sends nothing between its Initiate and the answer.
        self.accept_unanswered = false;
        if handled {
            // The message, too, if the chunk was in it.
            if !matches!(self.current.take(), Some(Current::Held(_))) {
                self.message.clear();
            }
        }
        Some(result)
    }
}

/// Offers a segment chunk whose turn has not come, if it may be placed. Returns the bytes of it
/// that have to be kept.
fn kept_of<'a>(chunk: &'a [u8], offer: &mut impl FnMut(&mut EarlyChunk<'_>)) -> &'a [u8] {
    let Some(mut early) = EarlyChunk::new(chunk) else {
        return chunk;
    };

    offer(&mut early);
    early.kept()
}

/// Returns the error of an end, which the socket will not report again. A link whose connection has
/// been taken reports `ENOTCONN`, but the association goes on.
fn kept(end: &Fetched) -> Option<Error> {
    match end {
        Fetched::Closed(error) if *error != ENOTCONN => Some(*error),
        _ => None,
    }
}

/// Returns how an association has ended; `None` if it has not ended. `error` is the error of a
/// receive that has found nothing. May sleep.
fn ended(
    mut with_socket: impl FnMut(&mut dyn FnMut(&SctpSocket) -> Result) -> Result,
    error: Error,
) -> Option<Fetched> {
    let mut look = None;

    if let Err(e) = with_socket(&mut |socket| {
        look = Some(socket.look());
        Ok(())
    }) {
        return Some(Fetched::Closed(e));
    }
    let look = look?;
    match look.phase {
        Phase::Connecting | Phase::Established => None,
        // Receiving takes the socket's error.
        _ if error != EAGAIN && error != ENOTCONN => Some(Fetched::Closed(error)),
        Phase::ShuttingDown | Phase::Gone => {
            Some(look.error.map_or(Fetched::ShutDown, Fetched::Closed))
        }
    }
}
