# SPDX-License-Identifier: GPL-2.0
"""fio's engine "rdma" between two nodes. fio cannot verify its messages. So the buffers of both ends are
files, which are compared: each block is written to, read from, or sent to a block of the other end."""

import os
from pathlib import Path

import lab
from ksft import ksft_eq, ksft_in, ksft_ne, ksft_true
from utils import bkg

SPARE = 64 << 10
"""Bytes beyond the blocks, for fio's alignment."""


class Buffers:
    """A file that holds the buffers of a job, one for each block in flight."""

    def __init__(self, name, block, depth):
        self._block, self._length = block, block * depth
        self._path = Path(name).absolute()
        self._path.write_bytes(os.urandom(self._length) + bytes(SPARE))
        self.option = f"--mem=mmapshared:{self._path}"

    def blocks(self):
        content = self._path.read_bytes()
        return [content[start:start + self._block] for start in range(0, self._length, self._block)]


def run(verb, server, client, block, depth, total):
    """Runs a job of `total` bytes: "write", "read" or "send", blocks of a size, so many in flight."""
    port = lab.new_port()
    at_server, at_client = Buffers("server", block, depth), Buffers("client", block, depth)
    before = at_server.blocks()
    common = ["--ioengine=rdma", f"--port={port}", f"--bs={block}", f"--iodepth={depth}",
              f"--size={total}"]
    # In this engine, the one that reads is the server, whatever the verb.
    with bkg(["fio", "--name=server", *common, "--rw=read", at_server.option],
             host=server) as serving:
        lab.wait_port_listen(port, host=server, server=serving)
        # The client fills its buffers once, at its start.
        with bkg(["fio", "--name=client", *common, "--rw=write", f"--verb={verb}",
                  f"--hostname={server.addr}", "--scramble_buffers=0", at_client.option],
                 host=client) as asking:
            ksft_in("err= 0", asking.succeed(60))
        ksft_in("err= 0", serving.succeed(20))
    after = at_server.blocks()
    if verb != "read":
        written = {number for number in range(depth) if after[number] != before[number]}
        # Sends go to the receives in turn, RDMA Writes to random blocks.
        if verb == "send":
            ksft_eq(written, set(range(depth)), "blocks that have been received")
        ksft_ne(written, set(), "blocks written")
        come_from(at_client.blocks(), {number: after[number] for number in written}, "server")
    else:
        ksft_true(after == before, "a Read has changed the server's buffers")
        come_from(before, dict(enumerate(at_client.blocks())), "client")


def come_from(sent, received, where):
    """Checks that each block that was received is one of those that were sent."""
    known = set(sent)
    ksft_eq([number for number, block in received.items() if block not in known], [],
            f"wrong blocks at the {where}")
