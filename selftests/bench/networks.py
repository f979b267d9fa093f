# SPDX-License-Identifier: GPL-2.0
"""The networks of the bench, in the machine."""
import contextlib
import os
from pathlib import Path

import lab
import nfs
from ksft import KsftFailEx
from utils import cmd, ip, rdma

import encryption

LONGEST_FPDU = 64774
MTU = {"veth1500": 1500, "veth9000": 9000, "here1500": 1500}
# The interface of each network of two machines, as lab/uml.py names it. It has its MTU from the start, and stays up:
# the driver closes the link when the interface goes down.
LINKS = {"two1500": "vec2", "two9000": "vec3", "two65534": "vec4"}


def module(contender, row):
    """Returns the module to measure a row with, "" for TCP. siw has a separate module for rows with
    CRCs: there CRCs are a constant."""
    if contender == "tcp":
        return ""
    if contender == "siw" and row.framing == "CRC":
        return os.environ["SIW_CRC_KO"]
    return lab.MODULE


def sides(contender, row):
    """Returns the namespaces of the two ends of a network of veth to measure a row on."""
    return nfs.sides(contender) if row.kind == "nfs" else lab.SIDES


@contextlib.contextmanager
def network(name, module_file, where, encrypted_by=""):
    """Creates a network and yields its two ends, that of the client first. They have RDMA devices if
    there is a module. `where`: the namespaces of veth. `encrypted_by`: TLS or WireGuard. TLS is set up for
    devices only: without, each program does so for its own connections."""
    if name in LINKS:
        with two_machines(LINKS[name], module_file) as pair:
            yield pair
        return
    if module_file:
        cmd(f"insmod {module_file}")
    try:
        with ends(name, bool(module_file), where, encrypted_by) as pair:
            yield pair
    finally:
        if module_file:
            cmd(f"rmmod {lab.DRIVER}", timeout=30)


@contextlib.contextmanager
def ends(name, devices, where, encrypted_by):
    """As `network`, with the module loaded."""
    if encrypted_by:
        encryption.use_instructions()
    if encrypted_by == "WireGuard":
        with encryption.wireguard_pair(MTU[name], devices) as pair:
            yield pair
    elif name == "lo":
        with lab.dummy() if devices else plain_dummy() as node:
            yield node, node
    elif name == "here1500":
        with lab.veth_here(MTU[name]) as pair:
            yield pair
    elif devices:
        with lab.veth_pair(MTU[name], where) as pair, \
                encryption.tls_required(*pair) if encrypted_by else contextlib.nullcontext():
            yield pair
    else:
        with plain_pair(MTU[name], where) as pair:
            yield pair


@contextlib.contextmanager
def plain_dummy():
    """Creates a dummy interface without a device."""
    with lab.netdev("dummy0", "type", "dummy", addr="10.79.0.1/24"):
        yield lab.Node("", "dummy0", "10.79.0.1")


@contextlib.contextmanager
def plain_pair(mtu, where):
    """Creates two namespaces connected by veth, without devices."""
    with lab.cable(where):
        nodes = [lab.Node("", "veth", f"10.78.0.{i + 1}", netns=side) for i, side in enumerate(where)]
        for node in nodes:
            lab.bring_up("veth", f"{node.addr}/24", netns=node.netns, mtu=mtu)
        yield nodes


@contextlib.contextmanager
def two_machines(netdev, module_file):
    """Yields this machine and its peer, joined by the link that ends at this interface in both. They have RDMA devices
    if there is a module. The neighbours are static, as those of `lab.veth_pair`."""
    dev = f"{lab.DRIVER}0" if module_file else ""
    nodes = [lab.Node(dev, netdev, f"10.80.0.{i + 1}", remote=remote) for i, remote in enumerate((False, True))]
    macs = [cmd(f"cat /sys/class/net/{netdev}/address", host=node).stdout.strip() for node in nodes]
    with contextlib.ExitStack() as stack:
        for node, other, mac in zip(nodes, reversed(nodes), reversed(macs)):
            ip(f"link set {netdev} up", host=node)
            if "tcp-segmentation-offload: on" not in cmd(f"ethtool -k {netdev}", host=node).stdout:
                raise KsftFailEx(f"{netdev} does not take whole segments")
            ip(f"addr add {node.addr}/24 dev {netdev}", host=node)
            stack.callback(ip, f"addr flush dev {netdev}", host=node)
            ip(f"neigh replace {other.addr} lladdr {mac} dev {netdev}", host=node)
        for node in nodes if module_file else ():
            cmd(f"insmod {module_file}", host=node)
            stack.callback(cmd, f"rmmod {lab.DRIVER}", host=node, timeout=30)
            rdma(f"link add {dev} type {lab.DRIVER} netdev {netdev}", host=node)
            stack.callback(rdma, f"link delete {dev}", host=node)
        yield nodes


def put(node, name, value):
    """Writes a setting of the device of a node."""
    if node.remote:
        cmd(["sh", "-c", f'for file in /sys/class/infiniband/{node.dev}/*/{name}; do echo {value} >"$file"; done'],
            host=node)
    else:
        lab.setting(node.dev, name, value)


def choose_framing(contender, row, *nodes):
    """Sets CRCs, markers and the length of FPDUs at both ends as the row requires. siw has no settings:
    see module()."""
    if contender == "riw":
        for node in nodes:
            put(node, "crc", 2 if row.framing == "CRC" else 0)
            put(node, "markers", 1 if row.framing == "markers" else 0)
            choose_length(node, LONGEST_FPDU if row.framing == "long FPDUs" else 0)


def choose_length(node, bytes):
    """Sets the length of the longest FPDU; 0: of a TCP segment. That is so in older revisions of riw,
    which have no setting for it."""
    if bytes or not node.remote and Path(f"/sys/class/infiniband/{node.dev}/mpa/fpdu_max").exists():
        put(node, "fpdu_max", bytes)


def choose_transport(transport, *nodes):
    """Sets the transport at both ends of a new network, if it is to be another one than TCP. Older
    revisions of riw have no setting for it."""
    if transport and nodes[0].dev:
        for node in nodes:
            put(node, "transport", transport.lower())
