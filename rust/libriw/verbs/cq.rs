// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

//! Completion queues.

use super::context;
use super::errno::{check, pointer, set, status, Result, EINVAL, ENOENT, EOPNOTSUPP};
use super::mapping::{Mapping, SharedMapping};
use super::object::{self, Unfinished};
use crate::ffi::commands::{
    ib_uverbs_ex_create_cq_resp, ibv_cmd_create_cq_ex, ibv_cmd_destroy_cq, ibv_create_cq_ex,
    WithDriver,
};
use crate::ffi::driver::verbs_cq;
use crate::ffi::verbs::*;
use crate::lock::{Guard, Lock};
use crate::ring::{Arming, Completions};
use core::ffi::{c_int, c_uint};
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use riw_abi::cqe::{flags, Cqe};
use riw_abi::udata::{CreateCqResponse, CreateRequest, RingMap, FEATURE_TIMESTAMPS};

/// A completion queue.
pub(super) struct Cq {
    /// Locked from `ibv_start_poll()` to `ibv_end_poll()`.
    pub(super) polled: Lock<Polled>,
    /// The thread that has `polled` locked that long, as [`this_thread`] names it, or 0.
    poller: AtomicU64,
    /// A lock of its own, because programs may arm the queue between `ibv_start_poll()` and
    /// `ibv_end_poll()`. It is locked after `polled`.
    pub(super) arming: Lock<Arming<SharedMapping>>,
}

/// The state of a thread that polls.
pub(super) struct Polled {
    pub(super) completions: Completions<SharedMapping>,
    /// The kernel has another ring, which could not be mapped.
    pub(super) lost: bool,
    /// The completion that `ibv_start_poll()` or `ibv_next_poll()` has returned.
    current: Cqe,
}

/// # Safety
///
/// `cq` is a completion queue of this library, which is not destroyed during `'a`.
pub(super) unsafe fn state<'a>(cq: *mut ibv_cq) -> &'a Cq {
    // SAFETY: A completion queue of this library was made of these types.
    unsafe { object::state::<verbs_cq, Cq>(cq.cast()) }
}

/// Returns a number of this thread that no other thread has, and that is not 0.
fn this_thread() -> u64 {
    // SAFETY: The function has no requirements.
    unsafe { libc::pthread_self() }
}

impl Cq {
    /// Whether this thread has called `ibv_start_poll()`, with success, and not yet
    /// `ibv_end_poll()`.
    pub(super) fn is_polled_here(&self) -> bool {
        // Relaxed: only this thread stores its own number.
        self.poller.load(Ordering::Relaxed) == this_thread()
    }
}

/// Returns the state that the polling thread has locked.
///
/// # Safety
///
/// `cq` is a completion queue of this library, for which this thread has called `ibv_start_poll()`,
/// with success.
unsafe fn polled<'a>(cq: *mut ibv_cq_ex) -> Guard<'a, Polled> {
    // SAFETY: By the caller's promise.
    let cq = unsafe { state(cq.cast()) };

    // SAFETY: `start_poll()` has kept the guard, and nobody else takes it back.
    unsafe { cq.polled.take_back() }
}

pub(crate) unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    channel: *mut Opaque,
    comp_vector: c_int,
) -> *mut ibv_cq {
    let attr = || {
        Ok(ibv_cq_init_attr_ex {
            cqe: u32::try_from(cqe).map_err(|_| EINVAL)?,
            cq_context: ptr::null_mut(),
            channel,
            comp_vector: u32::try_from(comp_vector).map_err(|_| EINVAL)?,
            wc_flags: 0,
            comp_mask: 0,
            flags: 0,
            parent_domain: ptr::null_mut(),
        })
    };
    // SAFETY: libibverbs passes a context of this library.
    let cq = attr().and_then(|attr| unsafe { create(context, &attr, None) });

    // A `verbs_cq` begins with the fields of `ibv_cq`.
    pointer(cq).cast()
}

/// The fields that extended completion queues can read, except for timestamps. Fields that only
/// InfiniBand has are 0.
const EXTENDED: u64 = IBV_WC_EX_WITH_BYTE_LEN
    | IBV_WC_EX_WITH_IMM
    | IBV_WC_EX_WITH_QP_NUM
    | IBV_WC_EX_WITH_SRC_QP
    | IBV_WC_EX_WITH_SLID
    | IBV_WC_EX_WITH_SL
    | IBV_WC_EX_WITH_DLID_PATH_BITS;
const TIMESTAMPS: u64 =
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

pub(crate) unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    attr: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: libibverbs passes a context of this library, and the program's attributes.
    let cq = unsafe { create_extended(context, attr) };

    // A `verbs_cq` is a `cq_ex`.
    pointer(cq).cast()
}

/// # Safety
///
/// As for [`create`].
unsafe fn create_extended(
    context: *mut ibv_context,
    attr: *const ibv_cq_init_attr_ex,
) -> Result<*mut verbs_cq> {
    // SAFETY: By the caller's promise.
    let features = unsafe { context::offer(context) }.features;
    let timestamps = if features & FEATURE_TIMESTAMPS != 0 {
        TIMESTAMPS
    } else {
        0
    };
    // SAFETY: By the caller's promise.
    let comp_mask = unsafe { (*attr).comp_mask };
    // SAFETY: By the caller's promise.
    let wc_flags = unsafe { (*attr).wc_flags };
    let flags = if comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS != 0 {
        // SAFETY: By the caller's promise, as `comp_mask` names it.
        unsafe { (*attr).flags }
    } else {
        0
    };

    // A queue is locked for polling also if the program says that it has one thread.
    if comp_mask & !IBV_CQ_INIT_ATTR_MASK_FLAGS != 0
        || flags & !IBV_CREATE_CQ_ATTR_SINGLE_THREADED != 0
        || wc_flags & !(EXTENDED | timestamps) != 0
    {
        return Err(EOPNOTSUPP);
    }
    // SAFETY: By the caller's promise.
    unsafe { create(context, attr, Some(extend)) }
}

/// Sets the functions that `wc_flags` request, and the functions that every extended completion
/// queue has.
fn extend(cq: &mut ibv_cq_ex, wc_flags: u64) {
    let has = |flag: u64| wc_flags & flag != 0;

    cq.start_poll = Some(start_poll);
    cq.next_poll = Some(next_poll);
    cq.end_poll = Some(end_poll);
    cq.read_opcode = Some(read_opcode);
    cq.read_vendor_err = Some(read_vendor_err);
    cq.read_wc_flags = Some(read_wc_flags);
    cq.read_byte_len = has(IBV_WC_EX_WITH_BYTE_LEN).then_some(read_byte_len);
    cq.read_imm_data = has(IBV_WC_EX_WITH_IMM).then_some(read_imm_data);
    cq.read_qp_num = has(IBV_WC_EX_WITH_QP_NUM).then_some(read_qp_num);
    cq.read_src_qp = has(IBV_WC_EX_WITH_SRC_QP).then_some(read_none);
    cq.read_slid = has(IBV_WC_EX_WITH_SLID).then_some(read_none);
    cq.read_sl = has(IBV_WC_EX_WITH_SL).then_some(read_no_byte);
    cq.read_dlid_path_bits = has(IBV_WC_EX_WITH_DLID_PATH_BITS).then_some(read_no_byte);
    cq.read_completion_ts = has(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP).then_some(read_completion_ts);
    cq.read_completion_wallclock_ns =
        has(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK).then_some(read_wallclock);
}

/// Creates a completion queue.
///
/// # Safety
///
/// `context` is a context of this library. `attr` has the fields to `comp_mask`, and those that it
/// names; its channel is one of the context, or null. There is no reference to the whole: a program
/// that was compiled with older headers passes a shorter structure.
unsafe fn create(
    context: *mut ibv_context,
    attr: *const ibv_cq_init_attr_ex,
    extend: Option<fn(&mut ibv_cq_ex, u64)>,
) -> Result<*mut verbs_cq> {
    let mut cq = Unfinished::<verbs_cq, Cq>::new()?;
    let mut request = WithDriver::<ibv_create_cq_ex, CreateRequest>::new();
    let mut response = WithDriver::<ib_uverbs_ex_create_cq_resp, CreateCqResponse>::new();

    // SAFETY: All pointers are valid. Each length is the length of the structure whose core is
    // passed.
    check(unsafe {
        ibv_cmd_create_cq_ex(
            context,
            attr,
            #[cfg(since_59)]
            ptr::null_mut(),
            cq.base(),
            request.as_mut_ptr(),
            request.len(),
            response.as_mut_ptr(),
            response.len(),
            0,
        )
    })?;

    // SAFETY: By the caller's promise.
    let mapped = unsafe { map(context, &response.driver.ring) };
    let (completions, arming) = mapped.inspect_err(|_| {
        // SAFETY: The kernel's queue exists, and has no event yet. If this fails it ends with the
        // context.
        unsafe { ibv_cmd_destroy_cq(cq.base().cast()) };
    })?;

    if let Some(extend) = extend {
        // SAFETY: By the caller's promise.
        let wc_flags = unsafe { (*attr).wc_flags };

        // SAFETY: Only this function has the base.
        extend(unsafe { &mut (*cq.base()).cq_ex }, wc_flags);
    }
    Ok(cq.finish(Cq {
        polled: Lock::new(Polled {
            completions,
            lost: false,
            current: Cqe::default(),
        }),
        poller: AtomicU64::new(0),
        arming: Lock::new(arming),
    }))
}

/// Maps the ring of a completion queue.
///
/// # Safety
///
/// `context` is a context of this library.
pub(super) unsafe fn map(
    context: *mut ibv_context,
    ring: &RingMap,
) -> Result<(Completions<SharedMapping>, Arming<SharedMapping>)> {
    // SAFETY: The context is valid.
    let fd = unsafe { (*context).cmd_fd };

    Mapping::new(fd, ring)
        .and_then(|memory| {
            let memory = SharedMapping::new(memory);
            let arming = Arming::new(memory.clone(), ring).ok_or(EINVAL)?;

            Ok((Completions::new(memory, ring).ok_or(EINVAL)?, arming))
        })
        .inspect_err(|error| {
            // SAFETY: The context is valid.
            unsafe { context::log(context, c"cannot map a completion queue", *error) };
        })
}

pub(crate) unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: The program passes a completion queue of this library.
    status(check(unsafe { ibv_cmd_destroy_cq(cq) }).map(|()| {
        // SAFETY: It comes from `create()`, and ends for the program.
        unsafe { object::free::<verbs_cq, Cq>(cq.cast()) }
    }))
}

pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: The program passes a completion queue of this library.
    let cq = unsafe { state(cq) };

    cq.arming.lock().arm(solicited_only != 0);
    0
}

pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, most: c_int, wcs: *mut ibv_wc) -> c_int {
    // SAFETY: The program passes a completion queue of this library.
    let mut polled = unsafe { state(cq) }.polled.lock();
    let mut count = 0;

    if polled.lost {
        return -libc::EIO;
    }
    for index in 0..usize::try_from(most).unwrap_or(0) {
        let Some(cqe) = polled.completions.next() else {
            break;
        };
        // SAFETY: The program passes room for `most` completions.
        let to = unsafe { wcs.add(index) };
        // SAFETY: The program passes room for `most` completions, and `index` is less.
        unsafe { to.write(wc(&cqe)) };
        count = c_int::try_from(index).map_or(most, |index| index.saturating_add(1));
    }
    polled.completions.release();
    count
}

/// Returns a completion as programs see it. Opcodes and statuses have the same
/// [`numbers`](super::numbers).
fn wc(cqe: &Cqe) -> ibv_wc {
    ibv_wc {
        wr_id: cqe.wr_id,
        status: cqe.status.into(),
        opcode: cqe.opcode.into(),
        vendor_err: cqe.vendor_err,
        byte_len: cqe.byte_len,
        imm_data: data(cqe),
        qp_num: cqe.qp_num,
        src_qp: 0,
        wc_flags: wc_flags(cqe),
        pkey_index: 0,
        slid: 0,
        sl: 0,
        dlid_path_bits: 0,
    }
}

fn wc_flags(cqe: &Cqe) -> c_uint {
    let mut wc_flags = 0;

    if cqe.flags & flags::WITH_IMM != 0 {
        wc_flags |= IBV_WC_WITH_IMM;
    }
    if cqe.flags & flags::WITH_INVALIDATE != 0 {
        wc_flags |= IBV_WC_WITH_INV;
    }
    wc_flags
}

/// Returns immediate data, or the invalidated STag: they share a field.
fn data(cqe: &Cqe) -> u32 {
    if cqe.flags & flags::WITH_INVALIDATE != 0 {
        cqe.invalidated
    } else {
        cqe.imm
    }
}

unsafe extern "C" fn start_poll(cq: *mut ibv_cq_ex, attr: *const ibv_poll_cq_attr) -> c_int {
    // SAFETY: The program passes valid attributes.
    if unsafe { (*attr).comp_mask } != 0 {
        return EINVAL.0;
    }
    // SAFETY: The program passes a completion queue of this library.
    let this = unsafe { state(cq.cast()) };
    let polled = this.polled.lock();
    // SAFETY: `polled` is the locked state of this queue.
    let (status, polled) = unsafe { advance(cq, polled) };

    // `ibv_end_poll()` unlocks. The program calls it only if there is a completion.
    if status == 0 {
        this.poller.store(this_thread(), Ordering::Relaxed);
        polled.keep();
    }
    status
}

unsafe extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: Programs call it after `ibv_start_poll()`.
    let polled = unsafe { polled(cq) };
    // SAFETY: It is of that queue.
    let (status, polled) = unsafe { advance(cq, polled) };

    polled.keep();
    status
}

unsafe extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    // SAFETY: Programs call it after `ibv_start_poll()`.
    let _polled = unsafe { polled(cq) };

    // SAFETY: The program passes a completion queue of this library.
    unsafe { state(cq.cast()) }
        .poller
        .store(0, Ordering::Relaxed);
}

/// Makes the next completion the current one. Returns `ENOENT` if there is none, `EIO` if the ring
/// is lost.
///
/// # Safety
///
/// `cq` is the queue that `polled` belongs to.
unsafe fn advance(cq: *mut ibv_cq_ex, mut polled: Guard<'_, Polled>) -> (c_int, Guard<'_, Polled>) {
    if polled.lost {
        return (libc::EIO, polled);
    }
    let Some(cqe) = polled.completions.next() else {
        set(ENOENT);
        return (ENOENT.0, polled);
    };

    // It has been copied. Its place is free now, not only at `ibv_end_poll()`: the program may post
    // the next WR before that.
    polled.completions.release();

    // SAFETY: The queue is valid, and the thread that holds it is the one that uses these fields.
    unsafe { (*cq).status = cqe.status.into() };
    // SAFETY: The queue is valid, and this thread holds it.
    unsafe { (*cq).wr_id = cqe.wr_id };
    polled.current = cqe;
    (0, polled)
}

/// Returns the completion that the program looks at.
///
/// # Safety
///
/// As for [`polled`].
unsafe fn current(cq: *mut ibv_cq_ex) -> Cqe {
    // SAFETY: By the caller's promise.
    let polled = unsafe { polled(cq) };
    let cqe = polled.current;

    polled.keep();
    cqe
}

macro_rules! readers {
    ($( fn $name:ident() -> $type:ty = $read:expr; )*) => {
        $(
            unsafe extern "C" fn $name(cq: *mut ibv_cq_ex) -> $type {
                // SAFETY: Programs call it between `ibv_start_poll()` and `ibv_end_poll()`.
                let cqe = unsafe { current(cq) };
                let read: fn(&Cqe) -> $type = $read;

                read(&cqe)
            }
        )*
    };
}

readers! {
    fn read_opcode() -> u32 = |cqe| cqe.opcode.into();
    fn read_vendor_err() -> u32 = |cqe| cqe.vendor_err;
    fn read_byte_len() -> u32 = |cqe| cqe.byte_len;
    fn read_imm_data() -> u32 = data;
    fn read_qp_num() -> u32 = |cqe| cqe.qp_num;
    fn read_wc_flags() -> c_uint = wc_flags;
    fn read_completion_ts() -> u64 = |cqe| cqe.timestamp;
    fn read_wallclock() -> u64 = |cqe| wallclock(cqe.timestamp);
}

unsafe extern "C" fn read_none(_cq: *mut ibv_cq_ex) -> u32 {
    0
}

unsafe extern "C" fn read_no_byte(_cq: *mut ibv_cq_ex) -> u8 {
    0
}

/// Converts a time of `CLOCK_MONOTONIC` to `CLOCK_REALTIME`, both in nanoseconds, by the present
/// difference of the two clocks.
fn wallclock(timestamp: u64) -> u64 {
    let age = nanoseconds(libc::CLOCK_MONOTONIC).wrapping_sub(timestamp);

    nanoseconds(libc::CLOCK_REALTIME).wrapping_sub(age)
}

pub(super) fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };

    // It fails for no clock that exists.
    // SAFETY: The pointer is valid.
    unsafe { libc::clock_gettime(clock, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(rest)
}
