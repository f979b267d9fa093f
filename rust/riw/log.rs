// SPDX-License-Identifier: GPL-2.0

//! Lines of the kernel's log that a peer or a user can provoke.
//!
//! They are limited for each device, so that no peer or user of a device floods the log, or
//! suppresses the lines of another device. `rdma statistic` also counts the events whose lines are
//! left out.

use crate::driver::Riw;
use kernel::{device, fmt, prelude::*, sync::Arc};
use kernel_ext::ratelimit::RateLimit;
use rdma::Device;

/// The limits of a device: [`RateLimit::BURST`] lines in [`RateLimit::INTERVAL`] seconds for each
/// kind, and one more warning that has the number of lines left out.
#[pin_data]
pub(crate) struct DeviceLog {
    #[pin]
    warnings: RateLimit,
    /// Apart from the others: any host that reaches a listener can provoke these lines, without a
    /// connection.
    #[pin]
    startups: RateLimit,
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
                startups <- RateLimit::new(),
                debugging <- RateLimit::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Logs a line about `dev` at level warning. Any context.
    pub(crate) fn warn(&self, dev: &device::Device, line: fmt::Arguments<'_>) {
        warn_within(&self.warnings, dev, line);
    }

    /// Logs at level warning that a connection of `dev` was not established. Any context.
    pub(crate) fn warn_startup(&self, dev: &device::Device, line: fmt::Arguments<'_>) {
        warn_within(&self.startups, dev, line);
    }

    /// Logs a line at level warning while the device is not registered, and so cannot be named. Any
    /// context.
    pub(crate) fn warn_unregistered(&self, line: fmt::Arguments<'_>) {
        if self.warnings.pass().is_some() {
            pr_warn!("{}\n", line);
        }
    }

    /// Logs a line about `dev` at level debug, if dynamic debug is on for it. Any context.
    pub(crate) fn debug(&self, dev: &Device<Riw>, line: fmt::Arguments<'_>) {
        dev.debug(&self.debugging, line);
    }
}

/// Logs a line about `dev` at level warning, within `limit`. Any context.
fn warn_within(limit: &RateLimit, dev: &device::Device, line: fmt::Arguments<'_>) {
    let Some(left_out) = limit.pass() else {
        return;
    };

    if left_out != 0 {
        dev_warn!(dev, "{} lines left out\n", left_out);
    }
    dev_warn!(dev, "{}\n", line);
}
