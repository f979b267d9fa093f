# SPDX-License-Identifier: GPL-2.0
"""The kernel's SCSI target, LIO: backstores, and targets of SRP and of iSER in configfs. They serve
the first network namespace only.

    with lio.running("ib_srpt", *srp.MODULES), lio.Srp(node, initiators) as target, \
            srp.connected(target, initiator) as session:
        block.compare(session.disk(lio.RAM), "-n", 100, length=1 << 20)

Leaving the blocks removes everything, also after a failure: sessions, configfs objects, modules.
"""

from contextlib import contextmanager
from pathlib import Path

import block
import lab
import modules
from ksft import point
from netns import NetNS, NetNSEnter
from utils import cmd

CONFIG = Path("/sys/kernel/config")
TARGET = CONFIG / "target"
CORE = TARGET / "core"

KB, MB = 1 << 10, 1 << 20

RAM, FILE = 0, 1
"""The logical units of a target: on memory of the kernel, and on a file."""

BACKING = Path("/tmp/lio.img")
"""The file."""

BACKSTORES = {
    RAM: (CORE / "rd_mcp_0" / "ram", f"rd_pages={block.SIZE // 4096}"),
    FILE: (CORE / "fileio_0" / "file", f"fd_dev_name={BACKING},fd_dev_size={block.SIZE}"),
}


def write(path, value):
    """Writes an attribute."""
    path.write_text(f"{value}\n", encoding="ascii")


# --- backstores

@contextmanager
def configfs():
    """Mounts configfs during the block, unless it is mounted."""
    cmd("modprobe configfs")
    mounted = CONFIG.is_mount()
    if not mounted:
        cmd(["mount", "-t", "configfs", "configfs", CONFIG])
    try:
        yield
    finally:
        if not mounted:
            cmd(["umount", CONFIG])


@contextmanager
def running(*names):
    """Loads LIO and modules that use it, and creates the backstores. Unloads them at the end."""
    # LIO itself loads each kind of backstore that the kernel has.
    kinds = [f"target_core_{kind}" for kind in ("user", "pscsi", "iblock", "file")]
    with configfs(), modules.loaded("target_core_mod", *kinds, *names):
        try:
            for path, control in BACKSTORES.values():
                path.mkdir(parents=True)
                write(path / "control", control)
                write(path / "enable", 1)
            yield
        finally:
            for path, _ in BACKSTORES.values():
                for folder in path, path.parent:
                    if folder.exists():
                        folder.rmdir()
            BACKING.unlink(missing_ok=True)


# --- data

def check_data(session, title, luns):
    """Writes and reads data of all sizes. `luns`: logical units and what they are on."""
    for lun, name in luns.items():
        disk = session.disk(lun)
        with point(f"{title}, {name}: blocks of 4 KiB come back as written"):
            block.compare(disk, "-t", 8, "-m", 4 * KB, "-n", 50, length=MB)
        with point(f"{title}, {name}: requests of up to 1 MiB come back as written"):
            block.compare(disk, "-t", 4, "-m", MB, "-n", 10, length=8 * MB)
        # The first page of a region is not whole then, and there is one page more.
        with point(f"{title}, {name}: so do those from buffers that start anywhere in a page"):
            block.compare(disk, "-t", 4, "-m", 256 * KB, "-a", 512, "-n", 10, length=4 * MB)
    disk = session.disk(FILE)
    for writing, reading, size in (("512", "64k", 64 * KB), ("4k", "1M", MB),
                                   ("64k", "4k", MB), ("1M", "512k", 4 * MB)):
        with point(f"{title}: the target has what was written in blocks of {writing}, and it is "
                   f"read in blocks of {reading}"):
            block.exchange(disk, BACKING, writing, reading, size)
    for pattern, size in ("randwrite", "4k"), ("randrw", "512k"):
        with point(f"{title}: fio verifies {pattern} of {size}"):
            block.fio(disk, f"--rw={pattern}", f"--bs={size}", "--iodepth=16", "--size=4m")


# --- targets

class Target:
    """A target at a node with one target portal group, which has the logical units RAM and FILE and
    is enabled."""

    fabric = None
    """The folder of the target's fabric."""

    def __init__(self, node):
        self.node = node
        self.service = lab.new_port()

    def __enter__(self):
        try:
            self.fabric.mkdir()
            self.create()
        except BaseException:
            self._remove_fabric()
            raise
        return self

    def __exit__(self, *_):
        self._remove_fabric()

    def _remove_fabric(self):
        self.remove()
        if self.fabric.exists():
            self.fabric.rmdir()

    @property
    def name(self):
        """Returns the name of the target."""
        raise NotImplementedError

    @property
    def group(self):
        """Returns the folder of the target portal group."""
        return self.fabric / self.name / "tpgt_1"

    def create(self):
        """Creates the target, which `remove()` has removed."""
        self.group.mkdir(parents=True)
        for lun, (path, _) in BACKSTORES.items():
            folder = self.group / "lun" / f"lun_{lun}"
            folder.mkdir()
            (folder / "backstore").symlink_to(path)
        self.serve()
        self.enable(True)

    def serve(self):
        """Adds what the fabric needs besides."""

    def enable(self, enabled):
        """Disabling ends all sessions, and refuses new ones."""
        write(self.group / "enable", int(enabled))

    def remove(self):
        """Removes the target, as far as it has been created."""
        for group in self.fabric.glob("*/tpgt_*"):
            write(group / "enable", 0)
            for link in [*group.glob("acls/*/lun_*/*"), *group.glob("lun/lun_*/*")]:
                if link.is_symlink():
                    link.unlink()
            for pattern in "acls/*/lun_*", "acls/*", "lun/lun_*", "np/*":
                for folder in group.glob(pattern):
                    folder.rmdir()
            group.rmdir()
            group.parent.rmdir()


class Srp(Target):
    """A target of ib_srpt. `initiators` are the SRP port ids that may log in. A target belongs to a
    device, and has to be created again if the device is. The port on which ib_srpt listens does not:
    it is open on each device."""

    fabric = TARGET / "srpt"

    def __init__(self, node, initiators):
        super().__init__(node)
        self.initiators = initiators

    def __enter__(self):
        super().__enter__()
        try:
            self.listen(True)
        except BaseException:
            self._remove_fabric()
            raise
        return self

    def _remove_fabric(self):
        if self.fabric.exists():
            self.listen(False)
        super()._remove_fabric()

    @property
    def name(self):
        gid = Path(f"/sys/class/infiniband/{self.node.dev}/ports/1/gids/0")
        return "0x" + gid.read_text(encoding="ascii").strip().replace(":", "")

    @property
    def guid(self):
        """Returns the number by which initiators ask for this target."""
        found = Path("/sys/module/ib_srpt/parameters/srpt_service_guid").read_text(encoding="ascii")
        return found.strip().removeprefix("0x")

    def listen(self, listening):
        """Starts or stops listening."""
        write(self.fabric / "discovery_auth" / "rdma_cm_port", self.service if listening else 0)

    def serve(self):
        for initiator in self.initiators:
            for lun in BACKSTORES:
                folder = self.group / "acls" / initiator / f"lun_{lun}"
                folder.mkdir(parents=True)
                (folder / "lun").symlink_to(self.group / "lun" / f"lun_{lun}")

    def set(self, name, value):
        """Sets an attribute of the target portal group. Some end all sessions."""
        write(self.group / "attrib" / name, value)


class Iser(Target):
    """A target of ib_isert which all may use, with a portal at the IPv4 address and one at the IPv6
    address of the node.

    LIO opens a TCP socket for each portal, and then an RDMA listener at the same address and port, for
    which a software RNIC needs a TCP socket too. LIO opens its own socket in the namespace of the
    caller, so the caller enters one that has no other use. The RDMA listener is in the first namespace
    in any case."""

    fabric = TARGET / "iscsi"
    _PARKED = "lio"
    """The namespace of LIO's own sockets."""

    def __init__(self, node):
        super().__init__(node)
        self._parked = None

    def portal(self, family=4):
        """Returns the address and port of a portal."""
        address = self.node.address(family)
        return f"[{address}]:{self.service}" if family == 6 else f"{address}:{self.service}"

    def _portals(self):
        """Returns the folders of the portals."""
        return [self.group / "np" / self.portal(family) for family in (4, 6)]

    def _remove_fabric(self):
        super()._remove_fabric()
        if self._parked:
            self._parked.delete()

    @property
    def name(self):
        return "iqn.2026-01.test.riw:target"

    def serve(self):
        for attribute, value in (("authentication", 0), ("generate_node_acls", 1),
                                 ("cache_dynamic_acls", 1), ("demo_mode_write_protect", 0)):
            write(self.group / "attrib" / attribute, value)
        self._parked = self._parked or NetNS(self._PARKED)
        with NetNSEnter(self._PARKED):
            for portal in self._portals():
                portal.mkdir()
        self.listen(True)

    def listen(self, listening):
        """Starts or stops listening. A listener ends with its device, and LIO does not notice."""
        for portal in self._portals():
            write(portal / "iser", int(listening))
