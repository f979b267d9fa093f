// SPDX-License-Identifier: GPL-2.0

//! Settings of a device: how its connections are set up.
//!
//! Each setting is a file in `/sys/class/infiniband/NAME/mpa`. Its initial value is the module
//! parameter of the same name. A change applies to connections that are set up afterwards.
//!
//! To add one, add its line to `settings!` below, use it there in [`Settings::policy`] or a function of
//! its own, and add its parameter to `module!` in `main.rs` and its line to the table in `README.md`.

use crate::{module_parameters, Riw};
use core::ops::RangeInclusive;
use iwarp::startup::{CrcPolicy, Policy, RtrTypes};
use kernel::{
    prelude::*,
    sync::atomic::{ordering, Atomic},
};
use rdma::attr::{Attribute, Attributes};

/// Defines `Settings`: the name of each setting and its range.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $range:expr,)*) => {
        /// The settings of a device.
        pub(crate) struct Settings {
            $($(#[$doc])* $name: Atomic<u32>,)*
        }

        impl Settings {
            /// Creates the settings from the module parameters. Any context. Fails with `EINVAL` if
            /// one is out of range.
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
    /// 0: no CRCs, and refuse a peer that requires them; 1: use CRCs if the peer requests them; 2:
    /// always use CRCs.
    crc: 0..=2,
    /// 1: require markers from the peer. Markers that the peer requires are always sent.
    markers: 0..=1,
    /// The highest MPA revision to use. A Request of revision 1 is answered in any case. A
    /// responder that supports only revision 1 can be reached only with `peer_to_peer` 0.
    mpa_revision: 1..=2,
    /// 1: as initiator, request the peer-to-peer model, in which either side may send first.
    peer_to_peer: 0..=1,
    /// The RTR messages that an initiator may use in the peer-to-peer model, as a sum: 1 Send, 2
    /// RDMA Write, 4 RDMA Read, all without payload. A Send consumes a receive WR of the peer.
    rtr: 1..=7,
    /// Milliseconds for TCP to connect.
    connect_timeout: 100..=30_000,
    /// Milliseconds for the peer's startup frame; also for its first FPDU, if the connection waits
    /// for that.
    startup_timeout: 100..=30_000,
    /// Milliseconds for the consumer to accept or reject a connection. After that riw rejects it.
    accept_timeout: 100..=600_000,
    /// Seconds of silence from the peer before TCP probes an idle connection; 0: never. After the
    /// same time again without an answer, the peer is considered gone. With data in flight, TCP's
    /// retransmission timeout applies instead.
    keepalive: 0..=32_767,
}

/// The directory of the settings.
pub(crate) static DIRECTORY: Attributes<Riw> = Attributes::new(c"mpa", &FILES);

fn check(range: &RangeInclusive<u32>, value: u32) -> Result {
    range.contains(&value).then_some(()).ok_or(EINVAL)
}

impl Settings {
    /// Returns the policy for a connection that is set up now. Any context.
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
            ird_max: crate::limits::MAX_READS,
        }
    }

    /// Returns the time for TCP to connect, in milliseconds. Any context.
    pub(crate) fn connect_time(&self) -> i64 {
        self.connect_timeout.load(ordering::Relaxed).into()
    }

    /// Returns the time for the peer's startup frame, and for its first FPDU, in milliseconds. Any
    /// context.
    pub(crate) fn startup_time(&self) -> i64 {
        self.startup_timeout.load(ordering::Relaxed).into()
    }

    /// Returns the time for the consumer to accept or reject a connection, in milliseconds. Any
    /// context.
    pub(crate) fn accept_time(&self) -> i64 {
        self.accept_timeout.load(ordering::Relaxed).into()
    }

    /// Returns the time of silence before the peer is probed, in seconds; 0: never. Any context.
    pub(crate) fn keepalive_time(&self) -> u16 {
        // No truncation: the range ends at 32767.
        self.keepalive
            .load(ordering::Relaxed)
            .try_into()
            .unwrap_or(u16::MAX)
    }
}
