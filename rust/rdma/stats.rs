// SPDX-License-Identifier: GPL-2.0

//! Statistics of a device, and counters that queue pairs are bound to: `rdma statistic`, and
//! `hw_counters/` in sysfs.
//!
//! A queue pair that is bound to a counter counts there, and nowhere else. To show a statistic of
//! the device, ib_core adds the values of all counters to the device's own, the values of past
//! counters included.
//!
//! # Limits of ib_core
//!
//! - A counter is shown with the numbers of its queue pairs, all in one netlink message. If there
//!   are more than fit, some 200, `rdma statistic qp show` repeats for ever:
//!   `res_get_common_dumpit()` takes a message without an entry for progress.
//! - By binding and unbinding one queue pair from several threads at a time, an administrator can
//!   make ib_core release the wrong counter: `rdma_counter_unbind_qp()` reads the counter of a
//!   queue pair before it takes the counter's lock. An unbind that comes before the first bind has
//!   returned can free the counter under it. The driver's part stays valid.
//!
//! C headers: `include/rdma/ib_verbs.h` (`struct rdma_hw_stats`), `include/rdma/rdma_counter.h`. C
//! sources: `core/counters.c`, `core/nldev.c`, `core/sysfs.c`, `core/verbs.c`

use crate::{
    device::{Callbacks, Device},
    ops::{CounterVerbs, Driver, QpVerbs},
    qp::Qp,
};
use core::ptr::null_mut;
use kernel::{
    error::from_result,
    ffi::c_int,
    prelude::*,
    str::as_char_ptr_in_const_context,
    sync::atomic::{ordering, Atomic},
    types::Opaque,
};
use riw_bindings as bindings;

/// The description of a statistic (`struct rdma_stat_desc`, `include/rdma/ib_verbs.h`).
///
/// # Invariants
///
/// `name` points to a static C string, and `priv_` is null.
#[repr(transparent)]
pub struct StatDesc(bindings::rdma_stat_desc);

// SAFETY: By the type invariant its only pointer is to a static string, which nothing changes.
unsafe impl Send for StatDesc {}
// SAFETY: By the type invariant its only pointer is to a static string, which nothing changes.
unsafe impl Sync for StatDesc {}

impl StatDesc {
    /// Describes the statistics with these names, in this order.
    ///
    /// Call it for a constant: the compiler then refuses names that ib_core could not show, as it
    /// puts all of them into one message (`stat_get_doit_default_counter()`, `core/nldev.c`).
    /// Panics if called with such names at run time.
    pub const fn list<const N: usize>(names: &[&'static CStr; N]) -> [Self; N] {
        /// Size of the message in bytes, without its headers: a page of 4096, of which the largest
        /// number of fragments in a buffer (45, `CONFIG_MAX_SKB_FRAGS`) takes 768, and the headers
        /// with the longest name of a device 104.
        const ROOM: usize = 3224;

        let mut list = [const { Self::unnamed() }; N];
        let mut size = 0;
        let mut i = 0;

        while i < N {
            let name = names[i].to_bytes_with_nul();
            // A nest, the name, the value; each with a header, and aligned.
            size += 4 + (4 + name.len().next_multiple_of(4)) + (4 + 12);
            // INVARIANT: `names` has static strings.
            list[i].0.name = name.as_ptr().cast();
            i += 1;
        }
        assert!(size <= ROOM, "too many statistics for a netlink message");
        list
    }

    const fn unnamed() -> Self {
        // INVARIANT: The string is static.
        Self(bindings::rdma_stat_desc {
            name: as_char_ptr_in_const_context(c""),
            flags: 0,
            priv_: core::ptr::null(),
        })
    }
}

/// A counter as ib_core allocates it: `struct rdma_counter` (`include/rdma/rdma_counter.h`)
/// followed by the driver's data.
///
/// ib_core frees the memory without a callback if it cannot bind the first queue pair. So there is
/// data only from the first bind that succeeds until `counter_dealloc`, which ib_core calls for
/// every counter with such a bind.
///
/// # Invariants
///
/// `base` is at offset 0. The lock of `base` protects `data`, from `counter_init` to
/// `counter_dealloc`.
#[repr(C)]
struct Counter<T: Driver> {
    base: Opaque<bindings::rdma_counter>,
    data: Option<T::Counter>,
}

impl<T: Driver> Counter<T> {
    /// Size for ib_core to allocate, in bytes.
    const SIZE: usize = {
        assert!(core::mem::offset_of!(Self, base) == 0);
        // kzalloc() aligns to at least 8 bytes.
        assert!(align_of::<Self>() <= 8);
        size_of::<Self>()
    };

    /// Borrows the driver's data of a counter.
    ///
    /// # Safety
    ///
    /// `counter_init` must have been called for `base`, and `counter_dealloc` not yet. The caller
    /// must hold the lock of the counter during `'a`, or nothing else may use it.
    unsafe fn data<'a>(base: *mut bindings::rdma_counter) -> &'a mut Option<T::Counter> {
        // SAFETY: By the caller's promise `base` is the start of a `Self` whose `data` is
        // initialized, and nothing else accesses that during `'a`.
        unsafe { &mut (*base.cast::<Self>()).data }
    }
}

/// Returns the field of a queue pair that names its counter. ib_core reads it without a lock.
///
/// # Safety
///
/// `qp` must be valid during `'a`, and only functions of this file may write to the field.
unsafe fn counter_of<'a>(qp: *mut bindings::ib_qp) -> &'a Atomic<*mut bindings::rdma_counter> {
    // SAFETY: By the caller's promise the field is valid during `'a`, and all writes to it are by
    // this atomic. It is an aligned pointer.
    unsafe { Atomic::from_ptr(&raw mut (*qp).counter) }
}

/// Allocates the values of the driver's statistics (`rdma_alloc_hw_stats_struct()`,
/// `core/verbs.c`). Process context; may sleep. Returns null without memory.
///
/// All values of a driver have the same number, a constant: ib_core adds the values of a counter to
/// the values of the port by their index.
fn alloc_values<T: Driver>() -> *mut bindings::rdma_hw_stats {
    let descs = T::STATS;

    // SAFETY: `StatDesc` is transparent over `struct rdma_stat_desc`, and the slice is static.
    unsafe {
        bindings::rdma_alloc_hw_stats_struct(
            descs.as_ptr().cast(),
            // CAST: The number of names that fit into a message is small.
            descs.len() as c_int,
            // CAST: A small constant.
            bindings::RDMA_HW_STATS_DEFAULT_LIFESPAN as usize,
        )
    }
}

/// Sets the first `count` values, or all if there are fewer. Process context. Returns the number of
/// all values.
///
/// # Safety
///
/// [`alloc_values`] must have allocated `stats`, and it must be valid during the call.
unsafe fn set_values(
    stats: *mut bindings::rdma_hw_stats,
    count: usize,
    value: impl Fn(usize) -> u64,
) -> c_int {
    // SAFETY: By the caller's promise `stats` is valid. Its size does not change.
    let all = unsafe { (*stats).num_counters };

    // CAST: The number is not negative.
    for index in 0..count.min(all as usize) {
        // SAFETY: By the caller's promise `stats` is valid; it has `all` values, and `index` is
        // below. ib_core may read them meanwhile, as it reads the values of a counter without a
        // lock.
        unsafe {
            let to = (*stats).value.as_mut_ptr().add(index);
            Atomic::from_ptr(to).store(value(index), ordering::Relaxed);
        }
    }
    all
}

/// Sets the callbacks of this file in a `struct ib_device_ops`.
pub(crate) const fn fill<T: Driver>(mut ops: bindings::ib_device_ops) -> bindings::ib_device_ops {
    assert!(T::HAS_STAT != T::STATS.is_empty() && T::COUNTER_STATS <= T::STATS.len());
    if T::HAS_STAT {
        ops.alloc_hw_port_stats = Some(Callbacks::<T>::alloc_hw_port_stats);
        ops.get_hw_stats = Some(Callbacks::<T>::get_hw_stats);
    }
    if T::Counter::HAS_CREATE {
        ops.size_rdma_counter = Counter::<T>::SIZE;
        ops.counter_init = Some(Callbacks::<T>::counter_init);
        ops.counter_alloc_stats = Some(Callbacks::<T>::counter_alloc_stats);
        ops.counter_update_stats = Some(Callbacks::<T>::counter_update_stats);
        ops.counter_bind_qp = Some(Callbacks::<T>::counter_bind_qp);
        ops.counter_unbind_qp = Some(Callbacks::<T>::counter_unbind_qp);
        ops.counter_dealloc = Some(Callbacks::<T>::counter_dealloc);
    }
    ops
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only ib_core may call it, as `alloc_hw_port_stats` of a device of driver `T`.
    unsafe extern "C" fn alloc_hw_port_stats(
        _dev: *mut bindings::ib_device,
        _port: u32,
    ) -> *mut bindings::rdma_hw_stats {
        alloc_values::<T>()
    }

    /// Sets all values, not only `index`: ib_core then uses them for the lifespan of 10 ms.
    ///
    /// # Safety
    ///
    /// Only ib_core may call it, as `get_hw_stats` of a device of driver `T`.
    unsafe extern "C" fn get_hw_stats(
        dev: *mut bindings::ib_device,
        stats: *mut bindings::rdma_hw_stats,
        _port: u32,
        _index: c_int,
    ) -> c_int {
        // SAFETY: ib_core calls this for a device that is registered or being registered, so its
        // data is initialized, with values from `alloc_hw_port_stats`.
        unsafe {
            let dev = Device::<T>::from_raw(dev);
            set_values(stats, T::STATS.len(), |index| T::stat(dev, index))
        }
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `counter_init` of a device of driver `T`.
    unsafe extern "C" fn counter_init(counter: *mut bindings::rdma_counter) {
        // SAFETY: ib_core passes a new object of `size_rdma_counter` bytes that nothing else
        // accesses.
        unsafe { (&raw mut (*counter.cast::<Counter<T>>()).data).write(None) };
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `counter_alloc_stats` of a device of driver `T`.
    unsafe extern "C" fn counter_alloc_stats(
        _counter: *mut bindings::rdma_counter,
    ) -> *mut bindings::rdma_hw_stats {
        const BITS: usize = usize::BITS as usize;
        let stats = alloc_values::<T>();

        if !stats.is_null() {
            // A counter does not have these, so ib_core need not show them.
            for index in T::COUNTER_STATS..T::STATS.len() {
                // SAFETY: Nothing else accesses the new values. Their bitmap has a bit for each of
                // `T::STATS`.
                unsafe { *(*stats).is_disabled.add(index / BITS) |= 1 << (index % BITS) };
            }
        }
        stats
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `counter_update_stats` of a device of driver `T`.
    unsafe extern "C" fn counter_update_stats(counter: *mut bindings::rdma_counter) -> c_int {
        // SAFETY: ib_core holds the counter and its lock during the call. `counter_init` was called
        // for it, and its values are from `counter_alloc_stats`.
        unsafe {
            if let Some(data) = Counter::<T>::data(counter) {
                set_values((*counter).stats, T::COUNTER_STATS, |index| data.stat(index));
            }
        }
        0
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `counter_bind_qp` of a device of driver `T`.
    unsafe extern "C" fn counter_bind_qp(
        counter: *mut bindings::rdma_counter,
        qp: *mut bindings::ib_qp,
        _port: u32,
    ) -> c_int {
        from_result(|| {
            // SAFETY: ib_core holds the queue pair, which is created, and so its device. It holds
            // the counter and its lock during the call, and `counter_init` was called for it. Only
            // this function and `counter_unbind_qp` write to the queue pair's field.
            let (dev, this, data, bound) = unsafe {
                (
                    Device::<T>::from_raw((*qp).device),
                    Qp::<T>::from_raw(qp),
                    Counter::<T>::data(counter),
                    counter_of(qp),
                )
            };
            let new = match data {
                Some(_) => None,
                None => {
                    // SAFETY: ib_core has not published the counter yet.
                    unsafe { (*counter).id = dev.next_counter_id() };
                    Some(T::Counter::create(dev)?)
                }
            };

            // ib_core has checked this before it took the lock of this counter: meanwhile another
            // thread may have bound the queue pair to another counter.
            bound
                .cmpxchg(null_mut(), counter, ordering::Full)
                .map_err(|_| EINVAL)?;
            if new.is_some() {
                *data = new;
            }
            if let Some(data) = data {
                T::Qp::bind_counter(this, data);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `counter_unbind_qp` of a device of driver `T`.
    unsafe extern "C" fn counter_unbind_qp(qp: *mut bindings::ib_qp, _port: u32) -> c_int {
        from_result(|| {
            // SAFETY: ib_core holds the queue pair, which is created. Only this function and
            // `counter_bind_qp` write to its field.
            let (this, bound) = unsafe { (Qp::<T>::from_raw(qp), counter_of(qp)) };

            // Another thread may have unbound the queue pair since ib_core looked.
            if bound.load(ordering::Relaxed).is_null() {
                return Err(EINVAL);
            }
            T::Qp::unbind_counter(this);
            bound.store(null_mut(), ordering::Relaxed);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only ib_core may call it, as `counter_dealloc` of a device of driver `T`.
    unsafe extern "C" fn counter_dealloc(counter: *mut bindings::rdma_counter) -> c_int {
        // SAFETY: ib_core calls this once for a counter that no queue pair is bound to and that
        // nothing else uses any more. It frees the memory afterwards.
        drop(unsafe { Counter::<T>::data(counter) }.take());
        0
    }
}
