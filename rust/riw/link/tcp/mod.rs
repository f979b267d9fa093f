// SPDX-License-Identifier: GPL-2.0

//! MPA over TCP (RFC 5044): the FPDUs of a stream are its frames.

mod budget;
mod fpdus;
mod readable;

pub(super) use fpdus::RxCause;
pub(crate) use fpdus::{RxState, RX_ROOM};
pub(super) use readable::receive;
