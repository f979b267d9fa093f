# SPDX-License-Identifier: GPL-2.0
"""The contenders, and their modules."""
import os
import pathlib
import subprocess
import sys

import uml

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
LAB = REPO / "selftests" / "lab"


def call(*command, **environment):
    """Runs a script of the lab, which reports its progress on stderr. Exits if it fails."""
    if subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                      stdout=subprocess.DEVNULL).returncode:
        sys.exit(f"riw bench: {pathlib.Path(command[0]).name} failed")


def module(kernel, out, source="."):
    """Builds riw.ko of a source tree for a kernel of the lab, in build/OUT. Returns its path in the
    machine."""
    call(LAB / "module", RIW_KERNEL=kernel, RIW_SOURCE=str(source), OUT=f"build/{out}")
    return f"/riw/build/{out}/riw.ko"


def siw_with_crcs(kernel):
    """Builds siw.ko with CRCs on for a kernel of the lab. Returns its path in the machine."""
    out = f"build/bench-{kernel}"
    (REPO / out).mkdir(parents=True, exist_ok=True)
    if kernel == "stock":
        call(LAB / "chroot", "selftests/bench/siw-with-crcs", "/lab/kdir", out, "CC=gcc-14")
    else:
        call(LAB / "chroot", "selftests/bench/siw-with-crcs", f"/lab/{uml.kernel(kernel).name}", out, "ARCH=um",
             RIW_OUT=str(uml.FOLDER))
    return f"/riw/{out}/siw.ko"


def checked_out(revision):
    """Extracts the source tree of a revision below build/. Returns its folder."""
    folder = REPO / "build" / "bench-base" / "source"
    # Also remove the module of the previous revision: all files of a revision have the time of its
    # commit, so make may take an older revision for unchanged.
    subprocess.run(["rm", "-rf", folder.parent], check=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", REPO, "archive", revision],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if archive.returncode:
        sys.exit(f"riw bench: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder.relative_to(REPO)


def environments(kernel, base):
    """Builds all modules and programs. Returns {contender: environment of its measurements}."""
    call(LAB / "programs")
    result = {"riw": {"RIW_DRIVER": "riw", "RIW_KO": module(kernel, f"bench-{kernel}")},
              "siw": {"RIW_DRIVER": "siw", "SIW_CRC_KO": siw_with_crcs(kernel)}, "tcp": {}}
    if base:
        ko = module(kernel, "bench-base/module", checked_out(base))
        result[f"riw@{base}"] = {"RIW_DRIVER": "riw", "RIW_KO": ko}
    return result
