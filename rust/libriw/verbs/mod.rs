// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! The verbs, which libibverbs calls. All `unsafe` code that is not a lock is here.
//!
//! A function of type `extern "C"` is called by libibverbs, or by a program through it, with
//! objects of this library. The rules of the manual pages of verbs are the promise that the
//! comments on safety rely on: an object is valid and not in use when it is destroyed, lists and
//! buffers have the stated length. A panic in such a function would abort the process.

#![cfg_attr(
    test,
    allow(
        dead_code,
        reason = "tests run where there is no libibverbs to link with"
    )
)]

mod doorbell;
mod errno;
mod numbers;
mod object;

#[cfg(not(test))]
mod bind;
#[cfg(not(test))]
mod context;
#[cfg(not(test))]
mod cq;
#[cfg(not(test))]
mod device;
#[cfg(not(test))]
mod mapping;
#[cfg(not(test))]
mod mr;
#[cfg(not(test))]
mod mw;
#[cfg(not(test))]
mod open;
#[cfg(not(test))]
mod pd;
#[cfg(not(test))]
mod qp;
#[cfg(not(test))]
mod qp_ex;
#[cfg(not(test))]
mod receive;
#[cfg(not(test))]
mod resize;
#[cfg(not(test))]
mod send;
#[cfg(not(test))]
mod srq;
