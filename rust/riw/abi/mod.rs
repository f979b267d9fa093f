// SPDX-License-Identifier: GPL-2.0

//! The ABIs with user space: siw's, and riw's own. A device has one of them for all of its life.
//!
//! Only this folder, `queue/` and the functions that create objects know them. They turn ring
//! entries into WRs ([`queue::wr`](crate::queue::wr)), and completions into ring entries
//! ([`queue::cq_ring`](crate::queue)); all else uses only those.

pub(crate) mod siw;

use kernel::prelude::*;
use kernel_ext::module_param_word;
use rdma::{
    abi::{UserAbi, UserCommand},
    Udata,
};
use riw_abi::udata::{
    AllocContextResponse, CreateRequest, FEATURE_ATOMICS, FEATURE_MASKED_ATOMICS,
    FEATURE_MEMORY_WINDOWS, FEATURE_REREG_MR, FEATURE_RESIZE_CQ, FEATURE_TIMESTAMPS,
    FEATURE_WRITE_WITH_IMM,
};

/// A value of the module parameter `provider`, which selects the ABI of new devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    /// rdma-core's libsiw.
    Siw,
    /// libriw.
    Own,
}

module_param_word!(
    "riw", PROVIDER: provider = &[c"siw", c"riw"],
    "user ABI of new devices: siw, for rdma-core's libsiw, or riw, for libriw"
);

impl Provider {
    /// Returns the present value of the parameter: an administrator may change it. Any context.
    pub(crate) fn chosen() -> Self {
        match PROVIDER.chosen() {
            0 => Self::Siw,
            _ => Self::Own,
        }
    }
}

/// The ABIs, for ib_core.
pub(crate) const USER_ABIS: &[UserAbi] = &[SIW, RIW];

/// siw's, for rdma-core's libsiw. Processes write WRs to rings, and ring the doorbell of a send
/// queue by a post of no WR.
const SIW: UserAbi = UserAbi {
    driver_id: siw::DRIVER_ID,
    version: siw::VERSION,
    commands: &[UserCommand::PostSend],
};

/// riw's own. There are doorbells of receive queues, too.
const RIW: UserAbi = UserAbi {
    driver_id: riw_abi::DRIVER_ID,
    version: riw_abi::VERSION,
    commands: &[
        UserCommand::PostSend,
        UserCommand::PostRecv,
        UserCommand::PostSrqRecv,
    ],
};

/// Returns the ABI of a provider, for ib_core. Any context.
pub(crate) fn user_abi(provider: Provider) -> &'static UserAbi {
    match provider {
        Provider::Siw => &SIW,
        Provider::Own => &RIW,
    }
}

/// Maximum sizes of WRs.
#[derive(Clone, Copy)]
pub(crate) struct WrSizes {
    /// SGEs.
    pub(crate) sge: u32,
    /// Inline data, in bytes.
    pub(crate) inline: u32,
}

impl WrSizes {
    /// The sizes of siw's ABI, and of kernel users.
    pub(crate) const SIW: Self = Self {
        // CAST: Small constants.
        sge: siw::MAX_SGE as u32,
        inline: siw::MAX_INLINE as u32,
    };
    /// The sizes of riw's own ABI.
    const OWN: Self = Self {
        // CAST: Small constants.
        sge: riw_abi::MAX_SGE as u32,
        inline: riw_abi::MAX_INLINE as u32,
    };

    /// Returns the sizes for processes that use a provider. Any context.
    pub(crate) fn of(provider: Provider) -> Self {
        match provider {
            Provider::Siw => Self::SIW,
            Provider::Own => Self::OWN,
        }
    }
}

/// Reads the driver's part of a request that has none in siw's ABI, and only a `comp_mask` in
/// riw's. Process context; may sleep. Fails with `EOPNOTSUPP` for an unknown bit, and as
/// [`Udata::request`] does.
pub(crate) fn check_request(provider: Provider, udata: &Udata<'_>) -> Result {
    match provider {
        Provider::Siw => udata.request::<()>(),
        Provider::Own => match udata.request::<CreateRequest>()?.comp_mask {
            0 => Ok(()),
            _ => Err(EOPNOTSUPP),
        },
    }
}

/// Responds to alloc_ucontext. Process context; may sleep. Fails as [`Udata::respond`] does.
pub(crate) fn respond_context(provider: Provider, udata: &Udata<'_>) -> Result {
    match provider {
        Provider::Siw => udata.respond(&siw::UcontextResponse { dev_id: 0, pad: 0 }),
        Provider::Own => udata.respond(&AllocContextResponse {
            comp_mask: 0,
            features: FEATURES,
            max_sge: WrSizes::OWN.sge,
            max_inline: WrSizes::OWN.inline,
        }),
    }
}

/// The features of riw's own ABI beyond its first operations (`riw_abi::udata::FEATURE_*`).
const FEATURES: u64 = FEATURE_WRITE_WITH_IMM
    | FEATURE_ATOMICS
    | FEATURE_MASKED_ATOMICS
    | FEATURE_MEMORY_WINDOWS
    | FEATURE_RESIZE_CQ
    | FEATURE_TIMESTAMPS
    | FEATURE_REREG_MR;
