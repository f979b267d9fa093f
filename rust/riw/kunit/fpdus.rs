// SPDX-License-Identifier: GPL-2.0

//! When the buffer of an FPDU is requested that the socket has no room for.

use super::MpaRx;
use core::num::NonZeroUsize;
use iwarp::startup::Parameters;
use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;
use net::RecvBuf;

/// The sizes of two FPDUs.
const SHORT: NonZeroUsize = NonZeroUsize::MIN;
const LONG: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999);

/// Returns the receiving side of a stream that has received nothing.
fn new_rx() -> MpaRx {
    MpaRx::new(&Parameters {
        crc: true,
        rx_markers: false,
        tx_markers: false,
        revision: 1,
        ird: 0,
        ord: 0,
        rtr: None,
        peer_ird: None,
        peer_ord: None,
    })
}

#[kunit_tests(riw_fpdus)]
mod tests {
    use super::*;

    /// A peer could repeat the request with each packet otherwise.
    #[test]
    fn an_unchanged_need_is_requested_once() {
        let mut rx = new_rx();

        assert!(!rx.set_room(None));
        for size in [LONG, SHORT, LONG] {
            assert!(rx.set_room(Some(size)));
            assert!(!rx.set_room(Some(size)));
            assert_eq!(rx.buffer_size(), Some(size));
        }
        // Another FPDU, after one that the socket had room for.
        assert!(!rx.set_room(None));
        assert_eq!(rx.buffer_size(), None);
        assert!(rx.set_room(Some(LONG)));
    }

    /// Only the worker repeats the request after a failure, and later after each. A peer that sends
    /// FPDUs of several sizes cannot change that.
    #[test]
    fn a_failure_requests_nothing() {
        let mut rx = new_rx();

        assert!(rx.set_room(Some(LONG)));
        for failures in 1..4 {
            assert_eq!(rx.hold(LONG, Err(ENOMEM)), Err(failures));
            assert!(!rx.set_room(Some(LONG)));
            assert_eq!(rx.buffer_size(), Some(LONG));
        }
        assert!(rx.set_room(Some(SHORT)));
        // An allocation that began before.
        assert_eq!(rx.hold(LONG, Err(ENOMEM)), Err(4));
        assert_eq!(rx.buffer_size(), Some(SHORT));
        assert_eq!(rx.hold(SHORT, Err(ENOMEM)), Err(5));
        // Nobody needs it any more.
        assert!(!rx.set_room(None));
        assert_eq!(rx.hold(SHORT, Err(ENOMEM)), Ok(()));
    }

    /// The FPDU at the front gets a buffer of its size, and no other one.
    #[test]
    fn an_fpdu_has_one_buffer() {
        let mut rx = new_rx();
        let memcg = MemCgroup::none();

        assert!(rx.set_room(Some(LONG)));
        assert_eq!(rx.hold(SHORT, RecvBuf::new(SHORT, &memcg)), Ok(()));
        assert_eq!(rx.buffer_size(), Some(LONG));
        assert_eq!(rx.hold(LONG, RecvBuf::new(LONG, &memcg)), Ok(()));
        assert_eq!(rx.buffer_size(), None);
        assert!(!rx.set_room(Some(LONG)));
        assert!(!rx.set_room(None));
        assert!(!rx.set_room(Some(SHORT)));
    }
}
