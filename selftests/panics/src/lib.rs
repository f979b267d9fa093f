// SPDX-License-Identifier: GPL-2.0

//! Calls every entry point of `iwarp`, with an embedder that the compiler cannot see. The code that is
//! reachable from these calls is the code of `iwarp` that the kernel runs.

#![no_std]
// The functions have the signatures of the entry points that they call.
#![allow(
    clippy::result_large_err,
    clippy::result_unit_err,
    clippy::type_complexity
)]

use core::ops::Range;
use iwarp::mpa::{FpduDeframer, FpduFramer};
use iwarp::negotiation::RtrTypes;
use iwarp::qp::{Event, State, Transition};
use iwarp::sctp::{
    Arrival, Chunk, Encoded, Form, Session, SessionAction, SessionEvent, Unfit, Window,
};
use iwarp::startup::{
    Frame, Initiator, Kind, OutFrame, Outcome, Parameters, Policy, Reader, Refusal, Responder, Rtr,
    StartupError,
};
use iwarp::*;

/// A CRC engine that is unknown at compile time: like the kernel's, it is an external function.
pub struct Engine;

extern "Rust" {
    fn embedder_crc(crc: u32, data: &[u8]) -> u32;
}

impl Crc32c for Engine {
    fn update(crc: u32, data: &[u8]) -> u32 {
        // SAFETY: Never linked, so never run.
        unsafe { embedder_crc(crc, data) }
    }
}

/// The receiving side of MPA.
pub type Fpdus = FpduDeframer<Engine>;
/// A segmenter over MPA.
pub type Tx = Segmenter<FpduFramer<Engine>>;
/// The receiving side of SCTP.
pub type Chunks = sctp::ChunkDeframer;
/// A segmenter over SCTP.
pub type SctpTx = Segmenter<sctp::ChunkFramer>;

/// A stream with any behaviour: the compiler cannot see through function pointers.
pub struct Stream {
    len: fn() -> usize,
    copy: fn(usize, &mut [u8]) -> Option<()>,
    crc: fn(Crc, usize, usize) -> Option<Crc>,
}

impl Octets for Stream {
    fn len(&self) -> usize {
        (self.len)()
    }

    fn copy(&self, at: usize, to: &mut [u8]) -> Option<()> {
        (self.copy)(at, to)
    }

    fn crc(&self, crc: Crc, at: usize, len: usize) -> Option<Crc> {
        (self.crc)(crc, at, len)
    }
}

/// An embedder with any behaviour.
pub struct Embedder {
    header: fn(Option<(ddp::Header, u32)>),
    content: fn(&Content, Option<Taker>) -> Result<bool, Error>,
    place: fn(&Stream, Range<usize>) -> Result<(), Error>,
    gather: fn(&[u8]) -> Result<(), ()>,
    payload: fn(u32, u32, Option<Crc>) -> Result<Option<Crc>, ()>,
}

/// Handles the segment at the front of `stream`, with any decision of `to`.
fn receive<D: Deframing>(
    rx: &mut Receiver,
    deframer: &mut D,
    stream: &Stream,
    to: &Embedder,
) -> Result<usize, Error> {
    let mut wanted = 0;
    let next = |head: &mut ddp::FrameHead| {
        Ok(match deframer.next(stream, head)? {
            Deframed::Frame(ulpdu) => Some(ulpdu),
            Deframed::Incomplete { needed } => {
                wanted = needed;
                None
            }
        })
    };
    let Some(frame) = rx.next(D::SHORT, next)? else {
        return Ok(wanted);
    };
    (to.header)(frame.header());
    let segment = frame.check()?;
    let content = segment.content();
    if !(to.content)(content, content.takes_receive())? {
        segment.put_off();
        return Ok(0);
    }
    for run in segment.payload() {
        (to.place)(stream, run)?;
    }
    Ok(segment.advance())
}

impl Gather for Embedder {
    type Error = ();

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), ()> {
        (self.gather)(bytes)
    }

    fn payload(&mut self, offset: u32, len: u32, crc: Option<Crc>) -> Result<Option<Crc>, ()> {
        (self.payload)(offset, len, crc)
    }
}

/// Defines functions that call one entry point each.
macro_rules! calls {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $call:expr;)*) => {
        $(
            #[doc = concat!("`", stringify!($call), "`")]
            #[no_mangle]
            pub fn $name($($arg: $type),*) -> $result {
                $call
            }
        )*
    };
}

calls! {
    entry_rx_new() -> Receiver = Receiver::new();
    entry_rx_receive(rx: &mut Receiver, fpdus: &mut Fpdus, stream: &Stream, to: &Embedder)
        -> Result<usize, Error> = receive(rx, fpdus, stream, to);
    entry_rx_at_boundary(rx: &Receiver) -> bool = rx.at_boundary();
    entry_rx_started(rx: &Receiver) -> bool = rx.started();
    entry_rx_quote(rx: &Receiver) -> Quote = rx.quote();
    entry_fpdus_new(config: RxConfig) -> Fpdus = FpduDeframer::new(config);
    entry_fpdus_may_end(fpdus: &Fpdus, unread: usize) -> bool = fpdus.may_end(unread);

    entry_tx_new(config: TxConfig) -> Tx = Segmenter::new(FpduFramer::new(config));
    entry_tx_set_emss(tx: &mut Tx, emss: u32) -> () = tx.framing_mut().set_emss(emss);
    entry_tx_start(tx: &mut Tx, message: Message, len: u32)
        -> Result<(), Busy> = tx.start(message, len);
    entry_tx_poll(tx: &mut Tx, to: &mut Embedder)
        -> Result<Option<Emitted>, ()> = tx.poll_transmit(to);
    entry_tx_busy(tx: &Tx) -> bool = tx.busy();
    entry_tx_next(tx: &Tx) -> u32 = tx.next_request();

    entry_reader_new(kind: Kind) -> Reader = Reader::new(kind);
    entry_reader_wanted(reader: &Reader) -> usize = reader.wanted();
    entry_reader_push(reader: &mut Reader, data: &[u8])
        -> Result<bool, StartupError> = reader.push(data);
    entry_reader_frame(reader: &Reader) -> Option<Frame> = reader.frame();
    entry_reader_private(reader: &Reader) -> &[u8] = reader.private_data();
    entry_reader_is_empty(reader: &Reader) -> bool = reader.is_empty();
    entry_reader_clear(reader: &mut Reader) -> () = reader.clear();
    entry_initiator_new(policy: &Policy, ird: u32, ord: u32)
        -> Result<Initiator, StartupError> = Initiator::new(policy, ird, ord);
    entry_initiator_request(initiator: &Initiator, private: &'static [u8])
        -> Result<OutFrame<'static>, StartupError> = initiator.request(private);
    entry_initiator_reply(initiator: &Initiator, reader: &Reader)
        -> Result<Outcome, StartupError> = initiator.reply(reader);
    entry_responder_request(reader: &Reader, policy: &Policy)
        -> Result<Responder, Refusal> = Responder::request(reader, policy);
    entry_responder_peer(responder: &Responder)
        -> (Option<u32>, Option<u32>) = (responder.peer_ird(), responder.peer_ord());
    entry_responder_accept(responder: &Responder, ird: u32, ord: u32, private: &'static [u8])
        -> Result<(OutFrame<'static>, Parameters), StartupError> = responder.accept(ird, ord, private);
    entry_responder_reject(responder: &Responder, private: &'static [u8])
        -> Result<OutFrame<'static>, StartupError> = responder.reject(private);
    entry_frame_parts(frame: &'static OutFrame<'static>) -> [&'static [u8]; 2] = frame.parts();
    entry_startup_term(error: StartupError) -> Option<Error> = error.term();
    entry_rtr_message(rtr: Rtr) -> Message = rtr.message();

    entry_sctp_ssn(chunk: &[u8]) -> Result<u16, Sctp> = sctp::ssn(chunk);
    entry_sctp_chunk(ppid: u32, chunk: &'static [u8])
        -> Result<Chunk<'static>, Sctp> = Chunk::parse(ppid, chunk);
    entry_sctp_early_write(head: &[u8], octets: usize)
        -> Option<(Segment, Range<usize>)> = sctp::early_write(head, octets);
    entry_sctp_window_new(budget: u32) -> Window<512> = Window::new(budget);
    entry_sctp_window_budget(window: &mut Window<64>, budget: u32) -> () = window.set_budget(budget);
    entry_sctp_window_arrive(window: &mut Window<64>, ssn: u16, octets: u32)
        -> Result<Arrival, Sctp> = window.arrive(ssn, octets);
    entry_sctp_window_arrive_max(window: &mut Window<512>, ssn: u16, octets: u32)
        -> Result<Arrival, Sctp> = window.arrive(ssn, octets);
    entry_sctp_window_due(window: &Window<64>) -> Option<u16> = window.due();
    entry_sctp_window_take(window: &mut Window<64>, octets: u32) -> () = window.take(octets);
    entry_sctp_window_shrink(window: &mut Window<64>, octets: u32) -> () = window.shrink(octets);
    entry_sctp_window_driver_new(budget: u32) -> Window<128> = Window::new(budget);
    entry_sctp_window_driver_arrive(window: &mut Window<128>, ssn: u16, octets: u32)
        -> Result<Arrival, Sctp> = window.arrive(ssn, octets);
    entry_sctp_window_driver_due(window: &Window<128>) -> Option<u16> = window.due();
    entry_sctp_window_driver_take(window: &mut Window<128>, octets: u32) -> () = window.take(octets);
    entry_sctp_window_driver_reset(window: &mut Window<128>) -> () = window.reset();
    entry_sctp_window_holding(window: &Window<64>) -> bool = window.is_holding();
    entry_sctp_initiate(form: Form, ird: u32, ord: u32, private: &[u8])
        -> Result<(Session, Encoded<'_>), Unfit> = Session::initiate(form, ird, ord, private);
    entry_sctp_listen(rtr: RtrTypes) -> Session = Session::listen(rtr);
    entry_sctp_handle(session: &mut Session, event: SessionEvent<'static>)
        -> Result<SessionAction<'static>, Unfit> = session.handle(event);
    entry_sctp_parts(chunk: &'static Encoded<'static>) -> [&'static [u8]; 2] = chunk.parts();
    entry_chunks_new() -> Chunks = sctp::ChunkDeframer::new();
    entry_sctp_rx_receive(rx: &mut Receiver, chunks: &mut Chunks, chunk: &Stream, to: &Embedder)
        -> Result<usize, Error> = receive(rx, chunks, chunk, to);
    entry_chunks_may_end(chunks: &Chunks, unread: usize) -> bool = chunks.may_end(unread);
    entry_sctp_tx_new(chunk: u32) -> SctpTx = Segmenter::new(sctp::ChunkFramer::new(chunk));
    entry_sctp_tx_set_chunk(tx: &mut SctpTx, chunk: u32) -> () = tx.framing_mut().set_chunk(chunk);
    entry_sctp_tx_poll(tx: &mut SctpTx, to: &mut Embedder)
        -> Result<Option<Emitted>, ()> = tx.poll_transmit(to);
    entry_sctp_tx_next_ssn(tx: &mut SctpTx) -> u16 = tx.framing_mut().next_ssn();

    entry_region_check(region: &Region, stag: Stag, pd: u64, want: Access, at: u64, len: u32)
        -> Result<u64, Denied> = region.check(stag, pd, want, at, len);
    entry_denied(denied: Denied) -> [Error; 4] = [
        denied.tagged(), denied.read_source(), denied.invalidate(), denied.local(),
    ];
    entry_read_accept(read: &mut Outstanding, stag: Stag, to: u64, len: u32, last: bool)
        -> Result<bool, Error> = read.accept(stag, to, len, last);
    entry_read_advanced(request: ReadRequest, done: u32) -> ReadRequest = request.advanced(done);

    entry_atomic_apply(op: AtomicOp, original: u64) -> u64 = op.apply(original);

    entry_error_term(error: Error) -> TermCode = error.term();
    entry_terminate_new(error: Error, quote: Quote) -> Terminate = Terminate::new(error, quote);
    entry_quote_read(msn: u32, request: &ReadRequest) -> Quote = Quote::read_request(msn, request);
    entry_quote_atomic(msn: u32) -> Quote = Quote::atomic_request(msn);
    entry_quote_ddp(quote: &Quote) -> &[u8] = quote.ddp();
    entry_quote_rdmap(quote: &Quote) -> Option<&[u8]> = quote.rdmap();
    entry_quote_header(quote: &Quote) -> Option<ddp::Header> = quote.header();
    entry_quote_request(quote: &Quote) -> Option<ReadRequest> = quote.request();
    entry_quote_request_msn(quote: &Quote) -> Option<u32> = quote.request_msn();
    entry_qp_next(state: State, event: Event) -> Option<Transition> = qp::next(state, event);
    entry_mulpdu(emss: u32, markers: bool) -> u16 = mpa::fpdu::mulpdu(emss, markers);
}
