// SPDX-License-Identifier: GPL-2.0

//! The callbacks for iw_cm.
//!
//! The callbacks allocate without I/O. They hold the lock of a connection's phase, or locks that
//! all connections of a device or of a listener need, and the worker of `riw_setup` may wait for
//! these. That worker serves all connections, also a connection that I/O waits for.

use super::{connect, create_listen};
use crate::{driver::Riw, link::Terms, queue::QpObject};
use core::net::SocketAddr;
use kernel::prelude::*;
use kernel_ext::memalloc::without_io;
use net::Netns;
use rdma::{
    iw::{Backlog, CmId, CmOperations, ConnParam, Rejection, Setup},
    Device,
};

impl CmOperations for Riw {
    fn connect(
        dev: &Device<Self>,
        id: &CmId,
        setup: &Setup,
        home: Option<Netns>,
        remote: &SocketAddr,
        qp: &QpObject,
        param: &ConnParam<'_>,
    ) -> Result {
        if !qp.is_owned_by(&param.consumer, qp) {
            return Err(EINVAL);
        }
        without_io(|| connect::connect(&dev.cm, qp, id, setup, home.as_ref(), remote, param))
    }

    fn accept(
        dev: &Device<Self>,
        id: &CmId,
        token: usize,
        qp: Option<&QpObject>,
        param: &ConnParam<'_>,
    ) -> Result {
        let endpoint = dev.cm.endpoint(token).ok_or(ECONNRESET)?;

        match qp.filter(|qp| qp.is_owned_by(&param.consumer, qp)) {
            Some(qp) => without_io(|| endpoint.accept(qp, id, param)),
            None => {
                // After this error iw_cm does not reject it.
                let rejection = Rejection {
                    private_data: &[],
                    by_handler: false,
                };
                let _ = without_io(|| endpoint.reject(&rejection));
                Err(EINVAL)
            }
        }
    }

    fn abandon(id: &CmId, qp: &QpObject) -> bool {
        // Without a connection it has ended: its beginning has been reported, or is about to be.
        qp.connection()
            .is_none_or(|connection| without_io(|| connection.as_arc_borrow().abandon(id)))
    }

    fn reject(dev: &Device<Self>, token: usize, rejection: &Rejection<'_>) -> Result {
        let endpoint = dev.cm.endpoint(token).ok_or(ECONNRESET)?;

        without_io(|| endpoint.reject(rejection))
    }

    fn create_listen(
        dev: &Device<Self>,
        id: &CmId,
        setup: &Setup,
        home: Option<Netns>,
        backlog: Backlog,
    ) -> Result<usize> {
        without_io(|| create_listen::listen(dev, id, setup, home.as_ref(), backlog))
    }

    fn destroy_listen(dev: &Device<Self>, token: usize) -> Result {
        let Some(subscription) = dev.cm.subscription(token) else {
            // A shutdown of the device may be about to close it.
            dev.cm.wait_for_shutdown();
            return Err(ENOENT);
        };

        without_io(|| subscription.close());
        Ok(())
    }
}

impl<'a> From<&ConnParam<'a>> for Terms<'a> {
    fn from(param: &ConnParam<'a>) -> Self {
        Self {
            ird: param.ird,
            ord: param.ord,
            private_data: param.private_data,
        }
    }
}
