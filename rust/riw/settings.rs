// SPDX-License-Identifier: GPL-2.0

//! Settings of a device: how its connections are set up, and how long they wait.
//!
//! Each setting is a file in `/sys/class/infiniband/NAME/mpa`; what chooses the transport, or only
//! one transport has, is in `llp` beside it. ib_core has room for two directories of a driver. The
//! initial value is the module parameter of the same name. A change applies to connections that are
//! set up afterwards, unless the setting says otherwise.
//!
//! [`list`] has all of them. To add a number, add its entry there, and use it in
//! [`Settings::policy`] or in a function of its own. `selftests/check_documents --write` then
//! updates the documents.
//!
//! A setting that is a word, as `transport` and `tls` are, needs a module of its name below, with
//! the transports for each word. `tls_name` is a text, and `tls_psk` the number of a key: their
//! modules read and write them.

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
use list::all_settings;
use rdma::{
    attr::{Attribute, Attributes},
    Device,
};

pub(crate) mod list;

/// Defines [`Settings`] and the files of the [`list`].
macro_rules! settings {
    (
        llp words {$(
            $(#[$word_doc:meta])*
            $word:ident {
                words: $words:expr,
                description: $word_text:tt,
            }
        )*}
        llp others {$(
            $(#[$other_doc:meta])*
            $other:ident: $kind:ident {
                values: $values:tt,
                default: $other_default:tt,
                description: $other_text:tt,
            }
        )*}
        llp numbers {$(
            $(#[$llp_doc:meta])*
            $llp:ident {
                range: $llp_range:expr,
                default: $llp_default:tt,
                description: $llp_text:tt,
            }
        )*}
        mpa numbers {$(
            $(#[$mpa_doc:meta])*
            $mpa:ident {
                range: $mpa_range:expr,
                default: $mpa_default:tt,
                description: $mpa_text:tt,
            }
        )*}
    ) => {
        /// The settings of a device. A word is its number.
        pub(crate) struct Settings {
            $(#[doc = $word_text] $word: Atomic<u32>,)*
            $(#[doc = $llp_text] $llp: Atomic<u32>,)*
            $(#[doc = $mpa_text] $mpa: Atomic<u32>,)*
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
                    $($word: settings!(@initial_word $word, $words, $word_text),)*
                    $($llp: settings!(@initial $llp, $llp_range),)*
                    $($mpa: settings!(@initial $mpa, $mpa_range),)*
                    tls_terms: KBox::pin_init(terms, GFP_KERNEL)?,
                })
            }
        }

        /// The files in `llp`.
        static LLP_FILES: [Option<&Attribute<Riw>>; 1 + [
            $(stringify!($word),)* $(stringify!($other),)* $(stringify!($llp),)*
        ].len()] = [
            $(Some(settings!(@word_file $word, $words)),)*
            $(Some(settings!(@other_file $other, $kind)),)*
            $(Some(settings!(@file $llp, $llp_range)),)*
            None,
        ];

        /// The files in `mpa`.
        static MPA_FILES: [Option<&Attribute<Riw>>; 1 + [$(stringify!($mpa)),*].len()] = [
            $(Some(settings!(@file $mpa, $mpa_range)),)*
            None,
        ];
    };
    (@initial_word $name:ident, $words:expr, $text:tt) => {{
        module_param_word!("riw", FIRST: $name = &$words, $text);
        Atomic::new(FIRST.chosen())
    }};
    (@initial $name:ident, $range:expr) => {{
        // Linux 7.2 returns a reference.
        let value: u32 = *module_parameters::$name.value().borrow();

        check(&$range, value).inspect_err(|_| pr_err!(
            "{}={}: must be from {} to {}\n",
            stringify!($name), value, ($range).start(), ($range).end()
        ))?;
        Atomic::new(value)
    }};
    (@word_file $name:ident, $words:expr) => {{
        static FILE: Attribute<Riw> = Attribute::word(
            kernel::c_str!(stringify!($name)),
            &$words,
            // CAST: A small number.
            |dev| dev.cm.settings.$name.load(ordering::Relaxed) as usize,
            |dev, number| {
                dev.cm.load($name::transports(number).ok_or(EINVAL)?)?;
                // CAST: A small number.
                dev.cm.settings.$name.store(number as u32, ordering::Relaxed);
                Ok(())
            },
        );
        &FILE
    }};
    (@other_file $name:ident, $kind:ident) => {{
        static FILE: Attribute<Riw> =
            Attribute::$kind(kernel::c_str!(stringify!($name)), $name::get, $name::set);
        &FILE
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

all_settings!(settings);

/// The setting `transport`: connections and listeners that are made afterwards use it.
mod transport {
    use super::*;

    /// The transports for each word, the one to connect by first.
    const TRANSPORTS: [&[Transport]; 3] = [
        &[Transport::Tcp],
        &[Transport::Sctp],
        &[Transport::Sctp, Transport::Tcp],
    ];

    /// Returns the transports for a word. Any context.
    pub(super) fn transports(number: usize) -> Option<&'static [Transport]> {
        TRANSPORTS.get(number).copied()
    }
}

/// The setting `tls`: connections that are made afterwards use it.
mod tls {
    use super::*;

    /// Returns the meaning of a word. Any context.
    pub(super) fn mode(number: usize) -> Option<TlsMode> {
        [TlsMode::Off, TlsMode::Required, TlsMode::Accept]
            .get(number)
            .copied()
    }

    /// Returns the transports that a word needs. Any context.
    pub(super) fn transports(number: usize) -> Option<&'static [Transport]> {
        mode(number).map(needed_for)
    }

    /// Returns the transports that a use of TLS needs. Any context.
    pub(super) fn needed_for(tls: TlsMode) -> &'static [Transport] {
        match tls {
            TlsMode::Off => &[],
            TlsMode::Required | TlsMode::Accept => &[Transport::Tls],
        }
    }
}

/// The name that the certificate of a server must have: connections that are made afterwards use
/// it.
mod tls_name {
    use super::*;

    /// Returns the name. May sleep. Fails with `ENOMEM`.
    pub(super) fn get(dev: &Device<Riw>) -> Result<CString> {
        match dev.cm.settings.tls_terms().name {
            Some(name) => Ok(CString::try_from(&**name)?),
            None => Ok(CString::try_from(c"")?),
        }
    }

    /// Sets the name. May sleep. Fails with `EINVAL` if it is none, or `ENOMEM`.
    pub(super) fn set(dev: &Device<Riw>, name: &[u8]) -> Result {
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
    }
}

/// The pre-shared key, by its serial number; 0: certificates. Connections that are made afterwards
/// use it.
mod tls_psk {
    use super::*;

    /// Returns the serial number. May sleep.
    pub(super) fn get(dev: &Device<Riw>) -> u32 {
        let psk = dev.cm.settings.tls_terms().psk;

        psk.map_or(0, |psk| psk.serial())
    }

    /// Sets the key. May sleep. Fails with the errors of [`Psk::find`], or `ENOMEM`.
    pub(super) fn set(dev: &Device<Riw>, serial: u32) -> Result {
        let psk = match serial {
            0 => None,
            serial => Some(Arc::new(Psk::find(serial)?, GFP_KERNEL)?),
        };

        dev.cm
            .settings
            .change_tls_terms(|terms| &mut terms.psk, psk);
        Ok(())
    }
}

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

        transport::transports(number).unwrap_or(&[Transport::Tcp])
    }

    /// Returns the transports that the use of TLS needs. Any context.
    pub(crate) fn secure_transports(&self) -> &'static [Transport] {
        tls::needed_for(self.tls())
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

        tls::mode(number).unwrap_or(TlsMode::Required)
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
