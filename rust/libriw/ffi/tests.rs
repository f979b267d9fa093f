// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! The layout of all declarations, as assertions in C.

use super::layout::Fact;
use super::{commands, driver, ioctl, verbs};
use core::mem::offset_of;

/// The fields of the unions of `struct ibv_send_wr`.
fn nested_layout() -> Vec<Fact> {
    macro_rules! offsets {
        ($($($field:ident).+),*) => {
            vec![$(Fact::new(
                format!("offsetof(struct ibv_send_wr, {})", concat!($(stringify!($field), "."),+))
                    .replace(".)", ")"),
                offset_of!(verbs::ibv_send_wr, $($field).+),
            )),*]
        };
    }
    offsets!(
        wr.rdma.remote_addr,
        wr.rdma.rkey,
        wr.atomic.remote_addr,
        wr.atomic.compare_add,
        wr.atomic.swap,
        wr.atomic.rkey,
        bind_mw.mw,
        bind_mw.rkey,
        bind_mw.bind_info
    )
}

fn facts() -> Vec<Fact> {
    [
        verbs::layout(),
        nested_layout(),
        verbs::constants(),
        driver::layout(),
        driver::operations_layout(),
        driver::constants(),
        commands::layout(),
        commands::query_device_layout(),
        ioctl::layout(),
        ioctl::constants(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn assertions() -> String {
    let mut text = String::new();

    for Fact { expression, value } in facts() {
        let expression = expression.replace("r#", "");

        text += &format!("_Static_assert({expression} == {value}, \"{expression}\");\n");
    }
    text
}

/// Writes the assertions for selftests/provider/check_layout, if it names a file in `RIW_LAYOUT`. A
/// name that a macro has mangled would be an assertion about nothing.
#[test]
fn all_operations_are_in_the_layout() {
    let operations = match () {
        () if cfg!(since_65) => 93,
        () if cfg!(since_64) => 83,
        () if cfg!(since_59) => 81,
        () => 76,
    };
    assert_eq!(driver::operations_layout().len(), 1 + operations);

    if let Some(file) = std::env::var_os("RIW_LAYOUT") {
        std::fs::write(file, assertions()).expect("written");
    }
}
