// SPDX-License-Identifier: GPL-2.0

//! A send buffer that hands its pages to TCP without copying.

use core::{mem::MaybeUninit, ptr::NonNull};
use kernel::{
    bindings::{bio_vec, page},
    prelude::*, //
};
use kernel_ext::{memcg::MemCgroup, octets::Room};
use riw_bindings as bindings;

#[cfg(CONFIG_KUNIT = "y")]
#[path = "kunit/sendbuf.rs"]
mod kunit;

/// The size of a new chunk, in multiples of the bytes that wait to be sent.
const AHEAD: usize = 8;

/// A compound page, filled from its front.
///
/// # Invariants
///
/// - `page` is a page of `size` bytes, mapped at `address`. The chunk owns one reference to it.
/// - `start <= end <= size`. TCP was given the bytes below `start`. The bytes from `start` to `end`
///   wait to be sent. Nothing else can see the bytes from `end` on.
struct Chunk {
    page: NonNull<page>,
    address: NonNull<u8>,
    size: usize,
    start: usize,
    end: usize,
}

impl Chunk {
    /// Allocates an empty chunk, charged to `memcg`. May sleep. `size` in bytes is a hint: the
    /// chunk may be smaller or larger. `ENOMEM` if there is no memory.
    fn new(size: usize, memcg: &MemCgroup) -> Result<Self> {
        // SAFETY: The callers' context may sleep (see above), and the size is not 0.
        let page = memcg.charge(|| unsafe { bindings::staging_alloc(size.max(1)) });
        let page = NonNull::new(page).ok_or(ENOMEM)?;
        // SAFETY: The page is new and owned. `GFP_KERNEL` gives a page in the direct mapping.
        let address = unsafe { bindings::staging_address(page.as_ptr()) };
        // SAFETY: The page is new and owned.
        let size = unsafe { bindings::staging_size(page.as_ptr()) };

        // INVARIANT: The page is new, so nothing else sees its bytes. `Self` owns its reference.
        Ok(Self {
            page,
            address: NonNull::new(address.cast()).ok_or(ENOMEM)?,
            size,
            start: 0,
            end: 0,
        })
    }

    /// Restarts at the front if nothing else references the page: all bytes are sent and
    /// acknowledged.
    fn reuse(&mut self) {
        // SAFETY: By the type's invariants the chunk owns a reference to the page.
        if self.start == self.end && !unsafe { bindings::staging_shared(self.page.as_ptr()) } {
            // INVARIANT: This is the only reference to the page, so nothing else sees its bytes.
            self.start = 0;
            self.end = 0;
        }
    }

    /// Returns the number of bytes that can be appended.
    #[inline]
    fn room(&self) -> usize {
        self.size.saturating_sub(self.end)
    }

    /// Returns the number of bytes that wait to be sent.
    #[inline]
    fn unsent(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Appends `len` bytes that `fill` writes. Returns the error of `fill`, or `EIO` if it does not
    /// fill all bytes or there is less room; nothing is appended then.
    #[inline]
    fn append(&mut self, len: usize, fill: impl FnOnce(&mut Room<'_>) -> Result) -> Result {
        let end = self.end.checked_add(len).filter(|end| *end <= self.size);
        let end = end.ok_or(EIO)?;
        // SAFETY: These bytes are in the page, since `end` is at most `size`. By the type's
        // invariants nothing else sees them.
        let bytes = unsafe {
            core::slice::from_raw_parts_mut(self.address.add(self.end).as_ptr().cast(), len)
        };
        let mut room = Room::new(bytes);
        let start = room.filled().as_ptr();

        fill(&mut room)?;
        // `fill` may have replaced the room.
        if room.filled().as_ptr() != start || room.filled().len() != len {
            return Err(EIO);
        }
        self.end = end;
        Ok(())
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: By the type's invariants the chunk owns the reference, and does not use it after
        // this.
        unsafe { bindings::put_page(self.page.as_ptr()) }
    }
}

/// A buffer of bytes that wait to be sent.
///
/// Bytes are written once, into pages that [`Socket::send`](crate::Socket::send) hands to TCP
/// without copying. As in a page fragment cache, a partly filled page is filled further.
///
/// **Bytes that TCP has are never written again**: new bytes go behind all others, and
/// [`rollback`](Self::rollback) stops at the bytes already sent. A page is reused from its front
/// only when nothing else references it. The size of a new page follows the bytes that wait, so
/// that a quiet connection keeps little memory.
///
/// Methods that append allocate memory and may sleep. The other methods do not sleep.
///
/// ```
/// use kernel::prelude::*;
/// use net::{Room, SendBuf};
///
/// /// Appends a frame of `len` bytes that `fill` writes, behind its length. If that fails, no part
/// /// of the frame is left.
/// fn append_frame(
///     buf: &mut SendBuf,
///     len: u16,
///     fill: impl FnMut(&mut Room<'_>) -> Result,
/// ) -> Result {
///     let mark = buf.mark();
///
///     buf.append(&len.to_be_bytes())?;
///     buf.append_with(len.into(), fill)
///         .inspect_err(|_| buf.rollback(mark))
/// }
/// ```
///
/// TCP may get the bytes after the call, so the room is lent for the call only:
///
/// ```compile_fail,E0521
/// fn keep<'a>(buf: &mut net::SendBuf, kept: &mut Option<&'a [u8]>) {
///     let _ = buf.append_with(1, |room| {
///         room.put(&[0])?;
///         *kept = Some(room.filled());
///         Ok(())
///     });
/// }
/// ```
pub struct SendBuf {
    /// Oldest first. Only the last chunk may have room.
    chunks: KVVec<Chunk>,
    /// Bytes ever appended, less bytes rolled back.
    appended: u64,
    /// Bytes ever sent; at most `appended`.
    sent: u64,
    /// The memory is charged to this, the pages also while TCP has them; if it is none, to the
    /// current task.
    memcg: MemCgroup,
}

// SAFETY: The buffer owns a reference to each page, and no page or memory cgroup is bound to a
// thread.
unsafe impl Send for SendBuf {}

/// A position in a [`SendBuf`], for [`SendBuf::rollback`].
#[derive(Clone, Copy)]
pub struct Mark(u64);

impl SendBuf {
    /// Makes an empty buffer, without pages. Any context.
    pub const fn new() -> Self {
        Self {
            chunks: KVVec::new(),
            appended: 0,
            sent: 0,
            memcg: MemCgroup::none(),
        }
    }

    /// Makes an empty buffer whose memory is charged to `memcg` until TCP frees them. Any context.
    pub fn charged_to(memcg: MemCgroup) -> Self {
        Self {
            memcg,
            ..Self::new()
        }
    }

    /// Returns the memory cgroup that the memory of the buffer is charged to. Any context.
    pub fn memcg(&self) -> &MemCgroup {
        &self.memcg
    }

    /// Returns the number of bytes that wait to be sent.
    pub fn len(&self) -> usize {
        self.appended.saturating_sub(self.sent) as usize
    }

    /// Whether no bytes wait to be sent.
    pub fn is_empty(&self) -> bool {
        self.appended == self.sent
    }

    /// Appends a copy of `bytes`, all or nothing. May sleep. `ENOMEM` if there is no memory.
    #[inline]
    pub fn append(&mut self, mut bytes: &[u8]) -> Result {
        self.append_with(bytes.len(), |room| {
            let (now, later) = bytes.split_at_checked(room.len()).ok_or(EIO)?;

            bytes = later;
            room.put(now)
        })
    }

    /// Appends `len` bytes that `fill` writes, all or nothing. May sleep.
    ///
    /// Calls `fill` with one piece of room after the other, in order. Returns the error of `fill`,
    /// `EIO` if it does not fill a piece completely, or `ENOMEM` if there is no memory.
    #[inline]
    pub fn append_with(
        &mut self,
        len: usize,
        mut fill: impl FnMut(&mut Room<'_>) -> Result,
    ) -> Result {
        if let Some(last) = self.chunks.last_mut() {
            // The usual case: one piece. If it fails, nothing is appended.
            if len != 0 && len <= last.room() {
                last.append(len, fill)?;
                self.appended = self.appended.saturating_add(len as u64);
                return Ok(());
            }
        }
        let mark = self.mark();
        let result = self.append_pieces(len, &mut fill);

        if result.is_err() {
            self.rollback(mark);
        }
        result
    }

    fn append_pieces(
        &mut self,
        mut len: usize,
        fill: &mut dyn FnMut(&mut Room<'_>) -> Result,
    ) -> Result {
        while len > 0 {
            let chunk = self.tail()?;
            let piece = len.min(chunk.room());

            chunk.append(piece, &mut *fill)?;
            self.appended = self.appended.saturating_add(piece as u64);
            len = len.saturating_sub(piece);
        }
        Ok(())
    }

    /// Returns the last chunk, with room in it; allocates one if needed. May sleep.
    fn tail(&mut self) -> Result<&mut Chunk> {
        if let Some(last) = self.chunks.last_mut() {
            if last.room() == 0 {
                last.reuse();
            }
        }
        if self.chunks.last().is_none_or(|last| last.room() == 0) {
            let size = self.len().saturating_mul(AHEAD);

            self.memcg.reserve_one(&mut self.chunks)?;
            self.chunks
                .push_within_capacity(Chunk::new(size, &self.memcg)?)?;
            self.drop_sent();
        }
        self.chunks.last_mut().ok_or(ENOMEM)
    }

    /// Drops the sent chunks at the front, but never the last chunk.
    fn drop_sent(&mut self) {
        while self.chunks.len() > 1 && self.chunks.first().is_some_and(|c| c.unsent() == 0) {
            let _ = self.chunks.remove(0);
        }
    }

    /// Returns the position behind all bytes appended so far.
    pub fn mark(&self) -> Mark {
        Mark(self.appended)
    }

    /// Drops the bytes appended since `mark`, except bytes already sent.
    pub fn rollback(&mut self, mark: Mark) {
        let kept = self.appended.min(mark.0.max(self.sent));
        let mut surplus = self.appended.saturating_sub(kept);

        self.appended = kept;
        while surplus > 0 {
            let Some(last) = self.chunks.last_mut() else {
                break;
            };
            let here = surplus.min(last.unsent() as u64);

            // INVARIANT: `end` does not go below `start`.
            last.end = last.end.saturating_sub(here as usize);
            surplus = surplus.saturating_sub(here);
            if surplus > 0 {
                self.chunks.pop();
            }
        }
    }

    /// Drops all bytes that wait to be sent.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.appended = self.sent;
    }

    /// Describes the bytes at the front in the first entries of `vecs`, in order. Returns these
    /// entries and the number of bytes.
    pub(crate) fn describe<'v>(
        &self,
        vecs: &'v mut [MaybeUninit<bio_vec>],
    ) -> (&'v [bio_vec], usize) {
        let unsent = self.chunks.iter().filter(|chunk| chunk.unsent() != 0);
        let (mut count, mut bytes) = (0usize, 0usize);

        for (vec, chunk) in vecs.iter_mut().zip(unsent) {
            let len = chunk.unsent();

            vec.write(bio_vec {
                bv_page: chunk.page.as_ptr(),
                bv_len: len as u32,
                bv_offset: chunk.start as u32,
            });
            count = count.saturating_add(1);
            bytes = bytes.saturating_add(len);
        }
        // SAFETY: The loop has initialized the first `count` entries, which are borrowed for `'v`.
        let described = unsafe { core::slice::from_raw_parts(vecs.as_ptr().cast(), count) };

        (described, bytes)
    }

    /// Marks the first `bytes` of the described bytes as sent.
    pub(crate) fn consume(&mut self, mut bytes: usize) {
        bytes = bytes.min(self.len());
        self.sent = self.sent.saturating_add(bytes as u64);
        for chunk in &mut self.chunks {
            let here = bytes.min(chunk.unsent());

            // INVARIANT: `start` does not go beyond `end`.
            chunk.start = chunk.start.saturating_add(here);
            bytes = bytes.saturating_sub(here);
        }
        self.drop_sent();
    }
}

impl Default for SendBuf {
    fn default() -> Self {
        Self::new()
    }
}
