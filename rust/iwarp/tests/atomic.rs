// SPDX-License-Identifier: GPL-2.0

//! The results of atomic operations, compared with the definitions of RFC 7306, bit by bit.

use iwarp::AtomicOp;
use proptest::prelude::*;

/// Adds as the RFC's pseudocode does (RFC 7306 §5.1.1): a carry out of a bit of `mask` is dropped.
fn masked_sum(original: u64, add: u64, mask: u64) -> u64 {
    let mut sum = 0;
    let mut carry = false;
    for bit in (0..64).map(|n| 1_u64 << n) {
        let ones = u8::from(original & bit != 0) + u8::from(add & bit != 0) + u8::from(carry);
        if ones % 2 == 1 {
            sum |= bit;
        }
        carry = ones >= 2 && mask & bit == 0;
    }
    sum
}

/// Swaps bit by bit if all compared bits are equal (RFC 7306 §5.1.2).
fn masked_swap(original: u64, [swap, swap_mask, compare, compare_mask]: [u64; 4]) -> u64 {
    let bits = || (0..64).map(|n| 1_u64 << n);
    if bits().any(|bit| compare_mask & bit != 0 && (compare ^ original) & bit != 0) {
        return original;
    }
    bits().fold(0, |value, bit| {
        let from = if swap_mask & bit == 0 { original } else { swap };
        value | (from & bit)
    })
}

/// Numbers of all kinds: sparse and dense ones make runs of carries.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(a, b, c)| a & b & c),
        (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(a, b, c)| a | b | c),
        (0..64_u32).prop_map(|n| 1 << n),
        prop_oneof![Just(0), Just(u64::MAX)],
    ]
}

proptest! {
    #[test]
    fn fetch_add_adds_each_field_by_itself(
        original in number(), add in number(), mask in number(),
    ) {
        let op = AtomicOp::FetchAdd { add, mask };
        prop_assert_eq!(op.apply(original), masked_sum(original, add, mask));
    }

    #[test]
    fn cmp_swap_swaps_the_masked_bits_if_the_compared_bits_are_equal(
        original in number(), swap in number(), swap_mask in number(), compare in number(),
        compare_mask in number(), equal in any::<bool>(),
    ) {
        // At random the compared bits are hardly ever equal.
        let compare = if equal { (original & compare_mask) | (compare & !compare_mask) } else { compare };
        let op = AtomicOp::CmpSwap { swap, swap_mask, compare, compare_mask };
        let want = masked_swap(original, [swap, swap_mask, compare, compare_mask]);
        prop_assert_eq!(op.apply(original), want);
    }

    #[test]
    fn plain_operations_use_all_64_bits(original in any::<u64>(), a in any::<u64>(), b in any::<u64>()) {
        prop_assert_eq!(AtomicOp::fetch_add(a).apply(original), original.wrapping_add(a));
        prop_assert_eq!(AtomicOp::cmp_swap(original, b).apply(original), b);
        let other = if a == original { !a } else { a };
        prop_assert_eq!(AtomicOp::cmp_swap(other, b).apply(original), original);
    }
}

#[test]
fn a_carry_stays_in_its_field() {
    let add = |original, add, mask| AtomicOp::FetchAdd { add, mask }.apply(original);
    assert_eq!(add(0xff, 1, 0), 0x100);
    assert_eq!(add(0xff, 1, 0x80), 0);
    assert_eq!(add(0xff, 1, 0x100), 0x100);
    assert_eq!(
        add(0xffff_ffff_ffff_ffff, 0x0001_0001, 0x8000_8000),
        0xffff_ffff_0000_0000
    );
    assert_eq!(add(u64::MAX, 1, 1 << 63), 0);
    // Each bit is a field: an addition without any carry.
    assert_eq!(add(0b1100, 0b1010, u64::MAX), 0b0110);
}
