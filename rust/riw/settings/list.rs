// SPDX-License-Identifier: GPL-2.0

//! The list of the settings. All else follows from it:
//!
//! - the fields of [`Settings`](super::Settings) and the files in sysfs, by `settings!`;
//! - the module parameters: of a number by `module!` in `main.rs`, of a word by `settings!`;
//! - the table of `README.md` and the settings in `Documentation/man/riw.4`, after a change by
//!   `selftests/check_documents --write`, and from there the sysfs ABI that the series adds.
//!
//! `llp` and `mpa` are the directories. The description of a setting is one sentence: `modinfo`
//! shows it as it is, and the documents begin with it. They go on with the doc comment, in Markdown
//! with links from the root of the repository: `README.md` with its first paragraph, the manual
//! page with all of it.

/// Passes the list to the macro `$then`.
macro_rules! all_settings {
    ($then:ident) => { $then! {
        // The first word is the default.
        llp words {
            /// `sctp` is [DDP over SCTP](Documentation/sctp.md) (RFC 5043): `crc`, `markers`,
            /// `fpdu_max` and `peer_to_peer` have no effect, and `mpa_revision` 1 leaves the read
            /// depths out when connecting. `both`: listen on both, and connect by SCTP, or by TCP
            /// if the peer does not answer by SCTP or answers without DDP.
            ///
            /// A client with `both` trusts each program at either port of the server: set `both`
            /// at the server, too, unless all users of its host are trusted. The module sctp is
            /// loaded only if a device uses SCTP. On a kernel without it, or if riw is built
            /// without SCTP, `sctp` is refused (EPROTONOSUPPORT), and `both` is TCP until it is
            /// set again or another device loads the module.
            transport {
                words: [c"tcp", c"sctp", c"both"],
                description: "Transport: tcp, sctp, or both (SCTP, or else TCP)",
            }
            /// `required`: connect and accept by [TLS 1.3](Documentation/encryption.md#tls) over
            /// TCP alone, whatever `transport` is, and never without. `accept`,
            /// [for a migration](Documentation/encryption.md#from-off-to-required): accept over
            /// TCP with TLS or without, as the peer begins, and connect without.
            ///
            /// `accept` authenticates no peer: each one may leave TLS out. The kernel encrypts;
            /// tlshd of the package ktls-utils, which must run in the network namespace of the
            /// netdev, makes the handshakes. Each side must have a certificate that the other one
            /// accepts, or both the same key (`tls_psk`). The peer must be riw, too. If riw is
            /// built without TLS, `required` and `accept` are refused (EPROTONOSUPPORT).
            tls {
                words: [c"off", c"required", c"accept"],
                description: "TLS over TCP: off, required, or accept (as a server, if the peer \
                              begins with it)",
            }
        }
        // They have no module parameter, and code of their own.
        llp others {
            /// Empty: the [address](Documentation/encryption.md#tls) to which it connects. It has
            /// no module parameter.
            ///
            /// If it is set, all servers of the device's programs need a certificate with that
            /// name.
            tls_name: text {
                values: "a DNS name or an IPv4 address, or empty",
                default: "empty",
                description: "Name that the certificate of a server must have when this side \
                              connects by TLS",
            }
            /// Connections with TLS are authenticated by that
            /// [key](Documentation/encryption.md#pre-shared-keys) in place of certificates. If it
            /// is a keyring, a server accepts each key in it. It has no module parameter.
            ///
            /// The key has the type psk, and keyctl prints its number: both sides need the same
            /// secret under the same name, and certificates are neither presented nor accepted.
            /// The secret must have 32 or 48 bytes. A side with a keyring cannot connect. The
            /// writer must have the permission to view the key. Other numbers are refused (EINVAL,
            /// ENOKEY, EKEYREVOKED, EKEYEXPIRED, EACCES). The type psk needs the module
            /// nvme_keyring, which must be loaded before tlshd starts.
            tls_psk: number {
                values: "a serial number, or 0",
                default: "0",
                description: "Serial number of a pre-shared key for TLS, or of a keyring; 0: \
                              certificates",
            }
        }
        llp numbers {
            /// [What it changes](Documentation/sctp.md#placement-out-of-order).
            ///
            /// Not for programs that poll the last octet of a Write to learn that all of it has
            /// been placed.
            // RFC 5040, section 5.5, does not allow that; ib_write_lat is one. Over TCP they work.
            early_placement {
                range: 0..=1,
                default: 0,
                description: "Over SCTP, 1: the payload of an RDMA Write is placed when it \
                              arrives, even if segments before it are missing (RFC 5041, section \
                              5.3); 0: in its turn, as over TCP",
            }
            /// The addresses are of the same family, at most 8. A connection fails over to another
            /// path. [How](Documentation/sctp.md#several-paths).
            // RFC 5043, section 7.2: by default, an endpoint has one address.
            multihoming {
                range: 0..=1,
                default: 0,
                description: "Over SCTP, 1: a connection or listener at one address of the netdev \
                              has all addresses of the netdev; 0: it has one address",
            }
        }
        mpa numbers {
            /// 0 and 1 are for paths that protect data at least as well as CRC32c does (RFC 5044,
            /// section 4.4).
            // There: on, unless the administrator turns them off.
            crc {
                range: 0..=2,
                default: 2,
                description: "2: CRCs; 1: CRCs only if the peer requires them; 0: no CRCs, and \
                              peers that require them are refused",
            }
            /// Markers that the peer requires are always sent.
            markers {
                range: 0..=1,
                default: 0,
                description: "1: require the peer to send markers",
            }
            /// Use long FPDUs only if all peers of the device are riw or siw.
            /// [Why](Documentation/operating.md#long-fpdus).
            ///
            /// FPDUs of up to 140 bytes are sent in any case. Long FPDUs raise the bandwidth
            /// between software RNICs. Hardware may refuse FPDUs that do not fit in a TCP segment.
            // RFC 5044, section 5.1: an FPDU should fit in a TCP segment. The ULPDU of the maximum
            // is just below the limit of section 3, which is 64768. Below 140, MULPDU is the
            // minimum.
            fpdu_max {
                range: 0..=64_774,
                default: 0,
                description: "Bytes of the longest FPDU to send over TCP; 0: as long as a TCP \
                              segment, or with TLS as a record (16384)",
            }
            /// A peer that connects with revision 1 is served in either case.
            mpa_revision {
                range: 1..=2,
                default: 2,
                description: "Highest MPA revision to use",
            }
            /// Set 0 to connect to a peer that supports only revision 1, in which the initiator has
            /// to send first.
            peer_to_peer {
                range: 0..=1,
                default: 1,
                description: "1: request the peer-to-peer model when connecting (RFC 6581), so \
                              that either side may send first",
            }
            /// A Send consumes a receive WR of the peer.
            rtr {
                range: 1..=7,
                default: 6,
                description: "How this side may indicate in the peer-to-peer model that it is \
                              ready to receive: a sum of 1 Send, 2 RDMA Write, 4 RDMA Read",
            }
            connect_timeout {
                range: 100..=30_000,
                default: 10_000,
                description: "Milliseconds for TCP or SCTP to connect",
            }
            /// Also for its first FPDU, if the connection waits for that.
            startup_timeout {
                range: 100..=30_000,
                default: 10_000,
                description: "Milliseconds for the peer's part of the startup",
            }
            /// After that riw rejects it.
            accept_timeout {
                range: 100..=600_000,
                default: 120_000,
                description: "Milliseconds for a listening program to accept or reject a \
                              connection",
            }
            /// After that the stream ends with a Terminate. A change applies to messages that
            /// arrive afterwards. [Why 4 s](Documentation/operating.md#no-receive-is-posted).
            // About the longest finite budget of InfiniBand's RNR retries: 6 times 655 ms.
            receive_wait {
                range: 0..=60_000,
                default: 4_000,
                description: "Milliseconds that a Send or Immediate Data waits in the socket \
                              until a receive is posted for it; 0: it does not wait",
            }
            /// A change applies at once.
            /// [When another CPU sends](Documentation/operating.md#when-another-cpu-sends).
            ///
            /// With such pauses it looks 64 times.
            handover {
                range: 0..=1000,
                default: 50,
                description: "Microseconds for which a worker on another CPU, which sends for a \
                              process with a stream of messages, looks for more without a \
                              pause, and then between two looks; 0: no worker does that",
            }
            /// If the peer does not answer for as long again (at least 5 s), riw treats it as gone,
            /// and the queue pair goes to ERROR. With data in flight, the retransmission timeout
            /// applies instead.
            // TCP gives up an idle peer after twice this time, 10 minutes. By default, it gives up
            // unacknowledged data after about 15 minutes.
            keepalive {
                range: 0..=32_767,
                default: 300,
                description: "Seconds of silence after which TCP or SCTP probes an idle peer; 0: \
                              never",
            }
        }
    } };
}
pub(crate) use all_settings;
