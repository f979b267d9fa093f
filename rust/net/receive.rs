// SPDX-License-Identifier: GPL-2.0

//! Access to received bytes in place.
//!
//! C header: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h)

use crate::LockedSock;
use core::{
    marker::PhantomData,
    num::NonZeroUsize,
    ops::Range,
    ptr::NonNull, //
};
use kernel::{bindings::sock, prelude::*};
use kernel_ext::{memcg::MemCgroup, octets::Fragment};
use riw_bindings as bindings;

/// A cursor over received bytes that are not consumed yet: those that a socket has received in
/// order and that are not taken, up to urgent data, or bytes in memory.
///
/// # Invariants
///
/// `run` is valid for reads of `run_len` bytes by C code, for `'a`, and `run_len` is at most `len`.
///
/// If `sk` is not null, it is a TCP socket that is locked for `'a`; no bytes are taken from it
/// during `'a`. If `len` is not 0 then, `place` is in its receive queue, with at least `len` bytes
/// behind it, of which the run has the first ones.
#[derive(Clone, Copy)]
pub struct Unread<'a> {
    /// Contiguous bytes at the cursor.
    run: *const u8,
    run_len: usize,
    len: usize,
    sk: *mut sock,
    place: bindings::riw_rx_place,
    _socket: PhantomData<&'a LockedSock<'a>>,
}

impl<'a> Unread<'a> {
    /// Makes a cursor at the first byte that is not taken.
    ///
    /// # Safety
    ///
    /// `sk` must be a TCP socket that is locked for `'a`. No bytes may be taken from it during
    /// `'a`.
    pub(crate) unsafe fn new(sk: *mut sock) -> Self {
        let mut place = bindings::riw_rx_place::default();
        // SAFETY: The caller promises a locked TCP socket, so its receive queue is stable.
        let len = unsafe { bindings::rx_begin(sk, &mut place) };

        // INVARIANT: The caller promises the socket's part for `'a`. `rx_begin()` sets `place` to
        // the first of `len` bytes in the queue, with a run of bytes that C code may read.
        Self {
            run: place.data,
            run_len: place.run.min(len),
            len,
            sk,
            place,
            _socket: PhantomData,
        }
    }

    /// Makes a cursor at the start of a message of `len` bytes, of which only `head` can be read.
    /// Any context.
    pub fn head_of(head: &'a [u8], len: usize) -> Self {
        // INVARIANT: A slice is valid for reads of its length. There is no socket.
        Self {
            run: head.as_ptr(),
            run_len: head.len().min(len),
            len,
            sk: core::ptr::null_mut(),
            place: bindings::riw_rx_place::default(),
            _socket: PhantomData,
        }
    }

    /// Returns the number of bytes behind the cursor. Any context.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no bytes are behind the cursor. Any context.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Moves the cursor over the next `count` bytes, or to the end if there are fewer. The bytes
    /// stay in the socket until [`Reader::finish`](crate::Reader::finish). Any context.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        let count = count.min(self.len);
        let in_run = count.min(self.run_len);

        // INVARIANT: The run loses its first bytes, and `len` as many or more. If the run is used
        // up, and more bytes follow, `enter_next_run` restores the socket's part.
        self.run = self.run.wrapping_add(in_run);
        self.run_len -= in_run;
        self.len -= count;
        if self.run_len == 0 && self.len != 0 {
            self.enter_next_run(count);
        } else {
            // CAST: A run is part of an skb.
            self.place.offset = self.place.offset.wrapping_add(in_run as u32);
        }
    }

    /// Moves the place by `count` bytes, to a byte that is there.
    fn enter_next_run(&mut self, count: usize) {
        if self.sk.is_null() {
            return;
        }
        // SAFETY: By the type's invariants the socket is locked. `len` bytes, which are not 0, are
        // behind the place and the `count` bytes that `advance` has subtracted.
        unsafe { bindings::rx_advance(self.sk, &mut self.place, count) };
        // INVARIANT: `rx_advance()` has set the run at the place.
        self.run = self.place.data;
        self.run_len = self.place.run.min(self.len);
    }

    /// Calls `f` with the bytes of `range` (relative to the cursor), piece by piece, in order. Any
    /// context; `f` must never sleep. `EFAULT` if the range goes beyond the end, or if the CPU
    /// cannot read the bytes (device memory); `f` may have got some of them then.
    #[inline]
    pub fn each<F: FnMut(Fragment<'_>)>(&self, range: Range<usize>, mut f: F) -> Result {
        if range.end > self.run_len || range.start > range.end {
            return self.each_piece(range, f);
        }
        let start = self.run.wrapping_add(range.start);

        // SAFETY: The range is in the run, so C code may read it for `'a`.
        f(unsafe { Fragment::from_raw(start, range.end - range.start) });
        Ok(())
    }

    /// Continues [`Self::each`] for a range that is not in the run.
    fn each_piece<F: FnMut(Fragment<'_>)>(&self, range: Range<usize>, mut f: F) -> Result {
        let len = range.len();

        if range.end > self.len || self.sk.is_null() {
            return Err(EFAULT);
        }
        // SAFETY: By the type's invariants the socket is locked, and the check above keeps the
        // range within the bytes behind the place. `call` gets the only pointer to `f`, of its type
        // `F`.
        let done = unsafe {
            bindings::rx_each(
                self.sk,
                &self.place,
                range.start,
                len,
                Some(call::<F>),
                (&raw mut f).cast(),
            )
        };
        if done == len {
            Ok(())
        } else {
            Err(EFAULT)
        }
    }
}

impl<'a> From<&'a [u8]> for Unread<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::head_of(bytes, bytes.len())
    }
}

/// Passes a piece of received data to the closure at `f`.
///
/// # Safety
///
/// `f` must be the only pointer in use to a valid `F`. `data` must be valid for reads of `len`
/// bytes by C code until this returns.
unsafe extern "C" fn call<F: FnMut(Fragment<'_>)>(f: *mut c_void, data: *const u8, len: usize) {
    // SAFETY: The caller promises valid `data` until this returns, and `F` takes a fragment of any
    // lifetime, so that it cannot keep it.
    let fragment = unsafe { Fragment::from_raw(data, len) };

    // SAFETY: The caller promises exclusive access to a valid `F` at `f`.
    unsafe { (*f.cast::<F>())(fragment) }
}

/// A copy of received bytes, for a reader that must free socket memory before it can use the bytes.
pub struct RecvBuf {
    bytes: KVVec<u8>,
    /// How many of the bytes are in use, from the first on.
    used: usize,
}

impl RecvBuf {
    /// Allocates an empty buffer for `size` bytes, charged to `memcg`. May sleep. `ENOMEM` if there
    /// is no memory: the kernel does not log that, and kills no process for it. Callers try again
    /// later.
    pub fn new(size: NonZeroUsize, memcg: &MemCgroup) -> Result<Self> {
        // SAFETY: It takes any size.
        let start = memcg.charge(|| unsafe { bindings::recv_buf_alloc(size.get()) });
        let start = NonNull::new(start).ok_or(ENOMEM)?.cast();

        // SAFETY: `kvzalloc()` allocated `size` bytes, as `KVmalloc` does, and so fewer than
        // `isize::MAX`, and initialized all of them. A `u8` needs no alignment.
        let bytes = unsafe { KVVec::from_raw_parts(start.as_ptr(), size.get(), size.get()) };

        Ok(Self { bytes, used: 0 })
    }

    /// Allocates a buffer with a copy of `bytes`, charged to `memcg`. Fails as
    /// [`MemCgroup::zeroed`] does. May sleep.
    pub fn copy_of(bytes: &[u8], memcg: &MemCgroup) -> Result<Self> {
        let mut copy = memcg.zeroed(bytes.len())?;

        copy.get_mut(..bytes.len())
            .ok_or(ENOMEM)?
            .copy_from_slice(bytes);
        Ok(Self {
            bytes: copy,
            used: bytes.len(),
        })
    }

    /// Returns the bytes in the buffer. Any context.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }

    /// Returns the number of bytes in the buffer. Any context.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether the buffer is empty. Any context.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Appends a copy of the first `count` bytes of `from`, all or nothing. Any context. `ENOSPC`
    /// if there is not enough room, `EFAULT` if `from` lacks the bytes or the CPU cannot read them.
    pub fn append(&mut self, from: &Unread<'_>, count: usize) -> Result {
        let end = self.used.checked_add(count).ok_or(ENOSPC)?;
        let mut room = self.bytes.get_mut(self.used..end).ok_or(ENOSPC)?;

        from.each(0..count, |fragment| {
            fragment.copy_to(room);
            let rest = core::mem::take(&mut room).get_mut(fragment.len()..);
            room = rest.unwrap_or_default();
        })?;
        self.used = end;
        Ok(())
    }
}
