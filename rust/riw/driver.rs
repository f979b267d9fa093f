// SPDX-License-Identifier: GPL-2.0

//! The type that stands for the driver in ib_core's generic objects. `verbs.rs` implements it.

/// The driver, as ib_core sees it.
pub(crate) struct Riw;
