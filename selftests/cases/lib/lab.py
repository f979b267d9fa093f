# SPDX-License-Identifier: GPL-2.0
"""Networks with RDMA devices, for cases: two ends, each a `Node`.

    with lab.veth_pair() as (left, right):
        server = bkg(f"rping -s -a {left.addr}", host=left)

Every constructor is a context manager that removes its network on exit.
"""

import glob
import itertools
import os
import platform
import random
import re
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from ksft import KsftFailEx, ksft_pr
from netns import NetNS, NetNSEnter
from threads import meanwhile
from utils import cmd, ip, rdma, tool, wait_until

DRIVER = os.environ.get("RIW_DRIVER", "riw")
"""The link type under test. Only this line names it."""

MODULE = os.environ.get("RIW_KO" if DRIVER == "riw" else "SIW_KO", DRIVER)
"""Its module file."""


UML = "-uml-" in platform.release()
"""Whether the kernel is a User-Mode Linux: the RDMA core is built in, and there is no dynamic debug."""

PARAMETERS = Path(f"/sys/module/{DRIVER}/parameters")
"""The module parameters."""

PROVIDER = PARAMETERS / "provider"
"""The module parameter."""

HALF_OPEN = 1024
"""Maximum half-open connections of a listening program."""

TCP_TABLES = ("/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6")
"""The TCP sockets of the current namespace."""


@dataclass
class Node:
    """One end: a namespace (or none), an interface in it, and the RDMA device on it."""

    dev: str
    netdev: str
    addr: str
    addr6: str = ""
    netns: str = ""
    remote: bool = field(default=False)

    def argv(self, *argv):
        """Returns the command line that runs `argv` at this end."""
        if self.remote:
            return ["peer", *map(str, argv)]
        if self.netns:
            return ["ip", "netns", "exec", self.netns, *map(str, argv)]
        return [str(a) for a in argv]

    @property
    def side(self):
        """This end as an argument of the C programs: `ADDRESS` or `ADDRESS%NAMESPACE`."""
        return f"{self.addr}%{self.netns}" if self.netns else self.addr

    def address(self, family):
        """Returns the IPv4 or IPv6 address."""
        return self.addr6 if family == 6 else self.addr

    def tcp_ports(self, state="0A"):
        """Returns the local ports of the TCP sockets in a state (default: listening)."""
        if self.remote:
            text = cmd(["cat", *TCP_TABLES], host=self).stdout
        else:
            with NetNSEnter(self.netns):
                text = "".join(Path(table).read_text(encoding="ascii") for table in TCP_TABLES)
        return {int(port, 16) for port, st in
                re.findall(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ ([0-9A-F]{2}) ", text, re.M)
                if st == state}


    def sctp_ports(self):
        """Returns the local ports of the SCTP sockets that listen."""
        table = "/proc/thread-self/net/sctp/eps"
        if self.remote:
            text = cmd(["cat", table], host=self, fail=False).stdout
        else:
            with NetNSEnter(self.netns):
                text = Path(table).read_text(encoding="ascii") if os.path.exists(table) else ""
        # ENDPT SOCK STY SST HBKT LPORT ...
        return {int(row[5]) for row in map(str.split, text.splitlines()[1:]) if row[3] == "10"}


def wait_port_listen(port, *, host, server=None, deadline=20):
    """Waits until a program listens on a port of a `Node`, by TCP or SCTP. Stops if that is `server` and ends."""
    def listening():
        if server is not None and not server.running:
            raise KsftFailEx(f"server ended: {server}\n{server.output}")
        return port in host.tcp_ports() or port in host.sctp_ports()
    wait_until(listening, deadline, f"a listener on port {port}: {server or ''}")


def ports_connecting_to(node):
    """Returns the ports to which a node has sent a SYN that is not answered."""
    return {int(line.split()[3].rsplit(":", 1)[1])
            for line in cmd("ss -tnH state syn-sent", host=node).stdout.splitlines()}


def tcp_users(node, local=None, remote=None):
    """Returns the numbers of the users who own the TCP connections that have this local or remote port."""
    with NetNSEnter(node.netns):
        text = Path(TCP_TABLES[0]).read_text(encoding="ascii")

    def is_one(row):
        # sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid
        ports = [int(addr.rsplit(":", 1)[1], 16) for addr in row[1:3]]
        return row[3] == "01" and all(want in (None, port) for want, port in zip((local, remote), ports))
    return {int(row[7]) for row in map(str.split, text.splitlines()[1:]) if is_one(row)}


_port = 7000


def new_port():
    """Returns a TCP port that this case has not used yet."""
    global _port
    _port += 1
    return _port


# --- links, namespaces, modules

when_added = []
"""What to call after a device is added, with its name and the name of its namespace."""


def link_add(dev, netdev, netns="", driver=None):
    """Runs `rdma link add` in the namespace of the netdev."""
    rdma(f"link add {dev} type {driver or DRIVER} netdev {netdev}", ns=netns)
    for call in when_added:
        call(dev, netns)


def link_del(dev):
    """Runs `rdma link delete`."""
    rdma(f"link delete {dev}")


@contextmanager
def link_deleted(node):
    """Deletes the RDMA link of a node, and adds it again at the end of the block."""
    rdma(f"link delete {node.dev}", timeout=60)
    try:
        yield
    finally:
        link_add(node.dev, node.netdev, node.netns)


@contextmanager
def provider(name):
    """Sets the user ABI of the devices that are added meanwhile: riw's module parameter `provider`."""
    before = PROVIDER.read_text("ascii").strip()
    PROVIDER.write_text(name, "ascii")
    try:
        yield
    finally:
        PROVIDER.write_text(before, "ascii")


def change_provider(node, name):
    """Replaces the device of a node by one with this user ABI."""
    link_del(node.dev)
    with provider(name):
        link_add(node.dev, node.netdev, node.netns)


def load_tun():
    """Creates /dev/net/tun, unless the driver is built in."""
    if not os.path.exists("/dev/net/tun"):
        cmd("modprobe tun")


def links():
    """Returns the RDMA links: a dict by device name."""
    return {link["ifname"]: link for link in rdma("link", json=True)}


KINDS = ("qp", "cq", "mr", "pd", "srq", "cm_id", "ctx")
"""Object types of `rdma res`."""


def resources(kind, dev="", flags=""):
    """Returns the objects of a type, one of `KINDS`, from `rdma res`. `flags`: "-d", "-dd"."""
    return [row for row in rdma(f"resource show {kind} {flags}", json=True)
            if not dev or row["ifname"] == dev]


def held(*devs, kinds=("qp", "mr", "pd", "cm_id")):
    """Returns the objects of these types that connections hold in devices: ids that listen, and pools
    of CQs, do not belong to connections."""
    return [(kind, row) for dev in devs for kind in kinds
            for row in resources(kind, dev) if row.get("state") != "LISTEN"]


def nothing_held(*devs, timeout=20, **kinds):
    """Waits until connections hold nothing in these devices, as `held` says."""
    try:
        wait_until(lambda: not held(*devs, **kinds), timeout,
                   "all objects of connections are gone")
    except KsftFailEx as reason:
        raise KsftFailEx(f"{reason}\n" + "\n".join(map(str, held(*devs, **kinds)[:20]))) from None


def left_over():
    """Returns all objects that belong to a process, each with its type."""
    return [(kind, row) for kind in KINDS for row in resources(kind) if "pid" in row]


def set_mode(mode):
    """Runs `rdma system set netns MODE`.

    The kernel refuses while any namespace but the first exists, including a deleted one that is
    still being dismantled. Nothing waits for the dismantling.
    """
    def accepted():
        return not rdma(f"system set netns {mode}", fail=False).ret

    try:
        wait_until(accepted, 60, f"rdma system set netns {mode}")
    except KsftFailEx as reason:
        raise KsftFailEx(f"{reason}\n{holders()}") from None


def holders():
    """Lists possible holders of a network namespace: processes in one, its dismantling, RDMA
    objects, and TCP sockets closed by their process ("orphan")."""
    first = os.readlink("/proc/1/ns/net")
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{folder}/comm", encoding="utf-8") as comm, \
                    open(f"{folder}/stack", encoding="ascii") as stack:
                name, calls = comm.read().strip(), stack.read()
            if "cleanup_net" in calls or os.readlink(f"{folder}/ns/net") != first:
                found.append(f"{folder} {name}\n{calls}")
        except OSError:
            pass  # the process has ended
    for kind in ("cm_id", "qp", "ctx"):
        found += [f"{kind} {entry}" for entry in resources(kind) if len(entry) > 2]
    with open("/proc/net/sockstat", encoding="ascii") as sockets:
        found += [line for line in sockets if line.startswith("TCP:")]
    return "\n".join(found)


def setting(dev, name, value=None):
    """Reads or writes a setting of a device."""
    path = next(Path(f"/sys/class/infiniband/{dev}").glob(f"*/{name}"))
    if value is not None:
        with open(path, "w", encoding="ascii") as file:
            file.write(str(value))
    with open(path, encoding="ascii") as file:
        return file.read().strip()


@contextmanager
def settings(*nodes, **values):
    """Gives settings of the devices of `nodes` these values during the block."""
    before = [(node.dev, name, setting(node.dev, name)) for node in nodes for name in values]
    for dev, name, _ in before:
        # A text may be empty, and a file is not written without a byte.
        setting(dev, name, f"{values[name]}\n")
    try:
        yield
    finally:
        for dev, name, value in before:
            setting(dev, name, f"{value}\n")


def unload(host=None):
    """Unloads the module. With lockdep, the kernel keeps a module that has named the lock of a socket, until RCU has
    freed the socket."""
    wait_until(lambda: not cmd(["rmmod", DRIVER], fail=False, host=host).ret, 10, "rmmod")


def set_transport(transport, *nodes):
    """Sets the transport of the devices of `nodes`: tcp, sctp or both."""
    for node in nodes:
        path = Path(f"/sys/class/infiniband/{node.dev}/llp/transport")
        path.write_text(transport, encoding="ascii")


@contextmanager
def rdma_link(dev, netdev, netns="", driver=None):
    """Creates an RDMA device on a netdev."""
    link_add(dev, netdev, netns, driver)
    try:
        yield dev
    finally:
        # There: in the exclusive mode, others do not see it. It would go with its netdev, and its name later.
        rdma(f"link delete {dev}", ns=netns, fail=False)


@contextmanager
def netdev(name, *kind, addr="", addr6="", netns="", mtu=0):
    """Creates an interface: `netdev("d0", "type", "dummy", addr="10.1.1.1/24")`."""
    ip(["link", "add", name, *kind], ns=netns)
    try:
        bring_up(name, addr, addr6, netns, mtu)
        yield name
    finally:
        ip(f"link delete {name}", ns=netns, fail=False)


def bring_up(name, addr="", addr6="", netns="", mtu=0):
    """Adds addresses to an interface and sets it up."""
    if mtu:
        ip(f"link set {name} mtu {mtu}", ns=netns)
    ip(f"link set {name} up", ns=netns)
    if addr:
        ip(f"addr add {addr} dev {name}", ns=netns)
    if addr6:
        ip(f"addr add {addr6} dev {name} nodad", ns=netns)


@contextmanager
def impaired(*nodes, how=("loss", "1%"), must_lose=True):
    """Makes the network lose, delay or reorder packets. `how` are arguments of netem. Fails if packets were to be
    lost, and none was, unless `must_lose` is false."""
    seed = random.getrandbits(32)
    ksft_pr(f"netem {' '.join(map(str, how))} seed {seed}")
    for node in nodes:
        cmd(["tc", "qdisc", "add", "dev", node.netdev, "root", "netem", *how, "seed", seed], host=node)
    try:
        yield
        if must_lose and "loss" in how and not any(map(drops, nodes)):
            raise KsftFailEx(f"no packet was lost: {' '.join(how)}")
    finally:
        for node in nodes:
            cmd(f"tc qdisc del dev {node.netdev} root", fail=False, host=node)


def drops(node):
    """Returns the number of packets that the root qdisc of a node has dropped."""
    rows = tool("tc", f"-s qdisc show dev {node.netdev} root", json=True, host=node)
    return sum(row["drops"] for row in rows)


@contextmanager
def changing_mtu(nodes, mtus):
    """Changes the MTU of the nodes ten times a second."""
    def changes(over):
        for mtu in itertools.cycle(mtus):
            for node in nodes:
                ip(f"link set {node.netdev} mtu {mtu}", ns=node.netns)
            yield
            if over.wait(0.1):
                return

    with meanwhile(changes):
        yield


@contextmanager
def without_chunk(node, chunk):
    """Drops the packets of SCTP with such a chunk that arrive at the node. Yields a function that returns
    how many it has dropped."""
    cmd(["nft", "add table inet wall; add chain inet wall input { type filter hook input priority 0; }; "
         f"add rule inet wall input sctp chunk {chunk} exists counter drop"], host=node)

    def dropped():
        table = cmd("nft list table inet wall", host=node).stdout
        return int(re.search(r"counter packets (\d+)", table)[1])

    try:
        yield dropped
    finally:
        cmd("nft delete table inet wall", host=node)


@contextmanager
def many_addresses(node, count):
    """Gives the interface of a node so many IPv4 addresses, which are the further ones of 10.78.0.0/24."""
    further = [f"10.78.0.{100 + i}/24" for i in range(count - 1)]
    for addr in further:
        ip(f"addr add {addr} dev {node.netdev}", ns=node.netns)
    try:
        yield
    finally:
        for addr in further:
            ip(f"addr delete {addr} dev {node.netdev}", ns=node.netns)


def slow_to_siw(node, to=None):
    """Delays packets from `node` to siw on the node `to`, which may be the same node.

    As the responder, siw sets its callbacks after it sends its Reply, and does not check for data
    that arrived earlier. An early FPDU stays unread until the next one arrives.
    """
    # Packets of a node to itself do not take its interface.
    way = replace(node, netdev="lo") if to == node else node
    return impaired(way, how=("delay", "50ms", "limit", 100000))


def set_up_slowly(client, server):
    """Delays packets to a server on siw, which may not notice one at the end of connection set-up."""
    return slow_to_siw(client, server) if server.dev.startswith("siw") else nullcontext()


# --- networks

SIDES = ("left", "right")
MACS = ("02:78:00:00:00:01", "02:78:00:00:00:02")


@contextmanager
def cable(sides=SIDES):
    """Creates the namespaces `sides`, each with an interface `veth`, connected to each other. An empty
    name is the namespace of the caller."""
    # siw binds wildcard listeners to the indexes of its devices' interfaces, but all in the namespace
    # of the caller. There, equal indexes of two namespaces collide.
    indexes = (["index", 1001], ["index", 1002]) if DRIVER == "siw" else ([], [])
    ends = [["veth", *index, *(["netns", name] if name else []), "address", mac]
            for name, mac, index in zip(sides, MACS, indexes)]
    with ExitStack() as stack:
        for name in filter(None, sides):
            stack.enter_context(NetNS(name))
        ip(["link", "add", *ends[0], "type", "veth", "peer", "name", *ends[1]])
        yield
        # The kernel removes both ends with either namespace, but in the background.
        if "" in sides:
            ip("link delete veth")


@contextmanager
def veth_pair(mtu=0, sides=SIDES):
    """Creates two namespaces connected by veth (see `cable`), each with a device; all traffic crosses
    the veth.

    The neighbours are static: ib_core may miss an answer that arrives before it starts to wait, and
    then waits for the caller's whole time-out.
    """
    with ExitStack() as stack:
        stack.enter_context(cable(sides))
        # IPv6 requires an MTU of 1280 (RFC 8200, section 5).
        six = not 0 < mtu < 1280
        nodes = [Node(f"{DRIVER}{i}", "veth", f"10.78.0.{i + 1}", f"fd78::{i + 1}" if six else "", name)
                 for i, name in enumerate(sides)]
        for node, other, mac in zip(nodes, reversed(nodes), reversed(MACS)):
            bring_up("veth", f"{node.addr}/24", node.addr6 and f"{node.addr6}/64", node.netns, mtu)
            for addr in filter(None, (other.addr, other.addr6)):
                ip(f"neigh add {addr} lladdr {mac} dev veth", ns=node.netns)
        for node in nodes:
            stack.enter_context(rdma_link(node.dev, "veth", node.netns))
        yield nodes


@contextmanager
def veth_here(mtu=0):
    """As `veth_pair`, with both ends in the first network namespace, for kernel users that work only
    there. Packets from one end to the other cross the veth. IPv4 only."""
    nodes = [Node(f"{DRIVER}{i}", f"veth{i}", f"10.78.0.{i + 1}") for i in (0, 1)]
    with ExitStack() as stack:
        ip(["link", "add", "veth0", "address", MACS[0],
            "type", "veth", "peer", "name", "veth1", "address", MACS[1]])
        stack.callback(ip, "link delete veth0")

        def rule(*words):
            ip(["rule", "add", *words])
            stack.callback(ip, ["rule", "delete", *words])

        # What is sent to the other address takes the veth. All else, and what arrives there, looks
        # for a local address first, as by default.
        for table, node, other, mac in zip((1001, 1002), nodes, reversed(nodes), reversed(MACS)):
            bring_up(node.netdev, f"{node.addr}/32", mtu=mtu)
            Path(f"/proc/sys/net/ipv4/conf/{node.netdev}/accept_local").write_text("1", "ascii")
            ip(f"neigh add {other.addr} lladdr {mac} dev {node.netdev}")
            ip(f"route add {other.addr} dev {node.netdev} src {node.addr} table {table}")
            rule("pref", 1, "iif", node.netdev, "lookup", "local")
            rule("pref", 2, "iif", "lo", "to", other.addr, "lookup", table)
        rule("pref", 3, "lookup", "local")
        ip("rule delete pref 0")
        stack.callback(ip, "rule add pref 0 lookup local")
        for node in nodes:
            stack.enter_context(rdma_link(node.dev, node.netdev))
        yield nodes


@contextmanager
def dummy():
    """Creates one device on a dummy interface. Packets to its address take `lo`."""
    with netdev("dummy0", "type", "dummy", addr="10.79.0.1/24", addr6="fd79::1/64"), \
            rdma_link(f"{DRIVER}0", "dummy0") as dev:
        yield Node(dev, "dummy0", "10.79.0.1", "fd79::1")


@contextmanager
def loopback():
    """Creates one device on `lo` itself."""
    with rdma_link(f"{DRIVER}0", "lo") as dev:
        yield Node(dev, "lo", "127.0.0.1", "::1")


@contextmanager
def wire(peer_driver):
    """Yields this VM and the peer VM: (here, there). The runner creates the peer's device."""
    with rdma_link(f"{DRIVER}0", "lab0") as dev:
        yield (Node(dev, "lab0", "10.77.0.1", "fd77::1"),
               Node(f"{peer_driver}0", "lab0", os.environ.get("RIW_PEER", "10.77.0.2"),
                    os.environ.get("RIW_PEER6", "fd77::2"), remote=True))
