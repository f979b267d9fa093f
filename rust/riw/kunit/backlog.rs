// SPDX-License-Identifier: GPL-2.0

//! The requests that a consumer has not read, and those that wait.

use super::State;
use kernel::{
    prelude::*,
    rbtree::{RBTreeNode, RBTreeNodeReservation},
};

fn report(state: &mut State<u64>) -> Result<u64> {
    Ok(state.add_unread(RBTreeNodeReservation::new(GFP_KERNEL)?))
}

#[kunit_tests(riw_backlog)]
mod tests {
    use super::*;

    /// A request counts from its report until it is read or taken back, once.
    #[test]
    fn unread_requests_take_room() -> Result {
        let mut state = State::new();
        let first = report(&mut state)?;

        assert!(state.has_room(2));
        let second = report(&mut state)?;

        assert!(!state.has_room(2));
        assert_eq!(state.first_unread(), Some(first));
        state.remove_unread(first);
        state.remove_unread(first);
        assert!(state.has_room(2));
        assert!(!state.has_room(1));
        assert_eq!(state.first_unread(), Some(second));
        state.remove_unread(second);
        assert!(state.has_room(1));
        assert!(!state.has_room(0));
        Ok(())
    }

    /// The first of the queue is the one that came first, also if it is queued again.
    #[test]
    fn requests_keep_their_places() -> Result {
        let mut state = State::new();
        let places = [state.number(), state.number(), state.number()];

        assert!(report(&mut state)? > places[2]);
        for &place in places.iter().rev() {
            state
                .queued
                .insert(RBTreeNode::new(place, place, GFP_KERNEL)?);
            assert_eq!(state.first_queued(), Some(&place));
        }
        for &place in &places {
            assert_eq!(state.first_queued(), Some(&place));
            state.queued.remove(&place);
        }
        assert_eq!(state.first_queued(), None);
        Ok(())
    }
}
