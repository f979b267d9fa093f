// SPDX-License-Identifier: GPL-2.0

//! The completions for which a kernel user arms a queue.

use super::KernelCq;
use crate::queue::completion::Arm;
use kernel::prelude::*;

#[kunit_tests(riw_kernel_cq)]
mod tests {
    use super::*;

    /// A request for any completion stays in force when the consumer then requests solicited ones.
    #[test]
    fn the_wider_request_stays_in_force() -> Result {
        let queue = KBox::pin_init(KernelCq::new(4)?, GFP_KERNEL)?;

        assert!(queue.fill_level().armed.is_none());
        assert!(!queue.arm(Arm::Solicited));
        assert!(queue.fill_level().armed == Some(Arm::Solicited));
        assert!(!queue.arm(Arm::Next));
        assert!(!queue.arm(Arm::Solicited));
        assert!(queue.fill_level().armed == Some(Arm::Next));
        Ok(())
    }
}
