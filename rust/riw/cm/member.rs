// SPDX-License-Identifier: GPL-2.0

//! The members of a device, as iw_cm and the shutdown of the device use them.

use crate::qp::Qp;
use kernel::{
    prelude::*,
    sync::{Arc, ArcBorrow},
};
use rdma::iw::{CmId, ConnParam, Rejection};

/// An object that has a link, or a share in one, which the shutdown has to close.
#[derive(Clone)]
pub(super) enum Member {
    Endpoint(Arc<dyn CmConnection>),
    Subscription(Arc<dyn CmSubscription>),
}

/// A connection.
pub(super) trait CmConnection: Send + Sync {
    /// Accepts, as [`CmOperations::accept`](rdma::iw::CmOperations::accept) says. May sleep.
    fn accept(self: ArcBorrow<'_, Self>, qp: &Arc<Qp>, id: &CmId, param: &ConnParam<'_>) -> Result;

    /// Rejects, as [`CmOperations::reject`](rdma::iw::CmOperations::reject) says. May sleep.
    fn reject(self: ArcBorrow<'_, Self>, rejection: &Rejection<'_>) -> Result;

    /// Reports the connect request, if it is queued. May sleep.
    fn offer(self: ArcBorrow<'_, Self>);

    /// Ends the connection to make room for others, unless it has been reported. A work item does
    /// it. Any context.
    fn evict(self: ArcBorrow<'_, Self>);

    /// Resets the connection. On return the link is empty and reports no event. May sleep.
    fn shutdown(self: ArcBorrow<'_, Self>);
}

/// A listening id of iw_cm.
pub(super) trait CmSubscription: Send + Sync {
    /// Closes the subscription. On return no event reaches the id, and the sockets of which this
    /// was the last subscription are gone, whoever has closed it. May sleep.
    fn close(self: ArcBorrow<'_, Self>);
}
