# SPDX-License-Identifier: GPL-2.0
"""Leaks that kmemleak finds, on kernels that have it."""
import os
import time

FILE = "/sys/kernel/debug/kmemleak"
# Seconds to wait before a scan: kmemleak reports no object that is younger than 5 s.
AGE = 5.1
# kmemleak reports an object only after two scans that found it unreferenced and unchanged.
SCANS = 3


def command(word):
    with open(FILE, "w", encoding="ascii") as file:
        file.write(word)


def found():
    """Returns a report for each object leaked since the last call, by riw or by other code. The
    host drops the reports that lab/foreign-reports lists."""
    if not os.path.exists(FILE):
        return []
    time.sleep(AGE)
    for _ in range(SCANS):
        command("scan")
    with open(FILE, encoding="ascii", errors="replace") as file:
        reports = file.read().split("unreferenced object ")[1:]
    if reports:
        command("clear")
    return [f"leak: unreferenced object {report}" for report in reports]
