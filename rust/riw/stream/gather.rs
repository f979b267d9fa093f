// SPDX-License-Identifier: GPL-2.0

//! Gathering: copies the payload of the active message into the send buffer.

use crate::{
    link::crc,
    mr::{Finder, Regions},
    queue::wr::{Buffers, SendData, SendImmediate, SendRequest, Sge, WcStatus, WrId, WrPlace},
    stream::reads::Inbound,
};
use iwarp::{Access, Crc, Denied, Gather, Stag};
use kernel::prelude::*;
use net::{Room, SendBuf};

/// The message that is being sent.
pub(super) enum Active {
    /// A send WR, whose data [`Sender`](super::tx_state::Sender) has.
    Request {
        place: WrPlace,
        id: WrId,
        /// Immediate Data that follows at once. The WR is complete after it.
        immediate: Option<SendImmediate>,
    },
    /// The response to the peer's oldest read or atomic operation.
    Response(Inbound),
    /// A message without payload that completes nothing when it is sent.
    Control,
}

/// Why gathering stopped.
pub(super) enum Stop {
    /// A buffer may not be read.
    Denied(Denied),
    /// No memory.
    Memory,
}

/// Gathers an FPDU into the send buffer.
pub(super) struct Gatherer<'a, 'f> {
    from: PayloadSource<'a, 'f>,
    buf: &'a mut SendBuf,
}

/// The payload of the active message.
struct PayloadSource<'a, 'f> {
    finder: &'a mut Finder<'f>,
    active: Option<&'a Active>,
    /// The data of a send WR.
    data: &'a SendData,
}

impl PayloadSource<'_, '_> {
    /// Fills `to` with the payload from `offset` on.
    fn copy(&mut self, offset: u32, to: &mut Room<'_>) -> Result<(), Denied> {
        match self.active {
            Some(Active::Request { .. }) => match self.data {
                SendData::Buffers(buffers) => self.gather(buffers, offset, to),
                SendData::Inline(inline) => {
                    let data = inline.get(offset, to.len()).ok_or(Denied::Bounds)?;
                    to.put(data).map_err(|_| Denied::Bounds)
                }
            },
            Some(Active::Response(Inbound::Read { request, .. })) => {
                let addr = request
                    .src_to
                    .checked_add(offset.into())
                    .ok_or(Denied::Wrap)?;
                let len = u32::try_from(to.len()).map_err(|_| Denied::Bounds)?;
                self.read(request.src_stag, Access::REMOTE_READ, addr, len, to)
            }
            _ => Err(Denied::Bounds),
        }
    }

    fn gather(&mut self, buffers: &Buffers, offset: u32, to: &mut Room<'_>) -> Result<(), Denied> {
        for part in buffers.parts(offset, to.len()) {
            let Sge { addr, len, stag } = part?;

            match buffers.memory(stag, addr, len) {
                Some(memory) => memory.read(to).map_err(|_| Denied::Bounds)?,
                None => self.read(stag, Access::NONE, addr, len, to)?,
            }
        }
        if to.is_empty() {
            Ok(())
        } else {
            Err(Denied::Bounds)
        }
    }

    fn read(
        &mut self,
        stag: Stag,
        want: Access,
        addr: u64,
        len: u32,
        to: &mut Room<'_>,
    ) -> Result<(), Denied> {
        let target = self.finder.find(stag, want, addr, len)?;

        // CAST: A 32-bit number fits.
        target.read(0, len as usize, to)?;
        self.finder.keep(target);
        Ok(())
    }
}

impl<'a, 'f> Gatherer<'a, 'f> {
    /// Gathers for `active`, at the end of `buf`. `data` is the data of a send WR.
    pub(super) fn new(
        finder: &'a mut Finder<'f>,
        active: Option<&'a Active>,
        data: &'a SendData,
        buf: &'a mut SendBuf,
    ) -> Self {
        let from = PayloadSource {
            finder,
            active,
            data,
        };

        Self { from, buf }
    }
}

impl Gather for Gatherer<'_, '_> {
    type Error = Stop;

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.buf.append(bytes).map_err(|_| Stop::Memory)
    }

    fn payload(&mut self, offset: u32, len: u32, crc: Option<Crc>) -> Result<Option<Crc>, Stop> {
        let mut crc = crc;
        let mut at = offset;
        let mut denied = None;

        // CAST: A 32-bit number fits.
        let appended = self.buf.append_with(len as usize, |to| {
            if let Err(e) = self.from.copy(at, to) {
                denied = Some(e);
                return Err(EFAULT);
            }
            // The CRC is over the copy: a process that writes to its buffer now cannot make it
            // wrong.
            let copy = to.filled();
            crc = crc.map(|crc| crc.update::<crc::Kernel>(copy));
            at = at.saturating_add(u32::try_from(copy.len())?);
            Ok(())
        });

        match appended {
            Ok(()) => Ok(crc),
            Err(_) => Err(denied.map_or(Stop::Memory, Stop::Denied)),
        }
    }
}

/// Checks that a request with its data may use its local buffers. With `at_once` the payload fits
/// into one FPDU: then gathering checks the buffers, before anything is sent.
pub(super) fn check_access(
    regions: &Regions,
    request: &SendRequest,
    data: &SendData,
    at_once: bool,
) -> Result<(), WcStatus> {
    let check = |sge: &Sge, want| match sge.len {
        0 => Ok(()),
        len => regions
            .find(sge.stag, want, sge.addr, len)
            .map(drop)
            .map_err(|_| WcStatus::LocalProtection),
    };

    match request {
        SendRequest::Read { sink, .. } => check(sink, Access::LOCAL_WRITE),
        SendRequest::Atomic { sink, .. } => match sink.memory() {
            Some(_) => Ok(()),
            None => check(&sink.sge(), Access::LOCAL_WRITE),
        },
        SendRequest::Send { .. } | SendRequest::Write { .. } => match data {
            SendData::Buffers(buffers) if !at_once => buffers
                .iter()
                .filter(|sge| buffers.memory(sge.stag, sge.addr, sge.len).is_none())
                .try_for_each(|sge| check(&sge, Access::NONE)),
            _ => Ok(()),
        },
        SendRequest::Register(_)
        | SendRequest::Unregister
        | SendRequest::LocalInvalidate(_)
        | SendRequest::Bind(_) => Ok(()),
    }
}
