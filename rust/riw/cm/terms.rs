// SPDX-License-Identifier: GPL-2.0

//! What both sides give to the startup of a stream.

use super::device::CmDevice;
use crate::{
    link::{Reorder, Terms},
    qp::Qp,
};
use rdma::iw::ConnParam;

/// Returns what the consumer offers.
pub(super) fn terms<'a>(param: &ConnParam<'a>) -> Terms<'a> {
    Terms {
        ird: param.ird,
        ord: param.ord,
        private_data: param.private_data,
    }
}

/// Returns the treatment of segments of a queue pair that arrive out of order.
pub(super) fn reorder(dev: &CmDevice, qp: &Qp) -> Reorder {
    Reorder {
        memcg: qp.memcg().clone(),
        early_placement: dev.settings.places_early(),
    }
}
