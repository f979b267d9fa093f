# SPDX-License-Identifier: GPL-2.0
"""The kernel's tables of SCTP in the namespace of a node: /proc/net/sctp."""
import ipaddress
from dataclasses import dataclass

from utils import cmd

LISTENING = "10"


@dataclass
class Association:
    """A line of `assocs`. The addresses are sets of strings, `queued` is the bytes of its transmit queue, `user`
    the number of the user who owns the socket."""
    sock: str
    queued: int
    user: int
    local_port: int
    peer_port: int
    local: set
    peer: set


def rows(node, table):
    """Returns the lines of a table, each as a dictionary. Of a list in a column, it has the first element, and
    the columns behind it are wrong."""
    head, *lines = cmd(f"cat /proc/net/sctp/{table}", host=node).stdout.splitlines()
    return [dict(zip(head.split(), line.split())) for line in lines]


def associations(node, fail=True):
    """Returns the associations. Fails if they cannot be read, as when SCTP is not loaded; without `fail`, there
    are none then."""
    found = []
    for line in cmd("cat /proc/net/sctp/assocs", fail=fail, host=node).stdout.splitlines()[1:]:
        # Behind the addresses is a tab: ASSOC SOCK STY SST ST HBKT ASSOC-ID TX_QUEUE RX_QUEUE UID INODE LPORT
        # RPORT LADDRS <-> RADDRS.
        local, peer = line.split("\t")[0].split("<->")
        words = local.split()
        found.append(Association(words[1], int(words[7]), int(words[9]), int(words[11]), int(words[12]),
                                 addresses(words[13:]), addresses(peer.split())))
    return found


def addresses(words):
    """Returns addresses in their canonical form. The primary one has a star."""
    return {str(ipaddress.ip_address(word.strip("*"))) for word in words}


def not_accepted(node):
    """Returns the associations that wait at a listener."""
    listeners = {row["SOCK"] for row in rows(node, "eps") if row["SST"] == LISTENING}
    return [found for found in associations(node) if found.sock in listeners]
