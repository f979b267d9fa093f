// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Doorbells: the calls to the kernel that begin to work on posted WRs.

use super::errno::{last, Errno, Result};
use crate::cancel::Uncancelled;
use crate::ffi::ioctl::*;
use core::ffi::{c_int, c_ulong, c_void};
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use riw_abi::doorbell::Doorbell;

/// A queue whose doorbell can ring.
pub(crate) struct Bell {
    /// The file of the device.
    fd: c_int,
    /// The handle of the queue pair or SRQ.
    handle: u32,
    /// The kind of the queue: a constructor of [`Doorbell`].
    kind: fn(handle: u32, response: u64) -> Doorbell,
    /// The kernel has refused write(), which it takes only with the credentials of open().
    write_refused: AtomicBool,
}

impl Bell {
    pub(crate) fn new(
        fd: c_int,
        handle: u32,
        kind: fn(handle: u32, response: u64) -> Doorbell,
    ) -> Self {
        Self {
            fd,
            handle,
            kind,
            write_refused: AtomicBool::new(false),
        }
    }

    /// Rings after a post, if that `must_ring`. The kernel may transmit before this returns. The
    /// thread is not cancelled meanwhile.
    ///
    /// Rings again after an error that passes, such as `ENOMEM`: the WRs are in the ring and cannot
    /// be taken back, so they must neither be reported as refused nor wait for the next post.
    /// Errors: only errors that do not pass. The kernel processes no WR of this post then, unless
    /// it finds them in the ring for another reason.
    pub(crate) fn ring_if(&self, must_ring: bool) -> Result {
        if !must_ring {
            return Ok(());
        }
        let _uncancelled = Uncancelled::new();

        until_passed(|| self.ring(), pause)
    }

    /// Rings by write(), which is faster, or by ioctl(), for which the kernel does not compare
    /// credentials.
    fn ring(&self) -> Result {
        // The kernel writes to it.
        let mut response = 0u32;
        let doorbell = (self.kind)(self.handle, address(ptr::addr_of_mut!(response).cast())?);

        if !self.write_refused.load(Ordering::Relaxed) {
            // SAFETY: The buffer is a structure without padding, of that length. The response of
            // the command is one `u32`, to the address above.
            let written =
                unsafe { libc::write(self.fd, ptr::addr_of!(doorbell).cast(), Doorbell::LEN) };
            if written >= 0 {
                return Ok(());
            }
            match last() {
                Errno(libc::EACCES) => self.write_refused.store(true, Ordering::Relaxed),
                error => return Err(error),
            }
        }

        let mut call = InvokeWrite::new(&doorbell)?;
        // SAFETY: `call` has the layout that this request takes: a header, and as many attributes
        // as the header says. The attributes point to the body of the command, of the stated
        // length, and to its response.
        let status = unsafe {
            libc::ioctl(
                self.fd,
                c_ulong::from(RDMA_VERBS_IOCTL),
                ptr::addr_of_mut!(call),
            )
        };
        if status < 0 {
            return Err(last());
        }
        Ok(())
    }
}

/// Calls `ring` until it succeeds, or fails with an error that does not pass, and `pause` in
/// between, with the number of failures before.
fn until_passed(mut ring: impl FnMut() -> Result, mut pause: impl FnMut(u32)) -> Result {
    let mut failures = 0u32;

    loop {
        match ring() {
            Err(error) if passes(error) => pause(failures),
            rung => return rung,
        }
        failures = failures.saturating_add(1);
    }
}

/// Whether a call that has failed with this error may succeed later, without a change by the
/// program.
fn passes(Errno(number): Errno) -> bool {
    matches!(number, libc::ENOMEM | libc::EINTR | libc::EAGAIN)
}

/// Gives the kernel time to free memory: none before the first retry, then 1 ms.
fn pause(failures: u32) {
    if failures != 0 {
        // SAFETY: The function has no requirements.
        unsafe { libc::usleep(1000) };
    }
}

/// Returns an address as the kernel takes it, which may write there.
fn address(to: *mut c_void) -> Result<u64> {
    u64::try_from(to.expose_provenance()).map_err(|_| Errno(libc::EOVERFLOW))
}

/// The argument of the ioctl() that executes a command of write().
#[repr(C)]
struct InvokeWrite {
    header: ib_uverbs_ioctl_hdr,
    attrs: [ib_uverbs_attr; 3],
}

impl InvokeWrite {
    /// Octets of the header of a command, which ioctl() does not take.
    const COMMAND_HEADER: usize = offset_of!(Doorbell, response);

    /// Returns the call of a doorbell, which must stay where it is until the call returns.
    fn new(doorbell: &Doorbell) -> Result<Self> {
        let attr = |attr_id, len: usize, data| -> Result<ib_uverbs_attr> {
            Ok(ib_uverbs_attr {
                attr_id,
                len: u16::try_from(len).map_err(|_| Errno(libc::EOVERFLOW))?,
                flags: UVERBS_ATTR_F_MANDATORY,
                attr_data: 0,
                data,
            })
        };
        let body = ptr::from_ref(doorbell).wrapping_byte_add(Self::COMMAND_HEADER);
        let body_len = Doorbell::LEN.saturating_sub(Self::COMMAND_HEADER);

        Ok(Self {
            header: ib_uverbs_ioctl_hdr {
                length: u16::try_from(size_of::<Self>()).map_err(|_| Errno(libc::EOVERFLOW))?,
                object_id: UVERBS_OBJECT_DEVICE,
                method_id: UVERBS_METHOD_INVOKE_WRITE,
                num_attrs: 3,
                reserved1: 0,
                driver_id: riw_abi::DRIVER_ID,
                reserved2: 0,
            },
            attrs: [
                attr(
                    UVERBS_ATTR_CORE_IN,
                    body_len,
                    address(body.cast_mut().cast())?,
                )?,
                attr(UVERBS_ATTR_CORE_OUT, size_of::<u32>(), doorbell.response)?,
                // The data of this attribute is a number of 64 bits, in place.
                attr(
                    UVERBS_ATTR_WRITE_CMD,
                    size_of::<u64>(),
                    doorbell.command.into(),
                )?,
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{until_passed, Bell, Errno, InvokeWrite, Uncancelled};
    use riw_abi::doorbell::Doorbell;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    #[cfg_attr(miri, ignore = "calls the kernel")]
    fn a_post_rings_only_if_the_kernel_waits_for_it() {
        let (mut from, to) = UnixStream::pair().unwrap();
        let bell = Bell::new(to.as_raw_fd(), 7, Doorbell::send);
        let mut rung = [0; Doorbell::LEN];

        assert_eq!(bell.ring_if(false), Ok(()));
        assert_eq!(bell.ring_if(true), Ok(()));
        from.read_exact(&mut rung).unwrap();
        drop(to);
        assert_eq!(from.read(&mut rung).unwrap(), 0, "rung once");
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls the kernel")]
    fn an_error_that_does_not_pass_is_reported() {
        let bell = Bell::new(-1, 7, Doorbell::send);

        assert_eq!(bell.ring_if(false), Ok(()));
        assert_eq!(bell.ring_if(true), Err(Errno(libc::EBADF)));
    }

    extern "C" {
        fn pthread_cancel(thread: libc::pthread_t) -> core::ffi::c_int;
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls the kernel")]
    fn a_thread_is_not_cancelled_while_it_rings() {
        let (mut from, to) = UnixStream::pair().unwrap();
        let rung = std::thread::spawn(move || {
            let bell = Bell::new(to.as_raw_fd(), 7, Doorbell::send);

            // SAFETY: The function has no requirements.
            let this = unsafe { libc::pthread_self() };
            // SAFETY: The thread exists. It is cancelled at its next cancellation point, not here.
            unsafe { pthread_cancel(this) };
            let rung = bell.ring_if(true);
            // For good: Rust cannot end a thread that is cancelled.
            core::mem::forget(Uncancelled::new());
            rung
        });

        assert_eq!(rung.join().unwrap(), Ok(()));
        from.read_exact(&mut [0; Doorbell::LEN]).unwrap();
    }

    /// Rings a doorbell that fails with each of these errors before it succeeds. Returns the
    /// result, the number of calls, and the failures before each pause.
    fn ring(errors: &[i32]) -> (super::Result, usize, Vec<u32>) {
        let (mut calls, mut pauses) = (0, Vec::new());
        let result = until_passed(
            || {
                calls += 1;
                errors
                    .get(calls - 1)
                    .map_or(Ok(()), |&number| Err(Errno(number)))
            },
            |failures| pauses.push(failures),
        );

        (result, calls, pauses)
    }

    #[test]
    fn a_doorbell_that_finds_no_memory_rings_again() {
        assert_eq!(ring(&[]), (Ok(()), 1, vec![]));
        assert_eq!(ring(&[libc::ENOMEM]), (Ok(()), 2, vec![0]));
        assert_eq!(
            ring(&[libc::ENOMEM, libc::EINTR, libc::EAGAIN]),
            (Ok(()), 4, vec![0, 1, 2])
        );
    }

    #[test]
    fn a_retry_ends_with_an_error_that_does_not_pass() {
        for number in [
            libc::ENOTCONN,
            libc::EIO,
            libc::ENOENT,
            libc::EPERM,
            libc::EBADF,
        ] {
            assert_eq!(
                ring(&[libc::ENOMEM, number]),
                (Err(Errno(number)), 2, vec![0])
            );
        }
    }

    #[test]
    fn a_call_by_ioctl_has_the_body_of_the_command() {
        let doorbell = Doorbell::recv(7, 0x1234);
        let InvokeWrite { header, attrs } = InvokeWrite::new(&doorbell).unwrap();
        let [body, response, command] = attrs;

        assert_eq!(usize::from(header.length), 24 + 3 * 16);
        assert_eq!(body.data, (&raw const doorbell.response).addr() as u64);
        assert_eq!((body.len, response.len, command.len), (24, 4, 8));
        assert_eq!(response.data, 0x1234);
        assert_eq!(command.data, u64::from(doorbell.command));
    }
}
