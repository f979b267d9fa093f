// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Declares C structures and constants, and lists their layout for a comparison with C's.

/// A number that a C compiler must find: `offsetof` or `sizeof` or a constant.
#[cfg(test)]
pub(super) struct Fact {
    /// A constant expression in C.
    pub(super) expression: String,
    /// Its value.
    pub(super) value: u64,
}

#[cfg(test)]
impl Fact {
    pub(super) fn new(expression: String, value: usize) -> Self {
        Self {
            expression,
            value: u64::try_from(value).unwrap_or(u64::MAX),
        }
    }
}

/// Declares structures that C declares too, under the same names. `layout()` lists their sizes and
/// the offsets of their fields.
macro_rules! c_structs {
    ($(
        $(#[$meta:meta])*
        struct $name:ident {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty, )*
        }
    )*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            pub(crate) struct $name {
                $( $(#[$field_meta])* pub(crate) $field: $type, )*
            }
        )*

        #[cfg(test)]
        #[allow(unused_doc_comments)]
        pub(super) fn layout() -> Vec<$crate::ffi::layout::Fact> {
            use core::mem::{offset_of, size_of};
            use $crate::ffi::layout::Fact;

            let mut facts = Vec::new();
            $(
                let name = stringify!($name);
                facts.push(Fact::new(format!("sizeof(struct {name})"), size_of::<$name>()));
                $(
                    $(#[$field_meta])*
                    facts.push(Fact::new(
                        format!("offsetof(struct {name}, {})", stringify!($field)),
                        offset_of!($name, $field),
                    ));
                )*
            )*
            facts
        }
    };
}

/// Declares constants that C has under the same names. `constants()` lists them.
macro_rules! c_constants {
    ($( $(#[$meta:meta])* const $name:ident: $type:ty = $value:expr; )*) => {
        $( $(#[$meta])* pub(crate) const $name: $type = $value; )*

        #[cfg(test)]
        pub(super) fn constants() -> Vec<$crate::ffi::layout::Fact> {
            vec![$(
                $crate::ffi::layout::Fact {
                    expression: stringify!($name).to_string(),
                    value: u64::from($name),
                },
            )*]
        }
    };
}

pub(super) use {c_constants, c_structs};
