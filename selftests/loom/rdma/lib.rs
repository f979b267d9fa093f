// SPDX-License-Identifier: GPL-2.0

//! The part of `rust/rdma` that riw's rings use: memory that the kernel and a process share.

pub mod shared {
    use kernel::{
        race::RaceCheck,
        sync::atomic::{ordering, Atomic},
        Result,
    };
    use std::sync::Arc;

    /// Words that both sides access.
    pub struct SharedMem {
        words: Vec<Atomic<u64>>,
        checks: Vec<Arc<RaceCheck>>,
    }

    impl SharedMem {
        /// Unlike the kernel's, no longer than needed: each word costs time in a model.
        pub fn new(words: usize) -> Result<Self> {
            Ok(Self {
                words: (0..words).map(|_| Atomic::new(0)).collect(),
                checks: (0..words).map(|_| Arc::new(RaceCheck::new())).collect(),
            })
        }

        pub fn words(&self) -> &[Atomic<u64>] {
            &self.words
        }

        /// The checks of the words.
        pub(super) fn checks(&self) -> &[Arc<RaceCheck>] {
            &self.checks
        }

        /// Reads words of an entry.
        pub fn load(&self, at: usize, to: &mut [u64]) -> Option<()> {
            let end = at.checked_add(to.len())?;
            let words = self.words.get(at..end)?;

            for ((to, word), check) in to.iter_mut().zip(words).zip(&self.checks[at..end]) {
                check.read();
                *to = word.load(ordering::Relaxed);
            }
            Some(())
        }

        /// Writes words of an entry.
        pub fn store(&self, at: usize, from: &[u64]) -> Option<()> {
            let end = at.checked_add(from.len())?;
            let words = self.words.get(at..end)?;

            for ((from, word), check) in from.iter().zip(words).zip(&self.checks[at..end]) {
                check.write();
                word.store(*from, ordering::Relaxed);
            }
            Some(())
        }

        pub fn bytes(&self) -> usize {
            self.words.len() * size_of::<u64>()
        }
    }
}

pub mod ucontext {
    use super::shared::SharedMem;
    use core::{cell::RefCell, marker::PhantomData};
    use kernel::{prelude::*, sync::Arc};
    use process::sync::atomic::AtomicU64;
    use riw_abi::ring::HEADER;

    /// A process, to which the kernel can offer one memory.
    pub struct Ucontext<T> {
        offered: RefCell<Option<Arc<SharedMem>>>,
        driver: PhantomData<T>,
    }

    /// An offer.
    pub struct Mapping<T>(PhantomData<T>);

    impl<T> Ucontext<T> {
        #[expect(clippy::new_without_default)]
        pub fn new() -> Self {
            Self {
                offered: RefCell::new(None),
                driver: PhantomData,
            }
        }

        pub fn offer(&self, mem: &Arc<SharedMem>, _above: u64) -> Result<Mapping<T>> {
            *self.offered.borrow_mut() = Some(mem.clone());
            Ok(Mapping(PhantomData))
        }

        /// mmap() of the process. Only accesses to entries take turns.
        pub fn map(&self) -> Mapped {
            let offered = self.offered.borrow();
            let mem = offered.as_ref().expect("no memory was offered");
            let header = HEADER / size_of::<u64>();
            let words = mem.words().iter().zip(mem.checks()).enumerate();

            Mapped(
                words
                    .map(|(at, (word, check))| {
                        AtomicU64::map(word, (at >= header).then(|| check.clone()))
                    })
                    .collect(),
            )
        }
    }

    impl<T> Mapping<T> {
        pub fn key(&self) -> u64 {
            0
        }
    }

    /// The memory, as the process has it.
    pub struct Mapped(Vec<AtomicU64>);

    impl AsRef<[AtomicU64]> for Mapped {
        fn as_ref(&self) -> &[AtomicU64] {
            &self.0
        }
    }
}
