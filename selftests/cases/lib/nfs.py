# SPDX-License-Identifier: GPL-2.0
"""NFS over RDMA: an nfsd and its clients, each at a `lab.Node`, and fio.

    with nfs.pair() as (left, right), nfs.Server(right) as server, nfs.Client(left) as client:
        with client.mounted(server, "4.2") as mount:
            cmd(f"touch {nfs.MOUNT}/file", host=client)

Both ends have a mount namespace of their own, which ends with the `with` block.
"""

import dataclasses
import os
import re
from contextlib import ExitStack, contextmanager

import lab
from ksft import KsftFailEx, ksft_ge
from utils import bkg, cmd, rdma, wait_until

KIB, MIB = 1 << 10, 1 << 20

EXPORT = "/srv"
"""The exported folder, as the server sees it."""
MOUNT = "/mnt"
"""Where a client mounts it."""
VERSIONS = ("4.2", "3")
PORT = 20049
PORTS = {"rdma": PORT, "tcp": 2049}
"""The port of a server by its transport."""
MOUNTD_PORT = 20048
RPCBIND_PORT = 111

NFSD = "/proc/fs/nfsd"
STATE = "/var/lib/nfs"
PIPEFS = "/run/rpc_pipefs"

LEASE = 10
"""Lease and grace period in seconds, the shortest that nfsd accepts. A client polls again after 15 s at
most when a grace period has refused it."""
GONE = 20
"""Time limit for the kernel to close the connections of a mount or of nfsd, in seconds."""

MODULES = ("nfs", "nfsd", "rpcrdma")


# --- ends

@contextmanager
def transport(*nodes):
    """Loads NFS and its RDMA transport at each node; removes the transport at the end, because it opens
    every RDMA device. User-Mode Linux has them built in."""
    loaded = () if lab.UML else nodes
    try:
        for node in loaded:
            cmd(["modprobe", "--all", *MODULES], host=node, timeout=60)
        yield
    finally:
        # The kernel frees the transports of the last mount in the background.
        for node in loaded:
            def removed(node=node):
                return not cmd("modprobe --remove rpcrdma", fail=False, host=node).ret
            wait_until(removed, GONE, "rpcrdma can be removed")


def sides(driver):
    """Returns the namespaces of a client and a server for `lab.veth_pair`. One of them is the first
    network namespace.

    That is the server's, because Linux 7.3 leaks the back channel of each connection of NFS 4.1, and with
    it a reference to the server's namespace, which can then never be removed: xprt_setup_rdma_bc()
    leaves one reference to svc_rdma_free(), which has ceased to drop it.

    With siw it is the client's. siw creates the socket of a connection in the namespace of the caller,
    which is a worker of the kernel here. So with siw, a namespace is left behind.
    """
    return ("", "right") if driver == "siw" else ("left", "")


@contextmanager
def pair(mtu=0):
    """Yields two nodes connected by veth, the first for the client, in the namespaces of `sides`."""
    with lab.veth_pair(mtu, sides(lab.DRIVER)) as nodes, transport(nodes[0]):
        yield nodes


class End:
    """A mount namespace in the network namespace of a node: a `host` of commands. No process outside
    of it can keep its mounts alive."""

    def __init__(self, node):
        self.node = node
        self._stack = ExitStack()
        self._enter = None

    def __enter__(self):
        with ExitStack() as stack:
            holder = stack.enter_context(bkg(
                ["unshare", "--mount", "--propagation", "private",
                 "sh", "-c", "echo holder $$; exec sleep infinity"], host=self.node))
            pid = holder.says(r"holder (\d+)\n", 20)[1]
            self._enter = ["nsenter", "--target", pid, "--mount", "--net", "--"]
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *reason):
        return self._stack.__exit__(*reason)

    def _start(self, stack):
        """Mounts and starts what this end needs."""

    def argv(self, *argv):
        """Returns the command line that runs `argv` at this end."""
        # nsenter enters the network namespace too.
        here = dataclasses.replace(self.node, netns="")
        return here.argv(*self._enter, *argv)

    def write(self, path, value):
        """Writes to a file, with one write()."""
        cmd(["sh", "-c", 'echo "$1" >"$2"', "sh", value, path], host=self, timeout=30)

    def read(self, path):
        """Returns the content of files; `path` may have wildcards."""
        return cmd(["sh", "-c", f"cat {path}"], host=self).stdout

    def python(self, code, timeout=60):
        """Runs Python code. Returns its output."""
        return cmd(["python3", "-c", code], host=self, timeout=timeout).stdout

    def resources(self, listeners=False):
        """Returns the RDMA objects on this end's device, each with its type. Leaves out listeners
        unless asked for: an nfsd anywhere in this machine listens on all devices."""
        return [(kind, row) for kind in lab.KINDS
                for row in rdma(f"resource show {kind}", json=True, host=self.node)
                if row["ifname"] == self.node.dev and (listeners or row.get("state") != "LISTEN")]


class Server(End):
    """nfsd, which listens for `proto` only, a key of PORTS, in the network namespace of a node. It
    exports a tmpfs to everyone, by NFS 3 and 4.

    `block` is the largest READ and WRITE. nfsd allocates MRs and work requests for it per connection.
    """

    def __init__(self, node, threads=8, block=1 << 20, proto="rdma"):
        super().__init__(node)
        self.threads = threads
        self.block = block
        self.proto = proto
        self.port = PORTS[proto]

    def _start(self, stack):
        for kind, where in (("tmpfs", "/run"), ("tmpfs", STATE), ("nfsd", NFSD)):
            cmd(["mount", "-t", kind, kind, where], host=self)
        cmd(["mkdir", PIPEFS, f"{STATE}/nfsdcld"], host=self)
        cmd(["touch", f"{STATE}/etab", f"{STATE}/rmtab"], host=self)
        cmd(["mount", "-t", "rpc_pipefs", "rpc_pipefs", PIPEFS], host=self)
        cmd(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", EXPORT], host=self)
        # Fails if nfsd has leaked a reference to a file.
        stack.callback(cmd, ["umount", EXPORT], host=self)

        rpcbind = stack.enter_context(bkg("rpcbind -f", host=self))
        lab.wait_port_listen(RPCBIND_PORT, host=self.node, server=rpcbind)
        # nfsdcld records clients, so that they can reclaim their state after a restart.
        tracking = stack.enter_context(bkg(
            f"nfsdcld --foreground --debug --storage {STATE}/nfsdcld --pipefsdir {PIPEFS}", host=self))
        tracking.says("Starting event dispatch", 20)
        cmd(["exportfs", "-i", "-o", "rw,no_root_squash,no_subtree_check,insecure,fsid=0",
             f"*:{EXPORT}"], host=self)
        mountd = stack.enter_context(bkg(
            f"rpc.mountd --foreground --no-udp --port {MOUNTD_PORT}", host=self))
        lab.wait_port_listen(MOUNTD_PORT, host=self.node, server=mountd)

        self.write(f"{NFSD}/nfsv4leasetime", LEASE)
        self.write(f"{NFSD}/nfsv4gracetime", LEASE)
        self.write(f"{NFSD}/max_block_size", self.block)
        stack.callback(self.stop)
        self.start()

    def start(self):
        """Starts to listen, and then the threads: nfsd starts none without a listener."""
        self.write(f"{NFSD}/portlist", f"{self.proto} {self.port}")
        self.write(f"{NFSD}/threads", self.threads)

    def stop(self):
        """Stops nfsd: closes its connections and listeners, forgets all state of NFS 4."""
        with ExitStack() as stack:
            if self.proto == "rdma":
                self._let_nobody_in(stack)
            self.write(f"{NFSD}/threads", 0)

    def _let_nobody_in(self, stack):
        """Lets no connection begin until the end of `stack`. A listener of nfsd that closes forgets the
        connections that it has not accepted: their ids stay, and the device can never be removed (Linux
        7.3.4, `svc_rdma_free()`)."""
        cmd(["nft", "add table inet stop; add chain inet stop input { type filter hook input priority 0; }; "
             f"add rule inet stop input tcp dport {self.port} tcp flags syn / fin,syn,rst,ack drop"],
            host=self)
        stack.callback(cmd, "nft delete table inet stop", host=self)
        wait_until(lambda: all("lqpn" in row or row["state"] == "LISTEN" for kind, row
                               in self.resources(listeners=True) if kind == "cm_id"),
                   20, "nfsd accepts the connections that have begun")

    def restart(self):
        """Stops nfsd and starts it again."""
        self.stop()
        self.start()


# --- mounts

# As xprt_rdma_print_stats() of the kernel prints them.
TRANSPORT = ("port", "binds", "connects", "connect_time", "idle", "sends", "receives", "bad_xids",
             "in_use", "backlog", "read_chunks", "write_chunks", "reply_chunks", "chunk_bytes_sent",
             "chunk_bytes_received", "pullups", "fixups", "hardways", "failed_marshals", "bad_replies",
             "long_calls", "recycled_mrs", "orphaned_mrs", "allocated_mrs", "local_invalidates",
             "empty_sendctx", "unused")


class Client(End):
    """A client of NFS in the network namespace of a node."""

    @contextmanager
    def mounted(self, server, version, *options, family=4):
        """Mounts the export of a `Server` on MOUNT. Yields a `Mount`."""
        where = server.node.address(family)
        source = "/"
        proto = f"{server.proto}6" if family == 6 else server.proto
        chosen = [f"vers={version}", f"proto={proto}", f"port={server.port}"]
        if version == "3":
            source = EXPORT
            chosen += ["nolock", "mountproto=tcp6" if family == 6 else "mountproto=tcp",
                       f"mountport={MOUNTD_PORT}"]
        with lab.set_up_slowly(self.node, server.node):
            cmd(["mount", "-t", "nfs", "-o", ",".join([*chosen, *options]),
                 f"[{where}]:{source}" if family == 6 else f"{where}:{source}", MOUNT],
                host=self, timeout=60)
        try:
            yield Mount(self)
            cmd(["umount", MOUNT], host=self, timeout=30)
        except BaseException:
            # The server may be unreachable: make all calls fail, and wait for none.
            cmd(["umount", "--internal-only", "--force", "--lazy", MOUNT], host=self)
            raise

    def drop_caches(self):
        """Forgets all pages without unwritten data, and all unused inodes."""
        cmd(["sh", "-c", "sync; echo 3 >/proc/sys/vm/drop_caches"], host=self, timeout=60)


class Mount:
    """A mount of a `Client`, on MOUNT."""

    def __init__(self, client):
        self.client = client

    def _stats(self):
        """Returns the part of mountstats about this mount."""
        for part in self.client.read("/proc/self/mountstats").split("\ndevice "):
            if f" mounted on {MOUNT} with fstype nfs" in part:
                return part
        raise KsftFailEx(f"no NFS on {MOUNT}")

    def options(self):
        """Returns the mount options in effect."""
        return re.search(r"^\s*opts:\s*(\S+)$", self._stats(), re.M)[1].split(",")

    def transports(self):
        """Returns the counters of each connection, a dict by the names in TRANSPORT. Raises
        `KsftFailEx` if one does not use RDMA."""
        found = []
        for kind, text in re.findall(r"^\s*xprt:\s*(\S+) (.*)$", self._stats(), re.M):
            if kind != "rdma":
                raise KsftFailEx(f"a connection by {kind}")
            found.append(dict(zip(TRANSPORT, map(int, text.split()), strict=True)))
        return found

    def total(self, name):
        """Returns a counter, summed over all connections."""
        return sum(one[name] for one in self.transports())


# --- traffic

BLOCKS = {4 * KIB: ("4 KiB", 2 * MIB), 64 * KIB: ("64 KiB", 8 * MIB), MIB: ("1 MiB", 32 * MIB),
          4 * MIB: ("4 MiB", 64 * MIB)}
"""By the size of blocks: its name, and the bytes of a file, 16 blocks at least."""
VERIFIED = 300
"""Time limit for fio to write and verify a file, in seconds: between two emulated machines, siw moves 64 MiB
in some 120 s."""
# libaio waits for buffered I/O; io_uring has workers for it.
ENGINES = {"direct": "libaio", "buffered": "io_uring"}


def fio(host, folder, name, **options):
    """Runs fio on a file in a folder at a host: writes and then verifies it, or only the latter with
    `verify_only=1`. Returns a `bkg`."""
    chosen = {"ioengine": "libaio", "iodepth": 16, "verify": "crc32c", "verify_fatal": 1,
              "verify_state_save": 0, **options}
    return bkg(["fio", f"--name={name}", f"--filename={os.path.join(folder, name)}", "--thread",
                *(f"--{key}={value}" for key, value in chosen.items())], host=host)


def verify(server, client, version, block, kind="direct", pattern="randwrite"):
    """Writes a file in blocks of this size at a client, and verifies it there, and then at the server."""
    name = f"{version}-{kind}-{pattern}-{block}"
    _, size = BLOCKS[block]
    options = {"rw": pattern, "bs": block, "size": size}
    with client.mounted(server, version) as mount:
        with fio(client, MOUNT, name, **options, ioengine=ENGINES[kind],
                 direct=int(kind == "direct"), end_fsync=1) as run:
            run.succeed(VERIFIED)
        # Pages that the client has kept would prove nothing about READ.
        ksft_ge(mount.total("chunk_bytes_received"), size, "bytes read by Write chunks")
    with fio(server, EXPORT, name, **options, verify_only=1) as run:
        run.succeed(VERIFIED)
