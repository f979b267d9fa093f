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

/// Reads the bytes of a locked socket.
///
/// ```
/// use kernel::prelude::*;
/// use net::{LockedSock, RecvBuf};
///
/// /// Moves a message of `len` bytes to `to`. Returns whether it was there as a whole: if not,
/// /// `data_ready` is called once it is.
/// fn take(sk: &mut LockedSock<'_>, len: u16, to: &mut RecvBuf) -> Result<bool> {
///     let mut reader = sk.read();
///
///     if reader.unread().len() < len.into() {
///         reader.finish(Some(len.into()));
///         return Ok(false);
///     }
///     to.append(&reader.unread(), len.into())?;
///     reader.advance(len.into());
///     reader.finish(None);
///     Ok(true)
/// }
/// ```
///
/// Bytes that are taken cannot be read any more:
///
/// ```compile_fail,E0505
/// fn take(sk: &mut net::LockedSock<'_>, to: &mut net::RecvBuf) {
///     let reader = sk.read();
///     let unread = reader.unread();
///
///     reader.finish(None);
///     let _ = to.append(&unread, 1);
/// }
/// ```
///
/// # Invariants
///
/// `sk` is a TCP socket. For `'a` it is alive and locked, not inside another read, and nobody else
/// uses it. It had `had` bytes to read, up to urgent data, of which the last `len` are left. If
/// `len` is not 0, they are behind `place`, which is in its receive queue. The first `place.run` of
/// them, at most `len`, are at `place.data`, where C code may read them during `'a`.
pub struct Reader<'a> {
    sk: NonNull<sock>,
    place: bindings::riw_rx_place,
    len: usize,
    had: usize,
    _socket: PhantomData<&'a LockedSock<'a>>,
}

impl Reader<'_> {
    /// Makes a reader at the first byte that is not taken.
    ///
    /// # Safety
    ///
    /// `sk` must be a TCP socket. As long as the reader lives, it must be alive and locked, not
    /// inside another read, and nobody else may use it.
    pub(crate) unsafe fn new(sk: NonNull<sock>) -> Self {
        let mut place = bindings::riw_rx_place::default();
        // SAFETY: The caller promises a locked TCP socket, so its receive queue is stable.
        let len = unsafe { bindings::rx_begin(sk.as_ptr(), &mut place) };

        place.run = place.run.min(len);
        // INVARIANT: The caller promises the socket's part. `rx_begin()` sets `place` to the first
        // of `len` bytes in the queue, with a run of bytes that C code may read.
        Self {
            sk,
            place,
            len,
            had: len,
            _socket: PhantomData,
        }
    }

    /// Returns the bytes that are left.
    #[inline]
    pub fn unread(&self) -> Unread<'_> {
        // INVARIANT: As those of the reader, which does not move while it is borrowed.
        Unread {
            run: self.place.data,
            run_len: self.place.run,
            len: self.len,
            reader: Some(self),
        }
    }

    /// Moves over the next `count` bytes, or to the end if there are fewer. [`Self::finish`] takes
    /// them.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        let count = count.min(self.len);
        let in_run = count.min(self.place.run);

        // INVARIANT: The run loses its first bytes, and `len` as many or more. If the run is used
        // up, and more bytes follow, `enter_next_run` restores the rest.
        self.place.data = self.place.data.wrapping_add(in_run);
        self.place.run -= in_run;
        self.len -= count;
        if self.place.run == 0 && self.len != 0 {
            self.enter_next_run(count);
        } else {
            // CAST: A run is part of an skb.
            self.place.offset = self.place.offset.wrapping_add(in_run as u32);
        }
    }

    /// Moves the place by `count` bytes, to a byte that is there.
    fn enter_next_run(&mut self, count: usize) {
        // SAFETY: By the type's invariants the socket is locked. `len` bytes, which are not 0, are
        // behind the place and the `count` bytes that `advance` has subtracted.
        unsafe { bindings::rx_advance(self.sk.as_ptr(), &mut self.place, count) };
        // INVARIANT: `rx_advance()` has set the run at the place.
        self.place.run = self.place.run.min(self.len);
    }

    /// Takes (frees) the bytes that the reader has moved over. TCP opens the receive window
    /// accordingly.
    ///
    /// If `wanted` is given, delays [`data_ready`] until so many bytes are unread. It is called
    /// earlier only if the connection ends, or if TCP cannot queue more before some bytes are
    /// taken.
    ///
    /// [`data_ready`]: crate::Callbacks::data_ready
    #[inline]
    pub fn finish(self, wanted: Option<u32>) -> Finished {
        let taken = self.had.saturating_sub(self.len);
        // SAFETY: By the type's invariants it is a TCP socket, alive and locked, so that this
        // context may change its low-water mark, and this is not inside another read. At least
        // `taken` bytes are there, and `self` ends.
        let flags = unsafe { bindings::rx_finish(self.sk.as_ptr(), taken, wanted.unwrap_or(0)) };

        Finished {
            waits: flags & bindings::RIW_RX_WAITS != 0,
            has_urgent: flags & bindings::RIW_RX_URGENT != 0,
        }
    }
}

/// The state of a socket after [`Reader::finish`].
pub struct Finished {
    /// The wanted bytes are not there, and the socket waits for them. If not,
    /// [`data_ready`](crate::Callbacks::data_ready) may not be called: they are unread, or TCP
    /// cannot queue more.
    pub waits: bool,
    /// Urgent data was received or announced and not taken. Later bytes cannot be read.
    pub has_urgent: bool,
}

/// Received bytes that are not taken yet: in a socket, or in memory.
///
/// # Invariants
///
/// `run` is valid for reads of `run_len` bytes by C code, for `'a`, and `run_len` is at most `len`.
/// If there is a reader, it has `len` bytes left, of which the run has the first ones.
#[derive(Clone, Copy)]
pub struct Unread<'a> {
    /// The first bytes, which are contiguous.
    run: *const u8,
    run_len: usize,
    len: usize,
    /// The way to the others; `None` if they cannot be read.
    reader: Option<&'a Reader<'a>>,
}

impl<'a> Unread<'a> {
    /// Returns a message of `len` bytes, of which only `head` can be read. Any context.
    pub fn head_of(head: &'a [u8], len: usize) -> Self {
        // INVARIANT: A slice is valid for reads of its length.
        Self {
            run: head.as_ptr(),
            run_len: head.len().min(len),
            len,
            reader: None,
        }
    }

    /// Returns the number of bytes. Any context.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes. Any context.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Calls `f` with the bytes of `range`, piece by piece, in order. Any context; `f` must never
    /// sleep. `EFAULT` if the range goes beyond the end, or if the CPU cannot read the bytes
    /// (device memory); `f` may have got some of them then.
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
        let reader = self.reader.ok_or(EFAULT)?;

        if range.end > self.len {
            return Err(EFAULT);
        }
        // SAFETY: By the invariants of the reader the socket is locked, and by those of this type
        // the check above keeps the range within the bytes behind the place. `call` gets the only
        // pointer to `f`, of its type `F`.
        let done = unsafe {
            bindings::rx_each(
                reader.sk.as_ptr(),
                &reader.place,
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
