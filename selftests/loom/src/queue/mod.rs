// SPDX-License-Identifier: GPL-2.0

//! The rings of riw's own ABI: the kernel's side, and the models of both sides.

#[path = "../../../../rust/riw/queue/arming.rs"]
mod arming;
#[allow(dead_code, unused_imports)]
#[path = "../../../../rust/riw/queue/counted.rs"]
mod counted;
#[allow(dead_code, unused_imports)]
#[path = "../../../../rust/riw/queue/entry.rs"]
mod entry;

mod completions;
mod posts;

use crate::tap::Model;

pub(crate) const MODELS: &[Model] = &[
    Model {
        rule: "no entry is left behind while the kernel is idle",
        run: posts::doorbell,
    },
    Model {
        rule: "an entry is read before it is overwritten",
        run: posts::reuse,
    },
    Model {
        rule: "no completion is left behind while the process waits",
        run: completions::arming,
    },
    Model {
        rule: "a completion is read before it is overwritten",
        run: completions::reuse,
    },
];
