// SPDX-License-Identifier: GPL-2.0

//! The control words of enhanced connection establishment (RFC 6581 §9).

use super::depths::Depths;
use super::rtr::RtrTypes;
use crate::wire::enhanced as wire;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::FromBytes;

/// The contents of the control words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words {
    /// The read depths.
    pub depths: Depths,
    /// The RTR indications, in the peer-to-peer model.
    pub rtr: Option<RtrTypes>,
}

impl Words {
    /// Parses the words at the start of `private`. Returns `None` if it is too short.
    pub(crate) fn parse(private: &[u8]) -> Option<Self> {
        let (words, _) = wire::Enhanced::read_from_prefix(private).ok()?;
        let (first, second) = (words.ird.get(), words.ord.get());
        Some(Self {
            depths: Depths {
                ird: u32::from(first & wire::ENH_DEPTH_MASK),
                ord: u32::from(second & wire::ENH_DEPTH_MASK),
            },
            rtr: rtr_types(first, second),
        })
    }

    /// Builds the words.
    pub(crate) fn wire(&self) -> wire::Enhanced {
        let word = |depth: u32| u16::try_from(depth).unwrap_or(u16::MAX) & wire::ENH_DEPTH_MASK;
        let (mut first, mut second) = (word(self.depths.ird), word(self.depths.ord));
        if let Some(types) = self.rtr {
            first |= wire::ENH_PEER_TO_PEER;
            if types.contains(RtrTypes::SEND) {
                first |= wire::ENH_RTR_SEND;
            }
            if types.contains(RtrTypes::WRITE) {
                second |= wire::ENH_RTR_WRITE;
            }
            if types.contains(RtrTypes::READ) {
                second |= wire::ENH_RTR_READ;
            }
        }
        wire::Enhanced {
            ird: U16::new(first),
            ord: U16::new(second),
        }
    }
}

/// Returns the RTR indications in the two words. Without flag A the other flags are ignored (RFC
/// 6581 §9.2).
fn rtr_types(first: u16, second: u16) -> Option<RtrTypes> {
    if first & wire::ENH_PEER_TO_PEER == 0 {
        return None;
    }
    let mut types = RtrTypes::NONE;
    if first & wire::ENH_RTR_SEND != 0 {
        types = types.union(RtrTypes::SEND);
    }
    if second & wire::ENH_RTR_WRITE != 0 {
        types = types.union(RtrTypes::WRITE);
    }
    if second & wire::ENH_RTR_READ != 0 {
        types = types.union(RtrTypes::READ);
    }
    Some(types)
}
