# SPDX-License-Identifier: GPL-2.0
"""Kernel modules that a case needs in this machine, besides that of the device."""

from contextlib import ExitStack, contextmanager
from pathlib import Path

import lab
from ksft import KsftFailEx
from utils import cmd, wait_until


@contextmanager
def loaded(*names):
    """Loads modules, in this order. A name may have parameters: "ib_srp never_register=1". Unloads
    them at the end, in reverse order. On User-Mode Linux they are built in."""
    with ExitStack() as stack:
        if lab.UML:
            names = ()
        for name, *parameters in map(str.split, names):
            stack.callback(unload, name)
            cmd(["modprobe", name, *parameters], timeout=60)
        yield


def present(*names):
    """Returns those of the modules that are loaded."""
    return [name for name in names if Path(f"/sys/module/{name}").exists()]


def unload(name):
    """Unloads a module, and those that only it has used. It has to become unused within a moment."""
    def unloaded():
        nonlocal last
        last = cmd(["modprobe", "--remove", name], fail=False, timeout=60)
        return not last.ret

    last = None
    if present(name):
        try:
            wait_until(unloaded, 30, f"{name} can be unloaded", interval=0.5)
        except KsftFailEx as reason:
            raise KsftFailEx(f"{reason}\n{last.stderr}") from None
