// SPDX-License-Identifier: GPL-2.0

//! Eviction when too many connections are half-open.

// A counter overflow in a test should panic.
#![allow(clippy::arithmetic_side_effects)]

use super::{HalfOpen, Source, HALF_OPEN_MAX};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use kernel::{prelude::*, rbtree::RBTreeNode};

fn v4(host: usize) -> Source {
    // CAST: A small number.
    IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + host as u32)).into()
}

fn v6(prefix: u64, host: u64) -> Source {
    let bits = (u128::from(prefix) << 64) | u128::from(host);

    IpAddr::from(Ipv6Addr::from_bits(bits)).into()
}

/// Returns a node for the connection `token`.
fn node(source: Source, token: usize) -> Result<RBTreeNode<(Source, usize), ()>> {
    RBTreeNode::new((source, token), (), GFP_KERNEL)
}

#[kunit_tests(riw_half_open)]
mod tests {
    use super::*;

    /// A flood from a few sources never evicts a connection of another source, and evicts its own
    /// oldest first.
    #[test]
    fn a_flood_evicts_its_own_connections() -> Result {
        let mut half_open = HalfOpen::new();

        assert_eq!(half_open.insert(node(v4(99), 0)?), None);
        for token in 1..10 * HALF_OPEN_MAX {
            let evicted = half_open.insert(node(v4(token % 8), token)?);

            assert_eq!(
                evicted,
                token
                    .checked_sub(HALF_OPEN_MAX - 1)
                    .filter(|&oldest| oldest > 0)
            );
        }
        assert_eq!(half_open.tokens().count(), HALF_OPEN_MAX);
        assert!(half_open.tokens().any(|token| token == 0));
        Ok(())
    }

    /// If the sources outnumber the slots, the oldest connection of all is evicted.
    #[test]
    fn with_many_sources_the_oldest_is_evicted() -> Result {
        let mut half_open = HalfOpen::new();

        for token in 0..2 * HALF_OPEN_MAX {
            // Not in the order of the addresses.
            let evicted = half_open.insert(node(v4((token * 7919) % (4 * HALF_OPEN_MAX)), token)?);

            assert_eq!(evicted, token.checked_sub(HALF_OPEN_MAX));
        }
        Ok(())
    }

    /// After a removal, an insertion evicts nothing.
    #[test]
    fn a_removed_connection_makes_room() -> Result {
        let mut half_open = HalfOpen::new();

        for token in 0..2 * HALF_OPEN_MAX {
            assert_eq!(half_open.insert(node(v4(1), token)?), None);
            if token >= HALF_OPEN_MAX - 1 {
                half_open.remove(v4(1), token);
                assert_eq!(half_open.tokens().count(), HALF_OPEN_MAX - 1);
                // Removing it once more makes no more room.
                half_open.remove(v4(1), token);
            }
        }
        Ok(())
    }

    /// Addresses with one global IPv6 prefix are one source; link-local addresses are not.
    #[test]
    fn an_ipv6_prefix_is_one_source() {
        assert_eq!(v6(0x2001_0db8_0000_0001, 1), v6(0x2001_0db8_0000_0001, 2));
        assert!(v6(0x2001_0db8_0000_0001, 1) != v6(0x2001_0db8_0000_0002, 1));
        assert!(v6(0xfe80 << 48, 1) != v6(0xfe80 << 48, 2));
    }
}
