# SPDX-License-Identifier: GPL-2.0
"""tgt, a SCSI target in user space, with iSER by libibverbs.

    with tgt.Target(node) as target, iscsi.running(), iscsi.connected(target) as session:
        block.compare(session.disk(tgt.DISK), "-n", 100, length=1 << 20)
"""

import os
from pathlib import Path

import iscsi
import lab
from block import SIZE
from utils import bkg, cmd, wait_until

BACKING = Path("/tmp/tgt.img")
"""The file that is the disk."""

DISK = 1
"""Its logical unit. tgt's own controller is 0."""

POOL = 64
"""MiB of memory that tgt registers for data."""


def admin(*args, fail=True):
    """Runs tgtadm for iSER."""
    return cmd(["tgtadm", "--lld", "iser", *args], fail=fail, timeout=20)


class Target:
    """A target at a node for open-iscsi: the daemon, and one disk on a file. The daemon listens at all IPv4
    addresses of the machine.

    Until it ends, it keeps the queue pair of a connection that has ended: it frees that at
    RDMA_CM_EVENT_TIMEWAIT_EXIT, which only InfiniBand has."""

    name = "iqn.2026-01.test.riw:tgt"
    service = 3260
    """The port. tgt 1.0.85 accepts no other one for iSER."""

    def __init__(self, node):
        self.node = node
        self._daemon = None

    def portal(self, _family=4):
        """Returns the address and port of the portal."""
        return f"{self.node.addr}:{self.service}"

    def closed(self):
        """Waits until connections hold nothing at the initiator."""
        def left():
            return [row for kind in ("qp", "mr", "cm_id") for row in lab.resources(kind, self.node.dev)
                    if row["comm"] != "tgtd"]

        wait_until(lambda: not left(), 30, "the initiator's objects are gone")

    def __enter__(self):
        with BACKING.open("wb") as disk:
            disk.truncate(SIZE)
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        BACKING.unlink()

    def start(self):
        """Starts the daemon, which `kill` has ended, and adds the target."""
        # It also listens by TCP, which would take the port of the RDMA listener.
        self._daemon = bkg(["tgtd", "--foreground", "--iscsi", f"portal=127.0.0.1:{lab.new_port()}",
                            "--iser", f"pool_sz_mb={POOL}"])
        wait_until(lambda: admin("--mode", "sys", "--op", "show", fail=False).ret == 0, 20,
                   "tgtd answers")
        where = ("--tid", 1)
        admin("--mode", "target", "--op", "new", *where, "--targetname", self.name)
        admin("--mode", "logicalunit", "--op", "new", *where, "--lun", DISK, "--backing-store", BACKING)
        # With iSER, tgt wants both.
        for who in ("--initiator-address", "ALL"), ("--initiator-name", iscsi.INITIATOR):
            admin("--mode", "target", "--op", "bind", *where, *who)

    def kill(self):
        """Kills the daemon, and keeps what it has said as the result "tgtd"."""
        if self._daemon:
            self._daemon.kill()
            result = Path(os.environ["RIW_RESULTS"], "tgtd")
            result.write_text(self._daemon.output, encoding="utf-8")
            self._daemon = None
