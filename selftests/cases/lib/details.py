# SPDX-License-Identifier: GPL-2.0
"""The details of objects, which `rdma resource show -dd` shows. `rdma` puts `drv_` in front of the
name of each detail; functions here take the name without it."""

import lab
from ksft import KsftFailEx, ksft_eq
from utils import wait_until


def rows(kind, dev, **known):
    """Returns the objects of a type on a device that have these attributes."""
    return [row for row in lab.resources(kind, dev, "-dd") if known.items() <= row.items()]


def missing(what):
    """Returns the exception for something that is not listed."""
    return KsftFailEx(f"not found: {what}")


def one(kind, dev, **known):
    """Returns the only object of a type on a device that has these attributes."""
    found = rows(kind, dev, **known)
    if len(found) != 1:
        raise missing(f"one {kind} of {dev} with {known} in {found}")
    return found[0]


def of(row):
    """Returns the details of an object."""
    return {name.removeprefix("drv_"): value for name, value in row.items()
            if name.startswith("drv_")}


def holds(row, **wanted):
    """Checks details of an object."""
    found = of(row)
    ksft_eq({name: found.get(name) for name in wanted}, wanted, f"of {row}")


def wait(read, wanted, timeout=10):
    """Waits until the object that `read` returns has these details."""
    last = {}

    def found():
        last.update(of(read()))
        return wanted.items() <= last.items()
    try:
        wait_until(found, timeout, wanted)
    except KsftFailEx as reason:
        raise KsftFailEx(f"{reason}: it is {last}") from None
