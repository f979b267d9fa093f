# SPDX-License-Identifier: GPL-2.0
"""The plots of a run: bandwidth and latency against size, throughput against QPs."""
import rows
from plot import plot


def value(measured, row, contender):
    """A median; None if it failed, False if it was not measured."""
    if contender == "tcp" and row.operation:
        # Measured once, it stands for all operations.
        row = rows.dataclasses.replace(row, operation="write")
    figure = measured.get(row.name, {}).get(contender)
    if figure is None:
        return False
    return figure.median


def draw(measured, chosen, contenders):
    """Yields names of files and their text."""
    plain = [row for row in chosen if not (row.events or row.framing or row.typical)]
    for network in dict.fromkeys(row.network for row in plain):
        for operation in rows.OPERATIONS:
            for what, kind, axis in (("bandwidth", "bandwidth", "message size"),
                                     ("latency", "latency", "message size"),
                                     ("qps", "bandwidth", "QPs, 64 KiB messages")):
                some = [row for row in plain
                        if (row.network, row.operation, row.kind) == (network, operation, kind)
                        and (row.size == 64 * rows.KIB if what == "qps" else row.qps == 1)]
                some.sort(key=lambda row: (row.qps, row.size))
                if len(some) < 2:
                    continue
                lines = {contender: [value(measured, row, contender) for row in some]
                         for contender in contenders}
                text = plot(f"{operation}: {rows.NETWORKS[network]}", axis,
                            f"{kind}, {some[0].unit}",
                            [row.qps if what == "qps" else rows.label(row.size) for row in some],
                            {name: line for name, line in lines.items()
                             if any(one is not False for one in line)})
                if text:
                    yield f"{what}-{operation}-{network}.svg", text
