// SPDX-License-Identifier: GPL-2.0

//! MPA over TCP (RFC 5044): the FPDUs of a stream are its frames.

mod connection;
mod fpdus;
mod readable;
pub(super) mod socket;
mod startup;

pub(crate) use connection::TcpConnection;
pub(crate) use fpdus::MpaRx;
use fpdus::RxCause;
use readable::receive;
pub(crate) use startup::MpaStartup;
pub(super) use startup::{new_reader, receive_request};
