// SPDX-License-Identifier: GPL-2.0

//! Connections of a subscription whose Request has not come.

use core::net::IpAddr;
use kernel::{prelude::*, rbtree::RBTree};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../kunit/half_open.rs"]
mod kunit;

/// Half-open connections of a subscription. TCP's part of one and riw's take some 5 KiB together.
pub(super) const MAX: usize = 1024;

/// Where connections come from, as far as one host is told from another: an address, or the /64 of a
/// global one of IPv6, of which a host can have all.
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

/// Half-open connections, each known by its source and its token. Tokens grow with time.
///
/// If there are too many, the oldest one of the source that has the most gives way. So a source that
/// opens many takes room from itself only, however fast it is. If there are more sources than
/// connections may be, the oldest of all gives way.
///
/// `TCP_DEFER_ACCEPT` would not help. A flood gets around it by one byte from each client; and it
/// fills TCP's queue of SYNs, after which connections of other clients begin with SYN cookies, and
/// with an MSS that is too small for a network with jumbo frames.
pub(super) struct HalfOpen<T> {
    connections: RBTree<(Source, usize), T>,
    len: usize,
}

impl<T> HalfOpen<T> {
    /// None at all.
    pub(super) fn new() -> Self {
        Self {
            connections: RBTree::new(),
            len: 0,
        }
    }

    /// Adds a connection; returns the one that gives way. May sleep.
    pub(super) fn insert(&mut self, source: Source, token: usize, value: T) -> Result<Option<T>> {
        self.connections
            .try_create_and_insert((source, token), value, GFP_KERNEL)?;
        self.len = self.len.saturating_add(1);
        if self.len <= MAX {
            return Ok(None);
        }
        Ok(self
            .victim()
            .and_then(|(source, token)| self.remove(source, token)))
    }

    /// Removes a connection, if it is there.
    pub(super) fn remove(&mut self, source: Source, token: usize) -> Option<T> {
        let removed = self.connections.remove(&(source, token))?;

        self.len = self.len.saturating_sub(1);
        Some(removed)
    }

    /// All connections.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.connections.values()
    }

    /// The connection that gives way. Those of a source are neighbours, the oldest first.
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
    fn outweighs(&self, other: &Self) -> bool {
        (self.len, other.oldest) > (other.len, self.oldest)
    }
}
