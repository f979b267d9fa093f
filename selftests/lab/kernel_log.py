# SPDX-License-Identifier: GPL-2.0
"""Finds reports in the kernel's log that a healthy kernel does not make."""
import collections
import functools
import pathlib
import re

TROUBLE = re.compile(r"""
    WARNING:\ | BUG | Oops | \bpanic\b | UBSAN | KASAN | KFENCE | KCSAN
    | general\ protection | Unable\ to\ handle | Call\ Trace
    | soft\ lockup | hard\ LOCKUP | blocked\ for\ more\ than
    | rcu.*\bstall | suspicious\ RCU | INFO:\ possible | INFO:\ trying
    | scheduling\ while\ atomic | sleeping\ function | bad\ unlock
    | refcount | underflow | use-after-free | corruption | leak
    | unregister_netdevice:\ waiting | page\ allocation\ failure
    | nobody\ cared | rust_kernel:\ panicked
    | segfault | Out\ of\ memory | invoked\ oom-killer
    # A checker has turned itself off, or the log has lost messages.
    | ODEBUG | messages\ were\ lost
    """, re.VERBOSE)
FOUND_LEAKS = re.compile(r"kmemleak: \d+ new suspected")
# Crashes of foreign programs, by bugs of their own.
CRASHES = re.compile(r"""
    # Its server destroys the QP of the listening id, which has none.
    qperf\[\d+\]:\ segfault\ at\ 0\ .*\ in\ libibverbs
    # After a rejection, perftest retries with an id that it has destroyed.
    | ib_\w+\[\d+\]:?\ (segfault\ at|general\ protection\ fault)\ .*\ in\ librdmacm
    """, re.VERBOSE)
BEGIN = "cut here ]"
END = "end trace"
LONGEST = 120
# A report with an end of its own, which a case can allow as a whole. `inner` matches its lines between the
# first and the last one that match TROUBLE; another such line is of another CPU's report.
Dump = collections.namedtuple("Dump", "begin end inner longest")
DUMPS = (
    Dump("BUG: KASAN: ", re.compile("=========="), re.compile(""), LONGEST),
    # Of a memory cgroup that is out of memory. For the whole system, the constraint is another.
    Dump("invoked oom-killer",
         re.compile("oom-kill:constraint=CONSTRAINT_MEMCG|Out of memory and no killable processes"),
         # A frame may have the name of a function such as refcount_dec().
         re.compile(r"Call Trace|\] +(\[<[0-9a-f]+>\] )?(\? )?[\w.]+\+0x[0-9a-f]+/0x[0-9a-f]+( |$)"), 400),
)
# lockdep: long, and with the stack of the caller at the end.
LOCKDEP = re.compile("possible circular locking|inconsistent lock state")
LOCKDEP_STACK, LOCKDEP_LONGEST = "stack backtrace:", 400
LOCKDEP_OFF = "lockdep is off"  # as guest/state.py puts it
FRAME = re.compile(r"\] +\[<[0-9a-f]+>\] ")
FOREIGN = pathlib.Path(__file__).with_name("foreign-reports")


class Skipped:
    """The lines of a dump that a case allows."""

    def __init__(self, dump, line):
        self.dump = dump
        self.lines = [line]
        self.whole = False

    def ends(self, line):
        """Takes the next line. Returns whether it is the last one."""
        self.lines.append(line)
        self.whole = bool(self.dump.end.search(line))
        return self.whole or len(self.lines) == self.dump.longest

    def reports(self):
        """Returns a report of all lines if some may belong to another report, else none."""
        others = [line for line in self.lines[1:-1]
                  if TROUBLE.search(line) and not self.dump.inner.search(line)]
        if self.whole and not others:
            return []
        return [["(allowed, but has no end, or another report in it)", *self.lines]]


def reports(lines, allowed=()):
    """Returns the reports in a log (lists of lines). A report starts at a line that matches
    TROUBLE, or at "cut here", and ends with its trace or with the log. Leaves out reports whose
    headline matches one of the expressions `allowed`. Later lines do not count: they may belong to
    another report, except in one of DUMPS, which has an end of its own, or in a report of lockdep, whose end
    the frames of its stack tell."""
    allowed = [re.compile(expression) for expression in allowed]

    def is_allowed(line):
        return any(expression.search(line) for expression in allowed)

    def add(report):
        if not is_allowed(headline(report)):
            found.append(report)

    found, current, skipped = [], None, None
    for line in lines:
        if skipped:
            if skipped.ends(line):
                found += skipped.reports()
                skipped = None
            continue
        if current and is_lockdep(current) and not FRAME.search(line):
            add(current)
            current = None
        # guest/leaks.py reports leaks.
        if FOUND_LEAKS.search(line) or CRASHES.search(line):
            continue
        if current is None and is_allowed(line):
            dump = next((dump for dump in DUMPS if dump.begin in line), None)
            skipped = dump and Skipped(dump, line)
            continue  # otherwise skip this line only; check the lines after it
        if current is None and (BEGIN in line or TROUBLE.search(line)):
            current = []
        if current is not None:
            current.append(line)
            if END in line or len(current) == longest(current):
                add(current)
                current = None
    if current:
        add(current)
    if skipped:
        found += skipped.reports()
    return found


def is_lockdep(report):
    """Returns whether a report is lockdep's, and complete but for further frames of the stack."""
    return LOCKDEP.search(headline(report)) and FRAME.search(report[-1]) and any(
        LOCKDEP_STACK in line for line in report)


def longest(report):
    """Returns the number of lines at which a report is cut off."""
    return LOCKDEP_LONGEST if LOCKDEP.search(headline(report)) else LONGEST


def headline(report):
    """Returns the first line of a report that matches TROUBLE."""
    return next((line for line in report if TROUBLE.search(line)), report[0])


@functools.cache
def foreign():
    """Returns the expressions of each report in the file foreign-reports."""
    lines = (line for line in FOREIGN.read_text().splitlines() if not line.startswith("#"))
    return [[re.compile(expression) for expression in paragraph.splitlines()]
            for paragraph in "\n".join(lines).strip().split("\n\n")]


def is_foreign(report):
    """Returns whether foreign-reports lists a report of the log or of leaks.py."""
    whole = (END in report[-1] or report[0].startswith("leak: ")
             or is_lockdep(report) and len(report) < LOCKDEP_LONGEST)
    if not whole or any("[riw]" in line for line in report):
        return False
    return any(all(any(expression.search(line) for line in report) for expression in expressions)
               for expressions in foreign())


def is_foreign_complaint(complaint, found):
    """Returns whether riw does not cause a complaint of guest/state.py, made with these reports in the log
    of its VM: it is a leak that foreign-reports lists, or one of the reports is listed and has turned lockdep
    off."""
    if complaint == LOCKDEP_OFF:
        return any(is_lockdep(report) and is_foreign(report) for report in found)
    return is_foreign(complaint.splitlines())


def own_reports(lines):
    """Returns the reports in a log that riw may have caused, as texts."""
    return ["\n".join(report) for report in reports(lines) if not is_foreign(report)]
