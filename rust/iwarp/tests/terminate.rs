// SPDX-License-Identifier: GPL-2.0

//! Terminate: the code of each error, the quoted headers, and the parsing of a peer's Terminate.

mod common;
use common::*;
use iwarp::ddp::Header;
use iwarp::*;

/// Defines the table of codes. An error without a row does not compile: the match has no `_`.
macro_rules! codes {
    ($((Error::$layer:ident $(($error:path))?, $code:expr),)+) => {
        const CODES: &[(Error, [u8; 3])] = &[$((Error::$layer $(($error))?, $code)),+];
        const _: fn(Error) = |error| match error {
            $(Error::$layer $(($error))? => {})+
        };
    };
}

// Each error with its layer, type and code: RFC 5040 figure 9, RFC 5041 §7.2, RFC 5044 §8 and RFC
// 6581 §8 with RFC 6580. RFC 5043 has none.
codes! {
    (Error::Local(Local::Request), [0, 0, 0]),
    (Error::Local(Local::Buffer), [0, 0, 0]),
    (Error::Local(Local::Completion), [0, 0, 0]),
    (Error::Local(Local::Memory), [0, 0, 0]),
    (Error::Local(Local::LowerLayer), [0, 0, 0]),
    (Error::Rdmap(Rdmap::InvalidStag), [0, 1, 0]),
    (Error::Rdmap(Rdmap::Bounds), [0, 1, 1]),
    (Error::Rdmap(Rdmap::AccessRights), [0, 1, 2]),
    (Error::Rdmap(Rdmap::StagNotAssociated), [0, 1, 3]),
    (Error::Rdmap(Rdmap::ToWrap), [0, 1, 4]),
    (Error::Rdmap(Rdmap::CannotInvalidate), [0, 1, 9]),
    (Error::Rdmap(Rdmap::ProtectionUnspecified), [0, 1, 0xff]),
    (Error::Rdmap(Rdmap::InvalidVersion), [0, 2, 5]),
    (Error::Rdmap(Rdmap::UnexpectedOpcode), [0, 2, 6]),
    (Error::Rdmap(Rdmap::CatastrophicStream), [0, 2, 7]),
    (Error::Rdmap(Rdmap::UnalignedAtomic), [0, 2, 7]),
    (Error::Rdmap(Rdmap::CatastrophicGlobal), [0, 2, 8]),
    (Error::Rdmap(Rdmap::OperationCannotInvalidate), [0, 2, 9]),
    (Error::Rdmap(Rdmap::Unspecified), [0, 2, 0xff]),
    (Error::Rdmap(Rdmap::WrongResponse), [0, 2, 0xff]),
    (Error::DdpLocalCatastrophic, [1, 0, 0]),
    (Error::DdpTagged(DdpTagged::InvalidStag), [1, 1, 0]),
    (Error::DdpTagged(DdpTagged::AccessRights), [1, 1, 0]),
    (Error::DdpTagged(DdpTagged::Bounds), [1, 1, 1]),
    (Error::DdpTagged(DdpTagged::StagNotAssociated), [1, 1, 2]),
    (Error::DdpTagged(DdpTagged::ToWrap), [1, 1, 3]),
    (Error::DdpTagged(DdpTagged::InvalidVersion), [1, 1, 4]),
    (Error::DdpUntagged(DdpUntagged::InvalidQn), [1, 2, 1]),
    (Error::DdpUntagged(DdpUntagged::NoBuffer), [1, 2, 2]),
    (Error::DdpUntagged(DdpUntagged::TooManyReads), [1, 2, 2]),
    (Error::DdpUntagged(DdpUntagged::InvalidMsnRange), [1, 2, 3]),
    (Error::DdpUntagged(DdpUntagged::InvalidMo), [1, 2, 4]),
    (Error::DdpUntagged(DdpUntagged::TooLong), [1, 2, 5]),
    (Error::DdpUntagged(DdpUntagged::InvalidVersion), [1, 2, 6]),
    (Error::LlpClosed, [2, 0, 1]),
    (Error::Mpa(Mpa::Crc), [2, 0, 2]),
    (Error::Mpa(Mpa::Marker), [2, 0, 3]),
    (Error::Mpa(Mpa::Length), [2, 0, 3]),
    (Error::Mpa(Mpa::Startup), [2, 0, 4]),
    (Error::Mpa(Mpa::LocalCatastrophic), [2, 0, 5]),
    (Error::Mpa(Mpa::InsufficientIrd), [2, 0, 6]),
    (Error::Mpa(Mpa::NoRtr), [2, 0, 7]),
    (Error::Sctp(Sctp::Length), [0, 2, 7]),
    (Error::Sctp(Sctp::Ppid), [0, 2, 7]),
    (Error::Sctp(Sctp::Function), [0, 2, 7]),
    (Error::Sctp(Sctp::PrivateData), [0, 2, 7]),
    (Error::Sctp(Sctp::Duplicate), [0, 2, 7]),
    (Error::Sctp(Sctp::TooFar), [0, 2, 7]),
    (Error::Sctp(Sctp::TooManyHeld), [0, 2, 7]),
    (Error::Sctp(Sctp::Order), [0, 2, 7]),
    (Error::Sctp(Sctp::Sequence), [0, 2, 7]),
}

#[test]
fn every_error_has_its_code() {
    for (error, [layer, etype, code]) in CODES.iter().copied() {
        let want = TermCode { layer, etype, code };
        assert_eq!(error.term(), want, "{error:?}");
    }
}

#[test]
fn every_error_names_a_rule_of_its_own() {
    check_rules(CODES.iter().map(|(error, _)| error.rule()));
}

const REQUEST: ReadRequest = ReadRequest {
    sink_stag: Stag(0x11),
    sink_to: 0x2000,
    len: 5000,
    src_stag: Stag(0x33),
    src_to: 0x4000,
};

/// Returns the ULPDU of [`REQUEST`] with this MSN.
fn request_ulpdu(msn: u32) -> Vec<u8> {
    let mut tx = segmenter(true, false, 1460);
    for _ in 1..msn {
        common::send(&mut tx, Message::ReadRequest(REQUEST), b"");
    }
    let fpdu = common::send(&mut tx, Message::ReadRequest(REQUEST), b"").concat();
    fpdu[2..48].to_vec()
}

/// Returns the body of the Terminate for `error`, found in the segment of `quote`.
fn body(error: Error, quote: Quote) -> Vec<u8> {
    let mut tx = segmenter(true, false, 1460);
    let message = Message::Terminate(Terminate::new(error, quote));
    let fpdu = common::send(&mut tx, message, b"").concat();
    let len = usize::from(u16::from_be_bytes([fpdu[0], fpdu[1]]));
    // DDP: last; RDMAP: Terminate; queue 2, MSN 1, MO 0.
    assert_eq!(fpdu[2..4], [0x41, 0x47]);
    assert_eq!(fpdu[4..8], [0; 4]);
    assert_eq!(fpdu[8..12], 2_u32.to_be_bytes());
    assert_eq!(fpdu[12..16], 1_u32.to_be_bytes());
    assert_eq!(fpdu[16..20], [0; 4]);
    fpdu[20..2 + len].to_vec()
}

#[test]
fn nothing_is_quoted_of_errors_below_ddp_and_of_local_ones() {
    let v = judge(&[request_ulpdu(1)]);
    for (error, [layer, etype, code]) in CODES.iter().copied() {
        if matches!(
            error,
            Error::Mpa(_)
                | Error::Sctp(_)
                | Error::LlpClosed
                | Error::Local(_)
                | Error::DdpLocalCatastrophic
        ) {
            assert_eq!(body(error, v.quote), [(layer << 4) | etype, code, 0, 0]);
        }
        // Without a segment there is nothing to quote.
        let bare = body(error, Quote::NONE);
        assert_eq!(bare, [(layer << 4) | etype, code, 0, 0]);
    }
}

#[test]
fn the_request_that_is_quoted_is_known_by_its_number() {
    for msn in [1, 3] {
        assert_eq!(Quote::read_request(msn, &REQUEST).request_msn(), Some(msn));
        assert_eq!(Quote::atomic_request(msn).request_msn(), Some(msn));
    }
    for other in [
        Tagged::new(0, 0x1234, 0x5678, b"payload").ulpdu(),
        Untagged::new(3, 0, 1, b"payload").ulpdu(),
    ] {
        assert_eq!(judge(&[other]).quote.request_msn(), None);
    }
    assert_eq!(Quote::NONE.request_msn(), None);
}

/// Of an Atomic Request, length and DDP header are quoted, whether it fails when it is received or
/// when it is executed (RFC 7306 §8.1).
#[test]
fn of_an_atomic_request_the_rdmap_header_is_not_quoted() {
    let ulpdu = Untagged::new(0xa, 1, 1, &[0; 52]).ulpdu();
    let received = judge(std::slice::from_ref(&ulpdu)).quote;
    let mut want = vec![0x02, 7, 0xc0, 0, 0, 70];
    want.extend_from_slice(&ulpdu[..18]);
    for quote in [received, Quote::atomic_request(1)] {
        assert_eq!(body(Rdmap::UnalignedAtomic.into(), quote), want);
    }
}

#[test]
fn ddp_errors_quote_length_and_ddp_header() {
    let tagged = Tagged::new(0, 0x1234, 0x5678, b"payload").ulpdu();
    let quote = judge(std::slice::from_ref(&tagged)).quote;
    let got = body(DdpTagged::Bounds.into(), quote);
    let mut want = vec![0x11, 1, 0xc0, 0, 0, 21];
    want.extend_from_slice(&tagged[..14]);
    assert_eq!(got, want);

    let untagged = Untagged::new(3, 0, 1, b"payload").ulpdu();
    let quote = judge(std::slice::from_ref(&untagged)).quote;
    let got = body(DdpUntagged::NoBuffer.into(), quote);
    let mut want = vec![0x12, 2, 0xc0, 0, 0, 25];
    want.extend_from_slice(&untagged[..18]);
    assert_eq!(got, want);

    // The same for a Read Request.
    let quote = judge(&[request_ulpdu(1)]).quote;
    let got = body(DdpUntagged::InvalidMsnRange.into(), quote);
    assert_eq!(got.len(), 4 + 2 + 18);
    assert_eq!(got[2], 0xc0);
}

#[test]
fn rdmap_errors_of_a_read_request_quote_its_header() {
    let ulpdu = request_ulpdu(1);
    let quote = judge(std::slice::from_ref(&ulpdu)).quote;
    for error in [Rdmap::AccessRights, Rdmap::CatastrophicStream] {
        let got = body(error.into(), quote);
        let TermCode { layer, etype, code } = Error::Rdmap(error).term();
        let mut want = vec![(layer << 4) | etype, code, 0xe0, 0, 0, 46];
        want.extend_from_slice(&ulpdu);
        assert_eq!(got, want);
    }
}

#[test]
fn rdmap_errors_of_other_messages_quote_the_ddp_header() {
    let ulpdu = Untagged::new(4, 0, 1, b"payload").ulpdu();
    let quote = judge(std::slice::from_ref(&ulpdu)).quote;
    let got = body(Denied::InvalidStag.invalidate(), quote);
    let mut want = vec![0x01, 9, 0xc0, 0, 0, 25];
    want.extend_from_slice(&ulpdu[..18]);
    assert_eq!(got, want);
}

#[test]
fn what_the_receiver_quotes() {
    // No quote before an FPDU is complete.
    let rx = receiver(true, false);
    assert_eq!(rx.quote(), Quote::NONE);
    let stream = frame(&request_ulpdu(1));
    let mut rx = receiver(true, false);
    let mut got = Recorder::default();
    for (i, byte) in stream.iter().enumerate() {
        rx.consume(&[*byte], &mut got).unwrap();
        let quote = rx.quote();
        assert_eq!(quote == Quote::NONE, i < stream.len() - 1, "{i}");
    }
    let quote = rx.quote();
    assert_eq!(quote.request(), Some(REQUEST));
    assert_eq!(quote.rdmap().map(<[u8]>::len), Some(28));
    assert!(matches!(quote.header(), Some(Header::Untagged(h)) if h.msn.get() == 1));
    // The embedder can build the same quote.
    assert_eq!(quote, Quote::read_request(1, &REQUEST));
}

#[test]
fn a_read_request_of_the_wrong_length_is_not_quoted_as_one() {
    let mut ulpdu = request_ulpdu(1);
    ulpdu.push(0);
    let v = judge(&[ulpdu]);
    assert_eq!(v.error, Some(DdpUntagged::TooLong.into()));
    assert_eq!(v.quote.segment_len(), Some(47));
    assert_eq!(v.quote.request(), None);
}

#[test]
fn a_late_error_quotes_what_is_left_of_the_read() {
    let left = REQUEST.advanced(2048);
    let quote = Quote::read_request(7, &left);
    let got = body(Denied::InvalidStag.read_source(), quote);
    let mut ulpdu = request_ulpdu(7);
    ulpdu[18 + 4..18 + 12].copy_from_slice(&(0x2000_u64 + 2048).to_be_bytes());
    ulpdu[18 + 12..18 + 16].copy_from_slice(&(5000_u32 - 2048).to_be_bytes());
    ulpdu[18 + 20..18 + 28].copy_from_slice(&(0x4000_u64 + 2048).to_be_bytes());
    let mut want = vec![0x01, 0, 0xe0, 0, 0, 46];
    want.extend_from_slice(&ulpdu);
    assert_eq!(got, want);
    // `advanced` stops at the end of the request.
    let end = REQUEST.advanced(u32::MAX);
    assert_eq!((end.len, end.src_to), (0, 0x4000 + 5000));
}

/// Parses a Terminate with this body.
fn parse(body: &[u8]) -> Terminated {
    let v = judge(&[Untagged::new(7, 2, 1, body).ulpdu()]);
    assert_eq!(v.error, None);
    match v.events[..] {
        [Event::Terminated(t)] => t,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_terminate_goes_round() {
    let tagged = judge(&[Tagged::new(0, 1, 2, b"payload").ulpdu()]).quote;
    let untagged = judge(&[Untagged::new(3, 0, 1, b"payload").ulpdu()]).quote;
    let read = Quote::read_request(1, &REQUEST);
    for (error, _) in CODES {
        for quote in [Quote::NONE, tagged, untagged, read] {
            let sent = Terminate::new(*error, quote);
            assert_eq!(parse(&body(*error, quote)), sent);
            assert_eq!(sent.code, error.term());
        }
    }
}

#[test]
fn a_terminate_must_have_its_code() {
    for len in 0..4 {
        let ulpdu = Untagged::new(7, 2, 1, &[0; 4][..len]).ulpdu();
        assert_eq!(error_of(&[ulpdu]), Rdmap::CatastrophicStream.into());
    }
}

#[test]
fn what_a_terminate_announces_and_lacks_is_not_quoted() {
    let whole = body(
        Denied::Rights.read_source(),
        Quote::read_request(1, &REQUEST),
    );
    for len in 4..whole.len() {
        let t = parse(&whole[..len]);
        assert_eq!(t.code, Denied::Rights.read_source().term());
        assert_eq!(t.quote.segment_len().is_some(), len >= 6);
        assert_eq!(t.quote.header().is_some(), len >= 24);
        assert_eq!(t.quote.ddp().len(), if len >= 24 { 18 } else { 0 });
        assert_eq!(t.quote.request(), None);
    }
    assert_eq!(parse(&whole).quote.request(), Some(REQUEST));
    // Octets behind the longest header are ignored.
    let mut long = whole.clone();
    long.resize(1000, 0xff);
    assert_eq!(parse(&long), parse(&whole));
}

#[test]
fn the_header_control_bits_say_what_is_there() {
    let mut rest = vec![0, 46];
    rest.extend_from_slice(&request_ulpdu(1));
    let with = |bits: u8, rest: &[u8]| {
        let mut body = vec![0x01, 2, bits, 0];
        body.extend_from_slice(rest);
        parse(&body).quote
    };
    // Nothing announced: all octets are ignored.
    assert_eq!(with(0, &rest), Quote::NONE);
    // Only the length.
    let quote = with(0x80, &rest);
    assert_eq!((quote.segment_len(), quote.ddp()), (Some(46), &[][..]));
    // The DDP header follows the length field even if the length is not valid.
    let quote = with(0x40, &rest);
    assert_eq!(quote.segment_len(), None);
    assert_eq!(quote.ddp(), &request_ulpdu(1)[..18]);
    // Without both, the RDMAP header follows directly.
    let quote = with(0x20, &request_ulpdu(1)[18..]);
    assert_eq!(quote.request(), Some(REQUEST));
    // Reserved bits are ignored.
    assert_eq!(with(0xff, &rest), with(0xe0, &rest));
}

#[test]
fn a_terminate_is_taken_whatever_its_number_and_in_the_middle_of_a_message() {
    let mut odd = Untagged::new(7, 2, 77, &[0x12, 1, 0, 0]);
    odd.control = 0x01;
    odd.mo = 3;
    let v = judge(&[
        Untagged::new(3, 0, 1, b"abc").more(0).ulpdu(),
        Tagged::new(2, 1, 2, b"abc").more().ulpdu(),
        odd.ulpdu(),
    ]);
    assert_eq!(v.error, None);
    assert!(matches!(v.events.last(), Some(Event::Terminated(t))
        if t.code == Error::DdpUntagged(DdpUntagged::InvalidQn).term()));
}

#[test]
fn the_quoted_header_can_be_looked_into() {
    let quote = judge(&[Tagged::new(2, 5, 0x77, b"abc").more().ulpdu()]).quote;
    let header = quote.header().unwrap();
    assert_eq!((header.control(), header.rdmap()), (0x81, 0x42));
    assert_eq!((header.last(), header.octets()), (false, 14));
    assert!(matches!(header, Header::Tagged(h) if h.stag.get() == 5 && h.to.get() == 0x77));

    let header = Quote::read_request(9, &REQUEST).header().unwrap();
    assert_eq!((header.control(), header.rdmap()), (0x41, 0x41));
    assert_eq!((header.last(), header.octets()), (true, 18));
    assert!(matches!(header, Header::Untagged(h) if h.msn.get() == 9 && h.qn.get() == 1));

    for short in [&[][..], &[0x41; 17], &[0xc1; 13]] {
        assert_eq!(Header::parse(short), None);
    }
}
