# SPDX-License-Identifier: GPL-2.0
"""WireGuard between two namespaces."""

import os
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lab import DRIVER, SIDES, Node, bring_up, cable, netdev, rdma_link
from utils import cmd

ADDRS = ("10.80.0.1", "10.80.0.2")
PORT = 51820
OVERHEAD = 80
"""By how much the MTU of a tunnel is below that of the network: the headers of IPv6, UDP and WireGuard."""


def _private(name):
    """Makes a private key. Returns the path of its file."""
    path = Path.cwd() / f"{name}.wireguard"
    path.touch(0o600)
    path.write_text(cmd(["wg", "genkey"]).stdout, "ascii")
    return path


def _public(private):
    """Returns the public key of a private one."""
    return cmd(["sh", "-c", f"wg pubkey <{private}"]).stdout.strip()


def _use(node, private):
    """Lets an end use a private key."""
    cmd(["wg", "set", "wg0", "private-key", private], host=node)


@contextmanager
def other_key(node):
    """An end has a key meanwhile that the other one does not know."""
    other = _private("other")
    _use(node, other)
    yield
    _use(node, Path.cwd() / f"{node.netns}.wireguard")
    os.remove(other)


@contextmanager
def tunnel(mtu=0, devices=True):
    """Creates two namespaces connected by veth, and a tunnel of WireGuard over it, with a device on each end if there
    are to be `devices`. `mtu`: that of veth. Yields both ends, and the left interface that carries what the tunnel
    sends."""
    nodes = [Node(f"{DRIVER}{at}" if devices else "", "wg0", ADDRS[at], netns=name) for at, name in enumerate(SIDES)]
    keys = [_private(name) for name in SIDES]
    with ExitStack() as stack:
        stack.callback(lambda: [os.remove(key) for key in keys])
        stack.enter_context(cable())
        for at, node in enumerate(nodes):
            bring_up("veth", f"10.78.0.{at + 1}/24", netns=node.netns, mtu=mtu)
            stack.enter_context(netdev("wg0", "type", "wireguard", addr=f"{node.addr}/24", netns=node.netns,
                                       mtu=mtu and mtu - OVERHEAD))
            _use(node, keys[at])
            cmd(["wg", "set", "wg0", "listen-port", PORT, "peer", _public(keys[1 - at]), "allowed-ips",
                 f"{ADDRS[1 - at]}/32", "endpoint", f"10.78.0.{2 - at}:{PORT}"], host=node)
            if devices:
                stack.enter_context(rdma_link(node.dev, "wg0", node.netns))
        yield *nodes, Node("", "veth", "10.78.0.1", netns=SIDES[0])
