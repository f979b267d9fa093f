// SPDX-License-Identifier: GPL-2.0

//! Bytes to be sent, in pages that TCP takes over.

use crate::MemCgroup;
use core::{mem::MaybeUninit, ptr::NonNull};
use kernel::{
    bindings::{bio_vec, page},
    prelude::*, //
};
use riw_bindings as bindings;

/// A new page is to have room for so many times what waits to be sent before it.
const AHEAD: usize = 8;

/// A compound page, filled from its front.
///
/// # Invariants
///
/// - `page` is a page of `size` bytes, mapped at `address`, of which one reference is ours.
/// - `start <= end <= size`. Bytes below `start` have been handed to TCP; those from `start` to
///   `end` wait for that; those from `end` on nobody else can see.
struct Chunk {
    page: NonNull<page>,
    address: NonNull<u8>,
    size: usize,
    start: usize,
    end: usize,
}

impl Chunk {
    /// An empty one for `size` bytes, which is not more than a wish. It is charged to `memcg`, or
    /// to the running task.
    fn new(size: usize, memcg: Option<&MemCgroup>) -> Result<Self> {
        // SAFETY: It may sleep, as documented for those who call.
        let alloc = || unsafe { bindings::staging_alloc(size.max(1)) };
        let page = memcg.map_or_else(alloc, |memcg| memcg.charge(alloc));
        let page = NonNull::new(page).ok_or(ENOMEM)?;
        // SAFETY: The page is valid, and in the kernel's direct mapping.
        let address = unsafe { bindings::staging_address(page.as_ptr()) };
        // SAFETY: The page is valid.
        let size = unsafe { bindings::staging_size(page.as_ptr()) };

        // INVARIANT: It is a new page, and empty.
        Ok(Self {
            page,
            address: NonNull::new(address.cast()).ok_or(ENOMEM)?,
            size,
            start: 0,
            end: 0,
        })
    }

    /// Begins again at the front, if all that was there has been sent and acknowledged.
    fn reuse(&mut self) {
        // SAFETY: The page is valid.
        if self.start == self.end && !unsafe { bindings::staging_shared(self.page.as_ptr()) } {
            // INVARIANT: No one else has a reference to the page, so nobody can see its bytes.
            self.start = 0;
            self.end = 0;
        }
    }

    /// Has `fill` write the next `len` bytes; there must be room for them. `EIO` if it does not
    /// write them all.
    fn append(&mut self, len: usize, fill: &mut dyn FnMut(&mut Room<'_>) -> Result) -> Result {
        debug_assert!(len <= self.size - self.end);
        // SAFETY: By the type's invariants these bytes are in the page, and nobody else sees them.
        let bytes = unsafe {
            core::slice::from_raw_parts_mut(self.address.add(self.end).as_ptr().cast(), len)
        };
        // INVARIANT: Nothing is filled yet.
        let mut room = Room { bytes, filled: 0 };

        fill(&mut room)?;
        if !room.is_empty() {
            return Err(EIO);
        }
        self.end += len;
        Ok(())
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: The reference is ours.
        unsafe { bindings::put_page(self.page.as_ptr()) }
    }
}

/// Room at the end of a [`SendBuf`], which is filled from its front. What it holds before is stale
/// kernel memory, and cannot be read.
///
/// # Invariants
///
/// The first `filled` of `bytes` are initialised.
pub struct Room<'a> {
    bytes: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl Room<'_> {
    /// Bytes that are not filled yet.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Whether all bytes are filled.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that are filled.
    pub fn filled(&self) -> &[u8] {
        // SAFETY: By the type's invariant these bytes are there and initialised.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.filled) }
    }

    /// Fills the next bytes with a copy of `from`. `EINVAL`, and nothing copied, if there are not
    /// so many.
    pub fn put(&mut self, from: &[u8]) -> Result {
        // SAFETY: All `from.len()` bytes are written. They do not overlap `from`, since they are
        // borrowed exclusively.
        unsafe {
            self.put_with(from.len(), |to| {
                to.copy_from_nonoverlapping(from.as_ptr(), from.len());
                Ok(())
            })
        }
    }

    /// Has `write` fill the next `len` bytes, to which it gets a pointer. `EINVAL`, and `write` not
    /// called, if there are not so many. If it fails they count as not filled.
    ///
    /// # Safety
    ///
    /// `write` must write to those `len` bytes only, and to all of them if it returns `Ok`.
    pub unsafe fn put_with(&mut self, len: usize, write: impl FnOnce(*mut u8) -> Result) -> Result {
        let to = self.bytes.get_mut(self.filled..).ok_or(EINVAL)?;
        let to = to.get_mut(..len).ok_or(EINVAL)?;

        write(to.as_mut_ptr().cast())?;
        // INVARIANT: They have been written, as the caller says.
        self.filled += len;
        Ok(())
    }
}

/// Bytes waiting to be sent.
///
/// They are written once, into pages that [`Socket::send`](crate::Socket::send) hands to TCP
/// without copying. As in a page fragment cache a partly filled page goes on being filled.
///
/// **Bytes that TCP has got are never written again**: writing happens behind all bytes there are
/// only, and [`rollback`](Self::rollback) does not go back beyond what was sent. A page is used
/// from its front again only when this is its only user. Pages are as large as what waits before
/// them asks for, so that a connection that says little keeps little.
///
/// Methods that add bytes allocate memory and may sleep.
pub struct SendBuf {
    /// Oldest first. Only the last one may have room.
    chunks: KVec<Chunk>,
    /// Bytes ever appended, less those rolled back.
    appended: u64,
    /// Bytes ever sent; not above `appended`.
    sent: u64,
    /// What the pages are charged to, also while TCP has them; if none, the task that allocates.
    memcg: Option<MemCgroup>,
}

// SAFETY: The pages are its own.
unsafe impl Send for SendBuf {}

/// A position in a [`SendBuf`], to return to.
#[derive(Clone, Copy)]
pub struct Mark(u64);

impl SendBuf {
    /// Makes an empty buffer, without pages.
    pub const fn new() -> Self {
        Self {
            chunks: KVec::new(),
            appended: 0,
            sent: 0,
            memcg: None,
        }
    }

    /// Makes an empty buffer whose pages are charged to `memcg`, until TCP has freed them.
    pub fn charged_to(memcg: MemCgroup) -> Self {
        Self {
            memcg: Some(memcg),
            ..Self::new()
        }
    }

    /// Bytes that wait to be sent.
    pub fn len(&self) -> usize {
        (self.appended - self.sent) as usize
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.appended == self.sent
    }

    /// Appends a copy of `bytes`; all or nothing. May sleep.
    pub fn append(&mut self, mut bytes: &[u8]) -> Result {
        self.append_with(bytes.len(), |room| {
            let (now, later) = bytes.split_at(room.len());

            bytes = later;
            room.put(now)
        })
    }

    /// Appends `len` bytes that `fill` writes, piece by piece. May sleep.
    ///
    /// `fill` is given the room of the pieces in order. If it fails, or memory runs out, nothing is
    /// appended. `EIO` if it does not fill a piece completely.
    pub fn append_with(
        &mut self,
        len: usize,
        mut fill: impl FnMut(&mut Room<'_>) -> Result,
    ) -> Result {
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
            let piece = len.min(chunk.size - chunk.end);

            chunk.append(piece, fill)?;
            self.appended += piece as u64;
            len -= piece;
        }
        Ok(())
    }

    /// The last chunk, with room in it.
    fn tail(&mut self) -> Result<&mut Chunk> {
        if let Some(last) = self.chunks.last_mut() {
            if last.end == last.size {
                last.reuse();
            }
        }
        if self.chunks.last().is_none_or(|last| last.end == last.size) {
            let size = self.len().saturating_mul(AHEAD);
            let chunk = Chunk::new(size, self.memcg.as_ref())?;

            self.chunks.push(chunk, GFP_KERNEL)?;
            self.drop_sent();
        }
        self.chunks.last_mut().ok_or(ENOMEM)
    }

    /// Drops chunks at the front that have been sent, except for the last of all.
    fn drop_sent(&mut self) {
        while self.chunks.len() > 1 && self.chunks.first().is_some_and(|c| c.start == c.end) {
            let _ = self.chunks.remove(0);
        }
    }

    /// The position behind all bytes appended so far.
    pub fn mark(&self) -> Mark {
        Mark(self.appended)
    }

    /// Drops what was appended since `mark`, as far as it was not sent.
    pub fn rollback(&mut self, mark: Mark) {
        let mut surplus = self.appended.saturating_sub(mark.0.max(self.sent));

        self.appended -= surplus;
        while surplus > 0 {
            let Some(last) = self.chunks.last_mut() else {
                break;
            };
            let here = surplus.min((last.end - last.start) as u64);

            // INVARIANT: `end` does not go below `start`.
            last.end -= here as usize;
            surplus -= here;
            if surplus > 0 {
                self.chunks.pop();
            }
        }
    }

    /// Drops everything that was not sent.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.appended = self.sent;
    }

    /// Describes bytes at the front, in order; returns how many entries and bytes that is.
    pub(crate) fn describe(&self, vecs: &mut [bio_vec]) -> (usize, usize) {
        let unsent = self.chunks.iter().filter(|chunk| chunk.start != chunk.end);
        let (mut count, mut bytes) = (0, 0);

        for (vec, chunk) in vecs.iter_mut().zip(unsent) {
            let len = chunk.end - chunk.start;

            *vec = bio_vec {
                bv_page: chunk.page.as_ptr(),
                bv_len: len as u32,
                bv_offset: chunk.start as u32,
            };
            count += 1;
            bytes += len;
        }
        (count, bytes)
    }

    /// Notes that TCP has taken the first `bytes`, of those described before.
    pub(crate) fn consume(&mut self, mut bytes: usize) {
        bytes = bytes.min(self.len());
        self.sent += bytes as u64;
        for chunk in &mut self.chunks {
            let here = bytes.min(chunk.end - chunk.start);

            // INVARIANT: `start` does not go beyond `end`.
            chunk.start += here;
            bytes -= here;
        }
        self.drop_sent();
    }
}

impl Default for SendBuf {
    fn default() -> Self {
        Self::new()
    }
}
