# SPDX-License-Identifier: GPL-2.0
"""Finds in the kernel's log what a healthy kernel does not write."""
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
    | segfault | Out\ of\ memory
    # What watches has given up, or was not heard.
    | ODEBUG | messages\ were\ lost
    """, re.VERBOSE)
FOUND_LEAKS = re.compile(r"kmemleak: \d+ new suspected")
# Programs that are not ours crash now and then, by faults of theirs.
CRASHES = re.compile(r"""
    # Its server ends by destroying the QP of the id that listens, which has none.
    qperf\[\d+\]:\ segfault\ at\ 0\ .*\ in\ libibverbs
    # perftest tries again, when it was refused, with an id that it has destroyed.
    | ib_\w+\[\d+\]:?\ (segfault\ at|general\ protection\ fault)\ .*\ in\ librdmacm
    """, re.VERBOSE)
BEGIN = "cut here ]"
END = "end trace"
LONGEST = 120
FOREIGN = pathlib.Path(__file__).with_name("foreign-reports")


def reports(lines, allowed=()):
    """Splits the trouble in a log into reports (lists of lines): each from its first
    line, or from "cut here", to the end of its trace or of the log. A report whose
    headline, its first line of trouble, matches one of the expressions `allowed` is left out:
    a line further on may be another's."""
    allowed = [re.compile(expression) for expression in allowed]

    def is_allowed(line):
        return any(expression.search(line) for expression in allowed)

    found, current = [], None
    for line in lines:
        # Leaks are judged by guest/leaks.py.
        if FOUND_LEAKS.search(line) or CRASHES.search(line):
            continue
        if current is None and is_allowed(line):
            continue  # alone: what follows it is looked at
        if current is None and (BEGIN in line or TROUBLE.search(line)):
            current = []
        if current is not None:
            current.append(line)
            if END in line or len(current) == LONGEST:
                found.append(current)
                current = None
    if current:
        found.append(current)
    return [report for report in found if not is_allowed(headline(report))]


def headline(report):
    """The line of a report that says what is wrong."""
    return next((line for line in report if TROUBLE.search(line)), report[0])


@functools.cache
def foreign():
    """The reports that foreign-reports lists: the expressions of each."""
    lines = (line for line in FOREIGN.read_text().splitlines() if not line.startswith("#"))
    return [[re.compile(expression) for expression in paragraph.splitlines()]
            for paragraph in "\n".join(lines).strip().split("\n\n")]


def is_foreign(report):
    """Whether a report, of the log or of leaks.py, is one of those that are known not to be
    riw's."""
    whole = END in report[-1] or report[0].startswith("leak: ")
    if not whole or any("[riw]" in line for line in report):
        return False
    return any(all(any(expression.search(line) for line in report) for expression in expressions)
               for expressions in foreign())
