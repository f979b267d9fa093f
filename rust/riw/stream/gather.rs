// SPDX-License-Identifier: GPL-2.0

//! Gathering: the payload of the message at hand is copied into the send buffer.

use crate::{
    abi::{SgList, MAX_INLINE},
    mr::Target,
    qp::Qp,
    stream::{crc, reads::Inbound},
};
use iwarp::{Access, Crc, Denied, Gather, Stag};
use kernel::prelude::*;
use net::{Room, SendBuf};

/// The message at hand.
pub(super) enum Active {
    /// A request of the send queue.
    Request { number: u32, source: Source },
    /// The answer to the peer's oldest read.
    Response(Inbound),
    /// A frame that stands for nothing else.
    Bare,
}

/// The payload of a request.
pub(super) enum Source {
    Buffers(SgList),
    Inline([u8; MAX_INLINE]),
}

/// Why gathering stopped.
pub(super) enum Stop {
    /// A buffer is not there, or not to be read.
    Denied(Denied),
    /// No memory.
    Memory,
}

/// Gathers an FPDU in the send buffer.
pub(super) struct Gatherer<'a> {
    from: Payload<'a>,
    buf: &'a mut SendBuf,
}

/// Where the payload of the message at hand is.
struct Payload<'a> {
    qp: &'a Qp,
    active: Option<&'a Active>,
}

impl Payload<'_> {
    /// Fills `to` with the message's bytes from `offset` on.
    fn copy(&self, offset: u32, to: &mut Room<'_>) -> Result<(), Denied> {
        match self.active {
            Some(Active::Request {
                source: Source::Buffers(sgl),
                ..
            }) => self.gather(sgl, offset, to),
            Some(Active::Request {
                source: Source::Inline(data),
                ..
            }) => {
                // CAST: A 32-bit number fits.
                let from = offset as usize;
                let data = data
                    .get(from..from.saturating_add(to.len()))
                    .ok_or(Denied::Bounds)?;
                to.put(data).map_err(|_| Denied::Bounds)
            }
            Some(Active::Response(inbound)) => {
                let request = &inbound.request;
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

    fn gather(&self, sgl: &SgList, mut offset: u32, to: &mut Room<'_>) -> Result<(), Denied> {
        for sge in sgl.iter() {
            if to.is_empty() {
                break;
            }
            if offset >= sge.len {
                offset = offset.wrapping_sub(sge.len);
                continue;
            }
            let room = sge.len.wrapping_sub(offset);
            let n = u32::try_from(to.len()).unwrap_or(u32::MAX).min(room);
            let addr = sge.addr.checked_add(offset.into()).ok_or(Denied::Wrap)?;

            self.read(Stag(sge.lkey), Access::NONE, addr, n, to)?;
            offset = 0;
        }
        if to.is_empty() {
            Ok(())
        } else {
            Err(Denied::Bounds)
        }
    }

    fn read(
        &self,
        stag: Stag,
        want: Access,
        addr: u64,
        len: u32,
        to: &mut Room<'_>,
    ) -> Result<(), Denied> {
        let target = Target::find(&self.qp.mrs, stag, self.qp.pd, want, addr, len)?;

        // CAST: A 32-bit number fits.
        target.read(0, len as usize, to)
    }
}

impl<'a> Gatherer<'a> {
    /// Appends to `buf` what `active` needs.
    pub(super) fn new(qp: &'a Qp, active: Option<&'a Active>, buf: &'a mut SendBuf) -> Self {
        Self {
            from: Payload { qp, active },
            buf,
        }
    }
}

impl Gather for Gatherer<'_> {
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
            // The CRC is of the copy: what the process writes to its buffer now can not make it
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
