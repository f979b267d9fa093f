// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Tests of the rings, against the kernel's side as `riw_abi` describes it.

mod completions;
mod posts;

use super::{Completions, Payload, ReceiveQueue, Refused, SendQueue};
use core::sync::atomic::{fence, AtomicU64, Ordering};
use riw_abi::cqe::{self, Cqe};
use riw_abi::ring::{self, ARM, ARM_NEXT, ARM_SOLICITED, CONSUMER, PRODUCER, WAKE_AT, WAKE_NEVER};
use riw_abi::udata::{RingMap, FEATURE_ATOMICS, FEATURE_MEMORY_WINDOWS, FEATURE_WRITE_WITH_IMM};
use riw_abi::wr::{flags, opcode, Rqe, Sge, Sqe};
use std::iter::empty;
use std::sync::mpsc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The memory of a ring, as both sides have it.
#[derive(Clone)]
struct Memory(Arc<[AtomicU64]>);

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Memory {
    fn new(map: &RingMap) -> Self {
        let words = ring::len(map.entries, map.stride).unwrap() / 8;
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        self.0.get(offset / 8).unwrap()
    }

    fn words<const N: usize>(&self, offset: usize) -> [u64; N] {
        core::array::from_fn(|index| self.word(offset + 8 * index).load(Ordering::Relaxed))
    }
}

fn map(entries: u32, stride: usize) -> RingMap {
    RingMap {
        entries,
        stride: stride.try_into().unwrap(),
        ..RingMap::default()
    }
}

const FEATURES: u64 = FEATURE_WRITE_WITH_IMM | FEATURE_ATOMICS;

fn send_queue(entries: u32) -> (Memory, RingMap, SendQueue<Memory>) {
    let map = map(entries, Sqe::stride(4, 64));
    let memory = Memory::new(&map);
    let queue = SendQueue::new(memory.clone(), &map, FEATURES, false).unwrap();

    (memory, map, queue)
}

/// The kernel's copy of an entry: its head and its data.
fn taken(memory: &Memory, map: &RingMap, number: u32) -> (Sqe, [Sge; 2]) {
    let at = ring::offset(number, map.entries, map.stride);
    let sge = |index: usize| Sge::from_words(memory.words(at + Sqe::DATA + index * 16));

    (Sqe::from_words(memory.words(at)), [sge(0), sge(1)])
}

fn head(opcode: u8, wr_id: u64) -> Sqe {
    Sqe {
        opcode,
        wr_id,
        ..Sqe::default()
    }
}

fn sge(addr: u64) -> Sge {
    Sge {
        addr,
        length: 100,
        lkey: 7,
    }
}

fn no_sges() -> Payload<'static, impl ExactSizeIterator<Item = Sge>> {
    Payload::Sges(empty())
}

fn inline(bytes: &[u8]) -> Payload<'_, core::iter::Empty<Sge>> {
    Payload::Inline(bytes)
}

#[test]
fn memory_that_breaks_the_rules_is_refused() {
    let good = map(4, 128);
    let memory = Memory::new(&good);
    let ok = |map: &RingMap| {
        assert_eq!(
            Completions::new(memory.clone(), map).is_some(),
            ReceiveQueue::new(memory.clone(), map).is_some()
        );
        SendQueue::new(memory.clone(), map, 0, false).is_some()
    };

    assert!(ok(&good));
    for (entries, stride) in [
        (0, 128),
        (3, 128),
        (8, 128),
        (4, 192),
        (4, 0),
        (4, 100),
        (u32::MAX, u32::MAX as usize),
        (1 << 31, 1 << 31),
    ] {
        assert!(!ok(&map(entries, stride)), "{entries} entries of {stride}");
    }
    assert!(SendQueue::new(Memory(Arc::new([])), &good, 0, false).is_none());
}
