# SPDX-License-Identifier: GPL-2.0
"""SCSI hosts of this machine, their disks, and what their connections hold in RDMA devices."""

from pathlib import Path

import lab
from utils import wait_until

HOSTS = Path("/sys/class/scsi_host")

MODULE = "sd_mod"
"""The module of disks. Without udev, nothing loads it when a disk is found."""


def hosts(driver):
    """Returns the numbers of the SCSI hosts of a driver."""
    found = set()
    for path in HOSTS.glob("host*"):
        try:
            if (path / "proc_name").read_text(encoding="ascii").strip() == driver:
                found.add(int(path.name.removeprefix("host")))
        except OSError:
            pass  # it has just gone
    return found


def disk(host, lun):
    """Waits until a disk is found and can be used. Returns its block device."""
    def found():
        for path in Path("/sys/class/scsi_disk").glob(f"{host}:*:{lun}/device/block/sd*"):
            if int((path / "size").read_text(encoding="ascii")):
                return f"/dev/{path.name}"
        return None

    return wait_until(found, 30, f"disk {lun} of host{host}")


def connections(dev):
    """Returns the numbers of a device's connections. The kernel does not soon use one again."""
    return {row["cm-idn"] for row in lab.resources("cm_id", dev) if row["state"] != "LISTEN"}


def nothing_held(*devs):
    """Waits until connections hold nothing in these devices. PDs belong to modules, not to
    connections."""
    lab.nothing_held(*devs, kinds=("qp", "mr", "cm_id"), timeout=30)
