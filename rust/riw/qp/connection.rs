// SPDX-License-Identifier: GPL-2.0

//! The queue pair's side of a connection: its start, its events, its end.

use super::{
    state::QpStartup,
    stream_error::StreamErrorReason,
    traits::{Closed, Role},
    Qp,
};
use crate::{
    limits::{check_depths, MAX_READS},
    link::{Framer, Inflow, LinkRx, Pause},
    queue::QpObject,
    stream::{
        receive::{Received, RxEnd, RxPause},
        Start, StartRoom, StreamError,
    },
};
use iwarp::{qp::Event, startup::Parameters, Local, Quote, TxConfig};
use kernel::{
    prelude::*,
    sync::{atomic::ordering, Arc},
};
use kernel_ext::memcg::MemCgroup;
use rdma::iw::{ConnParam, Consumer};
use trace::Source;

impl Qp {
    /// Whether the calling process, or a kernel user, may connect the queue pair. Process context,
    /// maybe with a spin lock held.
    pub(crate) fn is_of_caller(&self) -> bool {
        self.owner.may_be_current()
    }

    /// Whether `consumer`, which is calling, may connect the queue pair, whose verbs object is
    /// `object`. Process context.
    pub(crate) fn is_owned_by(&self, consumer: &Consumer, object: &QpObject) -> bool {
        self.owner.is(consumer, object)
    }

    /// Returns the memory cgroup that the stream's memory is charged to. Any context.
    pub(crate) fn memcg(&self) -> &MemCgroup {
        self.stream.memcg()
    }

    /// Whether reclaim may wait for a connection of the queue pair on this side: storage is at the
    /// other end. Any context.
    pub(crate) fn is_below_reclaim(&self, role: Role) -> bool {
        self.owner.is_kernel() && role == Role::Initiator
    }

    /// Allocates memory for a stream, for whoever requests or accepts a connection with `param`.
    /// Process context; may sleep. Fails with `EINVAL` if the depths are too large, `ENOMEM`
    /// without memory.
    pub(crate) fn start_room(&self, param: &ConnParam<'_>, role: Role) -> Result<StartRoom> {
        check_depths(param)?;
        // A responder that requests more than the initiator offers may get it.
        let ird_max = match role {
            Role::Initiator => MAX_READS,
            Role::Responder => param.ird,
        };

        self.stream.start_room(param.ord, param.ird, ird_max)
    }

    /// Starts the stream, in the memory of `room`: the startup has succeeded. Process context; may
    /// sleep. Fails with `ENOTCONN` if the connection has ended, `EINVAL` if the room is not for
    /// these depths.
    pub(crate) fn start(
        self: &Arc<Self>,
        parameters: &Parameters,
        role: Role,
        room: StartRoom,
    ) -> Result {
        let connection = self.connection().ok_or(ENOTCONN)?;
        let first = match role {
            Role::Initiator => parameters.rtr.map(|rtr| rtr.message()),
            Role::Responder => None,
        };

        let (transport, emss) = connection.link().with(|connection| {
            connection.reserve();
            connection.charge_to(self.memcg())?;
            if self.owner.is_kernel() {
                connection.avoid_io();
            }
            Ok((connection.transport(), connection.emss()))
        })?;
        self.below_reclaim
            .store(self.is_below_reclaim(role), ordering::Relaxed);
        let may_send = role == Role::Initiator || transport.lets_responder_begin(parameters);

        let start = Start {
            link: connection.link(),
            framer: Framer::new(
                transport,
                TxConfig {
                    crc: parameters.crc,
                    markers: parameters.tx_markers,
                    emss,
                },
                self.stream.sq.device().cm.settings.fpdu_max(),
            ),
            parameters,
            first,
            may_send,
        };

        self.stream
            .start(start, LinkRx::new(transport, parameters), room)?;
        self.set_startup(QpStartup {
            transport,
            parameters: *parameters,
            role,
        });
        // A doorbell that finds no connection drops all WRs under `tx`. So none is dropped after
        // this.
        let _tx = self.stream.tx.lock();
        self.event(Event::Established).ok_or(ENOTCONN)
    }

    /// Receives what the link has received. Softirq or process context; received data is locked.
    pub(crate) fn rx_ready(self: &Arc<Self>, inflow: &mut impl Inflow) {
        if !self.is_stream_active() {
            // The stream is ending anyway.
            return inflow.discard();
        }
        let received = self.stream.receive(inflow);

        self.after_receive(received);
    }

    /// Acts on the result of a receive. Process context or softirq; the caller holds none of the
    /// queue pair's locks.
    fn after_receive(self: &Arc<Self>, received: Received) {
        if let RxPause::NoReceive { begins: true } = received.pause {
            self.arm_receive_timer();
        }
        self.pass_turn(received.next);
        if received.first {
            if let Some(connection) = self.connection() {
                connection.as_arc_borrow().first_fpdu();
            }
        }
        match &received.pause {
            RxPause::Link(Pause::Buffer) => self.request_buffer(),
            RxPause::Link(Pause::Worker) => self.retry_receive(),
            RxPause::End(RxEnd::Terminated(terminated)) => {
                self.note_terminate_received(terminated.code);
            }
            _ => {}
        }
        let lost = self.stream.report(&received.unreported).is_err();

        match received.pause {
            RxPause::End(end) => self.receive_ended(end),
            _ if lost => self.fail(StreamError::local(Local::Completion)),
            _ if received.kick || received.first => self.kick(),
            _ => {}
        }
    }

    /// Ends the stream, as the link has failed. Process context or softirq.
    pub(crate) fn link_failed(self: &Arc<Self>, error: iwarp::Error) {
        self.end_in_error(StreamErrorReason::Found(error), Quote::NONE);
    }

    /// The connection, or the peer's half of it, has ended. Process context or softirq.
    pub(crate) fn llp_closed(self: &Arc<Self>, how: Closed) {
        match how {
            Closed::Graceful if self.stream.is_quiet() => {
                self.event(Event::PeerClosed);
            }
            Closed::Graceful => {
                let early = StreamErrorReason::Found(iwarp::Error::LlpClosed);

                self.end_in_error(early, Quote::NONE);
            }
            Closed::Reset => self.end_in_error(StreamErrorReason::Reset, Quote::NONE),
            Closed::Aborted => self.end_in_error(StreamErrorReason::Aborted, Quote::NONE),
            Closed::Timeout => self.end_in_error(StreamErrorReason::Timeout, Quote::NONE),
        }
    }

    /// Whether a FIN would cut off data that the peer must get, as
    /// [`Stream::has_unsent`](crate::stream::Stream::has_unsent) says. Process context; may sleep.
    pub(crate) fn has_unsent(&self) -> bool {
        self.stream.has_unsent()
    }

    /// As [`Self::has_unsent`], but does not wait for a transmit pass: it may have unsent data.
    pub(crate) fn may_have_unsent(&self) -> bool {
        self.stream.may_have_unsent()
    }

    /// Sends the gathered batch, and the Terminate that is due, as far as the socket takes them
    /// now: the process may have completions for them. Then stops the transmitter. Process context;
    /// may sleep.
    pub(super) fn push_out(&self) {
        let mut tx = self.stream.tx.lock();

        if self.connection().is_some() {
            self.gather_terminate(&mut tx);
            // The rest is lost with the queue pair, and so resets the connection.
            let _ = tx.send_rest();
        }
        tx.stop();
    }
}
