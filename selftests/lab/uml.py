# SPDX-License-Identifier: GPL-2.0
"""A machine that is a User-Mode Linux: the same root, agent and programs as in the
VMs of machine.py, at the speed of the host, on a kernel built by uml-kernel."""
import contextlib
import socket
import subprocess

import machine

FOLDER = machine.LAB / "uml"
CPUS = 2
# What a flavour is started with. SLUB checks, but does not note who allocated and freed each
# object: half of the time would go into that, and kmemleak knows the one of them (KASAN both).
# Suites run when they are told to.
PARAMETERS = {"debug": ["slab_debug=FZP", "kunit.enable=1"], "kasan": ["kunit.enable=1"]}

# Everything in namespaces of their own, which go with the machine: its mounts, and its
# processes (a User-Mode Linux runs each program of its users in one of the host's).
ENTER = ["setpriv", "--pdeathsig", "KILL",
         "unshare", "--mount", "--pid", "--fork", "--kill-child=KILL"]
BOOT = """
root=$1 repo=$2 kernel=$3 results=$4
shift 4
mount --bind "$repo" "$root/riw"
mount -o remount,bind,ro "$root/riw"
mount --bind "$kernel" "$root/lab"
mount -o remount,bind,ro "$root/lab"
mount --bind "$results" "$root/results"
mount -t proc proc "$root/proc"
mount -t tmpfs -o size=100% tmpfs "$root/tmp"
# Not as the first process of its namespace, which could not end by a signal, as a
# User-Mode Linux that panics does.
env -i PATH=/usr/sbin:/usr/bin HOME=/tmp TMPDIR=/tmp chroot "$root" /lab/linux "$@" || exit
"""
# The wire between two machines: a veth pair in a network namespace of the host that is
# theirs alone, silent but for them.
WIRE = """
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
for name in lab mgmt; do
	ip link add ${name}1 type veth peer name ${name}2
	ip link set ${name}1 up
	ip link set ${name}2 up
done
echo
exec sleep infinity
"""


@contextlib.contextmanager
def wire():
    """Makes the namespace with the wires between two machines; yields its path."""
    with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net",
                           "/bin/bash", "-euc", WIRE], stdout=subprocess.PIPE) as holder:
        try:
            if not holder.stdout.readline():
                raise machine.MachineDied("no wire between the machines")
            yield f"/proc/{holder.pid}/ns/net"
        finally:
            holder.kill()


class Machine(machine.Machine):
    """One User-Mode Linux of a flavour (debug, fast …)."""

    def __init__(self, flavour, role, logs, results, mem, netns=None, cpus=CPUS):
        # pylint: disable=super-init-not-called # all that differs is how it is started
        self.role = role
        for folder in logs, results:
            folder.mkdir(parents=True, exist_ok=True)
        self.console = logs / f"console-{role}.log"
        self.port, theirs = socket.socketpair()
        self.received = b""
        arguments = [
            f"mem={mem}M", f"ncpus={cpus}", "seccomp=on",
            "root=/dev/root", "rootfstype=hostfs", "ro",
            "init=/riw/selftests/lab/guest/uml-init",
            # No interfaces but those that the cases make.
            "dummy.numdummies=0", "bonding.max_bonds=0",
            *PARAMETERS.get(flavour, ()),
            "con0=null,fd:1", "con=null", f"ssl0=fd:{theirs.fileno()}", "ssl=null",
            f"RIW_ROLE={role}", f"RIW_DRIVER={machine.DRIVER}",
            f"RIW_KO=/riw/build/uml-{flavour}/riw.ko", f"RIW_KHZ={machine.tsc_khz()}",
            "RIW_PORT=/dev/ttyS0"]
        enter = ENTER
        if netns:
            index = {"case": 1, "peer": 2}[role]
            enter = ["nsenter", f"--net={netns}", *ENTER]
            arguments += [f"vec{number}:transport=raw,ifname={name}{index},depth=64,"
                          f"mac=52:54:00:00:0{index}:0{number + 1}"
                          for number, name in enumerate(("lab", "mgmt"))]
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen(
                [*enter, "/bin/bash", "-euc", BOOT, "uml", machine.lab().root,
                 machine.REPO, FOLDER / flavour, results, *arguments],
                stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()])
        theirs.close()


@contextlib.contextmanager
def machines(flavour, number, logs, results, mem=machine.DEFAULT_MEM):
    """As machine.machines, of a flavour of User-Mode Linux."""
    with contextlib.ExitStack() as stack:
        netns = stack.enter_context(wire()) if number == 2 else None
        booted = [stack.enter_context(Machine(flavour, role, logs, results, mem, netns))
                  for role in ["case", "peer"][:number]]
        for one in booted:
            one.wait_ready()
        yield booted
