// SPDX-License-Identifier: GPL-2.0

//! Wire formats of the headers. All fields are big-endian and unaligned. Only sizes are checked
//! here.

pub mod ddp;
pub mod enhanced;
pub mod mpa;
pub mod rdmap;
pub mod terminate;
