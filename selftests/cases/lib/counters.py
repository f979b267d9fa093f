# SPDX-License-Identifier: GPL-2.0
"""The counters of a device, as users see them."""

from pathlib import Path

from utils import rdma


def read(node):
    """Returns the counters of a device from `rdma statistic`: a dict of numbers by name."""
    row, = rdma(f"statistic show link {node.dev}/1", json=True)
    return {name: value for name, value in row.items() if name not in ("ifname", "port")}


def sysfs(node):
    """Returns the counters of a device from sysfs, like `read`. They may be 10 ms old."""
    folder = Path(f"/sys/class/infiniband/{node.dev}/ports/1/hw_counters")
    return {file.name: int(file.read_text(encoding="ascii"))
            for file in folder.iterdir() if file.name != "lifespan"}


class Moves:
    """By how much counters have moved since it was created: `moves["tx_sends"]`."""

    def __init__(self, node, values=read):
        self._node, self._values = node, values
        self._before = values(node)

    def now(self, prefix=""):
        """Returns all that have moved, and whose names begin with `prefix`."""
        after = self._values(self._node)
        return {name: value - self._before[name] for name, value in after.items()
                if value != self._before[name] and name.startswith(prefix)}
