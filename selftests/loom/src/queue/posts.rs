// SPDX-License-Identifier: GPL-2.0

//! A receive queue: the process posts by `rust/libriw/ring`, and the kernel takes by `rust/riw/queue/counted.rs`.

use super::counted::CountedRing;
use crate::{bell::Bell, driver::Riw, ring::ReceiveQueue};
use loom::{sync::Arc, thread};
use rdma::ucontext::{Mapped, Ucontext};
use riw_abi::wr::{Rqe, Sge};

/// Makes a queue of so many entries, as both sides have it.
fn queue(entries: u32) -> (CountedRing, ReceiveQueue<Mapped>) {
    let process = Ucontext::<Riw>::new();
    let mut ring = CountedRing::for_receives(entries, Rqe::stride(1)).unwrap();
    let map = ring.offer(&process).unwrap();
    let queue = ReceiveQueue::new(process.map(), &map).unwrap();

    (ring, queue)
}

/// Posts WR `number`, if there is room. Returns whether the doorbell must ring.
fn post(queue: &mut ReceiveQueue<Mapped>, number: u64) -> Option<bool> {
    let sge = Sge {
        addr: number + 100,
        ..Sge::default()
    };

    queue.post(number, [sge].into_iter()).ok()?;
    Some(queue.publish())
}

/// Takes entry `next`, if it is posted, and checks it.
fn take(ring: &CountedRing, next: u32) -> bool {
    let Some(entry) = ring.posted_entry(next) else {
        return false;
    };
    let mut head = [0; 2];
    let mut sge = [0; 2];

    entry.load(0, &mut head).unwrap();
    entry.load(Rqe::DATA, &mut sge).unwrap();
    ring.release(next);
    assert_eq!(Rqe::from_words(head).wr_id, next.into());
    assert_eq!(Sge::from_words(sge).addr, u64::from(next) + 100);
    true
}

/// The process posts WRs, and the kernel takes them. It goes idle in between.
pub(super) fn doorbell() {
    const WRS: u32 = 2;

    let (ring, mut queue) = queue(WRS);
    let bell = Arc::new(Bell::new());
    let rung = bell.clone();
    let process = thread::spawn(move || {
        for number in 0..WRS {
            if post(&mut queue, number.into()).unwrap() {
                bell.ring();
            }
        }
    });
    let mut next = 0;

    while next < WRS {
        if take(&ring, next) {
            next += 1;
        } else if !ring.wake_at(next) {
            rung.wait();
        }
    }
    process.join().unwrap();
}

/// A ring of one entry, with two WRs.
pub(super) fn reuse() {
    const WRS: u32 = 2;

    let (ring, mut queue) = queue(1);
    let process = thread::spawn(move || {
        for number in 0..WRS {
            while post(&mut queue, number.into()).is_none() {
                thread::yield_now();
            }
        }
    });

    for next in 0..WRS {
        while !take(&ring, next) {
            thread::yield_now();
        }
    }
    process.join().unwrap();
}
