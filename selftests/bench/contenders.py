# SPDX-License-Identifier: GPL-2.0
"""Who is measured, and where their modules come from."""
import os
import pathlib
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
LAB = REPO / "selftests" / "lab"


def module(kernel, out, source=REPO):
    """Builds riw.ko of a source tree for a kernel of the lab, into build/OUT; returns
    where a machine finds it."""
    builder = [LAB / "module"] if kernel == "stock" else [LAB / "uml-module", kernel]
    inside = pathlib.Path("/riw") / source.relative_to(REPO)
    done = subprocess.run([*builder, f"M={inside}"] if source != REPO else builder,
                          env={**os.environ, "OUT": f"build/{out}"},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit("\n".join(done.stdout.splitlines()[-20:]) + "\nriw bench: riw.ko was not built")
    return f"/riw/build/{out}/riw.ko"


def checked_out(revision):
    """The source tree of a revision, under build/."""
    folder = REPO / "build" / "bench-base" / "source"
    subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", REPO, "archive", revision],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if archive.returncode:
        sys.exit(f"riw bench: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder


def environments(kernel, base):
    """{contender: environment of its measurements}."""
    result = {"riw": {"RIW_DRIVER": "riw", "RIW_KO": module(kernel, f"bench-{kernel}")},
              "siw": {"RIW_DRIVER": "siw"}, "tcp": {}}
    if base:
        ko = module(kernel, "bench-base/module", checked_out(base))
        result[f"riw@{base}"] = {"RIW_DRIVER": "riw", "RIW_KO": ko}
    return result
