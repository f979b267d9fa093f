// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Builds libriw for one number of libibverbs' private interface: that in the variable `RIW_RDMAV`,
//! or 34.
//!
//! Code that depends on the number has `cfg(since_57)` and so on. libriw is linked with a
//! libibverbs that has the symbols only, in the versions of that number: so each machine can build
//! libriw for each number.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const NUMBERS: [u32; 5] = [34, 57, 59, 64, 65];

/// The symbols of libibverbs that libriw uses, of the version `IBVERBS_1.1`.
const PUBLIC: [&str; 2] = ["ibv_dofork_range", "ibv_dontfork_range"];

/// Those of `IBVERBS_PRIVATE_number`, without `verbs_register_driver_number`.
const PRIVATE: [&str; 28] = [
    "__verbs_log",
    "_verbs_init_and_alloc_context",
    "ibv_cmd_alloc_mw",
    "ibv_cmd_alloc_pd",
    "ibv_cmd_create_cq_ex",
    "ibv_cmd_create_cq_ex2",
    "ibv_cmd_create_qp_ex",
    "ibv_cmd_create_srq",
    "ibv_cmd_dealloc_mw",
    "ibv_cmd_dealloc_pd",
    "ibv_cmd_dereg_mr",
    "ibv_cmd_destroy_cq",
    "ibv_cmd_destroy_qp",
    "ibv_cmd_destroy_srq",
    "ibv_cmd_get_context",
    "ibv_cmd_modify_qp",
    "ibv_cmd_modify_srq",
    "ibv_cmd_query_device_any",
    "ibv_cmd_query_port",
    "ibv_cmd_query_port_speed",
    "ibv_cmd_query_qp",
    "ibv_cmd_query_srq",
    "ibv_cmd_reg_dmabuf_mr",
    "ibv_cmd_reg_mr",
    "ibv_cmd_rereg_mr",
    "ibv_cmd_resize_cq",
    "verbs_set_ops",
    "verbs_uninit_context",
];

fn main() {
    println!("cargo::rerun-if-env-changed=RIW_RDMAV");
    let text = env::var("RIW_RDMAV").unwrap_or_else(|_| "34".into());
    let Some(number) = NUMBERS.into_iter().find(|each| each.to_string() == text) else {
        println!("cargo::error=RIW_RDMAV={text}: libriw knows the numbers {NUMBERS:?}");
        return;
    };
    for each in NUMBERS {
        println!("cargo::rustc-check-cfg=cfg(since_{each})");
        if number >= each {
            println!("cargo::rustc-cfg=since_{each}");
        }
    }

    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    match link_libibverbs(&folder, number) {
        Ok(()) => println!("cargo::rustc-link-search=native={}", folder.display()),
        Err(error) => println!("cargo::error=the symbols of libibverbs: {error}"),
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,defs");
}

/// Makes `libibverbs.so` in `folder`.
fn link_libibverbs(folder: &Path, number: u32) -> Result<(), String> {
    let register = format!("verbs_register_driver_{number}");
    let private = [&PRIVATE[..], &[register.as_str()]].concat();
    let functions = [&PUBLIC[..], &private].concat().join("(void) {}\nvoid ");
    let code = format!("void {functions}(void) {{}}\n");
    let versions = format!(
        "IBVERBS_1.1 {{ {}; }};\nIBVERBS_PRIVATE_{number} {{ {}; }};\n",
        PUBLIC.join("; "),
        private.join("; ")
    );
    let (source, map) = (folder.join("libibverbs.c"), folder.join("libibverbs.map"));
    let write = |path: &Path, text| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write(&source, code)?;
    write(&map, versions)?;

    // cargo's linker for this target is a C compiler.
    let compiler = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let name = compiler.to_string_lossy().into_owned();
    let status = Command::new(compiler)
        .args([
            "-shared",
            "-fPIC",
            "-nostdlib",
            "-Wl,-soname,libibverbs.so.1",
        ])
        .arg(format!("-Wl,--version-script,{}", map.display()))
        .arg("-o")
        .arg(folder.join("libibverbs.so"))
        .arg(source)
        .status()
        .map_err(|error| format!("{name}: {error}"))?;
    status
        .success()
        .then_some(())
        .ok_or(format!("{name}: {status}"))
}
