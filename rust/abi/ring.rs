// SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB

//! Rings in memory that the kernel and the process share.
//!
//! A ring has a [`HEADER`] and then entries, [`RingMap::stride`](crate::udata::RingMap::stride)
//! octets apart. The header is at a page boundary, and so entries are at boundaries of [`LINE`]s.
//! All memory is zero at first, except [`WAKE_AT`] of receive queues.
//!
//! Entries are numbered from 0, modulo 2^32; entry `n` is in slot `n` modulo the number of entries.
//! A *count* is the number of the entry that comes next. A count has 32 bits, in a word of 64 bits
//! whose other bits are zero; the reader ignores those.
//!
//! # Send queues, receive queues and SRQs: the process produces, the kernel consumes
//!
//! | word | writer | value |
//! |---|---|---|
//! | [`PRODUCER`] | process, release | the count of entries written |
//! | [`CONSUMER`] | kernel, release | the count of entries taken |
//! | [`WAKE_AT`] | kernel | the entry whose posting rings the doorbell |
//!
//! An entry belongs to the process until [`PRODUCER`] has passed it, then to the kernel until
//! [`CONSUMER`] has passed it. The kernel copies an entry when it takes it. For a send WR that says
//! nothing about its completion.
//!
//! If [`PRODUCER`] is more than the number of entries ahead of [`CONSUMER`], the kernel takes no
//! entry.
//!
//! ## When to ring the doorbell
//!
//! The process, to post entries `old` to `new - 1` (threads that post to one queue exclude each
//! other):
//!
//! 1. loads [`CONSUMER`], acquire, and checks that there is [`room`]; it may do with an older
//!    value;
//! 2. stores the entries;
//! 3. stores `new` to [`PRODUCER`], release;
//! 4. executes a full barrier;
//! 5. loads [`WAKE_AT`], and rings the doorbell if [`must_ring`] says so.
//!
//! The kernel has two states for a queue:
//!
//! | state | action | next state |
//! |---|---|---|
//! | running | takes entries (1) | running |
//! | running, no entry | requests the doorbell (2), and sees an entry | running |
//! | running, no entry | requests the doorbell (2), and sees no entry | idle |
//! | idle | waits for the doorbell, which rings | running |
//!
//! 1. It loads [`PRODUCER`], acquire. While entries are [`posted`], it copies one, and stores
//!    [`CONSUMER`], release.
//! 2. It stores [`CONSUMER`]'s count to [`WAKE_AT`], executes a full barrier, and loads
//!    [`PRODUCER`] once more.
//!
//! Each side stores its word, and then loads the word of the other one, with a full barrier in
//! between. So at least one of them sees the other's store: no entry is left behind while the
//! kernel is idle. While it runs, [`WAKE_AT`] is behind, and no process rings. A spurious doorbell
//! is harmless, such as one that two posts cause, or one each 2^32 entries while the kernel stays
//! running.
//!
//! A send queue starts idle, at 0. A receive queue differs in one way: the kernel need not know of
//! each entry. It looks for one when a message arrives. It requests the doorbell only if it needs
//! the next entry: a message waits for it, or all receives must be flushed. [`WAKE_AT`] starts at
//! [`WAKE_NEVER`].
//!
//! # Completion queues: the kernel produces, the process consumes
//!
//! | word | writer | value |
//! |---|---|---|
//! | [`CONSUMER`] | process, release | the count of entries taken |
//! | [`ARM`] | process sets bits, kernel clears all | whether a completion triggers an event |
//!
//! The process sees by the entry itself that it is new ([`Cqe::is_new`](crate::cqe::Cqe::is_new)):
//! it loads the word [`Cqe::CONTROL`](crate::cqe::Cqe::CONTROL), acquire, and if it is new the
//! others. It never writes to entries. Then it stores [`CONSUMER`], at once or after several
//! entries. The kernel reads [`CONSUMER`] if the ring seems to be full. If it is full, or
//! [`CONSUMER`] cannot be, the kernel reports that the queue has overflowed, and adds nothing more.
//!
//! ## Arming
//!
//! The process, to be notified:
//!
//! 1. sets [`ARM_SOLICITED`] or [`ARM_NEXT`] in [`ARM`] by an atomic OR;
//! 2. executes a full barrier;
//! 3. polls once more. Only if there is no completion, it waits for the event.
//!
//! The kernel stores a completion, executes a full barrier, and loads [`ARM`]. If the queue is
//! armed for such a completion ([`meets`]), the kernel clears [`ARM`], and triggers an event. Again
//! each side stores, and then loads, so no completion is left behind.
//!
//! ## Another size
//!
//! `resize_cq` makes another ring. The process stores [`CONSUMER`] before, and neither polls nor
//! arms the old ring from then on. The kernel numbers the entries that the process has not taken
//! from 0 in the new ring, which is armed if the old one was. It adds nothing to the old ring
//! afterwards. If `resize_cq` fails, the old ring stays in use.

/// Octets of a cache line. Words that one side writes often share no line with words of the other
/// side.
pub const LINE: usize = 64;
/// Octets of the header, before the first entry.
pub const HEADER: usize = 4 * LINE;

/// The offset of the producer's count. Unused in completion queues.
pub const PRODUCER: usize = 0;
/// The offset of the consumer's count.
pub const CONSUMER: usize = LINE;
/// The offset of the count at which posting rings the doorbell.
pub const WAKE_AT: usize = 2 * LINE;
/// The offset of the word that arms a completion queue.
pub const ARM: usize = 2 * LINE;

/// The first value of [`WAKE_AT`] of a receive queue: the kernel has not requested the doorbell.
pub const WAKE_NEVER: u32 = u32::MAX;

/// In [`ARM`]: a solicited completion, or the completion of a failed WR, triggers an event.
pub const ARM_SOLICITED: u64 = 1;
/// In [`ARM`]: any completion triggers an event.
pub const ARM_NEXT: u64 = 1 << 1;

/// Returns the count in a word of a ring.
#[inline]
pub const fn count(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_le_bytes();

    u32::from_le_bytes([a, b, c, d])
}

/// Returns the word for a count.
#[inline]
pub const fn word(count: u32) -> u64 {
    let [a, b, c, d] = count.to_le_bytes();

    u64::from_le_bytes([a, b, c, d, 0, 0, 0, 0])
}

/// Returns how many entries the producer has written and the consumer not taken; 0 if `producer`
/// cannot be.
#[inline]
pub const fn posted(producer: u32, consumer: u32, entries: u32) -> u32 {
    let posted = producer.wrapping_sub(consumer);

    if posted <= entries {
        posted
    } else {
        0
    }
}

/// Returns how many entries the producer may write; 0 if `consumer` cannot be.
#[inline]
pub const fn room(producer: u32, consumer: u32, entries: u32) -> u32 {
    entries.saturating_sub(producer.wrapping_sub(consumer))
}

/// Whether posting entries `old` to `new - 1` rings the doorbell: `wake_at` is one of them.
#[inline]
pub const fn must_ring(old: u32, new: u32, wake_at: u32) -> bool {
    wake_at.wrapping_sub(old) < new.wrapping_sub(old)
}

/// Whether a queue with this word [`ARM`] triggers an event for a completion. A completion that is
/// not successful counts as solicited.
#[inline]
pub const fn meets(arm: u64, solicited: bool) -> bool {
    arm & ARM_NEXT != 0 || (arm & ARM_SOLICITED != 0 && solicited)
}

/// Returns the slot of entry `number`, in a ring whose number of entries is a power of two.
#[inline]
pub const fn slot(number: u32, entries: u32) -> u32 {
    number & entries.wrapping_sub(1)
}

/// Returns the offset of entry `number` in the ring.
#[inline]
pub const fn offset(number: u32, entries: u32, stride: u32) -> usize {
    size(slot(number, entries))
        .wrapping_mul(size(stride))
        .wrapping_add(HEADER)
}

/// Returns the octets of a ring, before they are rounded up to pages; `None` if there are too many.
#[inline]
pub const fn len(entries: u32, stride: u32) -> Option<usize> {
    match size(entries).checked_mul(size(stride)) {
        Some(len) => len.checked_add(HEADER),
        None => None,
    }
}

/// Returns the least multiple of [`LINE`] that is at least `octets`.
pub(crate) const fn lines(octets: usize) -> usize {
    octets.saturating_add(LINE - 1) & !(LINE - 1)
}

/// Converts to `usize`, of which all bits are used only on machines of 64 bits.
#[allow(clippy::as_conversions)]
const fn size(n: u32) -> usize {
    // CAST: A 32-bit number fits.
    n as usize
}

// As `size` needs.
const _: () = assert!(usize::BITS >= 32);
