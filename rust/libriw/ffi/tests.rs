// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! The layout of all declarations, as a C file.

use super::layout::Fact;
use super::{commands, driver, ioctl, verbs};

/// The file that C compilers check: it has to change with the declarations.
const CHECKED: &str = include_str!("layout.c");

/// Begins the part of that file that is generated.
const GENERATED: &str = "/* Generated: see tests.rs. */\n";

fn facts() -> Vec<Fact> {
    [
        verbs::layout(),
        verbs::nested_layout(),
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

/// To update `layout.c` after a change of the declarations, run with `RIW_UPDATE=1`.
#[test]
fn the_assertions_in_c_are_those_of_the_declarations() {
    let (head, _) = CHECKED.split_once(GENERATED).expect("the generated part");
    let want = format!("{head}{GENERATED}{}", assertions());

    if std::env::var_os("RIW_UPDATE").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/ffi/layout.c"), &want)
            .expect("written");
    } else {
        assert_eq!(CHECKED, want, "run this test with RIW_UPDATE=1");
    }
}

/// A name that a macro has mangled would be an assertion about nothing.
#[test]
fn all_operations_are_listed() {
    assert_eq!(driver::operations_layout().len(), 1 + 76);
}
