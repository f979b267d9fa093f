# SPDX-License-Identifier: GPL-2.0
"""A machine that is a User-Mode Linux: a kernel that uml-kernel has built, with the root, agent and
programs of the VMs of machine.py, at the speed of the host."""
import contextlib
import os
import socket
import subprocess
import sys

import machine

FOLDER = machine.LAB / "uml"
CPUS = 2
# The kernel parameters of a flavour. SLUB checks objects, but does not record where they were
# allocated and freed: that would take half of the time, and kmemleak records the allocation (KASAN
# both). KUnit suites run on request only. A soak of hours logs some MiB, which are read at its end.
# The bench needs short system calls: patches/source/pin-cpus.patch.
PARAMETERS = {"debug": ["slab_debug=FZP", "kunit.enable=1", "log_buf_len=8M"],
              "check": ["kunit.enable=1", "kasan_multi_shot", "log_buf_len=8M"],
              "fast": ["pin_cpus"]}
PARAMETERS["series"] = PARAMETERS["coverage"] = PARAMETERS["check"]
# Those of the kernel `check`, unless lockdep and debug objects are wanted: patches/debug/debug_locks.h.
NO_LOCKDEP = ["debug_locks=0", "no_debug_objects"]

# The links between the two machines of pair(): the name of the interface at both ends, which continues those of the
# wires, and its MTU. The driver accepts no longer one than 65534.
LINKS = {"vec2": 1500, "vec3": 9000, "vec4": 65534}
# A link takes more than the largest receive window of TCP, so it is never full: the driver would try again and again
# meanwhile, and the sender would need more CPU time for a receiver that is slow.
LINK_BUFFER = 16 << 20
SO_SNDBUFFORCE = 32  # the socket module lacks it
# Interrupts and the kernel come before the processes of a machine, as on hardware: its processes are those of the host
# that the kernel forks.
KERNEL_FIRST = "nice -n -20 chrt --reset-on-fork --other 0"

# The mounts and the processes of the machine are in private namespaces, which end with it. (A
# User-Mode Linux runs each of its user processes in a process of the host.)
ENTER = ["setpriv", "--pdeathsig", "KILL",
         "unshare", "--mount", "--pid", "--fork", "--kill-child=KILL"]
BOOT = """
root=$1 repo=$2 kernel=$3 results=$4 before=$5
shift 5
mount --bind "$repo" "$root/riw"
mount -o remount,bind,ro "$root/riw"
mount --bind "$kernel" "$root/lab"
mount -o remount,bind,ro "$root/lab"
mount --bind "$results" "$root/results"
mount -t proc proc "$root/proc"
mount -t tmpfs -o size=100% tmpfs "$root/tmp"
# No exec: the kernel must not be the first process of its PID namespace. A User-Mode Linux ends a
# panic with a signal to itself, which the first process would ignore.
# shellcheck disable=SC2086 # words of a command
$before env -i PATH=/usr/sbin:/usr/bin HOME=/tmp TMPDIR=/tmp chroot "$root" /lab/linux "$@" || exit
"""


def kernel(flavour):
    """The folder of a kernel that uml-prepare has built for this checkout."""
    return FOLDER / (machine.REPO / f"build/uml-{flavour}/kernel").read_text().strip()


class Machine(machine.Machine):
    """One User-Mode Linux of a flavour (debug, fast …). `links`: its ends of those in LINKS. `host_cpu`: it has one
    CPU, which is this one of the host."""

    def __init__(self, flavour, role, logs, results, mem, wires=(), cpus=CPUS, lockdep=False, links=(), host_cpu=None):
        # pylint: disable=super-init-not-called # that would start QEMU
        self.role = role
        for folder in logs, results:
            folder.mkdir(parents=True, exist_ok=True)
        self.console = logs / f"console-{role}.log"
        self.port, theirs = socket.socketpair()
        self.received = b""
        self.start = 0
        alone = host_cpu is not None
        arguments = [
            f"mem={mem}M", f"ncpus={1 if alone else cpus}", "seccomp=on",
            "root=/dev/root", "rootfstype=hostfs", "ro",
            "init=/riw/selftests/lab/guest/uml-init",
            # Only the cases create interfaces and block devices.
            "dummy.numdummies=0", "bonding.max_bonds=0", "null_blk.nr_devices=0",
            *machine.PATIENCE, *(() if alone else PARAMETERS.get(flavour, ())),
            *(NO_LOCKDEP if flavour in ("check", "series", "coverage") and not lockdep else ()),
            "con0=null,fd:1", "con=null", f"ssl0=fd:{theirs.fileno()}", "ssl=null",
            f"RIW_ROLE={role}", f"RIW_DRIVER={machine.DRIVER}",
            f"RIW_KO=/riw/build/uml-{flavour}/riw.ko", f"RIW_KHZ={machine.tsc_khz()}",
            "RIW_PORT=/dev/ttyS0"]
        index = {"case": 1, "peer": 2}[role]
        arguments += [f"vec{number - 1}:transport=fd,fd={wire.fileno()},depth=64,"
                      f"mac=52:54:00:00:0{index}:0{number}"
                      for number, wire in enumerate(wires, 1)]
        # gro=1: room for 64 KiB.
        arguments += [f"{name}:transport=fdvnet,fd={end.fileno()},mtu={mtu},gro=1,"
                      f"mac=52:54:00:00:0{index}:1{name[-1]}"
                      for (name, mtu), end in zip(LINKS.items(), links)]
        ends = [*wires, *links]
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen(
                [*(["taskset", "-c", str(host_cpu)] if alone else []), *ENTER,
                 "/bin/bash", "-euc", BOOT, "uml", machine.lab().root, machine.REPO, kernel(flavour), results,
                 KERNEL_FIRST if alone else "", *arguments],
                stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno(), *(end.fileno() for end in ends)])
        theirs.close()
        for end in ends:
            end.close()


@contextlib.contextmanager
def machines(flavour, number, logs, results, mem=machine.DEFAULT_MEM, lockdep=False):
    """As machine.machines(), with a flavour of User-Mode Linux."""
    with contextlib.ExitStack() as stack:
        # SOCK_SEQPACKET: one message per packet. A sender waits for room.
        yield machine.boot(stack, lambda: (
            Machine(flavour, role, logs, results, mem, ends, lockdep=lockdep)
            for role, ends in machine.roles(number, socket.SOCK_SEQPACKET)))


def link():
    """Returns the two ends of a link, for packets of up to 64 KiB with a virtio_net_hdr."""
    ends = socket.socketpair(type=socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, LINK_BUFFER)
    return ends


def host_cpus():
    """Returns the CPUs of the host for two machines. Exits if it has only one."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        sys.exit("riw lab: two machines need two CPUs of the host")
    return cpus[:2]


@contextlib.contextmanager
def pair(flavour, logs, results, mem):
    """Boots two machines of one CPU each, on a CPU of the host of its own, joined by the links in LINKS. Their kernel
    has patches/fast/vnet.h."""
    def start():
        links = zip(*(link() for _ in LINKS))
        for (role, wires), ends, host_cpu in zip(machine.roles(2, socket.SOCK_SEQPACKET), links, host_cpus()):
            yield Machine(flavour, role, logs, results, mem, wires, links=ends, host_cpu=host_cpu)

    with contextlib.ExitStack() as stack:
        yield machine.boot(stack, start)
