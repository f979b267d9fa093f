# SPDX-License-Identifier: GPL-2.0
"""What a message costs a driver, in instructions of both ends, on a machine whose clock counts them.

Run as a program, it measures each of `KINDS` with the module of `RIW_DRIVER`, and writes a JSON list."""

import json
import sys

import lab
from utils import cmd

# Operation, bytes, messages that are posted before they are awaited.
KINDS = (("send", 64, 1), ("write", 64, 1), ("read", 64, 1),
         ("send", 64, 64), ("write", 64, 64), ("read", 64, 64),
         ("send", 65536, 1), ("write", 65536, 1), ("read", 65536, 1))
# The bytes of a measurement, at most, and its messages.
BYTES, MESSAGES = 64 << 20, 6400


def name(kind):
    """Returns the name of a kind of message."""
    operation, size, batch = kind
    return f"{operation} of {size} bytes, {batch} at a time"


def measured(driver):
    """Returns the instructions for each kind, measured with the module of a driver."""
    done = cmd(["env", f"RIW_DRIVER={driver}", sys.executable, "-m", "message_cost"])
    return dict(zip(KINDS, json.loads(done.stdout)))


def measure():
    """Returns a list of the instructions for each kind. CRCs are off, as they are with siw."""
    costs = []
    cmd(["insmod", lab.MODULE])
    try:
        with lab.dummy() as node:
            if lab.DRIVER == "riw":
                lab.setting(node.dev, "crc", 0)
            for operation, size, batch in KINDS:
                count = min(MESSAGES, BYTES // size)
                done = cmd(["message_cost", operation, size, batch, count, node.addr, node.addr])
                costs.append(float(done.stdout))
    finally:
        lab.unload()
    return costs


if __name__ == "__main__":
    print(json.dumps(measure()))
