// SPDX-License-Identifier: GPL-2.0

//! The queue pairs that wait for a WR of a receive queue.

use super::fifo::Fifo;

/// Queue pairs by number, in the order in which they came. Each is in the line once at most.
///
/// Joining does not allocate: there is room for every user of the queue.
pub(super) struct Line {
    waiting: Fifo<u32>,
    /// Queue pairs that use the queue.
    users: u32,
}

impl Line {
    /// Creates a line without users. Any context.
    pub(super) const fn new() -> Self {
        Self {
            waiting: Fifo::empty(),
            users: 0,
        }
    }

    /// Returns the queue pair whose turn it is. Any context.
    pub(super) fn first(&mut self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// Adds a queue pair that is not in the line. Any context.
    pub(super) fn join(&mut self, number: u32) {
        // There is room for each user.
        let _ = self.waiting.push(number);
    }

    /// Removes the first queue pair. Any context.
    pub(super) fn serve(&mut self) {
        self.waiting.pop();
    }

    /// Removes a queue pair, if it is in the line. Any context. Fast for the first in line: if
    /// nothing is posted, the time of the first is over first.
    pub(super) fn leave(&mut self, number: u32) {
        if self.first() == Some(number) {
            return self.serve();
        }
        self.waiting.retain(|waiting| *waiting != number);
    }

    /// Adds a user, if there is room for it. Any context. Otherwise returns the number of users
    /// that there must be room for: see [`Self::grow`].
    pub(super) fn add_user(&mut self) -> Result<(), u32> {
        let users = self.users.saturating_add(1);

        if users > self.waiting.size() {
            return Err(users);
        }
        self.users = users;
        Ok(())
    }

    /// Removes a user, which is not in the line. Any context.
    pub(super) fn remove_user(&mut self) {
        self.users = self.users.saturating_sub(1);
    }

    /// Uses `room`, an empty queue, if it is larger than the present one. Any context. Returns the
    /// room that is not used any more, which the caller drops without a lock.
    pub(super) fn grow(&mut self, mut room: Fifo<u32>) -> Fifo<u32> {
        if room.size() > self.waiting.size() {
            while let Some(number) = self.waiting.pop() {
                let _ = room.push(number);
            }
            core::mem::swap(&mut self.waiting, &mut room);
        }
        room
    }
}
