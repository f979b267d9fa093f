// SPDX-License-Identifier: GPL-2.0

//! Settings of a device: how its connections are set up, and how long they wait.
//!
//! Each setting is a file in `/sys/class/infiniband/NAME/mpa`; what chooses the transport, or only
//! one transport has, is in `llp` beside it. ib_core has room for two directories of a driver. The
//! initial value is the module parameter of the same name. A change applies to connections that are
//! set up afterwards, unless the setting says otherwise.
//!
//! To add a number:
//!
//! 1. Add its line to `settings!` below, and use it in [`Settings::policy`] or in a function of its
//!    own.
//! 2. Add its parameter to `module!` in `main.rs`.
//! 3. Describe it in the table of `README.md` and in `Documentation/man/riw.4`:
//!    `selftests/check_documents` fails otherwise.
//!
//! A setting that is a word, as `transport` and `tls` are, needs [`Attribute::word`], and
//! [`module_param_word`] for its parameter, since `module!` has only numbers.
//! `tls_name` is a text, and `tls_psk` the number of a key. They have no parameter.

use crate::{
    driver::Riw,
    link::{Psk, Security, TlsMode, TlsTerms, Transport},
    module_parameters,
};
use core::{borrow::Borrow, ops::RangeInclusive};
use iwarp::startup::{CrcPolicy, Policy, RtrTypes};
use kernel::{
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        atomic::{ordering, Atomic},
        Arc, Mutex,
    },
};
use kernel_ext::module_param_word;
use rdma::attr::{Attribute, Attributes};

/// Defines `Settings`: the name of each setting and its range, by directory.
macro_rules! settings {
    (
        mpa {$($(#[$mpa_doc:meta])* $mpa:ident: $mpa_range:expr,)*}
        llp {$($(#[$llp_doc:meta])* $llp:ident: $llp_range:expr,)*}
    ) => {
        /// The settings of a device.
        pub(crate) struct Settings {
            $($(#[$mpa_doc])* $mpa: Atomic<u32>,)*
            $($(#[$llp_doc])* $llp: Atomic<u32>,)*
            /// A number of [`TRANSPORTS`].
            transport: Atomic<u32>,
            /// A number of [`TLS_MODES`].
            tls: Atomic<u32>,
            /// The settings `tls_name` and `tls_psk`. Nothing is allocated under the lock: reclaim
            /// may wait for a connection.
            tls_terms: Pin<KBox<Mutex<TlsTerms>>>,
        }

        impl Settings {
            /// Creates the settings from the module parameters. May sleep. Fails with `EINVAL` if
            /// one is out of range, or `ENOMEM`.
            pub(crate) fn new() -> Result<Self> {
                let terms = new_mutex!(TlsTerms::new()?, "riw::Settings::tls_terms");

                Ok(Self {
                    $($mpa: settings!(@initial $mpa, $mpa_range),)*
                    $($llp: settings!(@initial $llp, $llp_range),)*
                    transport: Atomic::new(FIRST_TRANSPORT.chosen()),
                    tls: Atomic::new(FIRST_TLS.chosen()),
                    tls_terms: KBox::pin_init(terms, GFP_KERNEL)?,
                })
            }
        }

        /// The files in `mpa`.
        static MPA_FILES: [Option<&Attribute<Riw>>; 1 + [$(stringify!($mpa)),*].len()] = [
            $(Some(settings!(@file $mpa, $mpa_range)),)*
            None,
        ];

        /// The files in `llp`.
        static LLP_FILES: [Option<&Attribute<Riw>>; 5 + [$(stringify!($llp)),*].len()] = [
            Some(&TRANSPORT),
            Some(&TLS),
            Some(&TLS_NAME),
            Some(&TLS_PSK),
            $(Some(settings!(@file $llp, $llp_range)),)*
            None,
        ];
    };
    (@initial $name:ident, $range:expr) => {{
        // Linux 7.2 returns a reference.
        let value: u32 = *module_parameters::$name.value().borrow();

        check(&$range, value).inspect_err(|_| pr_err!(
            "{}={}: must be from {} to {}\n",
            stringify!($name), value, ($range).start(), ($range).end()
        ))?;
        Atomic::new(value)
    }};
    (@file $name:ident, $range:expr) => {{
        static FILE: Attribute<Riw> = Attribute::number(
            kernel::c_str!(stringify!($name)),
            |dev| dev.cm.settings.$name.load(ordering::Relaxed),
            |dev, value| {
                check(&$range, value)?;
                dev.cm.settings.$name.store(value, ordering::Relaxed);
                Ok(())
            },
        );
        &FILE
    }};
}

settings! {
    mpa {
        /// 0: no CRCs, and refuse a peer that requires them; 1: use CRCs if the peer requests them;
        /// 2: always use CRCs.
        crc: 0..=2,
        /// 1: require markers from the peer. Markers that the peer requires are always sent.
        markers: 0..=1,
        /// Bytes of the longest FPDU to send over TCP; 0: as long as a TCP segment, or with TLS as
        /// a record. The ULPDU of the maximum is just below the limit of RFC 5044, section 3, which
        /// is 64768. Below 140, MULPDU is the minimum.
        fpdu_max: 0..=64_774,
        /// The highest MPA revision to use. A Request of revision 1 is answered in any case. A
        /// responder that supports only revision 1 can be reached only with `peer_to_peer` 0.
        mpa_revision: 1..=2,
        /// 1: as initiator, request the peer-to-peer model, in which either side may send first.
        peer_to_peer: 0..=1,
        /// The RTR messages that an initiator may use in the peer-to-peer model, as a sum: 1 Send,
        /// 2 RDMA Write, 4 RDMA Read, all without payload. A Send consumes a receive WR of the
        /// peer.
        rtr: 1..=7,
        /// Milliseconds for TCP or SCTP to connect.
        connect_timeout: 100..=30_000,
        /// Milliseconds for the peer's startup frame; also for its first FPDU, if the connection
        /// waits for that.
        startup_timeout: 100..=30_000,
        /// Milliseconds for the consumer to accept or reject a connection. After that riw rejects
        /// it.
        accept_timeout: 100..=600_000,
        /// Milliseconds that a message which takes a receive WR waits for one to be posted, until
        /// its stream ends; 0: it does not wait. Applies to each message that arrives afterwards.
        receive_wait: 0..=60_000,
        /// Microseconds for which a worker on another CPU, which sends for a process with a stream
        /// of small messages, looks for more without a pause, and then between two looks; 0: no
        /// worker does that. Applies at once.
        handover: 0..=1000,
        /// Seconds of silence from the peer before TCP or SCTP probes an idle connection; 0: never.
        /// After the same time again without an answer, the peer is considered gone. With data in
        /// flight, the retransmission timeout applies instead.
        keepalive: 0..=32_767,
    }
    llp {
        /// 1: over SCTP, place the payload of an RDMA Write when it arrives, even if segments
        /// before it are missing (RFC 5041, section 5.3).
        early_placement: 0..=1,
        /// 1: over SCTP, a connection or listener at one address of the netdev has the others, too.
        multihoming: 0..=1,
    }
}

/// The words for the setting `transport`.
const TRANSPORT_WORDS: &[&CStr] = &[c"tcp", c"sctp", c"both"];
/// The transports for each word, the one to connect by first.
const TRANSPORTS: [&[Transport]; 3] = [
    &[Transport::Tcp],
    &[Transport::Sctp],
    &[Transport::Sctp, Transport::Tcp],
];

module_param_word!(
    "riw", FIRST_TRANSPORT: transport = TRANSPORT_WORDS,
    "transport of new devices: tcp, sctp, or both: SCTP, or else TCP"
);

/// The file of the transport: connections and listeners that are made afterwards use it.
static TRANSPORT: Attribute<Riw> = Attribute::word(
    c"transport",
    TRANSPORT_WORDS,
    // CAST: A small number.
    |dev| dev.cm.settings.transport.load(ordering::Relaxed) as usize,
    |dev, number| {
        dev.cm.load(TRANSPORTS.get(number).ok_or(EINVAL)?)?;
        // CAST: A small number.
        (dev.cm.settings.transport).store(number as u32, ordering::Relaxed);
        Ok(())
    },
);

/// The words for the setting `tls`.
const TLS_WORDS: &[&CStr] = &[c"off", c"required", c"accept"];

/// The meaning of each word.
const TLS_MODES: [TlsMode; 3] = [TlsMode::Off, TlsMode::Required, TlsMode::Accept];

module_param_word!(
    "riw", FIRST_TLS: tls = TLS_WORDS,
    "TLS of new devices, over TCP: off, required, or accept: also as a server"
);

/// Returns the transports that a use of TLS needs.
fn needed_for(tls: TlsMode) -> &'static [Transport] {
    match tls {
        TlsMode::Off => &[],
        TlsMode::Required | TlsMode::Accept => &[Transport::Tls],
    }
}

/// The file of TLS: connections that are made afterwards use it.
static TLS: Attribute<Riw> = Attribute::word(
    c"tls",
    TLS_WORDS,
    // CAST: A small number.
    |dev| dev.cm.settings.tls.load(ordering::Relaxed) as usize,
    |dev, number| {
        dev.cm
            .load(needed_for(*TLS_MODES.get(number).ok_or(EINVAL)?))?;
        // CAST: A small number.
        (dev.cm.settings.tls).store(number as u32, ordering::Relaxed);
        Ok(())
    },
);

/// The file of the name that the certificate of a server must have: connections that are made
/// afterwards use it.
static TLS_NAME: Attribute<Riw> = Attribute::text(
    c"tls_name",
    |dev| match dev.cm.settings.tls_terms().name {
        Some(name) => Ok(CString::try_from(&**name)?),
        None => Ok(CString::try_from(c"")?),
    },
    |dev, name| {
        let name = match checked_name(name)? {
            "" => None,
            name => Some(Arc::new(
                CString::try_from_fmt(fmt!("{name}"))?,
                GFP_KERNEL,
            )?),
        };

        dev.cm
            .settings
            .change_tls_terms(|terms| &mut terms.name, name);
        Ok(())
    },
);

/// The file of the pre-shared key, by its serial number; 0: certificates. Connections that are made
/// afterwards use it.
static TLS_PSK: Attribute<Riw> = Attribute::number(
    c"tls_psk",
    |dev| {
        let psk = dev.cm.settings.tls_terms().psk;

        psk.map_or(0, |psk| psk.serial())
    },
    |dev, serial| {
        let psk = match serial {
            0 => None,
            serial => Some(Arc::new(Psk::find(serial)?, GFP_KERNEL)?),
        };

        dev.cm
            .settings
            .change_tls_terms(|terms| &mut terms.psk, psk);
        Ok(())
    },
);

static MPA: Attributes<Riw> = Attributes::new(c"mpa", &MPA_FILES);
static LLP: Attributes<Riw> = Attributes::new(c"llp", &LLP_FILES);

/// The directories of the settings.
pub(crate) const DIRECTORIES: [&Attributes<Riw>; 2] = [&MPA, &LLP];

fn check(range: &RangeInclusive<u32>, value: u32) -> Result {
    range.contains(&value).then_some(()).ok_or(EINVAL)
}

/// Checks a name that a certificate can have: a DNS name (RFC 1123, section 2.1) of at most 253
/// characters, also with underscores, or an IPv4 address; or none. `EINVAL` for any other.
fn checked_name(name: &[u8]) -> Result<&str> {
    let is_label = |label: &[u8]| {
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');

        matches!(label.len(), 1..=63)
            && label.iter().all(is_allowed)
            && label.first() != Some(&b'-')
            && label.last() != Some(&b'-')
    };
    let is_name = name.len() <= 253 && name.split(|byte| *byte == b'.').all(is_label);

    (is_name || name.is_empty()).then_some(()).ok_or(EINVAL)?;
    core::str::from_utf8(name).map_err(|_| EINVAL)
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

    /// Returns the transports of a connection or listener that is made now, the one to connect by
    /// first. Any context.
    pub(crate) fn transports(&self) -> &'static [Transport] {
        if self.tls() == TlsMode::Required {
            return &[Transport::Tls];
        }
        // CAST: A 32-bit number fits.
        let number = self.transport.load(ordering::Relaxed) as usize;

        TRANSPORTS.get(number).copied().unwrap_or(TRANSPORTS[0])
    }

    /// Returns the transports that the use of TLS needs. Any context.
    pub(crate) fn secure_transports(&self) -> &'static [Transport] {
        needed_for(self.tls())
    }

    /// Returns how a connection that is made now is secured. May sleep, but waits for no memory.
    pub(crate) fn security(&self) -> Security {
        Security {
            tls: self.tls(),
            terms: self.tls_terms(),
        }
    }

    /// Returns the use of TLS for a connection that is made now. Any context.
    fn tls(&self) -> TlsMode {
        // CAST: A 32-bit number fits.
        let number = self.tls.load(ordering::Relaxed) as usize;

        TLS_MODES.get(number).copied().unwrap_or(TlsMode::Required)
    }

    /// Returns how the sides of a connection that is made now authenticate each other. May sleep.
    fn tls_terms(&self) -> TlsTerms {
        self.tls_terms.lock().clone()
    }

    /// Changes one of the terms. May sleep.
    fn change_tls_terms<T>(&self, term: impl FnOnce(&mut TlsTerms) -> &mut T, value: T) {
        let before = core::mem::replace(term(&mut self.tls_terms.lock()), value);

        drop(before);
    }

    /// Gives up the key that the settings hold: the device goes. May sleep.
    pub(crate) fn release(&self) {
        self.change_tls_terms(|terms| &mut terms.psk, None);
    }

    /// Whether connections and listeners have all addresses of the netdev. Any context.
    pub(crate) fn is_multihomed(&self) -> bool {
        self.multihoming.load(ordering::Relaxed) != 0
    }

    /// Whether the payload of an RDMA Write is placed before its turn. Any context.
    pub(crate) fn places_early(&self) -> bool {
        self.early_placement.load(ordering::Relaxed) != 0
    }

    /// Returns the length of the longest FPDU in bytes, unless it is to be that of a TCP segment.
    /// Any context.
    pub(crate) fn fpdu_max(&self) -> Option<u32> {
        match self.fpdu_max.load(ordering::Relaxed) {
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// Returns the time for the transport to connect, in milliseconds. Any context.
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

    /// Returns the time that a message waits for a receive WR, in milliseconds. Any context.
    pub(crate) fn receive_wait_time(&self) -> i64 {
        self.receive_wait.load(ordering::Relaxed).into()
    }

    /// Returns the time that a worker looks for WRs of a process for which it sends, in
    /// nanoseconds; 0: none does. Any context.
    pub(crate) fn handover_time(&self) -> i64 {
        i64::from(self.handover.load(ordering::Relaxed)).saturating_mul(1000)
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
