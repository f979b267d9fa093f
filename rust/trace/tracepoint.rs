// SPDX-License-Identifier: GPL-2.0

//! The tracepoints that `events.c` creates.

use kernel::{
    ffi::{c_char, c_int},
    macros::paste,
};
use riw_bindings as bindings;

/// Declares the two functions of each tracepoint: whether it is enabled, and its call.
///
/// Unlike [`kernel::tracepoint::declare_trace`], it finds the tracepoints in this module's
/// bindings, and the test of the static key is a function of its own.
macro_rules! declare {
    ($($name:ident($($arg:ident: $type:ty),* $(,)?);)*) => { paste! { $(
        #[doc = concat!("Whether the event `", stringify!($name), "` is enabled.")]
        #[inline(always)]
        pub(crate) fn [<$name _enabled>]() -> bool {
            #[cfg(all(CONFIG_TRACEPOINTS, static_branch_asm))]
            // SAFETY: `events.c` defines this tracepoint, and `key` is its static key.
            let enabled = unsafe {
                kernel::jump_label::static_branch_unlikely!(
                    bindings::[<__tracepoint_ $name>],
                    bindings::tracepoint,
                    key
                )
            };
            // Without jump labels, or with headers that lack the file that the macro above
            // includes.
            #[cfg(all(CONFIG_TRACEPOINTS, not(static_branch_asm)))]
            // SAFETY: As above.
            let enabled = unsafe {
                kernel::bindings::static_key_count(
                    (&raw mut bindings::[<__tracepoint_ $name>].key).cast(),
                ) > 0
            };
            #[cfg(not(CONFIG_TRACEPOINTS))]
            let enabled = false;
            enabled
        }

        #[doc = concat!("Calls the probes of the event `", stringify!($name), "`. Any context.")]
        ///
        /// # Safety
        ///
        /// Pointers must be valid for reads during the call, as `events.h` uses them.
        #[cold]
        #[allow(clippy::too_many_arguments)]
        pub(crate) unsafe fn $name($($arg: $type),*) {
            #[cfg(CONFIG_TRACEPOINTS)]
            // SAFETY: By the caller's promise the pointers are valid.
            unsafe { bindings::[<rust_do_trace_ $name>]($($arg),*) };
            #[cfg(not(CONFIG_TRACEPOINTS))]
            let _ = ($($arg,)*);
        }
    )* } };
}

declare! {
    cm_phase(
        dev: *const bindings::ib_device,
        endpoint: u64,
        qpn: u32,
        from: u32,
        to: u32,
        error: c_int,
        reason: *const c_char,
        reason_len: usize,
        local: *const bindings::__kernel_sockaddr_storage,
        remote: *const bindings::__kernel_sockaddr_storage,
    );
    qp_state(dev: *const bindings::ib_device, qpn: u32, from: u32, to: u32, event: u32);
    stream_error(
        dev: *const bindings::ib_device,
        qpn: u32,
        layer: u8,
        etype: u8,
        code: u8,
        rule: *const c_char,
        rule_len: usize,
    );
    terminate_tx(dev: *const bindings::ib_device, qpn: u32, layer: u8, etype: u8, code: u8);
    terminate_rx(dev: *const bindings::ib_device, qpn: u32, layer: u8, etype: u8, code: u8);
    wr_post(dev: *const bindings::ib_device, qpn: u32, srqn: u32, wr_id: u64, opcode: u8);
    recv_doorbell(dev: *const bindings::ib_device, qpn: u32, srqn: u32);
    doorbell(dev: *const bindings::ib_device, qpn: u32);
    wr_begin(
        dev: *const bindings::ib_device,
        qpn: u32,
        wr_id: u64,
        opcode: u8,
        bytes: u32,
        flags: u16,
    );
    wr_complete(
        cq: *const bindings::ib_cq,
        qpn: u32,
        wr_id: u64,
        opcode: u8,
        status: u16,
        bytes: u32,
    );
    fpdu_tx(
        dev: *const bindings::ib_device,
        qpn: u32,
        opcode: u8,
        last: bool,
        len: u32,
        stag: u32,
        to: u64,
        queue: u32,
        msn: u32,
        mo: u32,
    );
    fpdu_rx(
        dev: *const bindings::ib_device,
        qpn: u32,
        opcode: u8,
        last: bool,
        len: u32,
        stag: u32,
        to: u64,
        queue: u32,
        msn: u32,
        mo: u32,
    );
    place(dev: *const bindings::ib_device, qpn: u32, stag: u32, addr: u64, len: u32);
    cq_arm(cq: *const bindings::ib_cq, solicited: bool);
    cq_notify(cq: *const bindings::ib_cq);
}
