// SPDX-License-Identifier: GPL-2.0

//! Half-open connections: the transport has established them, but the peer's request has not
//! arrived, or waits for room in the backlog of the consumer.

use crate::bounds::HALF_OPEN_MAX;
use core::net::IpAddr;
use kernel::rbtree::{RBTree, RBTreeNode};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/half_open.rs"]
mod kunit;

/// The host that a connection comes from, as far as hosts can be distinguished: an IPv4 address, a
/// link-local IPv6 address, or the /64 prefix of another IPv6 address. A host may have all
/// addresses of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source(u128);

impl From<IpAddr> for Source {
    fn from(addr: IpAddr) -> Self {
        Self(match addr {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            // All hosts of a link share its prefix.
            IpAddr::V6(v6) if v6.is_unicast_link_local() => v6.to_bits(),
            IpAddr::V6(v6) => v6.to_bits() & !u128::from(u64::MAX),
        })
    }
}

/// The half-open connections of a subscription, by source and token. Tokens grow with time.
///
/// If there are too many, the oldest one of the source with the most connections is evicted. So a
/// source that opens many, at whatever rate, takes room only from itself. If the sources outnumber
/// [`HALF_OPEN_MAX`], the oldest connection of all is evicted.
///
/// `TCP_DEFER_ACCEPT` would not help. A flood evades it by one byte on each connection. It also
/// fills TCP's SYN queue: TCP then answers other clients with SYN cookies, and their MSS is too
/// small for a network with jumbo frames.
pub(super) struct HalfOpen {
    connections: RBTree<(Source, usize), ()>,
    len: usize,
}

impl HalfOpen {
    /// Creates an empty set.
    pub(super) fn new() -> Self {
        Self {
            connections: RBTree::new(),
            len: 0,
        }
    }

    /// Adds a connection. Returns the token of the one that is evicted for it, if any.
    pub(super) fn insert(&mut self, connection: RBTreeNode<(Source, usize), ()>) -> Option<usize> {
        self.connections.insert(connection);
        self.len = self.len.saturating_add(1);
        if self.len <= HALF_OPEN_MAX {
            return None;
        }
        let (source, token) = self.victim()?;

        self.remove(source, token);
        Some(token)
    }

    /// Removes a connection, if it is there.
    pub(super) fn remove(&mut self, source: Source, token: usize) {
        if self.connections.remove(&(source, token)).is_some() {
            self.len = self.len.saturating_sub(1);
        }
    }

    /// Iterates over the tokens of all connections.
    pub(super) fn tokens(&self) -> impl Iterator<Item = usize> + '_ {
        self.connections.keys().map(|&(_, token)| token)
    }

    /// Finds the connection to evict. The connections of a source are neighbours, oldest first.
    fn victim(&self) -> Option<(Source, usize)> {
        let mut heaviest: Option<Run> = None;
        let mut current: Option<Run> = None;

        for &(source, token) in self.connections.keys() {
            let run = match current {
                Some(run) if run.source == source => Run {
                    len: run.len.saturating_add(1),
                    ..run
                },
                _ => Run {
                    source,
                    oldest: token,
                    len: 1,
                },
            };

            current = Some(run);
            if heaviest.is_none_or(|heaviest| run.outweighs(&heaviest)) {
                heaviest = Some(run);
            }
        }
        heaviest.map(|run| (run.source, run.oldest))
    }
}

/// The connections of a source.
#[derive(Clone, Copy)]
struct Run {
    source: Source,
    oldest: usize,
    len: usize,
}

impl Run {
    /// Whether this source has more connections, or as many and an older one.
    fn outweighs(&self, other: &Self) -> bool {
        (self.len, other.oldest) > (other.len, self.oldest)
    }
}
