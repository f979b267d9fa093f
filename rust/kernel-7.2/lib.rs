// SPDX-License-Identifier: GPL-2.0

//! The crate `kernel` of Linux 7.3 for Linux 7.2: that kernel's own crate, and what riw uses and
//! that crate lacks.
//!
//! On Linux 7.2, Kbuild passes this crate as `kernel` to all others. So they are written for Linux
//! 7.3 alone, where nothing of this folder is built. An item here has the name and the meaning that
//! it has in `rust/kernel` of Linux 7.3. `compat.h` does the same for the helpers in C.

#![crate_name = "kernel_compat"]

pub use ::kernel::*;

pub mod error;
pub mod sync;

pub mod bindings {
    //! Types and constants that the kernel's bindings lack.

    pub use ::kernel::bindings::*;
    pub use generated::*;

    #[allow(
        clippy::all,
        clippy::undocumented_unsafe_blocks,
        dead_code,
        missing_docs,
        non_camel_case_types,
        non_upper_case_globals,
        unreachable_pub
    )]
    mod generated {
        use ::{
            kernel::{bindings::*, ffi},
            pin_init::MaybeZeroable,
        };
        include!(concat!(env!("RIW_BINDINGS"), "/compat_generated.rs"));
    }

    /// `IPPROTO_TCP` (`include/uapi/linux/in.h`).
    pub const IPPROTO_TCP: u32 = 6;
    /// `IPPROTO_SCTP`.
    pub const IPPROTO_SCTP: u32 = 132;

    /// An attribute of Linux 7.3. ib_uverbs of Linux 7.2 refuses attributes that it does not know,
    /// so this one is never given: this number follows the last one there.
    #[allow(non_upper_case_globals)]
    pub const uverbs_attrs_create_srq_cmd_attr_ids_UVERBS_ATTR_CREATE_SRQ_BUF_UMEM: u32 = 14;
}

pub mod module {
    //! Which module this is.

    pub use ::kernel::{InPlaceModule, Module, ModuleMetadata, ThisModule};

    use ::kernel::{bindings, types::Opaque};

    /// Returns `THIS_MODULE`. `M` does not matter: there is one module.
    pub fn this_module<M: ModuleMetadata>() -> ThisModule {
        #[allow(improper_ctypes)]
        extern "C" {
            static __this_module: Opaque<bindings::module>;
        }

        // SAFETY: modpost defines the symbol in each module: this is the module into which this
        // crate is linked.
        unsafe { ThisModule::from_ptr(__this_module.get()) }
    }
}

pub mod prelude {
    //! The kernel's prelude, with all error codes.

    pub use crate::error::code::*;
    pub use ::kernel::prelude::*;
}
