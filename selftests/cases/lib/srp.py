# SPDX-License-Identifier: GPL-2.0
"""The kernel's SRP initiator, ib_srp. It works in any network namespace."""

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import scsi
from ksft import KsftFailEx
from utils import cmd, wait_until

PORTS = Path("/sys/class/srp_remote_ports")
DRIVER = "ib_srp"
MODULES = (scsi.MODULE, DRIVER)

PATIENT = {"reconnect_delay": 1, "fast_io_fail_tmo": 60, "dev_loss_tmo": 90}
"""Attributes of a port that is reconnected each second, and whose requests fail only after a
minute. The time is below that of the kernel's detector of hung tasks."""

EXTENSION = "7269770000000001"
"""The first half of the initiator's port id."""


def port_id(node):
    """Returns the SRP port id of an initiator on a node."""
    gid = Path(f"/sys/class/infiniband/{node.dev}/ports/1/gids/0").read_text(encoding="ascii")
    return "0x" + EXTENSION + gid.strip().replace(":", "")[16:]


def place(node):
    """Returns the folder of ib_srp for a device. It is there while ib_srp uses the device."""
    return Path(f"/sys/class/infiniband_srp/srp-{node.dev}-1")


@dataclass
class Session:
    """A SCSI host of the initiator, which is connected to one target."""

    host: int

    def disk(self, lun):
        """Returns the block device of a logical unit."""
        return scsi.disk(self.host, lun)

    @property
    def port(self):
        """Returns the folder of the target's port, or None if it is gone."""
        return next(PORTS.glob(f"port-{self.host}:*"), None)

    @property
    def state(self):
        """Returns "running", "blocked", "fail-fast" or "lost"; "" if the port is gone."""
        try:
            return (self.port / "state").read_text(encoding="ascii").strip() if self.port else ""
        except OSError:
            return ""

    def wait_state(self, *states, timeout=60):
        """Waits for one of these states."""
        wait_until(lambda: self.state in states, timeout,
                   f"host{self.host} is {' or '.join(states)}; it is {self.state!r}")

    def set(self, **attributes):
        """Sets attributes of the port, such as `PATIENT`."""
        # They limit each other, so the longest has to be set first.
        for name, value in reversed(attributes.items()):
            (self.port / name).write_text(f"{value}\n", encoding="ascii")

    def channels(self):
        """Returns the number of connections."""
        path = scsi.HOSTS / f"host{self.host}" / "ch_count"
        return int(path.read_text(encoding="ascii"))

    def delete(self):
        """Logs out. On return the SCSI host is gone."""
        if self.port:
            try:
                (self.port / "delete").write_text("1\n", encoding="ascii")
            except OSError:
                pass  # it goes by itself
        wait_until(lambda: self.host not in scsi.hosts(DRIVER), 60,
                   f"host{self.host} is gone")


def login(target, node, *options, guid="", family=4, timeout=60):
    """Connects the initiator on a node to a target. Returns the `Session`. Raises `CmdExitFailure`
    if it is refused. `options` are those of `add_target`."""
    guid = guid or target.guid
    address = target.node.address(family)
    host = f"[{address}]" if family == 6 else address
    request = ",".join([f"id_ext={guid}", f"ioc_guid={guid}", f"dest={host}:{target.service}",
                        f"initiator_ext={EXTENSION}", *options])
    before = scsi.hosts(DRIVER)
    # `ip netns exec` would mount the namespace's own /sys. It has only files of the devices in that
    # namespace, and in the shared mode all devices are in the first one.
    enter = ["nsenter", f"--net=/run/netns/{node.netns}"] if node.netns else []
    cmd([*enter, "sh", "-c", 'echo "$1" >"$2"', "sh", request,
         place(node) / "add_target"], timeout=timeout)
    new = scsi.hosts(DRIVER) - before
    if len(new) != 1:
        raise KsftFailEx(f"one new host of {DRIVER}, not {new}")
    return Session(new.pop())


def logout_all():
    """Ends all sessions."""
    for host in scsi.hosts(DRIVER):
        Session(host).delete()


@contextmanager
def connected(target, node, *options, family=4, timeout=60):
    """Connects the initiator on a node to a target during the block."""
    try:
        yield login(target, node, *options, family=family, timeout=timeout)
    finally:
        logout_all()
