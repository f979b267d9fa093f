# SPDX-License-Identifier: GPL-2.0
"""TLS and WireGuard for the networks of the bench, in the machine, and the proof that they have encrypted what was
measured."""
import contextlib
from pathlib import Path

import counters
import lab
import tls
import wireguard
from ksft import KsftFailEx
from netns import NetNSEnter
from utils import cmd, ip

# tlshd chooses this cipher by default, with certificates. Connections of TCP alone have it, too: see ktls.c.
CIPHER = "aes-256-gcm"
# At most so many packets on the wire are not those of the tunnel: ARP, and announcements of IPv6.
OTHER_PACKETS = 20


def use_instructions():
    """Lets the kernel use the CPU's instructions for AES. udev does so on a real machine, and User-Mode Linux has
    them built in, if at all."""
    if not lab.UML:
        cmd(["modprobe", "aesni_intel"])


@contextlib.contextmanager
def tls_required(client, server):
    """Lets the devices of two nodes connect by TLS only, with certificates. Fails if a connection does not have what
    the table says."""
    ours = tls.Authority()
    with tls.tlshd(client, ours, ours.issue(client.addr)), tls.tlshd(server, ours, ours.issue(server.addr)), \
            tls.required(client, server):
        with tls.connected(client, server) as both:
            for found in both:
                if (found.get("transport"), found.get("cipher")) != ("tls", CIPHER):
                    raise KsftFailEx(f"failed: a connection without TLS by {CIPHER}: {found}")
        yield


@contextlib.contextmanager
def wireguard_pair(mtu, devices):
    """Creates two namespaces with a tunnel over veth. Yields its ends."""
    with wireguard.tunnel(mtu, devices) as (client, server, _):
        yield client, server


def read(node, name):
    """Returns a file of /proc/net in the namespace of a node."""
    with NetNSEnter(node.netns):
        return Path(f"/proc/thread-self/net/{name}").read_text("ascii")


def connections(node):
    """Returns how many connections a node has opened and accepted: its device, or TCP if it has none."""
    if node.dev:
        found = counters.read(node)
        return found["connections_opened"] + found["connections_accepted"]
    names, values = (line.split() for line in read(node, "snmp").splitlines() if line.startswith("Tcp:"))
    found = dict(zip(names, values))
    return int(found["ActiveOpens"]) + int(found["PassiveOpens"])


def tls_connections(node):
    """Returns how many connections of a node the kernel has encrypted and decrypted."""
    found = dict(line.split() for line in read(node, "tls_stat").splitlines())
    return min(int(found["TlsTxSw"]), int(found["TlsRxSw"]))


def packets(node, netdev):
    """Returns how many packets an interface of a node has sent."""
    row, = ip(["-s", "link", "show", netdev], json=True, ns=node.netns)
    return row["stats64"]["tx"]["packets"]


def by_tls(node, before, after):
    """Checks that all new connections of a node have TLS. Takes how many there were, and how many of them had TLS."""
    new, encrypted = (now - then for then, now in zip(before, after))
    if not 0 < new <= encrypted:
        raise KsftFailEx(f"failed: TLS for {encrypted} of the {new} new connections of {node.netns}")


def by_wireguard(node, before, after):
    """Checks that what a node has sent has gone through the tunnel. Takes the packets of the wire and of the tunnel."""
    sent, encrypted = (now - then for then, now in zip(before, after))
    if not 0 < encrypted or sent - encrypted > OTHER_PACKETS:
        raise KsftFailEx(f"failed: {encrypted} of the {sent} packets of {node.netns} are the tunnel's")


# For each kind of encryption: a function that returns two counts of a node, of all traffic and of what is encrypted,
# and one that checks their change.
PROOFS = {"TLS": (lambda node: (connections(node), tls_connections(node)), by_tls),
          "WireGuard": (lambda node: (packets(node, "veth"), packets(node, node.netdev)), by_wireguard)}


@contextlib.contextmanager
def proven(encrypted_by, *nodes):
    """Fails at the end of the block if its traffic between two nodes was not encrypted by this, unless that is ""."""
    if not encrypted_by:
        yield
        return
    count, check = PROOFS[encrypted_by]
    before = [count(node) for node in nodes]
    yield
    for node, then in zip(nodes, before):
        check(node, then, count(node))
