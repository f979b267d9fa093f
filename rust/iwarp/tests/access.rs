// SPDX-License-Identifier: GPL-2.0

//! Access checks, and the checks of Read Responses.

use iwarp::*;

const STAG: Stag = Stag(0x0012_3456);

const REGION: Region = Region {
    stag: STAG,
    pd: 7,
    base: 0x1000,
    len: 0x2000,
    access: Access::REMOTE_READ,
    valid: true,
};

fn check(region: &Region, addr: u64, len: u32) -> Result<u64, Denied> {
    region.check(STAG, 7, Access::REMOTE_READ, addr, len)
}

#[test]
fn stags_have_an_index_and_a_key() {
    assert_eq!(STAG.index(), 0x1234);
    assert_eq!(STAG.key(), 0x56);
}

#[test]
fn rights_are_those_of_the_verbs() {
    assert_eq!(Access::LOCAL_WRITE.bits(), 1);
    assert_eq!(Access::REMOTE_WRITE.bits(), 2);
    assert_eq!(Access::REMOTE_READ.bits(), 4);
    assert_eq!(Access::REMOTE_ATOMIC.bits(), 8);
    assert_eq!(Access::NONE, Access::default());
    // IB_ACCESS_MW_BIND and the optional flags are no rights here.
    assert_eq!(Access::from_bits(0xffff_fff0), Access::NONE);
    let both = Access::REMOTE_READ.union(Access::LOCAL_WRITE);
    assert_eq!(both.bits(), 5);
    assert_eq!(both.union(both), both);
    assert!(both.contains(Access::REMOTE_READ) && both.contains(Access::NONE));
    assert!(!both.contains(Access::REMOTE_WRITE));
    assert!(!both.contains(Access::REMOTE_READ.union(Access::REMOTE_WRITE)));
}

#[test]
fn within_bounds() {
    assert_eq!(check(&REGION, 0x1000, 1), Ok(0));
    assert_eq!(check(&REGION, 0x1000, 0x2000), Ok(0));
    assert_eq!(check(&REGION, 0x2fff, 1), Ok(0x1fff));
}

#[test]
fn out_of_bounds_by_one() {
    assert_eq!(check(&REGION, 0xfff, 1), Err(Denied::Bounds));
    assert_eq!(check(&REGION, 0xfff, 2), Err(Denied::Bounds));
    assert_eq!(check(&REGION, 0x1000, 0x2001), Err(Denied::Bounds));
    assert_eq!(check(&REGION, 0x2fff, 2), Err(Denied::Bounds));
    assert_eq!(check(&REGION, 0x3000, 1), Err(Denied::Bounds));
    assert_eq!(check(&REGION, 0, u32::MAX), Err(Denied::Bounds));
    assert_eq!(check(&REGION, u64::MAX - 1, 1), Err(Denied::Bounds));
}

#[test]
fn wrapping() {
    assert_eq!(check(&REGION, u64::MAX, 1), Err(Denied::Wrap));
    assert_eq!(check(&REGION, u64::MAX - 10, 100), Err(Denied::Wrap));
    // A region up to the last address but one, and one whose length is too large.
    let top = Region {
        base: u64::MAX - 100,
        len: 100,
        ..REGION
    };
    assert_eq!(check(&top, u64::MAX - 1, 1), Ok(99));
    assert_eq!(check(&top, u64::MAX, 1), Err(Denied::Wrap));
    let beyond = Region {
        len: u64::MAX,
        ..top
    };
    assert_eq!(check(&beyond, u64::MAX - 1, 1), Ok(99));
    assert_eq!(check(&beyond, u64::MAX, 1), Err(Denied::Wrap));
}

#[test]
fn stag_pd_and_rights() {
    let read = Access::REMOTE_READ;
    for stag in [0, 0x12_3457, 0x13_3456, u32::MAX] {
        let got = REGION.check(Stag(stag), 7, read, 0x1000, 1);
        assert_eq!(got, Err(Denied::InvalidStag));
    }
    let gone = Region {
        valid: false,
        ..REGION
    };
    assert_eq!(check(&gone, 0x1000, 1), Err(Denied::InvalidStag));
    assert_eq!(
        REGION.check(STAG, 8, read, 0x1000, 1),
        Err(Denied::PdMismatch)
    );
    for want in [
        Access::REMOTE_WRITE,
        Access::LOCAL_WRITE,
        Access::REMOTE_ATOMIC,
    ] {
        let got = REGION.check(STAG, 7, want, 0x1000, 1);
        assert_eq!(got, Err(Denied::Rights));
        let got = REGION.check(STAG, 7, read.union(want), 0x1000, 1);
        assert_eq!(got, Err(Denied::Rights));
    }
    // Local reads need no rights.
    assert_eq!(REGION.check(STAG, 7, Access::NONE, 0x1000, 1), Ok(0));
}

#[test]
fn of_a_zero_length_access_nothing_is_checked() {
    let gone = Region {
        valid: false,
        ..REGION
    };
    let got = gone.check(Stag(1), 99, Access::REMOTE_WRITE, u64::MAX, 0);
    assert_eq!(got, Ok(0));
}

#[test]
fn denials_as_errors() {
    let all = [
        Denied::InvalidStag,
        Denied::PdMismatch,
        Denied::Rights,
        Denied::Bounds,
        Denied::Wrap,
    ];
    let codes = |f: fn(Denied) -> Error| {
        all.map(|d| {
            let t = f(d).term();
            (t.layer, t.etype, t.code)
        })
    };
    assert_eq!(
        codes(Denied::tagged),
        [(1, 1, 0), (1, 1, 2), (1, 1, 0), (1, 1, 1), (1, 1, 3)]
    );
    assert_eq!(
        codes(Denied::read_source),
        [(0, 1, 0), (0, 1, 3), (0, 1, 2), (0, 1, 1), (0, 1, 4)]
    );
    assert_eq!(codes(Denied::invalidate), [(0, 1, 9); 5]);
    assert_eq!(codes(Denied::local), [(0, 0, 0); 5]);
    // The same on the wire, but not for an operator.
    assert_ne!(Denied::Rights.tagged(), Denied::InvalidStag.tagged());
}

#[test]
fn a_read_response_in_one_segment() {
    let mut read = Outstanding::new(STAG, 0x1000, 10);
    assert_eq!(read.accept(STAG, 0x1000, 10, true), Ok(true));
    assert_eq!(read.done(), 10);
}

#[test]
fn a_read_response_in_several_segments() {
    let mut read = Outstanding::new(STAG, u64::MAX - 4, 10);
    assert_eq!(read.accept(STAG, u64::MAX - 4, 7, false), Ok(false));
    // The offset wraps as in the request.
    assert_eq!(read.accept(STAG, 2, 2, false), Ok(false));
    assert_eq!(read.accept(STAG, 4, 1, true), Ok(true));
}

#[test]
fn a_read_response_must_be_the_one_asked_for() {
    let fresh = Outstanding::new(STAG, 0x1000, 10);
    let mut begun = fresh;
    begun.accept(STAG, 0x1000, 4, false).unwrap();
    let refused = |read: Outstanding, stag, to, len, last, error: Error| {
        let mut after = read;
        assert_eq!(after.accept(stag, to, len, last), Err(error));
        assert_eq!(after, read, "a refusal changes nothing");
    };
    let bounds: Error = DdpTagged::Bounds.into();
    refused(
        fresh,
        Stag(1),
        0x1000,
        10,
        true,
        DdpTagged::InvalidStag.into(),
    );
    refused(
        begun,
        Stag(1),
        0x1004,
        6,
        true,
        DdpTagged::InvalidStag.into(),
    );
    refused(fresh, STAG, 0xfff, 10, true, bounds);
    refused(fresh, STAG, 0x1001, 9, true, bounds);
    refused(begun, STAG, 0x1000, 6, true, bounds);
    refused(begun, STAG, 0x1005, 5, true, bounds);
    // Longer than requested, by one octet and by the maximum.
    refused(fresh, STAG, 0x1000, 11, true, bounds);
    refused(fresh, STAG, 0x1000, 11, false, bounds);
    refused(begun, STAG, 0x1004, 7, true, bounds);
    refused(begun, STAG, 0x1004, u32::MAX, false, bounds);
    // Shorter.
    let short: Error = Rdmap::CatastrophicStream.into();
    refused(fresh, STAG, 0x1000, 9, true, short);
    refused(begun, STAG, 0x1004, 5, true, short);
    refused(fresh, STAG, 0x1000, 0, true, short);
}

#[test]
fn an_empty_read_response() {
    let mut read = Outstanding::new(STAG, 0x1000, 0);
    assert_eq!(
        read.accept(STAG, 0x1000, 1, true),
        Err(DdpTagged::Bounds.into())
    );
    // STag and offset are not checked.
    assert_eq!(read.accept(Stag(99), 5, 0, true), Ok(true));
}
