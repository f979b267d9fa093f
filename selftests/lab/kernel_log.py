# SPDX-License-Identifier: GPL-2.0
"""Finds in the kernel's log what a healthy kernel does not write."""
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
    """, re.VERBOSE)
BEGIN = "cut here ]"
END = "end trace"
LONGEST = 60


def reports(lines, allowed=()):
    """Splits the trouble in a log into reports (lists of lines): each from its first
    line, or from "cut here", to the end of its trace or of the log. A report in which
    a line matches one of the expressions `allowed` is left out."""
    allowed = [re.compile(expression) for expression in allowed]
    found, current = [], None
    for line in lines:
        if "kmemleak: " in line:
            continue  # what it has found is judged by guest/leaks.py
        if current is None and (BEGIN in line or TROUBLE.search(line)):
            current = []
        if current is not None:
            current.append(line)
            if END in line or len(current) == LONGEST:
                found.append(current)
                current = None
    if current:
        found.append(current)
    return [report for report in found
            if not any(expression.search(line) for line in report for expression in allowed)]
