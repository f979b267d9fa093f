// SPDX-License-Identifier: GPL-2.0

//! What a user may choose, for each device: how its connections are set up.
//!
//! Each setting is a file in `/sys/class/infiniband/NAME/mpa`. A device begins with what the module
//! parameter of the same name says. A change is for connections that are set up from then on.

use crate::{module_parameters, Riw};
use core::ops::RangeInclusive;
use iwarp::startup::{CrcPolicy, Policy, RtrTypes};
use kernel::{
    prelude::*,
    sync::atomic::{ordering, Atomic},
};
use rdma::attr::{Attribute, Attributes};

/// Defines `Settings`: the names of the settings, and the values that each may have.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $range:expr,)*) => {
        /// The settings of a device.
        pub(crate) struct Settings {
            $($(#[$doc])* $name: Atomic<u32>,)*
        }

        impl Settings {
            /// As the module's parameters say; `EINVAL` if one of them cannot be.
            pub(crate) fn new() -> Result<Self> {
                Ok(Self {
                    $($name: {
                        let value = module_parameters::$name.value();

                        check(&$range, value).inspect_err(|_| pr_err!(
                            "{}={}: must be from {} to {}\n",
                            stringify!($name), value, ($range).start(), ($range).end()
                        ))?;
                        Atomic::new(value)
                    },)*
                })
            }
        }

        /// The files of the settings.
        static FILES: [Option<&Attribute<Riw>>; 1 + [$(stringify!($name)),*].len()] = [
            $(Some({
                static FILE: Attribute<Riw> = Attribute::new(
                    kernel::c_str!(stringify!($name)),
                    |dev| dev.cm.settings.$name.load(ordering::Relaxed),
                    |dev, value| {
                        check(&$range, value)?;
                        dev.cm.settings.$name.store(value, ordering::Relaxed);
                        Ok(())
                    },
                );
                &FILE
            }),)*
            None,
        ];
    };
}

settings! {
    /// 0: CRCs are not used, and a peer that requires them is refused; 1: they are used if the peer
    /// asks for them; 2: they are used.
    crc: 0..=2,
    /// 1: the peer has to send markers. Those that the peer wants are always sent.
    markers: 0..=1,
    /// The highest revision of MPA that is spoken. A Request of revision 1 is answered anyway; a
    /// responder that knows nothing else is connected to only without the peer-to-peer model.
    mpa_revision: 1..=2,
    /// 1: as initiator, ask for the peer-to-peer model, so that either side may speak first.
    peer_to_peer: 0..=1,
    /// How an initiator may say that it is ready in that model, as a sum: 1 by a Send, 2 by an RDMA
    /// Write, 4 by an RDMA Read, all without payload. A Send takes a receive request of the peer's.
    rtr: 1..=7,
    /// Milliseconds that TCP has to connect.
    connect_timeout: 100..=30_000,
    /// Milliseconds that the peer has for its startup frame, and for its first FPDU where that is
    /// waited for.
    startup_timeout: 100..=30_000,
    /// Milliseconds that the consumer has to accept or reject a connection; then it is rejected.
    accept_timeout: 100..=600_000,
    /// Seconds without anything from the peer after which an idle connection is probed. A peer that
    /// answers nothing for as long again is gone. 0: never. Where data is on its way TCP's own
    /// time-out finds out.
    keepalive: 0..=32_767,
}

/// The directory of the settings.
pub(crate) static DIRECTORY: Attributes<Riw> = Attributes::new(c"mpa", &FILES);

fn check(range: &RangeInclusive<u32>, value: u32) -> Result {
    range.contains(&value).then_some(()).ok_or(EINVAL)
}

impl Settings {
    /// What this side wants of a connection that is set up now.
    pub(crate) fn policy(&self) -> Policy {
        let is_set = |setting: &Atomic<u32>| setting.load(ordering::Relaxed) != 0;
        let revision = match self.mpa_revision.load(ordering::Relaxed) {
            1 => 1,
            _ => 2,
        };

        Policy {
            revision,
            crc: match self.crc.load(ordering::Relaxed) {
                0 => CrcPolicy::Off,
                1 => CrcPolicy::Offer,
                _ => CrcPolicy::Require,
            },
            markers: is_set(&self.markers),
            peer_to_peer: revision > 1 && is_set(&self.peer_to_peer),
            rtr: [RtrTypes::SEND, RtrTypes::WRITE, RtrTypes::READ]
                .into_iter()
                .zip([1, 2, 4])
                .filter(|(_, bit)| self.rtr.load(ordering::Relaxed) & bit != 0)
                .fold(RtrTypes::NONE, |all, (one, _)| all.union(one)),
            ird_max: crate::device::MAX_READS,
        }
    }

    /// Milliseconds that TCP has to connect.
    pub(crate) fn connect_time(&self) -> i64 {
        self.connect_timeout.load(ordering::Relaxed).into()
    }

    /// Milliseconds that the peer has for its startup frame, and for its first FPDU.
    pub(crate) fn startup_time(&self) -> i64 {
        self.startup_timeout.load(ordering::Relaxed).into()
    }

    /// Milliseconds that the consumer has to accept or reject a connection.
    pub(crate) fn accept_time(&self) -> i64 {
        self.accept_timeout.load(ordering::Relaxed).into()
    }

    /// Seconds without anything from the peer after which it is probed; 0: never.
    pub(crate) fn keepalive_time(&self) -> u16 {
        // It is in range.
        self.keepalive
            .load(ordering::Relaxed)
            .try_into()
            .unwrap_or(u16::MAX)
    }
}
