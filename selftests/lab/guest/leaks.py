# SPDX-License-Identifier: GPL-2.0
"""Memory that nothing points to any more, on kernels that look for it (kmemleak)."""
import os
import time

FILE = "/sys/kernel/debug/kmemleak"
# It takes nothing for leaked that is younger, or that it has not seen twice unchanged.
AGE = 5.1
SCANS = 3


def command(word):
    with open(FILE, "w", encoding="ascii") as file:
        file.write(word)


def found():
    """The reports on what was leaked since the last call, by whomever, one text for each
    object. Those that lab/foreign-reports explains are for the host to pass over."""
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
