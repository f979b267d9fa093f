// SPDX-License-Identifier: GPL-2.0

//! The send buffer sends only bytes that were written.

use super::{Room, SendBuf};
use core::mem::MaybeUninit;
use kernel::prelude::*;

#[kunit_tests(net_sendbuf)]
mod tests {
    use super::*;

    /// Several pages, so that there are several pieces.
    const LEN: usize = 3 * 4096 + 100;

    /// If `fill` leaves a piece unfilled, nothing is appended, not even earlier pieces.
    #[test]
    fn nothing_unwritten_is_appended() -> Result {
        let mut buf = SendBuf::new();

        buf.append(&[1; 10])?;
        assert_eq!(buf.append_with(LEN, |_| Ok(())), Err(EIO));
        assert_eq!(buf.len(), 10);
        let mut pieces = 0;
        let almost = buf.append_with(LEN, |room| {
            pieces += 1;
            // The second piece lacks its last byte.
            for _ in pieces / 2..room.len() {
                room.put(&[2])?;
            }
            Ok(())
        });
        assert_eq!(almost, Err(EIO));
        assert_eq!(buf.len(), 10);
        Ok(())
    }

    /// Another room in place of the one that was lent fills nothing.
    #[test]
    fn another_room_appends_nothing() -> Result {
        let mut buf = SendBuf::new();

        let exchanged = buf.append_with(LEN, |room| {
            *room = Room::new(&mut []);
            Ok(())
        });
        assert_eq!(exchanged, Err(EIO));

        // One that is full, and as long.
        let mut memory: *mut [MaybeUninit<u8>; 100] = core::ptr::null_mut();
        let exchanged = buf.append_with(100, |room| {
            let other = KBox::leak(KBox::new([MaybeUninit::uninit(); 100], GFP_KERNEL)?);

            memory = other;
            *room = Room::new(other);
            room.put(&[2; 100])
        });
        // Null if there was no memory.
        if !memory.is_null() {
            // SAFETY: It is from `leak`, once. Nothing refers to it any more.
            drop(unsafe { KBox::from_raw(memory) });
        }
        assert_eq!(exchanged, Err(EIO));
        assert_eq!(buf.len(), 0);
        Ok(())
    }

    /// A piece is filled from its front, and never beyond its end.
    #[test]
    fn room_is_filled_to_its_end() -> Result {
        let mut buf = SendBuf::new();
        let mut sum = 0;

        buf.append_with(LEN, |room| {
            let len = room.len();

            assert!(room.filled().is_empty());
            while !room.is_empty() {
                room.put(&[room.len() as u8])?;
            }
            assert_eq!(room.put(&[0]), Err(EINVAL));
            assert_eq!(room.filled().len(), len);
            assert_eq!(room.filled().first(), Some(&(len as u8)));
            assert_eq!(room.filled().last(), Some(&1));
            sum += len;
            Ok(())
        })?;
        assert_eq!(sum, LEN);
        assert_eq!(buf.len(), LEN);
        Ok(())
    }
}
