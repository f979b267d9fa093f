# SPDX-License-Identifier: GPL-2.0
"""Memory that nothing points to any more, on kernels that look for it (kmemleak)."""
import os
import re
import time

FILE = "/sys/kernel/debug/kmemleak"
# It takes nothing for leaked that is younger, or that it has not seen twice unchanged.
AGE = 5.1
SCANS = 3
# Whose memory is looked at: riw's, and what it has others allocate. A User-Mode Linux
# keeps pointers to other things where nobody looks for them.
OURS = re.compile(r"\[(riw|siw)\]|\b_*(ib|rdma|rdmacg|iw|iwpm|ucma|cma|uverbs)_")


def command(word):
    with open(FILE, "w", encoding="ascii") as file:
        file.write(word)


def found():
    """The reports on what was leaked since the last call, one text for each object."""
    if not os.path.exists(FILE):
        return []
    time.sleep(AGE)
    for _ in range(SCANS):
        command("scan")
    with open(FILE, encoding="ascii", errors="replace") as file:
        reports = file.read().split("unreferenced object ")[1:]
    if reports:
        command("clear")
    return [f"leak: unreferenced object {report}" for report in reports if OURS.search(report)]
