# SPDX-License-Identifier: GPL-2.0
"""IPsec between two nodes: ESP in transport mode, with AES-GCM and keys that are given."""

from utils import ip

ESP = "50"
"""The protocol number of ESP."""

KEYS = ("0x" + "5a" * 20, "0x" + "a5" * 20)
"""Two keys of AES-GCM, with their salts."""

SPIS = (0x1001, 0x1002)


def states(nodes, keys):
    """Sets the security associations of both directions at each node, which has its key of `keys`."""
    ends = [node.addr for node in nodes]
    for node, key in zip(nodes, keys):
        ip("xfrm state flush", ns=node.netns)
        for (source, to), spi in zip((ends, reversed(ends)), SPIS):
            ip(["xfrm", "state", "add", "src", source, "dst", to, "proto", "esp", "spi", hex(spi),
                "reqid", "1", "mode", "transport", "aead", "rfc4106(gcm(aes))", key, "128"],
               ns=node.netns)


def policies(node, other):
    """Requires ESP for all packets between two nodes, at the first one."""
    for way, source, to in (("out", node, other), ("in", other, node)):
        ip(["xfrm", "policy", "add", "src", f"{source.addr}/32", "dst", f"{to.addr}/32", "dir", way,
            "tmpl", "src", source.addr, "dst", to.addr, "proto", "esp", "reqid", "1", "mode",
            "transport"], ns=node.netns)


def protect(left, right, keys=KEYS[:1] * 2):
    """Lets all packets between two nodes cross the wire by ESP only. Their namespaces' ends undo it."""
    states((left, right), keys)
    policies(left, right)
    policies(right, left)
