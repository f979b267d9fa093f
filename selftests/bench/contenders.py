# SPDX-License-Identifier: GPL-2.0
"""Who is measured, and where their modules come from."""
import os
import pathlib
import subprocess
import sys

import uml

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
LAB = REPO / "selftests" / "lab"


def call(*command, **environment):
    """Runs a script of the lab, which says itself how it gets on."""
    if subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                      stdout=subprocess.DEVNULL).returncode:
        sys.exit(f"riw bench: {pathlib.Path(command[0]).name} failed")


def module(kernel, out, source="."):
    """Builds riw.ko of a source tree for a kernel of the lab, into build/OUT; returns
    where a machine finds it."""
    call(LAB / "module", RIW_KERNEL=kernel, RIW_SOURCE=str(source), OUT=f"build/{out}")
    return f"/riw/build/{out}/riw.ko"


def siw_with_crcs(kernel):
    """Builds siw.ko with CRCs on for a kernel of the lab; returns where a machine finds it."""
    out = f"build/bench-{kernel}"
    (REPO / out).mkdir(parents=True, exist_ok=True)
    if kernel == "stock":
        call(LAB / "chroot", "selftests/bench/siw-with-crcs", "/lab/kdir", out, "CC=gcc-14")
    else:
        call(LAB / "chroot", "selftests/bench/siw-with-crcs", f"/lab/{kernel}", out, "ARCH=um",
             RIW_OUT=str(uml.FOLDER))
    return f"/riw/{out}/siw.ko"


def checked_out(revision):
    """The source tree of a revision, under build/."""
    folder = REPO / "build" / "bench-base" / "source"
    # With the module of the last one: all files of a revision have the time of its commit, by
    # which make may take what is older for not changed.
    subprocess.run(["rm", "-rf", folder.parent], check=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", REPO, "archive", revision],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if archive.returncode:
        sys.exit(f"riw bench: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder.relative_to(REPO)


def environments(kernel, base):
    """{contender: environment of its measurements}."""
    call(LAB / "programs")
    result = {"riw": {"RIW_DRIVER": "riw", "RIW_KO": module(kernel, f"bench-{kernel}")},
              "siw": {"RIW_DRIVER": "siw", "SIW_CRC_KO": siw_with_crcs(kernel)}, "tcp": {}}
    if base:
        ko = module(kernel, "bench-base/module", checked_out(base))
        result[f"riw@{base}"] = {"RIW_DRIVER": "riw", "RIW_KO": ko}
    return result
