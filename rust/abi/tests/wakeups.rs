// SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB

//! Models of the two protocols in `riw_abi::ring` that let a side sleep: the doorbell, and the
//! arming of a completion queue. A test goes through all interleavings of the steps of both sides.
//!
//! Each side has a buffer for its stores, which reach the memory later, in order. That is the
//! memory model of x86; it has the one reordering that these protocols need barriers for. A barrier
//! waits until the buffer is empty. Each test has a counterpart without one of the barriers, which
//! must find a wakeup that gets lost: otherwise the model shows nothing.

use riw_abi::ring;
use std::collections::{HashSet, VecDeque};

/// The words that both sides access.
type Memory = [u64; 2];

/// A side's part of the state.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Side {
    step: u32,
    /// Its own counters.
    own: [u32; 2],
    /// Stores that have not reached the memory.
    stores: VecDeque<(usize, u64)>,
    asleep: bool,
}

impl Side {
    fn load(&self, memory: &Memory, at: usize) -> u64 {
        let own = self.stores.iter().rev().find(|(to, _)| *to == at);

        own.map_or(memory[at], |(_, value)| *value)
    }

    fn store(&mut self, at: usize, value: u64) {
        self.stores.push_back((at, value));
    }

    fn go(&mut self, step: u32) -> bool {
        self.step = step;
        true
    }

    /// A full barrier, if the model has it: `false` if the side must wait.
    fn barrier(&self, exists: bool) -> bool {
        !exists || self.stores.is_empty()
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct State {
    memory: Memory,
    sides: [Side; 2],
}

/// A step of a side. Returns whether it could make one.
type Step<'a> = &'a dyn Fn(&mut State) -> bool;

/// Visits all states. Returns their number, and the states in which no side can make a step.
fn explore(start: State, steps: &[Step<'_>]) -> (usize, Vec<State>) {
    let flush = |side: usize| {
        move |state: &mut State| match state.sides[side].stores.pop_front() {
            Some((at, value)) => {
                state.memory[at] = value;
                true
            }
            None => false,
        }
    };
    let (flush0, flush1) = (flush(0), flush(1));
    let steps: Vec<Step<'_>> = steps
        .iter()
        .copied()
        .chain([&flush0 as Step<'_>, &flush1])
        .collect();
    let mut seen = HashSet::from([start.clone()]);
    let mut todo = vec![start];
    let mut ends = Vec::new();

    while let Some(state) = todo.pop() {
        let mut stuck = true;

        for step in &steps {
            let mut next = state.clone();

            if step(&mut next) {
                stuck = false;
                if seen.insert(next.clone()) {
                    todo.push(next);
                }
            }
        }
        if stuck {
            ends.push(state);
        }
    }
    (seen.len(), ends)
}

const PRODUCER: usize = 0;
const WAKE_AT: usize = 1;
const ENTRIES: u32 = 8;

/// A step of the process, which is side 0. own[0]: the next batch; own[1]: the count. Returns
/// whether it takes one.
fn post(state: &mut State, batches: &[u32], barrier: bool) -> bool {
    let memory = state.memory;
    let [process, kernel] = &mut state.sides;
    let [batch, count] = process.own;
    let Some(posts) = batches.get(batch as usize) else {
        return false;
    };
    let new = count.wrapping_add(*posts);

    match process.step {
        0 => {
            process.store(PRODUCER, ring::word(new));
            process.go(1)
        }
        1 if process.barrier(barrier) => {
            let wake_at = ring::count(process.load(&memory, WAKE_AT));

            if ring::must_ring(count, new, wake_at) {
                kernel.asleep = false;
            }
            process.own = [batch + 1, new];
            process.go(0)
        }
        _ => false,
    }
}

/// The process posts `batches`, and the kernel takes entries. Returns whether entries can be left
/// behind.
fn loses_entries(first: u32, batches: &[u32], process_barrier: bool, kernel_barrier: bool) -> bool {
    let total = first.wrapping_add(batches.iter().sum());
    let process = |state: &mut State| post(state, batches, process_barrier);
    // Side 1. own[0]: the count. Asleep until the doorbell rings.
    let kernel = |state: &mut State| {
        let memory = state.memory;
        let kernel = &mut state.sides[1];

        if kernel.asleep {
            return false;
        }
        let producer = ring::count(kernel.load(&memory, PRODUCER));
        let next = kernel.own[0];
        let posted = ring::posted(producer, next, ENTRIES) != 0;

        match kernel.step {
            0 | 2 if posted && (kernel.step == 0 || kernel.barrier(kernel_barrier)) => {
                kernel.own[0] = next.wrapping_add(1);
                kernel.go(0)
            }
            0 => {
                kernel.store(WAKE_AT, ring::word(next));
                kernel.go(2)
            }
            2 if kernel.barrier(kernel_barrier) => {
                kernel.asleep = true;
                kernel.go(0)
            }
            _ => false,
        }
    };
    let mut start = State {
        memory: [ring::word(first), ring::word(first)],
        ..State::default()
    };
    start.sides[0].own = [0, first];
    start.sides[1].own = [first, 0];
    start.sides[1].asleep = true;

    let (states, ends) = explore(start, &[&process, &kernel]);
    assert!(states > 10 && !ends.is_empty());
    assert!(ends.iter().all(|end| end.sides[0].own[1] == total));
    ends.iter().any(|end| end.sides[1].own[0] != total)
}

#[test]
fn no_entry_is_left_behind_while_the_kernel_is_idle() {
    for first in [0, u32::MAX - 1] {
        for batches in [&[1, 1, 1, 1][..], &[1, 3, 2], &[2, 1], &[5]] {
            assert!(!loses_entries(first, batches, true, true));
        }
    }
}

#[test]
fn both_barriers_of_the_doorbell_are_needed() {
    assert!(loses_entries(0, &[1, 1], false, true));
    assert!(loses_entries(0, &[1, 1], true, false));
}

const COMPLETIONS: usize = 0;
const ARM: usize = 1;

/// A step of the kernel, which is side 0. own[0]: the completions that it has added. Returns
/// whether it takes one.
fn complete(state: &mut State, total: u32, barrier: bool) -> bool {
    let memory = state.memory;
    let [kernel, process] = &mut state.sides;

    match kernel.step {
        0 if kernel.own[0] < total => {
            kernel.own[0] += 1;
            kernel.store(COMPLETIONS, kernel.own[0].into());
            kernel.go(1)
        }
        1 if kernel.barrier(barrier) => {
            if ring::meets(kernel.load(&memory, ARM), false) {
                kernel.go(2)
            } else {
                kernel.go(0)
            }
        }
        // The compare and exchange, and then the event.
        2 if kernel.stores.is_empty() => {
            state.memory[ARM] = 0;
            process.own[1] = 1;
            kernel.go(0)
        }
        _ => false,
    }
}

/// The kernel adds completions, and a process polls, arms, polls again and sleeps. Returns whether
/// it can sleep on with completions in the queue.
fn loses_completions(total: u32, kernel_barrier: bool, process_barrier: bool) -> bool {
    let kernel = |state: &mut State| complete(state, total, kernel_barrier);
    // Side 1. own[0]: the completions that it has polled; own[1]: 1 if an event is pending.
    let process = |state: &mut State| {
        let memory = state.memory;
        let process = &mut state.sides[1];

        if process.asleep {
            process.asleep = process.own[1] == 0;
            process.own[1] = 0;
            return !process.asleep;
        }
        let new = process.load(&memory, COMPLETIONS) > process.own[0].into();

        match process.step {
            // With all completions polled it ends.
            0 if process.own[0] == total => false,
            0 | 2 if new && (process.step == 0 || process.barrier(process_barrier)) => {
                process.own[0] += 1;
                process.go(0)
            }
            0 => {
                process.store(ARM, ring::ARM_NEXT);
                process.go(2)
            }
            2 if process.barrier(process_barrier) => {
                process.asleep = true;
                process.go(0)
            }
            _ => false,
        }
    };

    let (states, ends) = explore(State::default(), &[&kernel, &process]);
    assert!(states > 10 && !ends.is_empty());
    ends.iter().any(|end| end.sides[1].own[0] != total)
}

#[test]
fn no_completion_is_left_behind_while_the_process_waits() {
    for total in 1..4 {
        assert!(!loses_completions(total, true, true));
    }
}

#[test]
fn both_barriers_of_arming_are_needed() {
    assert!(loses_completions(2, false, true));
    assert!(loses_completions(2, true, false));
}
