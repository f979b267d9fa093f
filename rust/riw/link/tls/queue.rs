// SPDX-License-Identifier: GPL-2.0

//! The order in which the connections of a device begin their handshakes.

use super::super::events::{EventSink, LinkEvents};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// The connections of a device for whose handshakes the kernel has no room, the one that came first
/// in front. Only that one asks again, and when it leaves, the next one does. So each gets its
/// turn, and thousands that wait cost nothing.
#[derive(Clone)]
pub(crate) struct HandshakeQueue(Arc<Places>);

#[pin_data]
struct Places {
    #[pin]
    state: Mutex<Waiting>,
}

struct Waiting {
    /// The number of the next place.
    next: u64,
    waiters: RBTree<u64, Arc<dyn Waiter>>,
}

impl Waiting {
    /// Returns the place in front, and who has it.
    fn front(&self) -> Option<(u64, &Arc<dyn Waiter>)> {
        (self.waiters.iter().next()).map(|(&number, waiter)| (number, waiter))
    }

    /// Whether this place is in front.
    fn is_front(&self, number: u64) -> bool {
        self.front().is_some_and(|(front, _)| front == number)
    }
}

/// A connection that waits for its turn.
trait Waiter: Send + Sync {
    /// It is in front now. Process context. Must only mark and schedule.
    fn advanced(&self);
}

impl<T: LinkEvents> Waiter for EventSink<T> {
    fn advanced(&self) {
        self.owner().changed();
    }
}

impl HandshakeQueue {
    /// Creates an empty one. May sleep. Fails with `ENOMEM` without memory.
    pub(crate) fn new() -> Result<Self> {
        let state = Waiting {
            next: 0,
            waiters: RBTree::new(),
        };
        let places = pin_init!(Places {
            state <- new_mutex!(state, "riw::HandshakeQueue::state"),
        });

        Ok(Self(Arc::pin_init(places, GFP_KERNEL)?))
    }

    /// Whether no connection waits. May sleep.
    pub(super) fn is_empty(&self) -> bool {
        self.0.state.lock().front().is_none()
    }

    /// Gives `owner` the last place. It is told when it is in front, unless it is at once. May
    /// sleep. Fails with `ENOMEM` without memory.
    pub(super) fn join<T: LinkEvents>(&self, owner: Arc<EventSink<T>>) -> Result<Place> {
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut state = self.0.state.lock();
        let number = state.next;

        // 64 bits are never used up.
        state.next = number.wrapping_add(1);
        state.waiters.insert(node.into_node(number, owner));
        drop(state);
        Ok(Place {
            queue: self.clone(),
            number,
        })
    }
}

/// A place in a [`HandshakeQueue`]. Its drop gives it up; may sleep.
pub(super) struct Place {
    queue: HandshakeQueue,
    number: u64,
}

impl Place {
    /// Whether it is in front. May sleep.
    pub(super) fn is_first(&self) -> bool {
        self.queue.0.state.lock().is_front(self.number)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.queue.0.state.lock();
        let was_first = state.is_front(self.number);
        let left = state.waiters.remove_node(&self.number);
        let next = state
            .front()
            .filter(|_| was_first)
            .map(|(_, waiter)| waiter.clone());

        drop(state);
        // Without the lock: this may be the last reference to the waiter.
        drop(left);
        if let Some(next) = next {
            next.advanced();
        }
    }
}
