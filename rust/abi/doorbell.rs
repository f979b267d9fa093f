// SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB

//! Doorbells: commands of uverbs that post no WR. They only say that entries have been written to a
//! ring, see [`ring`](crate::ring).
//!
//! A doorbell is one `write()` of [`Doorbell`] to the uverbs file, which returns its length. It
//! fails with `ENOENT` if the handle names no object of the process, `EINVAL` if it names another
//! object, or a queue pair that has no receive queue of its own; `EIO` after the device is gone.
//! For a send queue it fails with `ENOTCONN` before the queue pair has been connected for the first
//! time: the kernel has taken the WRs then, and dropped them without completions. A command with
//! WRs (`wr_count` other than 0) fails with `EOPNOTSUPP`. After other errors the WRs are in the
//! ring, and the kernel takes them when it takes the next ones: the process counts them as posted,
//! and rings again.
//!
//! `write()` fails with `EACCES` if the credentials of the process differ from the credentials at
//! `open()`. `ioctl()` (`UVERBS_METHOD_INVOKE_WRITE`) executes the same command without that check.

/// The command for a send queue (`IB_USER_VERBS_CMD_POST_SEND`).
pub const POST_SEND: u32 = 28;
/// The command for the receive queue of a queue pair (`IB_USER_VERBS_CMD_POST_RECV`).
pub const POST_RECV: u32 = 29;
/// The command for a shared receive queue (`IB_USER_VERBS_CMD_POST_SRQ_RECV`).
pub const POST_SRQ_RECV: u32 = 36;

/// Octets of uverbs' `struct ib_uverbs_send_wr`.
const SEND_WR: u32 = 56;
/// Octets of uverbs' `struct ib_uverbs_recv_wr`.
const RECV_WR: u32 = 16;

/// A doorbell (`struct ib_uverbs_cmd_hdr` and `struct ib_uverbs_post_send`; those for receive
/// queues have the same layout).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Doorbell {
    /// [`POST_SEND`], [`POST_RECV`] or [`POST_SRQ_RECV`].
    pub command: u32,
    /// The length of this struct, in 32-bit words.
    pub in_words: u16,
    /// The length of the response, in 32-bit words.
    pub out_words: u16,
    /// The address of a `u32`, which uverbs writes to: the number of WRs, up to the one that
    /// failed.
    pub response: u64,
    /// The handle of the queue pair or SRQ, from uverbs' response to its creation.
    pub handle: u32,
    /// 0.
    pub wr_count: u32,
    /// 0.
    pub sge_count: u32,
    /// Octets of uverbs' struct of a WR, which uverbs checks.
    pub wqe_size: u32,
}

const _: () = assert!(size_of::<Doorbell>() == 32);

impl Doorbell {
    /// Octets of a doorbell.
    pub const LEN: usize = size_of::<Self>();

    const fn new(command: u32, wqe_size: u32, handle: u32, response: u64) -> Self {
        Self {
            command,
            in_words: 8,
            out_words: 1,
            response,
            handle,
            wr_count: 0,
            sge_count: 0,
            wqe_size,
        }
    }

    /// Returns the doorbell of the send queue of queue pair `handle`. `response` is the address of
    /// a `u32`.
    pub const fn send(handle: u32, response: u64) -> Self {
        Self::new(POST_SEND, SEND_WR, handle, response)
    }

    /// Returns the doorbell of the receive queue of queue pair `handle`. `response` is the address
    /// of a `u32`.
    pub const fn recv(handle: u32, response: u64) -> Self {
        Self::new(POST_RECV, RECV_WR, handle, response)
    }

    /// Returns the doorbell of SRQ `handle`. `response` is the address of a `u32`.
    pub const fn srq_recv(handle: u32, response: u64) -> Self {
        Self::new(POST_SRQ_RECV, RECV_WR, handle, response)
    }

    /// Returns the octets to write.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let [in0, in1] = self.in_words.to_ne_bytes();
        let [out0, out1] = self.out_words.to_ne_bytes();
        let [a, b, c, d, e, f, g, h] = self.response.to_ne_bytes();
        let words = [
            self.command.to_ne_bytes(),
            [in0, in1, out0, out1],
            [a, b, c, d],
            [e, f, g, h],
            self.handle.to_ne_bytes(),
            self.wr_count.to_ne_bytes(),
            self.sge_count.to_ne_bytes(),
            self.wqe_size.to_ne_bytes(),
        ];
        let mut bytes = [0; Self::LEN];

        for (to, from) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&from);
        }
        bytes
    }
}
