# SPDX-License-Identifier: GPL-2.0
"""What a message costs a driver, in instructions of both ends, on a machine whose clock counts them.

Run as a program with numbers of `KINDS`, it measures these with the module of `RIW_DRIVER`, and writes a JSON list."""

import json
import sys

import lab
from utils import cmd

# Operation, bytes, messages that are posted before they are awaited; and the messages of a measurement. One at a time,
# few suffice: four measurements of 256 or of 1600 differ by less than 0.3 %. Those of a stream become cheaper until some
# thousands show what it is.
KINDS = {("send", 64, 1): 1600, ("write", 64, 1): 1600, ("read", 64, 1): 1600,
         ("send", 64, 64): 6400, ("write", 64, 64): 6400, ("read", 64, 64): 6400,
         ("send", 65536, 1): 256, ("write", 65536, 1): 256, ("read", 65536, 1): 256}


def name(kind):
    """Returns the name of a kind of message."""
    operation, size, batch = kind
    return f"{operation} of {size} bytes, {batch} at a time"


def measured(driver, kinds=KINDS):
    """Returns the instructions for each of these kinds, measured with the module of a driver."""
    numbers = [list(KINDS).index(kind) for kind in kinds]
    done = cmd(["env", f"RIW_DRIVER={driver}", sys.executable, "-m", "message_cost", *numbers])
    return dict(zip(kinds, json.loads(done.stdout)))


def measure(kinds):
    """Returns a list of the instructions for each of these kinds. CRCs are off, as they are with siw."""
    costs = []
    cmd(["insmod", lab.MODULE])
    try:
        with lab.dummy() as node:
            if lab.DRIVER == "riw":
                lab.setting(node.dev, "crc", 0)
            for operation, size, batch in kinds:
                count = KINDS[operation, size, batch]
                done = cmd(["message_cost", operation, size, batch, count, node.addr, node.addr])
                costs.append(float(done.stdout))
    finally:
        lab.unload()
    return costs


if __name__ == "__main__":
    print(json.dumps(measure([list(KINDS)[int(number)] for number in sys.argv[1:]])))
