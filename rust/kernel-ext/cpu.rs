// SPDX-License-Identifier: GPL-2.0

//! CPUs, and whether they are idle.

use kernel::{
    cpu::{nr_cpu_ids, CpuId},
    prelude::*, //
};
use riw_bindings as bindings;

pub use kernel::processor::cpu_relax;

/// A CPU that was online when it was chosen.
///
/// # Invariants
///
/// It is the number of a possible CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu(c_int);

impl Cpu {
    /// Returns an online CPU of the NUMA node of the caller, other than the one that the caller
    /// runs on: the next one behind that, or behind `last`, so that calls in a row return each of
    /// them in turn. Passes over CPUs that the administrator has isolated. `None` if there is none.
    /// Any context.
    pub fn other(last: Option<Self>) -> Option<Self> {
        let last = last.map_or(-1, |cpu| cpu.0);
        // SAFETY: The function has no preconditions.
        let cpu = unsafe { bindings::other_cpu(last) };

        // INVARIANT: A CPU that is online is possible.
        (cpu >= 0).then_some(Self(cpu))
    }

    /// Returns how many numbers of CPUs there are. Any context.
    pub fn numbers() -> usize {
        // CAST: A 32-bit number fits.
        nr_cpu_ids() as usize
    }

    /// Returns its number, below [`Self::numbers`]. Any context.
    pub fn number(self) -> usize {
        // CAST: By the type's invariant it is not negative.
        self.0 as usize
    }

    /// Returns the CPU that the caller runs on, now. Any context.
    pub fn this() -> Self {
        // CAST: The number of a CPU is small.
        // INVARIANT: A CPU on which something runs is possible.
        Self(CpuId::current().as_u32() as c_int)
    }

    /// Whether the caller runs on it, now. Any context.
    pub fn is_this(self) -> bool {
        self == Self::this()
    }

    /// Returns the microseconds, since the boot, for which it has been idle. Any context. They are
    /// behind for a CPU that is never idle for as long as a tick, and may go back a little.
    pub fn idle_micros(self) -> i64 {
        // SAFETY: By the type's invariant it is the number of a possible CPU.
        let micros = unsafe { bindings::cpu_idle_us(self.0) };

        micros.try_into().unwrap_or(i64::MAX)
    }

    /// Returns the number for the kernel's functions.
    pub(crate) fn as_raw(self) -> c_int {
        self.0
    }
}

/// Returns the number of possible CPUs (`num_possible_cpus()`, `include/linux/cpumask.h`). Any
/// context.
pub fn num_possible() -> u32 {
    // SAFETY: num_possible_cpus() has no preconditions.
    unsafe { bindings::num_possible_cpus() }
}

/// Whether the caller is the only task that is ready to run on its CPU. Process context.
pub fn is_alone() -> bool {
    // SAFETY: The function has no preconditions.
    unsafe { bindings::is_alone() }
}

/// Whether the caller has a real-time policy, and so comes before all tasks without one. Process
/// context.
pub fn is_realtime() -> bool {
    // SAFETY: The caller is in process context, so there is a current task.
    unsafe { bindings::is_realtime() }
}

/// Lets others run and makes clear that the caller, which has not slept for long, uses no code that
/// is about to be freed (`cond_resched_tasks_rcu_qs()`). Process context; may sleep.
pub fn quiesce() {
    // SAFETY: The caller is in process context. Nothing that RCU Tasks protects is in use.
    unsafe { bindings::quiesce() }
}

/// Sleeps for `micros` microseconds. Process context.
pub fn doze(micros: u32) {
    // CAST: A 32-bit number fits.
    let micros = micros as usize;

    // Idle: the load of the machine does not count the caller.
    // SAFETY: The caller is in process context.
    unsafe { bindings::usleep_range_state(micros, micros, bindings::TASK_IDLE) }
}
