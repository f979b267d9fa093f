# SPDX-License-Identifier: GPL-2.0
"""Runs the host tests, and the cases in VMs: the lanes of a run, and what is judged of each test."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from fnmatch import fnmatchcase

SELFTESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SELFTESTS / "cases/lib"))

import case as cases  # noqa: E402
import kernel_log  # noqa: E402
import ktap  # noqa: E402
import machine  # noqa: E402
from machine import DRIVER  # noqa: E402
from points import Points, kind  # noqa: E402

PEER = {"RIW_PEER": "10.77.0.2", "RIW_PEER6": "fd77::2"}
# The command that runs a case, if it does not run by itself.
WRAPPER = ["/riw/selftests/cases/lib/with_tls"] if machine.TRANSPORT == "tls" else []
# Seconds for each host test. Most take less than a minute; the first builds what it tests.
HOST_LIMIT = 3600


def results(kernel):
    """Returns the folder of the results of the cases on a kernel."""
    return machine.REPO / machine.BUILD / ("results" if kernel == "stock" else f"results-{kernel}")


class Outcome:
    """The points of one case, or of one host test."""

    def __init__(self, name, kernel=None):
        self.name = name
        self.kernel = kernel
        self.points = []
        # The titles of the points of its program, which selftests/points lists.
        self.titles = []
        # The outcome of the first attempt, if this is the second one.
        self.first = None
        self.begin = time.monotonic()

    def add(self, passed, title, details=""):
        self.points.append(ktap.Point(passed, title, details))

    def made(self, points):
        """Adds the points that its program has made."""
        self.points += points
        self.titles += [point.title for point in points]

    @property
    def failed(self):
        return [point for point in self.points if not point.passed]

    @property
    def label(self):
        kernel = machine.TARGET if self.kernel == "stock" else self.kernel
        return f"{self.name} on {kernel}" if kernel else self.name

    def reason(self):
        """Returns one line about the first failed point: its title, and the first and last line of
        its details."""
        first = self.failed[0]
        lines = [line.strip() for line in first.details.splitlines() if line.strip()]
        return ": ".join([first.title, *dict.fromkeys(lines[:1] + lines[-1:])])

    def line(self):
        seconds = time.monotonic() - self.begin
        if self.failed:
            lines = [f"  FAIL  {self.label}: {len(self.failed)} of {len(self.points)}"
                     f" points failed, {seconds:.0f} s: {self.reason()}"]
        else:
            verdict = "FLAKY" if self.first else "ok   "
            lines = [f"  {verdict} {self.label}: {len(self.points)} points, {seconds:.0f} s"]
        # A warning fails no test. Nothing else would show it.
        lines += [f"        {line}" for point in self.points for line in point.details.splitlines()
                  if line.startswith("warning: ")]
        return "\n".join(lines)

    def text(self):
        """Returns the failed points, with their details."""
        return "".join(f"\n{self.label}: {point.title}\n{indent(point.details)}" for point in self.failed)


def indent(text):
    return "".join(f"    {line}\n" for line in text.rstrip("\n").splitlines())


def tail(path, lines):
    with open(path, errors="replace") as file:
        return "".join(file.readlines()[-lines:])


def run_on_host(*command):
    """Runs a program of the host tests. Returns its output and its exit status, or None for the status if
    it exceeded the time limit. `timeout` gives it a process group and kills that then, or when this program
    ends."""
    begin = time.monotonic()
    # No pipe: a process that has left the group would keep it open.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        status = subprocess.run(["setpriv", "--pdeathsig", "TERM",
                                 "timeout", "--signal=KILL", str(HOST_LIMIT), *command],
                                stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.STDOUT).returncode
        output.seek(0)
        return output.read(), None if time.monotonic() - begin >= HOST_LIMIT else status


def host_tests():
    """Runs cargo's tests of rust/abi, rust/iwarp and rust/libriw. Returns an `Outcome`."""
    outcome = Outcome("host")
    output, status = run_on_host(SELFTESTS / "lab" / "cargo-tests")
    tests = re.findall(r"^test (.*) \.\.\. (ok|FAILED)$", output, re.MULTILINE)
    outcome.made([ktap.Point(verdict == "ok", title) for title, verdict in tests])
    if status is None:
        output += f"\ndid not end within {HOST_LIMIT} s"
    if status != 0 or not tests:
        outcome.add(False, "cargo test", "".join(output.splitlines(True)[-60:]))
    return outcome


# The other host tests, which write TAP: the program of each.
HOST = {
    "syntax": ["check_syntax"],
    "licenses": ["check_licenses"],
    "ktap": ["check_ktap"],
    "runner": ["check_runner"],
    "conformance": ["check_conformance"],
    "documents": ["check_documents"],
    "imports": ["check_imports"],
    "shape": ["check_shape"],
    "misuse": ["misuse/check_misuse"],
    "clippy": ["check_clippy"],
    "mutants": ["mutants/run_mutants", "--check"],
    "panics": ["panics/check_panics"],
    # Both need riw.ko for the stock kernel, whose lane is building it at first.
    "frames": ["check_frames"],
    "module panics": ["panics/check_module"],
    "provider": ["provider/check_layout"],
    "provider panics": ["provider/check_panics"],
    "fuzz": ["fuzz/run_fuzz", "-s", "30"],
}


def host_check(name):
    """Runs one of `HOST`. Returns an `Outcome`."""
    outcome = Outcome(name)
    program, *arguments = HOST[name]
    output, status = run_on_host(SELFTESTS / program, *arguments)
    points, wrong = ktap.parse(output, status)
    outcome.made(points)
    if status is None:
        wrong.insert(0, f"did not end within {HOST_LIMIT} s")
    # One of them checks the parser, so do not rely on the parser alone.
    if wrong or status and not outcome.failed:
        outcome.add(False, f"{name} as such", "\n".join(wrong))
    return outcome


def give_way():
    """Lets the stock kernel have the CPUs first: the calling thread and the processes that it starts get what
    is left. An emulated machine takes longest, and its cases have limits for a machine that is not busy."""
    # Of this thread only: Linux has a priority for each.
    os.nice(5)


class Run:
    """What all workers of a run share: the outcomes, the list of points, and the one case that may fail at
    first."""

    def __init__(self, verbose, write_points):
        self.verbose = verbose
        self.write_points = write_points
        self.points = Points.read()
        # The list is for the devices that users have by default.
        self.checks_points = DRIVER == "riw" and not machine.PROVIDER and not machine.TRANSPORT
        self.outcomes = []
        self.repeats_left = 1
        self.lock = threading.Lock()

    def report(self, outcome, kinds=("stock", "uml"), complete=True):
        """Takes the outcome of a test, whose points these kinds of kernels have. `complete`: it must have all its
        points."""
        with self.lock:
            if not outcome.failed and complete and self.checks_points:
                if self.write_points:
                    self.points.replace(outcome.name, kinds, outcome.titles)
                elif wrong := self.points.differences(outcome.name, outcome.kernel, outcome.titles):
                    outcome.add(False, "its points are those of selftests/points", "\n".join(wrong))
            self.outcomes.append(outcome)
            print(outcome.line(), flush=True)

    def may_repeat(self):
        """Returns whether a case that has failed may run once more. One may in a whole run."""
        with self.lock:
            self.repeats_left -= 1
            return self.repeats_left >= 0

    def host(self):
        """Runs the host tests."""
        give_way()
        with self.reported("host"):
            self.report(host_tests())
            for name in HOST:
                self.report(host_check(name))

    @contextlib.contextmanager
    def reported(self, name):
        """Reports an exception of the block as a failed point."""
        try:
            yield
        except (Exception, SystemExit):
            outcome = Outcome(name)
            outcome.add(False, "running tests", traceback.format_exc())
            self.report(outcome)

    def unknown(self):
        """Returns the tests that the list has, and that do not exist."""
        return sorted(self.points.names - {case.name for case in cases.everything()} - {"host", *HOST})

    def summary(self):
        """Prints the failed points, the flaky cases, and the last line. Returns the exit status."""
        for outcome in sorted(self.outcomes, key=lambda outcome: outcome.label):
            print(outcome.text(), end="")
        for outcome in self.outcomes:
            if outcome.first:
                print(f"\n{outcome.label} failed at first, as follows"
                      f"{' (and then as above)' if outcome.failed else ': it is flaky'}"
                      f"{indent(outcome.first.text())}", end="")
        if self.write_points:
            self.points.keep({case.name for case in cases.everything()} | {"host", *HOST})
            self.points.write()
        failed = sum(len(outcome.failed) for outcome in self.outcomes)
        passed = sum(len(outcome.points) for outcome in self.outcomes) - failed
        print(f"\n{passed} passed, {failed} failed")
        return failed != 0 or passed == 0


def save_coverage(vm, folder):
    """Writes what has run of riw.ko since the VM has booted to the folder. Returns complaints."""
    with open(folder / f"coverage-{vm.role}", "wb") as file:
        status = vm.run(["cat", "/sys/kernel/debug/riw_coverage"], machine.GRACE, file.write, lambda data: None)
    return [] if status == 0 else [f"{vm.role}: no coverage: status {status}"]


class Lane:
    """The pending cases of a kernel, and the workers that share them."""

    def __init__(self, run, kernel, chosen, jobs):
        self.run = run
        self.kernel = kernel
        self.results = results(kernel)
        self.jobs = jobs
        # Cases that can share a VM in a row, one that needs a fresh VM first. Cases with two VMs last: the host tests
        # run in parallel with the first cases, and would compete for the CPUs. Long cases first: the workers end
        # together.
        self.pending = sorted(chosen, key=lambda case: (*case.machines(kernel).values(), case.fresh == "no",
                                                        -case.seconds, case.name))
        # The first outcome of each case that runs once more.
        self.repeated = {}
        self.lock = threading.Lock()

    def make(self, *what):
        """Has the script `build` build this for the kernel. Returns whether that was possible."""
        environment = os.environ | {"RIW_KERNEL": self.kernel}
        return not subprocess.run([SELFTESTS / "lab" / "build", *what], env=environment).returncode

    def build(self):
        """Builds what the cases need that is not the same for all kernels. Returns whether that was possible. Where
        only what some cases need besides cannot be built, these fail, and the others run."""
        if not self.make("programs"):
            return False
        for needs in sorted({case.needs for case in self.pending if case.needs}):
            if not self.make("needs", needs):
                for case in [case for case in self.pending if case.needs == needs]:
                    self.pending.remove(case)
                    self.not_built(case.name, f"building {needs}")
        return True

    def not_built(self, name, title="building"):
        """Reports that a test cannot run, as something could not be built."""
        outcome = Outcome(name, self.kernel)
        outcome.add(False, title, "see above")
        self.run.report(outcome)

    def work(self):
        """Builds, and runs all cases."""
        with self.run.reported(f"the lane {self.kernel}"):
            if not self.build():
                self.not_built(f"the lane {self.kernel}")
                return
            shutil.rmtree(self.results, ignore_errors=True)
            workers = [threading.Thread(target=self.worker, args=[number], daemon=True)
                       for number in range(1, self.jobs + 1)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

    def worker(self, number):
        """Runs cases until none is pending."""
        if self.kernel != "stock":
            give_way()
        with self.run.reported(f"worker {number} on {self.kernel}"):
            self.work_on(number)

    def can_follow(self, case, before):
        """Returns whether a case can run in the VMs in which another one has run."""
        return case.fresh == "no" and case.machines(self.kernel) == before.machines(self.kernel)

    def next(self, before):
        """Returns a pending case, preferably one that can follow the case `before`, or None."""
        with self.lock:
            for case in self.pending:
                if before and self.can_follow(case, before):
                    break
            else:
                case = self.pending[0] if self.pending else None
            if case:
                self.pending.remove(case)
            return case

    def work_on(self, number):
        """Runs cases, each in the VMs of the case before it if these are clean."""
        logs = self.results / f"vm{number}"
        pending = self.next(None)
        while pending:
            last = pending
            try:
                with machine.machines(logs=logs, results=self.results, kernel=self.kernel,
                                      **last.machines(self.kernel)) as vms:
                    while True:
                        last = pending
                        clean = self.one(last, vms)
                        # Once more, in fresh VMs.
                        pending = self.next(last) if last.name not in self.repeated or clean else last
                        if not (clean and pending and self.can_follow(pending, last)):
                            break
            except machine.MachineDied as died:
                # one() handles a VM that dies later.
                outcome = Outcome(last.name, self.kernel)
                outcome.add(False, "booting the VM", f"{died}\n{tail(logs / 'console-case.log', 30)}")
                self.run.report(outcome)
                pending = self.next(last)

    def one(self, case, vms):
        """Runs one case and reports it. Returns whether the VMs can run another one."""
        outcome = Outcome(case.name, self.kernel)
        folder = self.results / case.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        complaints, details, log = [], [], []
        usable = False
        try:
            if self.setup(case, vms, outcome):
                usable = self.execute(case, vms[0], folder, outcome)
            for vm in vms:
                complaints += [(vm.role, complaint) for complaint in vm.reset()]
            for vm in vms:
                log += [f"{vm.role}: {line}" for line in vm.kernel_log()]
                if self.kernel == "coverage":
                    details += save_coverage(vm, folder)
        except machine.MachineDied as died:
            usable = False
            details.append(str(died))
            for vm in vms:
                log += [f"{vm.role}: {line}" for line in tail(vm.console, 200).splitlines()]
        (folder / "kernel.log").write_text("\n".join(log) + "\n")
        reports = kernel_log.reports(log, case.allow)
        details = [f"{role}: {complaint}" for role, complaint in complaints
                   if not kernel_log.is_foreign_complaint(
                       complaint, [report for report in reports if report[0].startswith(f"{role}: ")])] + details
        for report in reports:
            if not kernel_log.is_foreign(report):
                details += report
        if details:
            # Shown at the end of the run, too, unless it is interrupted.
            (folder / "left_behind").write_text("\n".join(details) + "\n")
        outcome.add(not details, "nothing left behind", "\n".join(details))
        return self.judge(case, outcome, bool(details)) and usable and not details and not reports

    def judge(self, case, outcome, left_behind):
        """Reports the outcome of a case, unless it is to run once more in fresh VMs. Returns false then.

        It does so at most once, and only one case of a run does: a stall of the host can fail a case that is
        right. What the kernel reports, a case leaves behind, or KUnit finds, is never that."""
        first = self.repeated.pop(case.name, None)
        if first:
            outcome.first = first
        elif outcome.failed and not left_behind and case.name != "kunit" and self.run.may_repeat():
            print(f"  again {outcome.label}: {outcome.reason()}", flush=True)
            self.repeated[case.name] = outcome
            return False
        alone = case.kernel != "any" or case.name not in self.run.points.names
        self.run.report(outcome, ("stock", "uml") if alone else (kind(self.kernel),), not case.wanted)
        return True

    def setup(self, case, vms, outcome):
        provider = "riw" if machine.PROVIDER == "riw" else case.provider
        transport = machine.TRANSPORT or case.transport
        choice = {"provider": provider, "transport": "tcp" if transport == "tls" else transport}
        complaints = vms[0].setup(module=DRIVER if case.module == "riw" else None, **choice)
        if case.vms == 2:
            if transport == "tls":
                complaints.append("with TLS, a case has one machine")
            module = {"none": None, "riw": DRIVER}.get(case.peer, case.peer)
            complaints += vms[1].setup(module=module, link=bool(module), **choice)
        if complaints:
            outcome.add(False, "setting up the VMs", "\n".join(complaints) + "\n")
        return not complaints

    def execute(self, case, vm, folder, outcome):
        """Runs the executable of a case and judges its output. Returns whether it ended by itself."""
        status = None
        limit = case.limit(self.kernel, vm.start)
        try:
            with open(folder / "tap", "wb") as tap, open(folder / "stderr", "wb") as err:
                status = vm.run(
                    [*WRAPPER, f"/riw/selftests/cases/{case.area}/{case.name}"], limit,
                    self.sink(tap, case), self.sink(err, case), until=case.wanted and ktap.line_of(case.wanted),
                    env={"RIW_RESULTS": f"/results/{case.name}",
                         "RIW_PACE": str(case.pace(self.kernel, vm.start)),
                         **(PEER if case.vms == 2 else {})})
        finally:
            made, wrong = ktap.parse((folder / "tap").read_text(errors="replace"), status)
            if case.wanted and (chosen := [each for each in made if fnmatchcase(each.title, case.wanted)]):
                made, wrong, status = chosen, [], 0
            elif case.wanted:
                wrong.insert(0, f"it has no point {case.wanted!r}")
            outcome.made(made)
            if status is None:
                wrong.insert(0, f"did not end within {limit} s, or took the VM with it")
            if wrong:
                outcome.add(False, "the case as such", "\n".join(wrong))
            if outcome.failed:
                outcome.failed[-1].details += "\n" + tail(folder / "stderr", 30)
        return status is not None

    def sink(self, file, case):
        """Returns a function that writes output of a case to a file, and with -v to stdout."""
        def write(data):
            file.write(data)
            if self.run.verbose:
                for line in data.decode(errors="replace").splitlines():
                    print(f"        {case.name}: {line}", flush=True)
        return write
