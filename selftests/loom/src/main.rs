// SPDX-License-Identifier: GPL-2.0

//! Models of riw's lock-free code, for loom: it runs each one in all interleavings of its threads, with all values
//! that a load may return by the memory model of C11.
//!
//! The code is riw's and libriw's own. Only the atomics, and what is around them, are others: the crates
//! `kernel`, `process` and `rdma` of this folder. Writes TAP.

// libriw takes its atomics from `core`.
extern crate process as core;

mod driver {
    /// The driver.
    pub struct Riw;
}

mod bell;
mod pending;
mod queue;
#[allow(dead_code, unused_imports)]
#[path = "../../../rust/libriw/ring/mod.rs"]
mod ring;
mod runner;
mod tap;

/// The path of a source file, and its text.
macro_rules! source {
    ($path:literal) => {
        ($path, include_str!(concat!("../../../", $path)))
    };
}

fn main() {
    let models = [queue::MODELS, runner::MODELS, pending::MODELS].concat();
    let sources = [
        source!("rust/libriw/ring/complete.rs"),
        source!("rust/libriw/ring/memory.rs"),
        source!("rust/libriw/ring/post.rs"),
        source!("rust/libriw/ring/receive.rs"),
        source!("rust/libriw/ring/send.rs"),
        source!("rust/riw/cm/pending.rs"),
        source!("rust/kernel-ext/runner.rs"),
        source!("rust/riw/queue/arming.rs"),
        source!("rust/riw/queue/counted.rs"),
        source!("rust/riw/queue/entry.rs"),
    ];

    tap::run(&models, &sources);
}
