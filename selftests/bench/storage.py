# SPDX-License-Identifier: GPL-2.0
"""Measures a row of NFS or NVMe with fio, in the machine. The storage does no I/O: the export is a
tmpfs, and the disk is a null_blk, which neither stores nor returns data. The cases nfs_fio and nvme_fio
check that data arrives."""
import contextlib
import dataclasses
import json
import os

import lab
import nfs
import nvme
from ksft import KsftFailEx
from utils import cmd, wait_until

import rows

# The file on the export is in memory before the measurement. fio starts again at its end.
FILE, FILE_SIZE = "data", 128 * rows.MIB
# A disk that completes each request at once. Its size is in MiB.
DISK = {"size": 1024, "irqmode": 0, "submit_queues": os.cpu_count()}
# A measurement of the disk without NVMe: requests, and the time limit in seconds.
CEILING_REQUESTS, CEILING_LIMIT = 10000, 60
# Time for the kernel to close the connections at the end, in seconds.
GONE = 20
# Past the page cache of the client. fio takes no time of single requests: on a User-Mode Linux, reading
# the clock is a system call.
OPTIONS = ["--name=bench", "--ioengine=libaio", "--direct=1", "--thread", "--norandommap",
           "--gtod_reduce=1", "--output-format=json"]


@dataclasses.dataclass
class Storage:
    """What fio reads and writes at a client: a file or a disk."""

    path: str
    host: object
    size: int


@contextlib.contextmanager
def exported(server, client):
    """Exports a file by NFS 4.2, over RDMA if the server has a device, else over TCP."""
    with nfs.transport(server), \
            nfs.Server(server, proto="rdma" if server.dev else "tcp") as serving, \
            nfs.Client(client) as using:
        cmd(["dd", "if=/dev/zero", f"of={nfs.EXPORT}/{FILE}", "bs=1M",
             f"count={FILE_SIZE // rows.MIB}"], host=serving, timeout=60)
        with using.mounted(serving, "4.2"):
            yield Storage(f"{nfs.MOUNT}/{FILE}", using, FILE_SIZE)
        if server.dev:
            wait_until(lambda: not using.resources(), GONE, "the client has no connection")


@contextlib.contextmanager
def connected(server, client):
    """Connects the client's host to a target with a disk, by NVMe over RDMA."""
    with nvme.modules(server), nvme.Target(server, disk=DISK) as target:
        try:
            with lab.set_up_slowly(client, server):
                disk = nvme.connect(target, client).namespace(nvme.BLK)
            yield Storage(disk, client, DISK["size"] * rows.MIB)
        finally:
            # Before the target closes its port: siw's does not survive that with requests in flight.
            nvme.disconnect_all(client)
        lab.nothing_held(*{client.dev, server.dev}, timeout=GONE)


def opened(row, server, client):
    """Returns a context with the `Storage` that the row is about."""
    return exported(server, client) if row.kind == "nfs" else connected(server, client)


def figures(row, storage, requests, timeout):
    """Makes `requests` requests. Returns the figure of the row, the seconds that the requests took, and
    1 for one try."""
    said = cmd(["fio", *OPTIONS, f"--filename={storage.path}", f"--size={storage.size}",
                *row.fio(requests)], host=storage.host, timeout=timeout).stdout
    # fio prints its warnings before the JSON.
    job = json.loads(said[said.index("{"):])["jobs"][0]
    done = job[row.operation]
    if job["error"] or done["total_ios"] != requests or done["short_ios"]:
        raise KsftFailEx(f"fio: error {job['error']}, {done['total_ios']} of {requests} requests,"
                         f" {done['short_ios']} short")
    if not done["runtime"]:
        raise KsftFailEx("fio takes less than a millisecond")
    # In milliseconds.
    rate = requests / done["runtime"]
    value = rate if row.kind == "nvme rate" else rate * 1000 * row.size / rows.MIB
    return {row: value}, row.seconds(value, requests), 1


def ceilings():
    """Returns the figures of the small requests of NVMe, made to the target's disk itself, in this machine."""
    here = lab.Node("", "", "")
    with nvme.modules(here), nvme.null_blk(here, DISK):
        disk = Storage(nvme.NULL_BLK, here, DISK["size"] * rows.MIB)
        return {row.what: figures(row, disk, CEILING_REQUESTS, CEILING_LIMIT)[0][row]
                for row in rows.requests("lo")}
