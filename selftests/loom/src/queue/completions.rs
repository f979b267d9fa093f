// SPDX-License-Identifier: GPL-2.0

//! A completion queue: the kernel adds by `rust/riw/queue/counted.rs` and `arming.rs`, and the process polls and
//! arms by `rust/libriw/ring`.

use super::{arming::disarm, counted::CountedRing};
use crate::{
    bell::Bell,
    driver::Riw,
    ring::{Arming, Completions},
};
use loom::{sync::Arc, thread};
use rdma::ucontext::{Mapped, Ucontext};
use riw_abi::{
    cqe::Cqe,
    ring::{self, ARM},
};

/// Makes a queue of so many entries, as both sides have it.
fn queue(entries: u32) -> (CountedRing, Completions<Mapped>, Arming<Mapped>) {
    let process = Ucontext::<Riw>::new();
    let mut ring = CountedRing::new(entries, Cqe::STRIDE).unwrap();
    let map = ring.offer(&process).unwrap();
    let completions = Completions::new(process.map(), &map).unwrap();
    let arming = Arming::new(process.map(), &map).unwrap();

    (ring, completions, arming)
}

/// Adds completion `put`, if there is room: `CqRing::is_full` and `CqRing::publish`.
fn add(ring: &CountedRing, put: u32) -> bool {
    if ring::room(put, ring.consumer(), ring.len()) == 0 {
        return false;
    }
    let cqe = Cqe {
        wr_id: put.into(),
        flags: Cqe::phase(put, ring.len()),
        byte_len: put + 100,
        ..Cqe::default()
    };
    let words = cqe.to_words();
    let entry = ring.entry(put);
    let [first, control, rest @ ..] = words.as_slice() else {
        unreachable!();
    };

    entry.store(0, &[*first]).unwrap();
    entry.store(2 * size_of::<u64>(), rest).unwrap();
    entry.store_release(Cqe::CONTROL, *control).unwrap();
    true
}

/// Polls completion `next`, if it is there, and checks it.
fn poll(completions: &mut Completions<Mapped>, next: u32) -> bool {
    let Some(cqe) = completions.next() else {
        return false;
    };

    assert_eq!((cqe.wr_id, cqe.byte_len), (next.into(), next + 100));
    completions.release();
    true
}

/// The kernel adds completions, and the process polls them. It waits for events in between.
pub(super) fn arming() {
    const COMPLETIONS: u32 = 2;

    let (ring, mut completions, arming) = queue(COMPLETIONS);
    let event = Arc::new(Bell::new());
    let triggered = event.clone();
    let kernel = thread::spawn(move || {
        for put in 0..COMPLETIONS {
            assert!(add(&ring, put));
            if disarm(ring.header(ARM).unwrap(), |word| ring::meets(word, false)) {
                event.ring();
            }
        }
    });
    let mut next = 0;

    while next < COMPLETIONS {
        if poll(&mut completions, next) {
            next += 1;
            continue;
        }
        arming.arm(false);
        if poll(&mut completions, next) {
            next += 1;
        } else {
            triggered.wait();
        }
    }
    kernel.join().unwrap();
}

/// A ring of one entry, with two completions.
pub(super) fn reuse() {
    const COMPLETIONS: u32 = 2;

    let (ring, mut completions, _) = queue(1);
    let kernel = thread::spawn(move || {
        for put in 0..COMPLETIONS {
            while !add(&ring, put) {
                thread::yield_now();
            }
        }
    });

    for next in 0..COMPLETIONS {
        while !poll(&mut completions, next) {
            thread::yield_now();
        }
    }
    kernel.join().unwrap();
}
