// SPDX-License-Identifier: GPL-2.0

//! Stubs of the transports that riw is built without.
//!
//! Each module has the names that the rest of the folder uses. Its types have no values, and the
//! functions that would make one fail with `EPROTONOSUPPORT`.

use super::{
    batch::Batch,
    events::LinkEvents,
    linger::CloseProgress,
    transport::Carrier,
    types::{AddrPair, LinkDetails, LinkState},
    Link,
};
use core::net::SocketAddr;
use kernel::{prelude::*, sync::Arc};
use net::{AnyEvent, Base};

/// A connection or an inlet of an absent transport.
pub(crate) enum Absent {}

impl Absent {
    pub(super) fn base(&self) -> &Base {
        match *self {}
    }

    pub(super) fn prepare<T: LinkEvents>(&mut self, _idle: u16, _owner: Arc<T>) -> Result {
        match *self {}
    }

    pub(super) fn set_callbacks<T: AnyEvent>(&self, _owner: Arc<T>) -> Result {
        match *self {}
    }

    pub(super) fn take_inlet(&mut self) -> Option<KBox<Self>> {
        match *self {}
    }

    pub(super) fn return_inlet(&mut self, _inlet: KBox<Self>) {
        match *self {}
    }

    pub(super) fn receive<T: LinkEvents>(&mut self, _link: &Link, _owner: &Arc<T>) {
        match *self {}
    }
}

impl Carrier for Absent {
    fn connect(&self, _remote: &SocketAddr) -> Result {
        match *self {}
    }

    fn state(&self) -> LinkState {
        match *self {}
    }

    fn has_received(&self) -> bool {
        match *self {}
    }

    fn addrs(&self) -> Result<AddrPair> {
        match *self {}
    }

    fn send(&mut self, _batch: &mut Batch) -> Result {
        match *self {}
    }

    fn room_and_emss(&self) -> (usize, u32) {
        match *self {}
    }

    fn emss(&self) -> u32 {
        match *self {}
    }

    fn moved(&self) -> u64 {
        match *self {}
    }

    fn details(&self) -> Result<LinkDetails> {
        match *self {}
    }

    fn close_write(&mut self) -> Result {
        match *self {}
    }

    fn progress(&mut self) -> CloseProgress {
        match *self {}
    }
}

/// As `tls/`.
#[cfg(not(CONFIG_RDMA_RIW_TLS))]
pub(super) mod tls {
    pub(crate) use super::Absent as TlsConnection;
    pub(crate) use super::Absent as RecordInlet;

    use super::super::{
        deadline::Deadline, security::TlsTerms, startup::StartupFailure, types::Site, LinkEvents,
    };
    use core::net::SocketAddr;
    use kernel::{prelude::*, sync::Arc};
    use net::Socket;

    impl TlsConnection {
        pub(in crate::link) fn new(
            _site: &Site<'_>,
            _local: &SocketAddr,
            _remote: &SocketAddr,
            _tos: Option<u8>,
            _terms: TlsTerms,
        ) -> Result<KBox<Self>> {
            Err(EPROTONOSUPPORT)
        }

        pub(in crate::link) fn accepted(socket: Socket, _terms: TlsTerms) -> Result<KBox<Self>> {
            socket.abort();
            Err(EPROTONOSUPPORT)
        }

        pub(in crate::link) fn secure<T: LinkEvents>(
            &mut self,
            _owner: &Arc<T>,
            _deadline: &Deadline,
        ) -> Result<bool, StartupFailure> {
            match *self {}
        }
    }

    /// No connection waits for a handshake.
    #[derive(Clone)]
    pub(crate) struct HandshakeQueue;

    impl HandshakeQueue {
        pub(crate) fn new() -> Result<Self> {
            Ok(Self)
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum TlsFault {}

    impl TlsFault {
        pub(in crate::link) fn rule(self) -> &'static str {
            match self {}
        }
    }
}

/// As `sctp/`.
#[cfg(not(CONFIG_RDMA_RIW_SCTP))]
pub(super) mod sctp {
    pub(crate) use super::Absent as Association;
    pub(crate) use super::Absent as Inlet;

    use super::super::{
        startup::{Answer, PeerDepths, ReceivedRequest, StartupFailure, StartupFault, Terms},
        types::Site,
        Link, LinkEvents, Reorder,
    };
    use core::{net::SocketAddr, ops::Deref};
    use iwarp::startup::{Parameters, Policy};
    use kernel::{prelude::*, sync::Arc};
    use net::{Base, ListenerHook, Pernet};

    pub(in crate::link) fn load(_pernet: &Pernet) -> Result {
        Err(EPROTONOSUPPORT)
    }

    impl Association {
        pub(in crate::link) fn connecting(
            _site: &Site<'_>,
            _local: &SocketAddr,
            _more: &[SocketAddr],
            _remote: &SocketAddr,
            _tos: Option<u8>,
        ) -> Result<KBox<Self>> {
            Err(EPROTONOSUPPORT)
        }
    }

    pub(crate) enum UnboundSctp {}

    impl Deref for UnboundSctp {
        type Target = Base;

        fn deref(&self) -> &Base {
            match *self {}
        }
    }

    impl UnboundSctp {
        pub(in crate::link) fn new(
            _site: &Site<'_>,
            _addr: &SocketAddr,
            _more: KVec<SocketAddr>,
        ) -> Result<Self> {
            Err(EPROTONOSUPPORT)
        }

        pub(in crate::link) fn listen(
            self,
            _addr: &SocketAddr,
            _backlog: u32,
            _hook: ListenerHook,
        ) -> Result<SctpListener> {
            match self {}
        }
    }

    pub(crate) enum SctpListener {}

    impl SctpListener {
        pub(in crate::link) fn accept(&self) -> Result<KBox<Association>> {
            match *self {}
        }
    }

    pub(crate) enum SctpStartup {}

    impl SctpStartup {
        pub(in crate::link) fn new(
            _policy: &Policy,
            _terms: Terms<'_>,
            _reorder: Reorder,
        ) -> Result<Self> {
            Err(EPROTONOSUPPORT)
        }

        pub(in crate::link) fn send_request(&self, _link: &Link) -> Result<(), StartupFailure> {
            match *self {}
        }

        pub(in crate::link) fn receive<T: LinkEvents>(
            &mut self,
            _link: &Link,
            _owner: &Arc<T>,
        ) -> Result<Option<Answer>, StartupFailure> {
            match *self {}
        }

        pub(in crate::link) fn private_data(&self) -> &[u8] {
            match *self {}
        }

        pub(in crate::link) fn peer_depths(&self) -> PeerDepths {
            match *self {}
        }
    }

    pub(crate) enum AwaitedInitiate {}

    impl AwaitedInitiate {
        pub(in crate::link) fn new(_link: &Link, _policy: &Policy) -> Result<Self, StartupFailure> {
            Err(StartupFailure::Local(EPROTONOSUPPORT))
        }

        pub(in crate::link) fn receive<T: LinkEvents>(
            &self,
            _link: &Link,
            _owner: &Arc<T>,
        ) -> Result<Option<ReceivedRequest>, StartupFailure> {
            match *self {}
        }
    }

    pub(crate) enum SctpResponder {}

    impl SctpResponder {
        pub(in crate::link) fn check<T: LinkEvents>(
            &self,
            _link: &Link,
            _owner: &Arc<T>,
        ) -> Result<Option<(bool, StartupFault)>, StartupFailure> {
            match *self {}
        }

        pub(in crate::link) fn peer_depths(&self) -> PeerDepths {
            match *self {}
        }

        pub(in crate::link) fn reject(&self, _link: &Link, _private: &[u8]) -> bool {
            match *self {}
        }

        pub(in crate::link) fn refuse(&self, _link: &Link) -> bool {
            match *self {}
        }
    }

    pub(in crate::link) fn accept(
        _link: &Link,
        _terms: Terms<'_>,
        _reorder: Reorder,
    ) -> Result<Parameters> {
        Err(EPROTONOSUPPORT)
    }
}
