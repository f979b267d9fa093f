// SPDX-License-Identifier: GPL-2.0

//! `PerCpuCounters`: additions on several CPUs at a time.

use super::{yield_cpu, Workers};
use crate::percpu::PerCpuCounters;
use kernel::{prelude::*, sync::Arc};

#[kunit_tests(kernel_ext_percpu)]
mod tests {
    use super::*;

    const THREADS: u32 = 4;
    const ROUNDS: u64 = 20_000;
    /// Steps before a thread yields, and may migrate to another CPU.
    const STEPS: u64 = 100;

    /// The sum has each addition of each thread, single or in a batch, and counters do not mix.
    #[test]
    fn no_addition_is_lost() -> Result {
        let counters = Arc::new(PerCpuCounters::<4>::new()?, GFP_KERNEL)?;
        let workers = Workers::new(THREADS)?;

        for _ in 0..THREADS {
            let counters = counters.clone();
            workers.add(move || {
                for round in 0..ROUNDS {
                    counters.add(0, 1);
                    counters.add(2, round);
                    counters.add_several(|batch| {
                        batch.add(0, 2);
                        batch.add(3, round);
                    });
                    if round % STEPS == 0 {
                        yield_cpu();
                    }
                }
            })?;
        }
        drop(workers);
        assert_eq!(counters.sum(0), u64::from(THREADS) * ROUNDS * 3);
        assert_eq!(counters.sum(1), 0);
        for rounds in [2, 3] {
            assert_eq!(
                counters.sum(rounds),
                u64::from(THREADS) * ROUNDS * (ROUNDS - 1) / 2
            );
        }
        Ok(())
    }

    /// An index that does not exist is ignored, and each set of counters is its own.
    #[test]
    fn indexes_stay_within_their_set() -> Result {
        let counters = PerCpuCounters::<2>::new()?;
        let others = PerCpuCounters::<2>::new()?;

        counters.add(1, 5);
        counters.add(2, 7);
        counters.add(usize::MAX, 7);
        assert_eq!(counters.sum(0), 0);
        assert_eq!(counters.sum(1), 5);
        assert_eq!(counters.sum(2), 0);
        assert_eq!(counters.sum(usize::MAX), 0);
        assert_eq!(others.sum(0) + others.sum(1), 0);
        Ok(())
    }
}
