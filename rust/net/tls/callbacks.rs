// SPDX-License-Identifier: GPL-2.0

//! The callbacks of handshakes, which are code of this module.

use kernel::sync::atomic::{ordering, Atomic};
use riw_bindings as bindings;

/// There may be callbacks to wait for.
static HAVE_BEGUN: Atomic<bool> = Atomic::new(false);

/// Notes that a handshake begins. Any context.
pub(super) fn note_handshake() {
    // Relaxed: the socket drops its reference to the `Pernet` later, and the drop of the `Pernet`,
    // which waits for the callbacks, follows the last one.
    HAVE_BEGUN.store(true, ordering::Relaxed);
}

/// Waits until the code of no callback of an ended handshake runs any more. May sleep. No handshake
/// may be under way.
pub(crate) fn wait_for_callbacks() {
    if HAVE_BEGUN.load(ordering::Relaxed) {
        // SAFETY: The function has no preconditions but the context.
        unsafe { bindings::tls_wait_for_callbacks() };
    }
}
