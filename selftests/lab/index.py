# SPDX-License-Identifier: GPL-2.0
"""
The index of the cases, selftests/cases/README.md, from their headers and from the rows of
Documentation/conformance that name them.
"""
import collections
import re

import case as cases

FILE = cases.FOLDER / "README.md"
TABLES = cases.FOLDER.parent.parent / "Documentation/conformance"

HEAD = """<!-- SPDX-License-Identifier: GPL-2.0 -->
<!-- `selftests/run_tests --write-index` writes this file. -->
# The cases

Where each case runs in `make check`: on `check`, a User-Mode Linux with sanitizers, on the `stock` kernel, or `full`:
only in `make check-full` and `make check-debug`. The seconds are those of the stock kernel. RFC: a row of
[Documentation/conformance](../../Documentation/conformance) relies on the case.
[selftests/README.md](../README.md) describes the header of a case and how to run one.
"""
# The subject of each area.
AREAS = {
    "cm": "setup and end of connections, over TCP",
    "device": "links, netdevs, the module",
    "kernel_users": "users of RDMA in the kernel: NFS, NVMe, SMB, iSER, SRP, 9P, RDS, and a test module",
    "monitoring": "counters, details of objects, trace events, the log",
    "programs": "programs that know nothing of riw, and machines with siw",
    "provider": "libriw, and the user ABIs of riw",
    "resources": "memory, leaks, limits, what a message costs",
    "sctp": "SCTP",
    "streams": "the wire: FPDUs, segments, what a peer may send, when riw sends",
    "verbs": "verbs and memory regions",
    "versions": "riw beside an earlier riw: its user library, its module, a peer",
}


def standards():
    """Returns the numbers of the RFCs of which a row names each case."""
    found = collections.defaultdict(list)
    for path in sorted(TABLES.glob("rfc*.md")):
        for name in set(re.findall(r"case `(\w+)", path.read_text())):
            found[name].append(path.stem.removeprefix("rfc"))
    return found


def where(case):
    """Returns the lanes of `make check` in which the case runs."""
    if case.run == "full":
        return "full"
    return ", ".join(kernel for kernel, chosen in cases.lanes([case], smoke=True).items() if chosen)


def text():
    """Returns the index. Raises ValueError for an area without a description, and for a case without one."""
    chosen, rfcs, lines = cases.everything(), standards(), [HEAD]
    if wrong := {case.area for case in chosen} ^ AREAS.keys():
        raise ValueError(f"areas without a description or without a case: {', '.join(sorted(wrong))}")
    for area, about in AREAS.items():
        lines += [f"\n## `{area}`: {about}\n", "\n", "| case | tests | RFC | runs | s |\n", "|---|---|---|---|---|\n"]
        for case in chosen:
            if case.area == area:
                if not case.about:
                    raise ValueError(f"{case.name} does not say what it tests")
                lines.append(f"| [{case.name}]({area}/{case.name}) | {case.about.replace('|', chr(92) + '|')} |"
                             f" {', '.join(rfcs[case.name])} | {where(case)} | {case.seconds} |\n")
    return "".join(lines)
