// SPDX-License-Identifier: GPL-2.0

//! Lines of the kernel's log that a peer or a user can provoke.
//!
//! They are limited for each device, so that no peer or user of a device floods the log, or
//! suppresses the lines of another device. `rdma statistic` counts what is not logged.

use kernel::{device, fmt, prelude::*, sync::Arc};
use kernel_ext::ratelimit::RateLimit;

/// The limits of a device: [`RateLimit::BURST`] lines in [`RateLimit::INTERVAL`] seconds for each
/// level, and one more that has the number of lines left out.
#[pin_data]
pub(crate) struct DeviceLog {
    #[pin]
    warnings: RateLimit,
    #[pin]
    debugging: RateLimit,
}

impl DeviceLog {
    /// Creates the limits of a device. Process context; may sleep. Fails with `ENOMEM` without
    /// memory.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                warnings <- RateLimit::new(),
                debugging <- RateLimit::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Logs a line about `dev` at level warning. Any context.
    pub(crate) fn warn(&self, dev: &device::Device, line: fmt::Arguments<'_>) {
        let Some(left_out) = self.warnings.pass() else {
            return;
        };

        if left_out != 0 {
            dev_warn!(dev, "{} lines left out\n", left_out);
        }
        dev_warn!(dev, "{}\n", line);
    }

    /// Returns whether to log a line with `dev_dbg!`, which does nothing unless the kernel has
    /// `CONFIG_RUST_DEBUG_ASSERTIONS`. Any context.
    pub(crate) fn may_debug(&self) -> bool {
        cfg!(debug_assertions) && self.debugging.pass().is_some()
    }
}
