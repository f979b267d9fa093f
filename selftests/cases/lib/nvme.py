# SPDX-License-Identifier: GPL-2.0
"""NVMe over RDMA between the kernel's own target (nvmet-rdma) and host (nvme-rdma). Both work only in
the initial network namespace: both ends are on one device, on the two of `two_devices()`, or one of
them in the peer VM.

    with lab.dummy() as node, nvme.modules(node), nvme.Target(node) as target:
        with nvme.connected(target, node, "--nr-io-queues", 2) as ctrl:
            cmd(["block_load", "-n", 100, ctrl.namespace(1), 0, 1 << 20])

Leaving the blocks removes everything, also after a failure: controllers, configfs objects, modules.
"""

import json
import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import lab
from block import SIZE
from ksft import KsftFailEx, ksft_eq
from lab import Node
from utils import cmd, wait_until

NQN = "nqn.2026-01.test.riw:target"
HOST = ["--hostnqn", "nqn.2014-08.org.nvmexpress:uuid:78797877-0000-4000-8000-000000000001",
        "--hostid", "78797877-0000-4000-8000-000000000001"]

BLK, FILE = 1, 2
"""The namespaces of a target: on null_blk and on a file."""

PATIENT = ("--reconnect-delay", 1, "--ctrl-loss-tmo", 100, "--keep-alive-tmo", 30)
"""Options of a host that reconnects within a second, and does not give up. The time is below that of
the kernel's detector of hung tasks: requests wait as long."""

CONFIG = "/sys/kernel/config"
PORT = f"{CONFIG}/nvmet/ports/1"
SUBSYSTEM = f"{CONFIG}/nvmet/subsystems/{NQN}"


def shell(host, script, timeout=60, fail=True):
    """Runs a shell script at a `Node`. It ends at the first command that fails."""
    return cmd(["sh", "-euc", script], host=host, timeout=timeout, fail=fail)


# --- modules

USED = ("nvmet_rdma", "nvme_rdma", "null_blk")

LOAD = """
modprobe configfs
modprobe nvmet_rdma use_srq=$SRQ
modprobe nvme_rdma
modprobe null_blk nr_devices=0
"""

MOUNT = f"""
mountpoint -q {CONFIG} || {{ mount -t configfs configfs {CONFIG}; echo mounted; }}
"""

UNLOAD = f"""
for name in {" ".join(USED)}; do
    [ ! -e /sys/module/$name ] || modprobe -r $name
done
"""


def unload(host):
    """Unloads the modules, which have to become unused within a moment."""
    def unloaded():
        nonlocal last
        last = shell(host, UNLOAD, fail=False)
        return not last.ret

    last = None
    try:
        wait_until(unloaded, 60, "the modules of NVMe can be unloaded", interval=0.5)
    except KsftFailEx as reason:
        raise KsftFailEx(f"{reason}\n{last.stderr}") from None


@contextmanager
def modules(*nodes, srq=False):
    """Loads the modules of targets and hosts, in the machines of the nodes, unless they are built in.
    With `srq`, a target uses shared receive queues: that takes modules."""
    if srq and lab.UML:
        raise KsftFailEx("nvmet_rdma is built in: use_srq cannot be set")
    machines = list({node.remote: node for node in nodes}.values())
    loaded = [] if lab.UML else machines
    mounted = []
    try:
        for host in loaded:
            shell(host, f"SRQ={'Y' if srq else 'N'}\n{LOAD}")
        for host in machines:
            if "mounted" in shell(host, MOUNT).stdout:
                mounted.append(host)
        yield
    finally:
        for host in loaded:
            unload(host)
        for host in mounted:
            cmd(["umount", CONFIG], host=host)


# --- the disk

STORING = {"memory_backed": 1, "discard": 1, "size": SIZE >> 20, "irqmode": 2,
           "completion_nsec": 10000}
"""Attributes of a null_blk that stores data. It completes in the handler of a timer, with interrupts
disabled."""

NULL_BLK = "/dev/nullb0"
"""A null_blk; one per machine."""


@contextmanager
def null_blk(host, attributes):
    """Creates `NULL_BLK` in the machine of a node."""
    folder = f"{CONFIG}/nullb/nullb0"
    powered = {**attributes, "power": 1}
    shell(host, f"mkdir {folder}")
    try:
        shell(host, "\n".join(f"echo {value} >{folder}/{name}" for name, value in powered.items()))
        yield
    finally:
        shell(host, f"rmdir {folder}")


# --- the target

CREATE = """
truncate -s $SIZE $BACKING
mkdir $SUBSYSTEM
cd $SUBSYSTEM
echo 1 >attr_allow_any_host
mkdir namespaces/1 namespaces/2
echo $NULL_BLK >namespaces/1/device_path
echo $BACKING >namespaces/2/device_path
echo 1 >namespaces/2/buffered_io
echo 1 >namespaces/1/enable
echo 1 >namespaces/2/enable

mkdir $PORT
cd $PORT
echo rdma >addr_trtype
echo ipv$FAMILY >addr_adrfam
echo $ADDRESS >addr_traddr
echo $SERVICE >addr_trsvcid
echo $INLINE >param_inline_data_size
"""

# Removes what there is, and attempts each step whatever happened to the one before.
REMOVE = """
set +e
status=0
failed() {
    echo "failed: $*" >&2
    status=1
}
[ ! -e $PORT/subsystems/$NQN ] || rm $PORT/subsystems/$NQN || failed the link of the port
[ ! -e $PORT ] || rmdir $PORT || failed the port
for namespace in $SUBSYSTEM/namespaces/*; do
    [ ! -e $namespace ] || rmdir $namespace || failed $namespace
done
[ ! -e $SUBSYSTEM ] || rmdir $SUBSYSTEM || failed the subsystem
rm -f $BACKING
exit $status
"""


class Target:
    """A subsystem with the namespaces BLK and FILE, and a port at a node; one per machine. The port is
    open when the block begins. `any_address`: it listens on all addresses, and so on devices that are
    added later. `inline`: bytes of data that a command may carry. `disk`: attributes of the null_blk
    that is BLK."""

    backing = "/tmp/nvmet.img"
    """The file of the namespace FILE."""

    def __init__(self, node, family=4, any_address=False, inline=4096, disk=STORING):
        self.node = node
        self.family = family
        self.service = lab.new_port()
        self._disk = disk
        self._stack = None
        wildcard = "::" if family == 6 else "0.0.0.0"
        self._variables = {
            "CONFIG": CONFIG, "SUBSYSTEM": SUBSYSTEM, "PORT": PORT, "NQN": NQN, "SIZE": SIZE,
            "BACKING": self.backing, "FAMILY": family, "SERVICE": self.service, "INLINE": inline,
            "ADDRESS": wildcard if any_address else self.address,
            "NULL_BLK": NULL_BLK}

    def __enter__(self):
        with ExitStack() as stack:
            stack.enter_context(null_blk(self.node, self._disk))
            stack.callback(self._run, REMOVE)
            self._run(CREATE)
            self.open()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _run(self, script, fail=True):
        lines = [f"{name}={value}" for name, value in self._variables.items()]
        shell(self.node, "\n".join([*lines, script]), fail=fail)

    @property
    def address(self):
        """Returns the address that hosts connect to."""
        return self.node.address(self.family)

    def open(self):
        """Lets the port serve the subsystem: it begins to listen."""
        self._run("ln -s $SUBSYSTEM $PORT/subsystems/$NQN")

    def close(self):
        """Removes the subsystem from the port, which ends all connections and stops listening."""
        self._run("rm $PORT/subsystems/$NQN")

    def listens(self):
        """Returns whether the port has a listening socket."""
        return self.service in self.node.tcp_ports()

    def where(self):
        """Returns the options of nvme that select the port."""
        return ["--transport", "rdma", "--traddr", self.address, "--trsvcid", self.service]

    def digest(self, nsid, megabytes):
        """Returns a hash of the first bytes of a namespace, as the target has them."""
        source = NULL_BLK if nsid == BLK else self.backing
        direct = "iflag=direct" if nsid == BLK else ""
        script = f"dd if={source} {direct} bs=1M count={megabytes} status=none | sha256sum"
        return shell(self.node, script, timeout=100).stdout.split()[0]


# --- the host

FIND = """
for subsystem in /sys/class/nvme-subsystem/nvme-subsys*; do
    [ -e $subsystem ] && [ "$(cat $subsystem/subsysnqn)" = $NQN ] || continue
    for disk in $subsystem/nvme*n*; do
        [ -e $disk/nsid ] && [ "$(cat $disk/nsid)" = $NSID ] || continue
        # It is in sysfs before it can be opened.
        (exec </dev/${disk##*/}) 2>/dev/null || continue
        [ "$(cat $disk/size)" = 0 ] || echo /dev/${disk##*/}
    done
done
"""

# A controller may go by itself meanwhile.
DISCONNECT = """
for switch in /sys/class/nvme/nvme*/delete_controller; do
    [ ! -e $switch ] || echo 1 >$switch || [ ! -e $switch ]
done
"""


@dataclass
class Controller:
    """A controller of a host."""

    name: str
    host: Node

    @property
    def path(self):
        return f"/dev/{self.name}"

    def attribute(self, name):
        """Returns an attribute, or "" if the controller is gone."""
        return cmd(["cat", f"/sys/class/nvme/{self.name}/{name}"], host=self.host,
                   fail=False).stdout.strip()

    def wait_state(self, state, timeout=60):
        """Waits for a state; "" if it has to go."""
        wait_until(lambda: self.attribute("state") == state, timeout,
                   f"{self.name} is {state or 'gone'}")

    def namespace(self, nsid):
        """Waits until the host has found a namespace, and it can be used. Returns its block device."""
        def found():
            return shell(self.host, f"NQN={NQN} NSID={nsid}\n{FIND}").stdout.split()

        return wait_until(found, 30, f"namespace {nsid} of {self.name}")[0]

    def identify(self, nsid=0):
        """Returns the controller's identify structure, or that of a namespace: a dict."""
        which = ["id-ns", self.path, "-n", nsid] if nsid else ["id-ctrl", self.path]
        return json.loads(cmd(["nvme", *which, "-o", "json"], host=self.host,
                              timeout=60).stdout)

    def reset(self):
        """Resets the controller: the host disconnects, and connects again."""
        cmd(["nvme", "reset", self.path], host=self.host, timeout=60)


def connect_options(target, host, nqn=NQN):
    """Returns the arguments of nvme to connect to a target."""
    # Without a source, a connection within a machine uses the target's device at both ends.
    source = []
    if not target.node.remote and not host.remote and host.dev != target.node.dev:
        source = ["--host-traddr", host.address(target.family)]
    return ["nvme", "connect", *target.where(), "--nqn", nqn, *HOST, *source]


def connect(target, host, *options, timeout=60):
    """Connects a host to a target. Returns the `Controller`."""
    said = cmd([*connect_options(target, host), *options], host=host, timeout=timeout)
    names = re.findall(r"\bnvme\d+\b", said.stdout)
    if not names:
        raise KsftFailEx(f"no controller: {said}\n{said.stdout}{said.stderr}")
    return Controller(names[-1], host)


def disconnect_all(host):
    """Disconnects all controllers of a machine. Those that go by themselves meanwhile do no harm."""
    shell(host, DISCONNECT, timeout=100)


@contextmanager
def connected(target, host, *options, timeout=60):
    """Connects a host to a target during the block."""
    try:
        yield connect(target, host, *options, timeout=timeout)
    finally:
        disconnect_all(host)


def discover(target, host):
    """Returns the discovery log page: NQN, address and port of each RDMA entry."""
    source = connect_options(target, host)
    source = source[source.index("--host-traddr"):][:2] if "--host-traddr" in source else []
    page = cmd(["nvme", "discover", *target.where(), *HOST, *source], host=host,
               timeout=60).stdout
    entries = re.split(r"^=+.*=+$", page, flags=re.MULTILINE)[1:]
    found = []
    for entry in entries:
        values = dict(re.findall(r"^(\w+): +(.*?) *$", entry, re.MULTILINE))
        if values.get("trtype") == "rdma":
            found.append((values["subnqn"], values["traddr"], int(values["trsvcid"])))
    return found


# --- data

EXCHANGE = """
source=/tmp/nvme.source
head -c ${COUNT}M /dev/urandom >$source
sha256sum <$source
dd if=$source of=$DISK oflag=direct bs=1M status=none
rm $source
dd if=$DISK iflag=direct bs=1M count=$COUNT status=none | sha256sum
"""


def exchange(target, ctrl, nsid, megabytes=16):
    """Writes random data to a namespace: the target has to have the same, and the host to read it."""
    variables = f"DISK={ctrl.namespace(nsid)} COUNT={megabytes}\n"
    said = shell(ctrl.host, variables + EXCHANGE, timeout=100).stdout
    written, found = (line.split()[0] for line in said.splitlines())
    ksft_eq(target.digest(nsid, megabytes), written, "the target's data")
    ksft_eq(found, written, "what the host reads")


# --- devices

@contextmanager
def two_devices():
    """Creates two devices in this machine, each on a dummy interface. Packets from one to the other
    take `lo`."""
    nodes = [Node(f"{lab.DRIVER}{i}", f"dummy{i}", f"10.79.{i}.1") for i in (0, 1)]
    first, second = nodes
    with lab.netdev(first.netdev, "type", "dummy", addr=f"{first.addr}/24"), \
            lab.netdev(second.netdev, "type", "dummy", addr=f"{second.addr}/24"), \
            lab.rdma_link(first.dev, first.netdev), lab.rdma_link(second.dev, second.netdev):
        yield nodes
