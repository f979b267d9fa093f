// SPDX-License-Identifier: GPL-2.0

//! Macros for the tracepoints that `events.c` creates.
//!
//! Unlike [`kernel::tracepoint::declare_trace`], they find the tracepoints in this module's
//! bindings, which have the types of the arguments, and the test of the static key is apart.

/// Whether an event is enabled.
macro_rules! is_enabled {
    ($name:ident) => {
        ::kernel::macros::paste! {{
            #[cfg(all(CONFIG_TRACEPOINTS, static_branch_asm))]
            // SAFETY: `events.c` defines this tracepoint, and `key` is its static key.
            let is_enabled = unsafe {
                ::kernel::jump_label::static_branch_unlikely!(
                    ::riw_bindings::[<__tracepoint_ $name>],
                    ::riw_bindings::tracepoint,
                    key
                )
            };
            // Without jump labels, or with headers that lack the file that the macro above
            // includes.
            #[cfg(all(CONFIG_TRACEPOINTS, not(static_branch_asm)))]
            // SAFETY: As above.
            let is_enabled = unsafe {
                ::kernel::bindings::static_key_count(
                    (&raw mut ::riw_bindings::[<__tracepoint_ $name>].key).cast(),
                ) > 0
            };
            #[cfg(not(CONFIG_TRACEPOINTS))]
            let is_enabled = false;
            is_enabled
        }}
    };
}

/// Calls the probes of an event. Any context.
///
/// # Safety
///
/// Pointers must be valid for reads during the call, as `events.h` uses them.
macro_rules! call {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        #[cfg(CONFIG_TRACEPOINTS)]
        ::kernel::macros::paste! { ::riw_bindings::[<rust_do_trace_ $name>]($($arg),*) };
        #[cfg(not(CONFIG_TRACEPOINTS))]
        let _ = ($($arg,)*);
    }};
}

pub(crate) use {call, is_enabled};
