// SPDX-License-Identifier: GPL-2.0

//! The members of an object that is shut down as a whole.

use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
};

/// Members by number. After the shutdown there are none, and never will be.
///
/// The owner's lock protects it. Functions return the members that they remove, so that the owner
/// can drop these without that lock: a removed reference may be the last.
pub(crate) struct Members<T> {
    tree: RBTree<usize, T>,
    next_token: usize,
    shut: bool,
}

impl<T> Members<T> {
    /// Creates an empty set. Any context.
    pub(crate) fn new() -> Self {
        Self {
            tree: RBTree::new(),
            next_token: 1,
            shut: false,
        }
    }

    /// Returns a number for a member, which is never reused. Any context.
    pub(crate) fn token(&mut self) -> usize {
        let token = self.next_token;

        self.next_token = token.wrapping_add(1);
        token
    }

    /// Adds a member, whose node has a number of its own. Any context. Fails with `ENODEV` after
    /// the shutdown.
    pub(crate) fn add(&mut self, member: RBTreeNode<usize, T>) -> Result {
        if self.shut {
            return Err(ENODEV);
        }
        self.tree.insert(member);
        Ok(())
    }

    /// Removes a member, unless the shutdown has removed it already. Any context.
    pub(crate) fn remove(&mut self, token: usize) -> Option<T> {
        self.tree.remove(&token)
    }

    /// Returns a member. Any context.
    pub(crate) fn get(&self, token: usize) -> Option<&T> {
        self.tree.get(&token)
    }

    /// Removes all members, and refuses new ones. Any context.
    pub(crate) fn shut_down(&mut self) -> RBTree<usize, T> {
        self.shut = true;
        core::mem::replace(&mut self.tree, RBTree::new())
    }

    /// Whether the shutdown has begun. Any context.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.shut
    }
}
