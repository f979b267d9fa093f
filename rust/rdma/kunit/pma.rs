// SPDX-License-Identifier: GPL-2.0

//! The replies to ib_core's requests for InfiniBand's counters.

use super::{reply, PortCounters, CLASS_PORT_INFO, PORT_COUNTERS, PORT_COUNTERS_EXT};
use kernel::prelude::*;
use riw_bindings as bindings;

/// Returns a request as `get_perf_mad()` makes it, for port 1.
fn request(attribute: u16) -> bindings::ib_mad {
    let mut request = bindings::ib_mad::default();

    request.mad_hdr.mgmt_class = bindings::IB_MGMT_CLASS_PERF_MGMT as u8;
    request.mad_hdr.class_version = 1;
    request.mad_hdr.method = bindings::IB_MGMT_METHOD_GET as u8;
    request.mad_hdr.attr_id = attribute.to_be();
    request.data[41] = 1;
    request
}

/// Returns `N` octets of the reply to a request for these counters, from an offset of the attribute
/// on.
fn octets<const N: usize>(
    attribute: u16,
    offset: usize,
    counters: PortCounters,
) -> Result<[u8; N]> {
    let data = reply(&request(attribute), || counters).ok_or(EINVAL)?;

    // `get_perf_mad()` skips as many.
    data.get(40 + offset..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .ok_or(EINVAL)
}

const COUNTERS: PortCounters = PortCounters {
    xmit_octets: 4 << 32,
    rcv_octets: (4 << 32) - 1,
    xmit_packets: u64::MAX,
    rcv_packets: 7,
    rcv_errors: 70_000,
};

#[kunit_tests(rdma_pma)]
mod tests {
    use super::*;

    /// Counters of 16 and 32 bits stay at their largest value, and count data in units of 4 octets.
    #[test]
    fn short_counters_do_not_wrap() -> Result {
        let words = octets::<16>(PORT_COUNTERS, 24, COUNTERS)?;

        assert_eq!(words[..4], [0xff; 4]);
        assert_eq!(words[4..8], [0xff; 4]);
        assert_eq!(words[8..12], [0xff; 4]);
        assert_eq!(words[12..], [0, 0, 0, 7]);
        assert_eq!(octets(PORT_COUNTERS, 8, COUNTERS)?, [0xff, 0xff]);
        Ok(())
    }

    /// Counters of 64 bits have all of it.
    #[test]
    fn long_counters_are_whole() -> Result {
        let words = octets::<32>(PORT_COUNTERS_EXT, 8, COUNTERS)?;

        assert_eq!(words[..8], [0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(words[8..16], [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(words[16..24], [0xff; 8]);
        assert_eq!(words[24..], [0, 0, 0, 0, 0, 0, 0, 7]);
        Ok(())
    }

    /// ib_core learns that there are the counters of 64 bits.
    #[test]
    fn the_long_counters_are_announced() -> Result {
        assert_eq!(octets(CLASS_PORT_INFO, 0, COUNTERS)?, [0, 1, 2, 0]);
        Ok(())
    }

    /// Another class, method or attribute has no reply.
    #[test]
    fn other_requests_fail() {
        let is_refused = |change: &dyn Fn(&mut bindings::ib_mad_hdr)| {
            let mut request = request(PORT_COUNTERS);

            change(&mut request.mad_hdr);
            reply(&request, || COUNTERS).is_none()
        };

        assert!(!is_refused(&|_| {}));
        assert!(is_refused(&|header| header.mgmt_class = 1));
        assert!(is_refused(&|header| header.method = 2));
        assert!(is_refused(&|header| header.attr_id = 0x13u16.to_be()));
    }
}
