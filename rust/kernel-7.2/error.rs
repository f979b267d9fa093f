// SPDX-License-Identifier: GPL-2.0

//! Errors.

pub use ::kernel::error::*;

pub mod code {
    //! The kernel's codes, and those that it lacks.

    pub use ::kernel::error::code::*;

    use ::kernel::{bindings, error::Error};
    use core::{mem::transmute, num::NonZeroI32};

    /// Makes an error of a number, which the kernel's crate offers no other crate in a constant.
    const fn error(number: u32) -> Error {
        match NonZeroI32::new(-(number as i32)) {
            // SAFETY: An `Error` has one field, a `NonZeroI32`, which is a negative error number.
            // The assertion below fails if it has something else.
            Some(number) => unsafe { transmute::<NonZeroI32, Error>(number) },
            None => EINVAL,
        }
    }

    // SAFETY: Any integer of this size is valid, and `EINVAL` has no bytes of padding if it has
    // this size.
    const _: () = assert!(unsafe { transmute::<Error, i32>(EINVAL) } == -(bindings::EINVAL as i32));

    macro_rules! codes {
        ($($name:ident: $about:literal,)*) => {
            $(
                #[doc = $about]
                pub const $name: Error = error(bindings::$name);
            )*
        };
    }

    codes! {
        EADDRINUSE: "Address already in use.",
        EADDRNOTAVAIL: "Cannot assign requested address.",
        EBADMSG: "Not a data message.",
        EAFNOSUPPORT: "Address family not supported by protocol.",
        ECONNABORTED: "Software caused connection abort.",
        ECONNREFUSED: "Connection refused.",
        ECONNRESET: "Connection reset by peer.",
        EINPROGRESS: "Operation now in progress.",
        EKEYREVOKED: "Key has been revoked.",
        ENETDOWN: "Network is down.",
        ENOBUFS: "No buffer space available.",
        ENOKEY: "Required key not available.",
        ENOTCONN: "Transport endpoint is not connected.",
        EOPNOTSUPP: "Operation not supported on transport endpoint.",
        EPROTO: "Protocol error.",
        EPROTONOSUPPORT: "Protocol not supported.",
        ESOCKTNOSUPPORT: "Socket type not supported.",
    }
}
