// SPDX-License-Identifier: GPL-2.0

//! Received bytes, where they lie.
//!
//! C header: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h)

use crate::{LockedSock, MemCgroup};
use core::{marker::PhantomData, ops::Range};
use kernel::{bindings::sock, prelude::*};
use riw_bindings as bindings;

/// Bytes in a row, in memory that others may write to meanwhile: a sender on this machine owns the
/// pages that it has spliced into a socket.
///
/// They can be copied and summed, never borrowed. Whoever reads them twice may read two different
/// values.
///
/// # Invariants
///
/// `start` is valid for reads of `len` bytes by C code, for `'a`.
#[derive(Clone, Copy)]
pub struct Fragment<'a> {
    start: *const u8,
    len: usize,
    _memory: PhantomData<&'a [u8]>,
}

impl Fragment<'_> {
    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address, for C code to read [`len`](Self::len) bytes from. Any context.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// Copies as many of the bytes as `to` has room for. Any context.
    #[inline]
    pub fn copy_to(&self, to: &mut [u8]) {
        let len = self.len.min(to.len());

        // SAFETY: By the type's invariant, and because `to` has room for `len` bytes.
        unsafe { bindings::copy_received(to.as_mut_ptr(), self.start, len) }
    }

    /// Runs a CRC32c on over the bytes, as [`crc32c`](crate::crc32c) does. Any context.
    #[inline]
    pub fn crc32c(&self, crc: u32) -> u32 {
        // SAFETY: By the type's invariant.
        unsafe { bindings::crc32c(crc, self.start.cast(), self.len) }
    }
}

impl<'a> From<&'a [u8]> for Fragment<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        // INVARIANT: The slice is valid for `'a`.
        Self {
            start: bytes.as_ptr(),
            len: bytes.len(),
            _memory: PhantomData,
        }
    }
}

/// Bytes that a socket has received in order and that were not taken, from some place on. They end
/// in front of urgent data.
///
/// # Invariants
///
/// `sk` is a TCP socket that is locked for `'a`, and nothing is taken from it meanwhile. `place` is
/// in its receive queue, `len` bytes before the end, if `len` is not 0.
#[derive(Clone, Copy)]
pub struct Unread<'a> {
    sk: *mut sock,
    place: bindings::riw_rx_place,
    len: usize,
    _socket: PhantomData<&'a LockedSock<'a>>,
}

impl<'a> Unread<'a> {
    /// # Safety
    ///
    /// `sk` must be a TCP socket that is locked for `'a`, from which nothing is taken meanwhile.
    pub(crate) unsafe fn new(sk: *mut sock) -> Self {
        let mut place = bindings::riw_rx_place::default();
        // SAFETY: As the caller says.
        let len = unsafe { bindings::rx_begin(sk, &mut place) };

        // INVARIANT: As the caller and `rx_begin()` say.
        Self {
            sk,
            place,
            len,
            _socket: PhantomData,
        }
    }

    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Goes on behind the next `count` bytes, or at the end. They stay in the socket: see
    /// [`LockedSock::take`].
    #[inline]
    pub fn advance(&mut self, count: usize) {
        let count = count.min(self.len);

        self.len -= count;
        // SAFETY: By the type's invariants, so many bytes lie behind the place.
        // INVARIANT: The place is by as many bytes nearer to the end.
        unsafe { bindings::rx_advance(self.sk, &mut self.place, count) };
    }

    /// Calls `f` with the bytes of `range` in order, piece by piece. `EFAULT`, after some of them
    /// perhaps, where there are none or where no CPU can read them (memory of a device). `f` must
    /// not sleep, whatever the context.
    pub fn each<F: FnMut(Fragment<'_>)>(&self, range: Range<usize>, mut f: F) -> Result {
        let len = range.len();

        if range.end > self.len {
            return Err(EFAULT);
        }
        // SAFETY: By the type's invariants the bytes lie behind the place. `call` gets the pointer
        // to `f`, which nobody else uses.
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

/// # Safety
///
/// `f` must point to an `F` that nobody else uses; `data` must be valid for reads of `len` bytes by
/// C code until this returns.
unsafe extern "C" fn call<F: FnMut(Fragment<'_>)>(f: *mut c_void, data: *const u8, len: usize) {
    // INVARIANT: As the caller says; the lifetime ends with the call below.
    let fragment = Fragment {
        start: data,
        len,
        _memory: PhantomData,
    };

    // SAFETY: As the caller says.
    unsafe { (*f.cast::<F>())(fragment) }
}

/// A copy of received bytes, for a reader that has to make room in the socket before it can use them.
pub struct RecvBuf(KVVec<u8>);

impl RecvBuf {
    /// With room for `size` bytes, charged to `memcg`. May sleep.
    pub fn new(size: usize, memcg: &MemCgroup) -> Result<Self> {
        let buf = memcg.charge(|| KVVec::with_capacity(size, GFP_KERNEL_ACCOUNT))?;

        Ok(Self(buf))
    }

    /// Bytes that are there.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the first `count` bytes of `from`. `ENOSPC` if there is no room for them, `EFAULT` as
    /// [`Unread::each`]; nothing is appended then. Any context.
    pub fn append(&mut self, from: &Unread<'_>, count: usize) -> Result {
        let old = self.0.len();

        if count > self.0.capacity() - old {
            return Err(ENOSPC);
        }
        // There is room, so that nothing is allocated.
        self.0.extend_with(count, 0, GFP_ATOMIC)?;
        let mut at = old;
        let read = from.each(0..count, |fragment| {
            if let Some(to) = self.0.get_mut(at..) {
                fragment.copy_to(to);
            }
            at += fragment.len();
        });
        if read.is_err() {
            self.0.truncate(old);
        }
        read
    }

    /// Calls `f` with the bytes of `range`. `EFAULT` if there are none.
    pub fn each(&self, range: Range<usize>, mut f: impl FnMut(Fragment<'_>)) -> Result {
        f(self.0.get(range).ok_or(EFAULT)?.into());
        Ok(())
    }
}
