// SPDX-License-Identifier: GPL-2.0

//! The SGEs of a WR, and the length that a completion reports against its buffers.

use super::{Ends, PostedQueue, PostedQueues, QueueOfPair, RecvWrs, WrId};
use core::ptr;
use kernel::{ffi::c_int, prelude::*, sync::Arc};
use riw_bindings as bindings;

type Posted = super::Posted<6>;

/// Returns a queue.
pub(crate) fn queue(shared: bool) -> Result<Arc<PostedQueue>> {
    PostedQueue::new(4, shared)
}

/// Returns a WR with a list of SGEs.
///
/// # Safety
///
/// As for [`Posted::new`].
unsafe fn posted_with(list: *const *mut bindings::ib_sge, count: c_int) -> Result<Posted> {
    let own = queue(false)?;

    own.while_posting(|call| {
        // SAFETY: The caller promises it.
        let (posted, _) = unsafe { Posted::new((&own, call), 7, (list, count), Ends::Nothing) }?;

        Ok(posted)
    })
}

/// Posts a WR without SGEs to `queue`, by a call of its own.
pub(crate) fn post(queue: &Arc<PostedQueue>, ends: Ends) -> Result<WrId> {
    queue.while_posting(|call| {
        // SAFETY: There is no SGE to be read.
        let (posted, _) = unsafe { Posted::new((queue, call), 7, (&ptr::null_mut(), 0), ends) }?;

        Ok(posted.give_up())
    })
}

/// Returns the id of a WR that is not to be completed yet.
fn refused(id: WrId) -> Result<WrId> {
    id.complete().err().ok_or(EINVAL)
}

/// Returns a WR with SGEs of these lengths, of a region.
fn posted<const N: usize>(lens: [u32; N]) -> Result<Posted> {
    let mut sges = lens.map(|length| bindings::ib_sge {
        addr: 0,
        length,
        lkey: 1,
    });
    let list = sges.as_mut_ptr();

    // SAFETY: `list` points to `N` SGEs, and none has `LOCAL_DMA_LKEY`.
    unsafe { posted_with(&raw const list, c_int::try_from(N)?) }
}

/// Returns the lengths that completions report for a message of no octet, of 128, and of the
/// longest.
fn reported<const N: usize>(lens: [u32; N]) -> Result<[u32; 3]> {
    let id = posted(lens)?.give_up();

    Ok([0, 128, u32::MAX].map(|bytes| id.byte_len(bytes)))
}

#[kunit_tests(rdma_wr)]
mod tests {
    use super::*;

    /// No completion reports more than the WR's buffers have, whatever the driver passes.
    #[test]
    fn a_completion_reports_at_most_the_buffers() -> Result {
        assert_eq!(reported([])?, [0, 0, 0]);
        assert_eq!(reported([100])?, [0, 100, 100]);
        assert_eq!(reported([100, 0, 29])?, [0, 128, 129]);
        assert_eq!(reported([u32::MAX, 2])?, [0, 128, u32::MAX]);
        Ok(())
    }

    /// A completion is taken only by the completion queue of the queue to which the WR was posted.
    #[test]
    fn a_completion_goes_to_the_queue_of_its_wr() -> Result {
        let [a, b] = [1, 2].map(ptr::without_provenance_mut::<bindings::ib_cq>);
        let (send, recv, other) = (queue(false)?, queue(false)?, queue(false)?);
        let queues = PostedQueues {
            send: QueueOfPair {
                queue: send.clone(),
                cq: a,
            },
            recv: QueueOfPair {
                queue: recv.clone(),
                cq: b,
            },
        };

        assert!(queues.completes(false, &send, a));
        assert!(queues.completes(true, &recv, b));
        // Another completion queue.
        assert!(!queues.completes(false, &send, b));
        assert!(!queues.completes(true, &recv, a));
        // Another queue, of this queue pair and of another one.
        assert!(!queues.completes(false, &recv, a));
        assert!(!queues.completes(true, &send, b));
        assert!(!queues.completes(false, &other, a));
        assert!(!queues.completes(true, &other, b));
        Ok(())
    }

    /// A WR is completed after the WRs before it, unless the queue is shared.
    #[test]
    fn completions_come_in_order() -> Result {
        for shared in [false, true] {
            let queue = queue(shared)?;
            let mut list = [bindings::ib_recv_wr::default(); 2];

            list[0].next = &raw mut list[1];
            let mut ids = KVec::new();
            let (mut bad, first) = (ptr::null(), list.as_ptr());
            // SAFETY: The WRs have no SGEs, and `bad` is valid.
            let posted = unsafe {
                RecvWrs::post(&queue, first, &raw mut bad, |wrs| {
                    while let Some(wr) = wrs.take::<0>() {
                        ids.push(wr?.give_up(), GFP_KERNEL)?;
                    }
                    Ok(())
                })
            };

            assert_eq!(posted?, 0);
            let (second, first) = (ids.pop().ok_or(EINVAL)?, ids.pop().ok_or(EINVAL)?);
            let second = second.complete();
            assert_eq!(second.is_ok(), shared);
            assert!(first.complete().is_ok());
            assert!(second.or_else(WrId::complete).is_ok());
            // Nothing is left to wait for.
            queue.end();
        }
        Ok(())
    }

    /// The consumer learns that a WR was not posted only if the driver does not have it.
    #[test]
    fn a_refused_wr_is_gone() -> Result {
        let queue = queue(true)?;
        let mut list = [bindings::ib_recv_wr::default(); 2];

        list[0].next = &raw mut list[1];
        for take in [0, 1, 2] {
            let (mut bad, first) = (ptr::null(), list.as_ptr());
            // SAFETY: The WRs have no SGEs, and `bad` is valid.
            let posted = unsafe {
                RecvWrs::post(&queue, first, &raw mut bad, |wrs| {
                    for _ in 0..take {
                        drop(wrs.take::<0>());
                    }
                    Err(EBUSY)
                })
            };

            assert_eq!(posted, Err(EBUSY));
            assert_eq!(bad, first.wrapping_add(usize::from(take == 2)));
        }
        queue.end();
        Ok(())
    }

    /// A WR that invalidates is completed when it has done so, and no later one before.
    #[test]
    fn a_wr_invalidates_before_it_is_complete() -> Result {
        let queue = queue(false)?;
        let id = post(&queue, Ends::Stag(5))?;
        let later = post(&queue, Ends::Nothing)?;

        assert_eq!(id.invalidates(), Some(5));
        let (mut id, later) = (refused(id)?, refused(later)?);
        id.note_executed();
        assert_eq!(id.invalidates(), None);
        let later = refused(later)?;
        assert!(id.complete().is_ok());
        assert!(later.complete().is_ok());
        // One that does not invalidate, and is gone, is never complete. There would be a warning.
        let id = post(&queue, Ends::Stag(5))?;
        let later = post(&queue, Ends::Nothing)?;
        queue.close();
        assert!(post(&queue, Ends::Nothing).is_err());
        drop(id);
        drop(refused(later)?);
        queue.end();
        Ok(())
    }

    /// A WR that the driver leaves out is not posted, or no other one is complete.
    #[test]
    fn a_driver_leaves_out_no_wr() -> Result {
        let queue = queue(false)?;
        let mut list = [bindings::ib_recv_wr::default(); 3];
        let mut ids = KVec::new();

        list[0].next = &raw mut list[1];
        list[1].next = &raw mut list[2];
        for take in [0, 1, 3] {
            let (mut bad, first) = (ptr::null(), list.as_ptr());
            // SAFETY: The WRs have no SGEs, and `bad` is valid.
            let posted = unsafe {
                RecvWrs::post(&queue, first, &raw mut bad, |wrs| {
                    for _ in 0..take {
                        let Some(wr) = wrs.take::<0>() else { break };
                        ids.push(wr?.give_up(), GFP_KERNEL)?;
                    }
                    Ok(())
                })
            };

            match take {
                3 => assert_eq!(posted, Ok(0)),
                _ => {
                    assert_eq!(posted, Err(EINVAL));
                    assert_eq!(bad, first.wrapping_add(take));
                }
            }
        }
        let first = ids.remove(0).map_err(|_| EINVAL)?;
        assert!(first.complete().is_ok());
        // The warning of a queue that is not about to end would fail the run.
        queue.close();
        queue.break_off();
        for id in ids {
            drop(refused(id)?);
        }
        queue.end();
        Ok(())
    }

    /// The sink that a WR invalidates is the only one.
    #[test]
    fn a_wr_invalidates_one_sink() -> Result {
        let mut sges = [3, 4].map(|lkey| bindings::ib_sge {
            addr: 0,
            length: 8,
            lkey,
        });
        let (queue, list) = (queue(false)?, sges.as_mut_ptr());
        let posted = |count| {
            queue.while_posting(|call| {
                // SAFETY: `list` has two SGEs, none with `LOCAL_DMA_LKEY`.
                unsafe { Posted::new((&queue, call), 7, (&raw const list, count), Ends::Sink) }
            })
        };

        assert!(posted(0).is_err());
        assert!(posted(2).is_err());
        let (posted, _) = posted(1)?;
        assert_eq!(posted.id().invalidates(), Some(3));
        // It goes without that, with a warning unless the queue is about to end.
        queue.close();
        drop(posted);
        queue.end();
        Ok(())
    }

    /// A list of SGEs may begin at any address: some kernel users have it in a packed struct.
    #[test]
    fn a_list_of_sges_need_not_be_aligned() -> Result {
        let sge = bindings::ib_sge {
            addr: 3,
            length: 100,
            lkey: 1,
        };
        let mut room = [0u64; 4];
        let list = room.as_mut_ptr().cast::<u8>().wrapping_add(4);
        let list = list.cast::<bindings::ib_sge>();

        // SAFETY: `room` has 28 octets from `list` on.
        unsafe { list.write_unaligned(sge) };
        // SAFETY: `list` points to one SGE, which has not `LOCAL_DMA_LKEY`.
        let posted = unsafe { posted_with(&raw const list, 1) }?;

        assert_eq!(posted.sges().len(), 1);
        assert_eq!(posted.sges()[0].addr, 3);
        assert_eq!(posted.sges()[0].len, 100);
        Ok(())
    }
}
