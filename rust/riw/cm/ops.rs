// SPDX-License-Identifier: GPL-2.0

//! What iw_cm calls.

use super::{connect, listen};
use crate::{qp::Qp, Riw};
use core::net::SocketAddr;
use kernel::prelude::*;
use rdma::{
    iw::{CmId, CmOperations, ConnParam, Setup},
    Device,
};

impl CmOperations for Riw {
    fn connect(
        dev: &Device<Self>,
        id: &CmId,
        setup: &Setup,
        remote: &SocketAddr,
        param: &ConnParam<'_>,
    ) -> Result {
        let qp = Qp::lookup(dev, param.qpn).ok_or(EINVAL)?;

        connect::connect(&dev.cm, &qp, id, setup, remote, param)
    }

    fn accept(dev: &Device<Self>, id: &CmId, token: usize, param: &ConnParam<'_>) -> Result {
        let endpoint = dev.cm.endpoint(token).ok_or(ECONNRESET)?;

        match Qp::lookup(dev, param.qpn) {
            Some(qp) => endpoint.accept(&qp, id, param),
            None => {
                // Nobody can reject it any more.
                let _ = endpoint.reject(&[]);
                Err(EINVAL)
            }
        }
    }

    fn reject(dev: &Device<Self>, token: usize, private_data: &[u8]) -> Result {
        dev.cm
            .endpoint(token)
            .ok_or(ECONNRESET)?
            .reject(private_data)
    }

    fn create_listen(dev: &Device<Self>, id: &CmId, setup: &Setup, backlog: u32) -> Result<usize> {
        listen::listen(&dev.cm, id, setup, backlog)
    }

    fn destroy_listen(dev: &Device<Self>, token: usize) -> Result {
        dev.cm.subscription(token).ok_or(ENOENT)?.close();
        Ok(())
    }
}
