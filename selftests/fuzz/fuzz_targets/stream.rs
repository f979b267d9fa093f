// SPDX-License-Identifier: GPL-2.0
#![no_main]

//! Any octets behind the startup, with and without CRC and markers, in any split.
//! Input: settings, the split, the stream.

use iwarp::RxConfig;
use iwarp_fuzz::{judge, Input, Split};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let settings = input.octet();
    let split = Split(input.array());
    let config = RxConfig {
        crc: settings & 1 != 0,
        markers: settings & 2 != 0,
    };
    judge(config, input.0, split).embedder.close();
});
