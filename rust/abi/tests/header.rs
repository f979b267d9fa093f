// SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB

//! `include/uapi/rdma/riw-abi.h` says the same as this crate: a C compiler checks it.

use riw_abi::{cqe, ring, udata, wr};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The assertions that the header must satisfy, in C: one for each constant, and two for each
/// field.
#[derive(Default)]
struct Facts(String);

impl Facts {
    fn equal(&mut self, expression: &str, value: u64) {
        writeln!(
            self.0,
            "_Static_assert({expression} == {value}, \"{expression}\");"
        )
        .expect("a string");
    }
}

/// The names of the header's constants, with those of this crate.
macro_rules! constants {
    ($facts:ident, $($name:ident = $value:expr;)*) => {$(
        $facts.equal(stringify!($name), u64::try_from($value).expect("not negative"));
    )*};
}

/// The structs of the header, with those of this crate, and all fields.
macro_rules! structs {
    ($facts:ident, $($name:ident = $type:ty { $($field:ident),* };)*) => {$(
        let name = stringify!($name);
        $facts.equal(&format!("sizeof(struct {name})"), size_of::<$type>() as u64);
        $(
            let offset = core::mem::offset_of!($type, $field);
            $facts.equal(
                &format!("__builtin_offsetof(struct {name}, {})", stringify!($field)),
                offset as u64,
            );
            let size = field_size(|value: &$type| size_of_val(&value.$field));
            $facts.equal(
                &format!("sizeof(((struct {name} *)0)->{})", stringify!($field)),
                size,
            );
        )*
    )*};
}

fn field_size<T: Default>(size: impl Fn(&T) -> usize) -> u64 {
    size(&T::default()) as u64
}

fn facts() -> Facts {
    let mut facts = Facts::default();

    limits(&mut facts);
    work_requests(&mut facts);
    completions(&mut facts);
    structs(&mut facts);
    facts
}

fn limits(facts: &mut Facts) {
    constants! { facts,
        RIW_DRIVER_ID = riw_abi::DRIVER_ID;
        RIW_ABI_VERSION = riw_abi::VERSION;
        RIW_MAX_SGE = riw_abi::MAX_SGE;
        RIW_MAX_INLINE = riw_abi::MAX_INLINE;
        RIW_FEATURE_WRITE_WITH_IMM = udata::FEATURE_WRITE_WITH_IMM;
        RIW_FEATURE_ATOMICS = udata::FEATURE_ATOMICS;
        RIW_FEATURE_MASKED_ATOMICS = udata::FEATURE_MASKED_ATOMICS;
        RIW_FEATURE_MEMORY_WINDOWS = udata::FEATURE_MEMORY_WINDOWS;
        RIW_FEATURE_RESIZE_CQ = udata::FEATURE_RESIZE_CQ;
        RIW_FEATURE_REREG_MR = udata::FEATURE_REREG_MR;
        RIW_FEATURE_TIMESTAMPS = udata::FEATURE_TIMESTAMPS;
        RIW_LINE = ring::LINE;
        RIW_RING_PRODUCER = ring::PRODUCER;
        RIW_RING_CONSUMER = ring::CONSUMER;
        RIW_RING_WAKE_AT = ring::WAKE_AT;
        RIW_RING_ARM = ring::ARM;
        RIW_RING_HEADER = ring::HEADER;
        RIW_WAKE_NEVER = ring::WAKE_NEVER;
        RIW_ARM_SOLICITED = ring::ARM_SOLICITED;
        RIW_ARM_NEXT = ring::ARM_NEXT;
    }
}

fn work_requests(facts: &mut Facts) {
    constants! { facts,
        RIW_WR_WRITE = wr::opcode::WRITE;
        RIW_WR_WRITE_WITH_IMM = wr::opcode::WRITE_WITH_IMM;
        RIW_WR_SEND = wr::opcode::SEND;
        RIW_WR_READ = wr::opcode::READ;
        RIW_WR_COMPARE_SWAP = wr::opcode::COMPARE_SWAP;
        RIW_WR_FETCH_ADD = wr::opcode::FETCH_ADD;
        RIW_WR_LOCAL_INVALIDATE = wr::opcode::LOCAL_INVALIDATE;
        RIW_WR_BIND_MW = wr::opcode::BIND_MW;
        RIW_WR_SEND_WITH_INVALIDATE = wr::opcode::SEND_WITH_INVALIDATE;
        RIW_WR_MASKED_COMPARE_SWAP = wr::opcode::MASKED_COMPARE_SWAP;
        RIW_WR_MASKED_FETCH_ADD = wr::opcode::MASKED_FETCH_ADD;
        RIW_WR_FENCE = wr::flags::FENCE;
        RIW_WR_SIGNALED = wr::flags::SIGNALED;
        RIW_WR_SOLICITED = wr::flags::SOLICITED;
        RIW_WR_INLINE = wr::flags::INLINE;
    }
}

fn completions(facts: &mut Facts) {
    constants! { facts,
        RIW_WC_SEND = cqe::opcode::SEND;
        RIW_WC_WRITE = cqe::opcode::WRITE;
        RIW_WC_READ = cqe::opcode::READ;
        RIW_WC_COMPARE_SWAP = cqe::opcode::COMPARE_SWAP;
        RIW_WC_FETCH_ADD = cqe::opcode::FETCH_ADD;
        RIW_WC_BIND_MW = cqe::opcode::BIND_MW;
        RIW_WC_LOCAL_INVALIDATE = cqe::opcode::LOCAL_INVALIDATE;
        RIW_WC_RECEIVE = cqe::opcode::RECEIVE;
        RIW_WC_RECEIVE_WRITE_WITH_IMM = cqe::opcode::RECEIVE_WRITE_WITH_IMM;
        RIW_WC_SUCCESS = cqe::status::SUCCESS;
        RIW_WC_LOCAL_LENGTH = cqe::status::LOCAL_LENGTH;
        RIW_WC_LOCAL_OPERATION = cqe::status::LOCAL_OPERATION;
        RIW_WC_LOCAL_PROTECTION = cqe::status::LOCAL_PROTECTION;
        RIW_WC_FLUSHED = cqe::status::FLUSHED;
        RIW_WC_BIND = cqe::status::BIND;
        RIW_WC_LOCAL_ACCESS = cqe::status::LOCAL_ACCESS;
        RIW_WC_REMOTE_INVALID = cqe::status::REMOTE_INVALID;
        RIW_WC_REMOTE_ACCESS = cqe::status::REMOTE_ACCESS;
        RIW_WC_REMOTE_OPERATION = cqe::status::REMOTE_OPERATION;
        RIW_WC_GENERAL = cqe::status::GENERAL;
        RIW_WC_PHASE = cqe::flags::PHASE;
        RIW_WC_WITH_IMM = cqe::flags::WITH_IMM;
        RIW_WC_WITH_INVALIDATE = cqe::flags::WITH_INVALIDATE;
    }
}

fn structs(facts: &mut Facts) {
    structs! { facts,
        riw_ureq_alloc_ucontext = udata::AllocContextRequest { comp_mask };
        riw_uresp_alloc_ucontext = udata::AllocContextResponse {
            comp_mask, features, max_sge, max_inline
        };
        riw_ring_map = udata::RingMap { offset, bytes, entries, stride };
        riw_ureq_create = udata::CreateRequest { comp_mask };
        riw_uresp_create_cq = udata::CreateCqResponse { comp_mask, ring };
        riw_uresp_create_srq = udata::CreateSrqResponse { comp_mask, ring };
        riw_uresp_create_qp = udata::CreateQpResponse { comp_mask, sq, rq };
        riw_uresp_reg_mr = udata::RegMrResponse { comp_mask };
        riw_sge = wr::Sge { addr, length, lkey };
        riw_sqe = wr::Sqe {
            wr_id, opcode, sge_count, flags, inline_len, rkey, invalidate_or_imm, remote_addr,
            add_or_swap, compare, add_or_swap_mask, compare_mask
        };
        riw_rqe = wr::Rqe { wr_id, sge_count, reserved };
        riw_cqe = cqe::Cqe {
            wr_id, opcode, status, flags, byte_len, qp_num, vendor_err, imm, invalidated,
            timestamp, reserved
        };
    }
}

/// Compiles the header and then `code`. Returns what the compiler says if it refuses.
fn compile(code: &str) -> Result<(), String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include/uapi");
    let mut compiler = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .args(["-I", folder, "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    let code = format!("#include <rdma/riw-abi.h>\n{code}");

    compiler
        .stdin
        .take()
        .expect("a pipe")
        .write_all(code.as_bytes())
        .expect("it reads all");
    let done = compiler.wait_with_output().expect("it ends");
    done.status
        .success()
        .then_some(())
        .ok_or_else(|| String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn the_header_has_the_same_constants_and_structs() {
    compile(&facts().0).unwrap_or_else(|errors| panic!("{errors}"));

    // A compiler that checks nothing would accept this, too.
    let mut wrong = Facts::default();
    wrong.equal("sizeof(struct riw_cqe)", 63);
    compile(&wrong.0).expect_err("it has 64 octets");
}

/// Each constant and struct of the header is compared: nothing in it is missing above.
#[test]
fn the_header_has_nothing_else() {
    let facts = facts();
    let header = include_str!("../../../include/uapi/rdma/riw-abi.h");
    let words = header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');

    for name in words.filter(|word| word.starts_with("RIW_") && *word != "RIW_ABI_H") {
        assert!(facts.0.contains(&format!("({name} ==")), "{name}");
    }
    for name in header
        .lines()
        .filter_map(|line| line.strip_prefix("struct ")?.strip_suffix(" {"))
    {
        assert!(
            facts.0.contains(&format!("(sizeof(struct {name}) ==")),
            "{name}"
        );
    }
}
