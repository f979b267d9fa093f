// SPDX-License-Identifier: GPL-2.0

//! How many FPDUs of an inlet one run receives.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::{InletMemory, RecordInlet};
use crate::link::{
    segments::{Inflow, LinkRx, Segments},
    transport::Transport,
};
use iwarp::{ddp, startup::Parameters};
use kernel::prelude::*;
use kernel_ext::memcg::MemCgroup;

/// The shortest FPDU: an RDMA Write without payload. CRCs are off.
const SHORTEST: [u8; 20] = [0, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Returns an inlet that is full of FPDUs, the last of which is incomplete, the number of the
/// others, and the receiving side of a stream.
fn full_inlet() -> Result<(RecordInlet, usize, LinkRx)> {
    let parameters = Parameters {
        crc: false,
        rx_markers: false,
        tx_markers: false,
        revision: 1,
        ird: 0,
        ord: 0,
        rtr: None,
        peer_ird: None,
        peer_ord: None,
    };
    let mut inlet = RecordInlet::new();

    inlet.give(InletMemory::new(&MemCgroup::none())?);
    let room = inlet.room();
    let octets = room.len();

    for fpdu in room.chunks_mut(SHORTEST.len()) {
        for (to, octet) in fpdu.iter_mut().zip(SHORTEST) {
            *to = octet;
        }
    }
    inlet.add(octets);
    let rx = LinkRx::new(Transport::Tls, &parameters);

    Ok((inlet, octets / SHORTEST.len(), rx))
}

/// Takes FPDUs as a run does. Returns how many.
fn run(inlet: &mut RecordInlet, rx: &mut LinkRx) -> Result<usize> {
    let mut segments = inlet.segments(rx).ok_or(EINVAL)?;
    let mut head = [0; ddp::HEAD_LEN];
    let mut count = 0;

    while let Some(ulpdu) = segments.next(&mut head).map_err(|_| EINVAL)? {
        segments.advance(ulpdu.octets);
        count += 1;
    }
    segments.finish(false).map_err(|_| EINVAL)?;
    Ok(count)
}

#[kunit_tests(riw_tls_inlet)]
mod tests {
    use super::*;

    /// The shortest FPDUs are received in several runs, and none is left behind. Only what can be
    /// received without a further read is a rest.
    #[test]
    fn a_full_inlet_is_received_run_by_run() -> Result {
        let (mut inlet, complete, mut rx) = full_inlet()?;
        let mut taken = 0;

        while taken == 0 || inlet.has_rest() {
            let count = run(&mut inlet, &mut rx)?;

            assert!((1..=1000).contains(&count));
            taken += count;
        }
        assert_eq!(taken, complete);
        assert!(!inlet.is_empty());
        assert_eq!(run(&mut inlet, &mut rx)?, 0);
        assert!(!inlet.has_rest());
        Ok(())
    }

    /// The end of a stream leaves nothing to receive.
    #[test]
    fn a_discard_leaves_no_rest() -> Result {
        let (mut inlet, _, mut rx) = full_inlet()?;

        run(&mut inlet, &mut rx)?;
        assert!(inlet.has_rest());
        inlet.discard();
        assert!(!inlet.has_rest());
        assert!(inlet.is_empty());
        Ok(())
    }
}
