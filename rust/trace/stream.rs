// SPDX-License-Identifier: GPL-2.0

//! Events of the data path of a queue pair.

use crate::{
    qp::Source,
    tracepoint::{call, is_enabled},
};
use iwarp::{ddp::Header, wire::rdmap, Stag};
use kernel::page::{PAGE_SHIFT, PAGE_SIZE};
use rdma::wr::LOCAL_DMA_LKEY;
use riw_bindings as bindings;

/// A WR that leaves the send queue.
pub struct Begun {
    /// The id of the WR: as a process has set it, or a hash.
    pub wr_id: u64,
    /// The opcode of the user ABI.
    pub opcode: u8,
    /// The length of its message.
    pub bytes: u32,
    /// The flags of the user ABI.
    pub flags: u16,
}

/// Traces that the WR that `begun` returns leaves the send queue.
#[inline]
pub fn wr_begin(qp: &impl Source, begun: impl FnOnce() -> Begun) {
    if is_enabled!(wr_begin) {
        let Begun {
            wr_id,
            opcode,
            bytes,
            flags,
        } = begun();

        // SAFETY: The device is borrowed, so it is alive.
        unsafe {
            call!(wr_begin(
                qp.device().as_raw(),
                qp.number(),
                wr_id,
                opcode,
                bytes,
                flags,
            ))
        }
    }
}

/// Defines the function of an event that has the headers of an FPDU.
macro_rules! fpdu {
    ($(#[$doc:meta])* $event:ident) => {
        $(#[$doc])*
        #[inline]
        pub fn $event(qp: &impl Source, header: &Header, len: u32) {
            if is_enabled!($event) {
                let Fields {
                    opcode,
                    last,
                    stag,
                    to,
                    queue,
                    msn,
                    mo,
                } = Fields::of(header);

                // SAFETY: The device is borrowed, so it is alive.
                unsafe {
                    call!($event(
                        qp.device().as_raw(),
                        qp.number(),
                        opcode,
                        last,
                        len,
                        stag,
                        to,
                        queue,
                        msn,
                        mo,
                    ))
                }
            }
        }
    };
}

fpdu! {
    /// Traces that an FPDU is ready for the socket. Its segment has `len` octets behind `header`.
    fpdu_tx
}

fpdu! {
    /// Traces that an FPDU is received. Its segment has `len` octets behind `header`, which is not
    /// checked.
    fpdu_rx
}

/// Received payload that has been placed.
pub struct Placed {
    /// The memory region.
    pub stag: Stag,
    /// The address in the region, as the wire names it. An address of the kernel is hidden.
    pub addr: u64,
    /// Length in bytes.
    pub len: u32,
}

/// Traces that received payload has been placed, all of a segment or a part of it.
#[inline]
pub fn place(qp: &impl Source, placed: impl FnOnce() -> Placed) {
    if is_enabled!(place) {
        let Placed { stag, addr, len } = placed();
        let addr = match stag.0 {
            // Memory of a kernel user, which is in no region.
            LOCAL_DMA_LKEY => hidden(addr),
            _ => addr,
        };

        // SAFETY: The device is borrowed, so it is alive.
        unsafe { call!(place(qp.device().as_raw(), qp.number(), stag.0, addr, len)) }
    }
}

/// Hides an address of the kernel: puts a hash in place of the page. Any context.
fn hidden(addr: u64) -> u64 {
    // SAFETY: hash_secret() has no preconditions.
    let page = unsafe { bindings::hash_secret(addr >> PAGE_SHIFT) };
    // CAST: The size of a page fits.
    let offset = addr & (PAGE_SIZE as u64 - 1);

    (u64::from(page) << PAGE_SHIFT) | offset
}

/// The fields of a header. Fields that it does not have are 0.
struct Fields {
    opcode: u8,
    last: bool,
    stag: u32,
    to: u64,
    queue: u32,
    msn: u32,
    mo: u32,
}

impl Fields {
    fn of(header: &Header) -> Self {
        let empty = Self {
            opcode: header.rdmap() & rdmap::OPCODE_MASK,
            last: header.last(),
            stag: 0,
            to: 0,
            queue: 0,
            msn: 0,
            mo: 0,
        };

        match header {
            Header::Tagged(tagged) => Self {
                stag: tagged.stag.get(),
                to: tagged.to.get(),
                ..empty
            },
            Header::Untagged(untagged) => Self {
                stag: untagged.invalidate.get(),
                queue: untagged.qn.get(),
                msn: untagged.msn.get(),
                mo: untagged.mo.get(),
                ..empty
            },
        }
    }
}

// The C enum lists the opcodes in order.
const _: () = {
    assert!(bindings::riw_rdmap_opcode_RIW_RDMAP_WRITE == rdmap::OP_WRITE as u32);
    assert!(
        bindings::riw_rdmap_opcode_RIW_RDMAP_ATOMIC_RESPONSE == rdmap::OP_ATOMIC_RESPONSE as u32
    );
};
