# SPDX-License-Identifier: GPL-2.0
"""The networks of the bench, in the machine."""
import contextlib
import os
from pathlib import Path

import lab
import nfs
from utils import cmd

import encryption

LONGEST_FPDU = 64774
MTU = {"veth1500": 1500, "veth9000": 9000, "here1500": 1500}


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


def choose_framing(contender, row, *nodes):
    """Sets CRCs, markers and the length of FPDUs at both ends as the row requires. siw has no settings:
    see module()."""
    if contender == "riw":
        for node in nodes:
            lab.setting(node.dev, "crc", 2 if row.framing == "CRC" else 0)
            lab.setting(node.dev, "markers", 1 if row.framing == "markers" else 0)
            choose_length(node.dev, LONGEST_FPDU if row.framing == "long FPDUs" else 0)


def choose_length(dev, bytes):
    """Sets the length of the longest FPDU; 0: of a TCP segment. That is so in older revisions of riw,
    which have no setting for it."""
    if bytes or Path(f"/sys/class/infiniband/{dev}/mpa/fpdu_max").exists():
        lab.setting(dev, "fpdu_max", bytes)


def choose_transport(transport, *nodes):
    """Sets the transport at both ends of a new network, if it is to be another one than TCP. Older
    revisions of riw have no setting for it."""
    if transport and nodes[0].dev:
        lab.set_transport(transport.lower(), *nodes)
