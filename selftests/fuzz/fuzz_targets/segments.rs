// SPDX-License-Identifier: GPL-2.0
#![no_main]

//! DDP segments in correctly framed FPDUs: length, markers, pad and CRC. Header fields are partly
//! the fuzzer's choice and partly what the receiver expects, so that the rules behind the first
//! check are reached.
//! Input: settings, the split, then one segment after the other as `segment` reads them.

use iwarp::wire::rdmap as wire;
use iwarp::{Crc, RxConfig};
use iwarp_fuzz::{judge, Input, Soft, Split};
use libfuzzer_sys::fuzz_target;

/// The state that the receiver expects of the next segments.
#[derive(Default)]
struct Peer {
    /// Messages sent on queues 0 to 3.
    sent: [u32; 4],
    /// Offset in the current Send.
    mo: u32,
    /// Octets of read responses sent.
    answered: u64,
}

/// Reads one segment. Two octets select the opcode, the last flag, and the fields that are correct
/// or chosen by the fuzzer; the payload follows.
fn segment(input: &mut Input<'_>, peer: &mut Peer, out: &mut Vec<u8>) {
    let (what, wrong) = (input.octet(), input.octet());
    let (opcode, last) = (what & 0xf, what & 0x10 != 0);
    let solo = !matches!(opcode, 0 | 2..=6);
    let last = last || solo && wrong & 1 == 0;
    let tagged = matches!(opcode, wire::OP_WRITE | wire::OP_READ_RESPONSE) != (wrong & 2 != 0);
    let chosen = |bit: u8, right: u64, input: &mut Input<'_>| {
        if wrong & bit == 0 {
            right
        } else {
            u64::from_be_bytes(input.array())
        }
    };
    let len = match opcode {
        _ if wrong & 4 != 0 => usize::from(input.word() & 0x7ff),
        wire::OP_READ_REQUEST => wire::READ_REQUEST_LEN,
        wire::OP_ATOMIC_REQUEST => wire::ATOMIC_REQUEST_LEN,
        wire::OP_ATOMIC_RESPONSE => wire::ATOMIC_RESPONSE_LEN,
        wire::OP_IMMEDIATE | wire::OP_IMMEDIATE_SE => wire::IMMEDIATE_LEN,
        wire::OP_READ_RESPONSE if last => 16 - (peer.answered % 16) as usize,
        wire::OP_READ_RESPONSE => (usize::from(what >> 5)).min(15 - (peer.answered % 16) as usize),
        _ => usize::from(what >> 5) * 5,
    };
    let version = if wrong & 8 == 0 {
        1
    } else {
        input.octet() & 0x3f
    };
    let rdmap = if wrong & 16 == 0 {
        0x40
    } else {
        input.octet() & 0xf0
    };
    out.push(u8::from(tagged) << 7 | u8::from(last) << 6 | version);
    out.push(rdmap | opcode);
    if tagged {
        let (stag, to) = match opcode {
            wire::OP_READ_RESPONSE => (0x202, peer.answered),
            _ => (0x101, 0x1000),
        };
        out.extend_from_slice(&(chosen(32, stag, input) as u32).to_be_bytes());
        out.extend_from_slice(&chosen(64, to, input).to_be_bytes());
        if opcode == wire::OP_READ_RESPONSE {
            peer.answered += len as u64;
        }
    } else {
        let queue = match opcode {
            wire::OP_READ_REQUEST | wire::OP_ATOMIC_REQUEST => 1,
            wire::OP_TERMINATE => 2,
            wire::OP_ATOMIC_RESPONSE => 3,
            _ => 0,
        };
        let sent = &mut peer.sent[queue];
        let qn = chosen(128, queue as u64, input) as u32;
        let msn = chosen(32, u64::from(*sent) + 1, input) as u32;
        let mo = chosen(64, if queue == 0 { peer.mo.into() } else { 0 }, input) as u32;
        for word in [input_stag(opcode, input), qn, msn, mo] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        if last {
            *sent += 1;
        }
        if queue == 0 {
            peer.mo = if last {
                0
            } else {
                peer.mo.wrapping_add(len as u32)
            };
        }
    }
    let payload = input.take(len);
    out.extend_from_slice(payload);
    // With little input, a Read Request or Atomic Request targets valid memory.
    let rest = [
        0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 16,
    ];
    out.extend((payload.len()..len).map(|i| rest.get(i).copied().unwrap_or(0)));
}

/// Returns the STag to invalidate.
fn input_stag(opcode: u8, input: &mut Input<'_>) -> u32 {
    match opcode {
        wire::OP_SEND_INV | wire::OP_SEND_SE_INV => input.octet().into(),
        _ => 0,
    }
}

/// A stream of FPDUs, markers included.
struct Stream {
    config: RxConfig,
    octets: Vec<u8>,
    /// Start of the current FPDU, behind its leading marker, once it has begun.
    start: Option<usize>,
    crc: Crc,
}

impl Stream {
    /// Writes a marker if one is due.
    fn marker(&mut self) {
        if self.config.markers && self.octets.len() % 512 == 0 {
            let pointer = self.start.map_or(0, |start| self.octets.len() - start);
            let [high, low] = (pointer as u16).to_be_bytes();
            self.raw(&[0, 0, high, low]);
        }
    }

    /// Writes octets of the FPDU and the markers between them.
    fn push(&mut self, octets: &[u8]) {
        let mut rest = octets;
        while !rest.is_empty() {
            self.marker();
            self.start.get_or_insert(self.octets.len());
            let room = 512 - self.octets.len() % 512;
            let (part, after) = rest.split_at(room.min(rest.len()));
            self.raw(part);
            rest = after;
        }
    }

    fn raw(&mut self, octets: &[u8]) {
        self.crc = self.crc.update::<Soft>(octets);
        self.octets.extend_from_slice(octets);
    }

    /// Writes an FPDU. A `damage` other than 0 flips one bit of its CRC.
    fn fpdu(&mut self, ulpdu: &[u8], damage: u8) {
        self.start = None;
        self.crc = Crc::new();
        self.push(&(ulpdu.len() as u16).to_be_bytes());
        self.push(ulpdu);
        self.push(&[0; 3][..(6 - (ulpdu.len() & 3)) & 3]);
        // A marker in front of the CRC is covered by it, so write the marker first.
        self.marker();
        let mut field = self.crc.wire();
        if damage != 0 {
            field[0] ^= damage;
        }
        self.octets.extend_from_slice(&field);
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let settings = input.octet();
    let split = Split(input.array());
    let config = RxConfig {
        crc: settings & 1 != 0,
        markers: settings & 2 != 0,
    };
    let damaged = settings >> 4;
    let mut peer = Peer::default();
    let mut stream = Stream {
        config,
        octets: Vec::with_capacity(2048),
        start: None,
        crc: Crc::new(),
    };
    let mut ulpdu = Vec::with_capacity(256);
    let mut count: u8 = 0;
    while !input.is_empty() && stream.octets.len() < 8192 {
        ulpdu.clear();
        segment(&mut input, &mut peer, &mut ulpdu);
        count = count.saturating_add(1);
        let damage = if settings & 4 != 0 && count == damaged + 1 {
            1
        } else {
            0
        };
        stream.fpdu(&ulpdu, damage);
    }
    let mut verdict = judge(config, &stream.octets, split);
    verdict.embedder.close();
    // The framing is correct, so an MPA error is only allowed for a length too short for any header
    // or a damaged CRC.
    match verdict.error {
        Some(iwarp::Error::Mpa(iwarp::Mpa::Crc)) => assert!(config.crc && settings & 4 != 0),
        Some(iwarp::Error::Mpa(error)) => panic!("{error:?}"),
        _ => {}
    }
});
