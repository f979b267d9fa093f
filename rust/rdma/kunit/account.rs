// SPDX-License-Identifier: GPL-2.0

//! The account of WRs: their order, and their places.

use super::{Account, Effect, Entry};
use kernel::prelude::*;

/// Takes in a WR by a call of its own.
fn post(account: &mut Account) -> Option<Entry> {
    let call = account.begin();
    let entry = account.enter(call, Effect::None);

    account.end(call);
    entry
}

#[kunit_tests(rdma_account)]
mod tests {
    use super::*;

    /// The oldest WR is the first one that has not left, in whichever order the others leave.
    #[test]
    fn the_oldest_is_the_first_that_is_left() -> Result {
        let mut account = Account::new(4)?;
        let [a, b, c] = [(); 3].map(|()| post(&mut account).unwrap());

        assert!(account.is_first(a.place));
        assert!(!account.is_first(b.place));
        // From the middle.
        account.leave(b.place);
        assert!(account.is_first(a.place));
        let d = post(&mut account).unwrap();
        account.leave(a.place);
        assert!(account.is_first(c.place));
        // The newest.
        account.leave(d.place);
        assert!(account.is_first(c.place));
        let e = post(&mut account).unwrap();
        assert!(!account.is_first(e.place));
        account.leave(c.place);
        assert!(account.is_first(e.place));
        assert!(!account.is_empty());
        account.leave(e.place);
        assert!(account.is_empty());
        Ok(())
    }

    /// Of calls that overlap, none is before the other.
    #[test]
    fn calls_that_overlap_have_no_order() -> Result {
        let mut account = Account::new(8)?;
        let before = post(&mut account).unwrap();
        let long = account.begin();
        let first = account.enter(long, Effect::None).unwrap();
        let short = post(&mut account).unwrap();
        let last = account.enter(long, Effect::None).unwrap();
        let next = post(&mut account).unwrap();

        // All come after the call that was over.
        for entry in [first, short, last, next] {
            assert!(!account.is_first(entry.place));
        }
        account.leave(before.place);
        // `last` comes after `first`, which the same call has posted, and `next` after `short`.
        for entry in [first, short] {
            assert!(account.is_first(entry.place));
        }
        for entry in [last, next] {
            assert!(!account.is_first(entry.place));
        }
        account.leave(short.place);
        assert!(account.is_first(next.place));
        account.end(long);
        let behind = post(&mut account).unwrap();
        assert!(account.is_first(next.place));
        assert!(!account.is_first(behind.place));
        for entry in [first, last] {
            account.leave(entry.place);
            assert!(!account.is_first(behind.place));
        }
        account.leave(next.place);
        assert!(account.is_first(behind.place));
        Ok(())
    }

    /// A WR that is completed during its call was posted, and holds up no other.
    #[test]
    fn a_completed_wr_was_posted() -> Result {
        let mut account = Account::new(4)?;
        let call = account.begin();
        let [a, b] = [(); 2].map(|()| account.enter(call, Effect::None).unwrap());

        assert!(!account.is_first(b.place));
        account.complete(a.place);
        assert!(account.is_first(b.place));
        assert!(!account.may_refuse(a));
        account.leave(b.place);
        assert!(account.may_refuse(b));
        account.end(call);
        assert!(account.is_empty());
        // All places are free again.
        for _ in 0..4 {
            assert!(post(&mut account).is_some());
        }
        let last = account.newest;
        account.complete(last);
        assert!(post(&mut account).is_some());
        Ok(())
    }

    /// A WR that goes without its effect was not posted, or is never complete.
    #[test]
    fn an_abandoned_wr_was_not_posted() -> Result {
        let mut account = Account::new(4)?;
        let call = account.begin();
        let [a, b] = [(); 2].map(|()| account.enter(call, Effect::None).unwrap());

        account.abandon(a.place);
        assert!(!account.is_first(b.place));
        // It goes with the refusal, and leaves no trace.
        assert!(account.may_refuse(a));
        assert!(account.is_first(b.place));
        account.end(call);
        assert!(account.is_first(b.place));
        // Its call does not refuse it.
        let call = account.begin();
        let c = account.enter(call, Effect::None).unwrap();
        account.abandon(c.place);
        account.end(call);
        assert!(!account.is_first(b.place));
        account.leave(b.place);
        assert!(account.is_empty());
        let d = post(&mut account).unwrap();
        assert!(!account.is_first(d.place));
        // Its call is over.
        let mut account = Account::new(4)?;
        let [a, b] = [(); 2].map(|()| post(&mut account).unwrap());
        account.abandon(b.place);
        assert!(!account.is_first(a.place));
        Ok(())
    }

    /// A place that another WR has got is not taken for the first one.
    #[test]
    fn a_place_is_used_again() -> Result {
        let mut account = Account::new(2)?;
        let a = post(&mut account).unwrap();
        let b = post(&mut account).unwrap();

        assert!(post(&mut account).is_none());
        assert!(!account.may_refuse(a));
        account.leave(a.place);
        assert!(account.may_refuse(a));
        let again = post(&mut account).unwrap();
        assert_eq!(again.place, a.place);
        assert!(account.may_refuse(a));
        assert!(!account.may_refuse(again));
        assert!(!account.may_refuse(b));
        assert!(account.is_first(b.place));
        Ok(())
    }

    /// However WRs come and go, all places can be used.
    #[test]
    fn no_place_is_lost() -> Result {
        const SIZE: u32 = 5;
        let mut account = Account::new(SIZE)?;
        let mut here = KVec::new();

        for step in 0..1000u32 {
            match post(&mut account) {
                Some(entry) => here.push(entry.place, GFP_KERNEL)?,
                None => {
                    assert_eq!(here.len(), SIZE as usize);
                    for _ in 0..=step % SIZE {
                        let at = (step as usize).wrapping_mul(7) % here.len();
                        account.leave(here.remove(at).map_err(|_| EINVAL)?);
                    }
                }
            }
            assert_eq!(account.is_empty(), here.is_empty());
            assert!(here.first().is_none_or(|first| account.is_first(*first)));
        }
        assert!(post(&mut Account::new(0)?).is_none());
        Ok(())
    }
}
