# SPDX-License-Identifier: GPL-2.0
"""Earlier revisions of riw, which the script `versions` of the lab has built for cases with `needs=versions`."""

import os
from contextlib import contextmanager
from pathlib import Path

import lab
from utils import cmd

FOLDER = Path(lab.MODULE).parent / "versions"

NAMES = [line.split()[0]
         for line in Path(os.environ["RIW_SRC"], "selftests/lab/revisions").read_text("utf-8").splitlines()
         if line and line[0] != "#"]
"""The revisions in selftests/lab/revisions."""


def module(name):
    """Returns the riw.ko of a revision."""
    return FOLDER / name / "riw.ko"


def libriw(name):
    """Returns libriw of a revision, as libibverbs wants it in IBV_DRIVERS: without the number of its interface."""
    return FOLDER / name / "libriw"


@contextmanager
def loaded(path, *parameters, host=None):
    """Loads this riw.ko during the block, for devices with riw's own user ABI, here or at another node."""
    cmd(["insmod", path, "provider=riw", *parameters], host=host)
    try:
        yield
    finally:
        lab.unload(host)


@contextmanager
def using(path):
    """Has the programs that the block starts here use this libriw."""
    before = os.environ["IBV_DRIVERS"]
    os.environ["IBV_DRIVERS"] = str(path)
    try:
        yield
    finally:
        os.environ["IBV_DRIVERS"] = before
