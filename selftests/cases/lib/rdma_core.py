# SPDX-License-Identifier: GPL-2.0
"""Runs rdma-core's Python tests, and compares the results with a list.

The list is a file of sections, each with a header and the names of tests without `tests.`:

    [VERDICT: REASON]
    [VERDICT "REGEX": REASON]

`VERDICT` is a key of `VERDICTS`. With `REGEX`, what the suite reports as the reason of the failure or the
skip must match it. A name may be a glob, for the tests whose names are not listed.
"""

import gzip
import json
import os
import re
import select
import shutil
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ksft import PACE, KsftFailEx, ksft_in, ksft_pr, ksft_true, point
from utils import tail

SUITE = Path("/usr/share/doc/rdma-core/tests")
"""Where Debian's python3-pyverbs has the suite; some of the files are compressed."""

VERDICTS = {"passes": ["passed"], "passes or is skipped": ["passed", "skipped"],
            "cannot pass": ["failed"], "skipped": ["skipped"]}
"""The sections of a list, and the verdicts that their tests may have."""

OUTPUT = Path(os.environ["RIW_RESULTS"], "suite.out")
"""The output file of the suite."""

REPORTS = Path(os.environ["RIW_RESULTS"], "suite.reports")
"""The file of its reports, a JSON list a line: see rdma_core_suite.py."""

LIMIT = 45
"""Maximum seconds of a test. The suite itself allows its connections 30."""

LOADING = 400
"""Maximum seconds until the first test starts."""


@dataclass
class Expectation:
    """The verdicts that a test may have, and what the reason must match."""

    verdicts: list
    regex: str

    def check(self, name, verdict, why):
        """Checks the result of a test."""
        ksft_in(verdict, self.verdicts, f"{name}: {verdict} {tail(why)}")
        if verdict != "passed":
            ksft_true(re.search(self.regex, why), f"{name}: not {self.regex!r}: {tail(why)}")


def unpack(folder):
    """Copies the suite to `folder`."""
    folder.mkdir()
    for file in SUITE.iterdir():
        with (gzip.open if file.suffix == ".gz" else open)(file, "rb") as packed:
            with open(folder / file.name.removesuffix(".gz"), "wb") as plain:
                shutil.copyfileobj(packed, plain)


def expectations(path):
    """Returns the tests of a list: a dict of `Expectation` by name."""
    listed = {}
    for line in path.read_text(encoding="ascii").splitlines():
        if header := re.fullmatch(r'\[([a-z ]+?)(?: "(.*?)")?(?:: .*)?\]', line):
            section = Expectation(VERDICTS[header[1]], header[2] or "")
        elif line and not line.startswith("#"):
            assert f"tests.{line}" not in listed, f"{line} is listed twice"
            listed[f"tests.{line}"] = section
    return listed


def reports(process, fd):
    """Yields the report lines of the suite, until it ends or a test takes too long."""
    pending, limit = b"", LOADING
    while True:
        if not select.select([fd], [], [], limit * PACE)[0]:
            process.kill()
            return
        received = os.read(fd, 65536)
        if not received:
            return
        with open(REPORTS, "ab") as file:
            file.write(received)
        limit = LIMIT
        *lines, pending = (pending + received).split(b"\n")
        yield from map(json.loads, lines)


def run_once(dev, verdicts, harness):
    """Runs the tests of the suite that have no verdict yet, and adds their verdicts. Returns
    whether the suite is complete: a test that crashes or takes too long ends it."""
    here, there = os.pipe()
    with open(OUTPUT, "ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "rdma_core_suite", ".", str(there), harness, "--dev", dev,
             "--port", "1", "--gid", "0"], stdin=subprocess.PIPE, stdout=out, stderr=out,
            pass_fds=[there])
    os.close(there)
    process.stdin.write("\n".join(verdicts).encode())
    process.stdin.close()
    current, begin = None, 0
    for name, *verdict in reports(process, here):
        current = None if verdict else name
        if not verdict:
            begin = OUTPUT.stat().st_size
            continue
        if verdict[0] == "failed":
            # The processes of a test say there what has failed.
            verdict[1] += OUTPUT.read_bytes()[begin:].decode(errors="replace")
        verdicts[name] = verdict
    os.close(here)
    status = process.wait()
    if current:
        ksft_pr(f"{current} ended the suite with status {status}")
        verdicts[current] = ("failed", f"ended the suite with status {status}")
    elif status:
        raise KsftFailEx(f"the suite ended with status {status}\n{tail(OUTPUT.read_text())}")
    return not current


def run(dev, harness=""):
    """Runs the suite on a device. `harness` names a module that changes the suite: see
    rdma_core_suite.py. Returns the results, as pairs of verdict and reason: a dict by name."""
    results = {}
    unpack(Path("tests"))
    while not run_once(dev, results, harness):
        pass
    return results


def judge(listed, results):
    """Writes a point for each line of the list. Returns the results of the tests that are not listed."""
    others = dict(results)
    for pattern, wanted in listed.items():
        with point(f"{pattern}: {' or '.join(wanted.verdicts)}"):
            names = [name for name in results
                     if name == pattern or (name not in listed and fnmatchcase(name, pattern))]
            ksft_true(names, "there is no such test")
            for name in names:
                wanted.check(name, *results[name])
                others.pop(name, None)
    return others


def summary(results):
    """Writes how many tests have each verdict."""
    for verdict in ("passed", "failed", "skipped"):
        ksft_pr(f"{sum(result[0] == verdict for result in results.values())} {verdict}")
