// SPDX-License-Identifier: GPL-2.0

//! The places in the source where riw orders accesses. One of them can be weakened.

use core::{fmt, panic::Location};
use loom::sync::atomic::Ordering;
use std::{collections::BTreeSet, sync::Mutex};

/// The kind of an ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Acquire,
    Release,
    /// The barriers of an exchange.
    Exchange,
    Barrier,
}

/// A place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// From `rust/` on.
    pub file: &'static str,
    line: u32,
    kind: Kind,
}

impl Site {
    /// Returns `None` for code that is not riw's, but a model's.
    fn new(location: &'static Location<'static>, kind: Kind) -> Option<Self> {
        let file = location.file();

        Some(Self {
            file: &file[file.find("rust/")?..],
            line: location.line(),
            kind,
        })
    }
}

impl fmt::Display for Site {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Acquire => "acquire",
            Kind::Release => "release",
            Kind::Exchange => "the exchange is a full barrier",
            Kind::Barrier => "barrier",
        };

        write!(to, "{}:{}: {kind}", self.file, self.line)
    }
}

struct State {
    seen: BTreeSet<Site>,
    weak: Option<Site>,
}

static STATE: Mutex<State> = Mutex::new(State {
    seen: BTreeSet::new(),
    weak: None,
});

/// Weakens no site but this one from now on.
pub fn weaken(site: Option<Site>) {
    STATE.lock().unwrap().weak = site;
}

/// Returns the sites that code has passed since the last call.
pub fn take_seen() -> BTreeSet<Site> {
    core::mem::take(&mut STATE.lock().unwrap().seen)
}

/// Whether the caller's caller orders accesses: false if it is the site that is weakened.
#[track_caller]
pub fn orders(kind: Kind) -> bool {
    let Some(site) = Site::new(Location::caller(), kind) else {
        return true;
    };
    let mut state = STATE.lock().unwrap();

    state.seen.insert(site);
    state.weak != Some(site)
}

/// Returns the ordering of the caller's load or store.
#[track_caller]
pub fn ordering(order: Ordering) -> Ordering {
    let kind = match order {
        Ordering::Acquire => Kind::Acquire,
        Ordering::Release => Kind::Release,
        _ => return order,
    };

    match orders(kind) {
        true => order,
        false => Ordering::Relaxed,
    }
}
