# SPDX-License-Identifier: GPL-2.0
"""
The code of riw.ko, for checks of what the compiler has made of it.
"""
import os
import pathlib
import subprocess

LAB = pathlib.Path(__file__).resolve().parent


def build(kernel):
    """Builds the module for a kernel if it is stale. Returns its path in the repository."""
    environment = {name: value for name, value in os.environ.items() if name not in ("RIW_SOURCE", "OUT")}
    subprocess.run([LAB / "module"], check=True, env=environment | {"RIW_KERNEL": kernel},
                   stdout=subprocess.DEVNULL)
    return ("build/stock" if kernel == "stock" else f"build/uml-{kernel}") + "/riw.ko"


def inspect(*command):
    """Returns the output of a program of the Debian root. Paths are relative to the repository."""
    return subprocess.run([LAB / "chroot", *command], check=True, stdout=subprocess.PIPE, text=True).stdout
