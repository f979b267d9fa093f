# SPDX-License-Identifier: GPL-2.0
"""A machine that is a User-Mode Linux: a kernel that uml-kernel has built, with the root, agent and
programs of the VMs of machine.py, at the speed of the host."""
import contextlib
import socket
import subprocess

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

# The mounts and the processes of the machine are in private namespaces, which end with it. (A
# User-Mode Linux runs each of its user processes in a process of the host.)
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
# No exec: the kernel must not be the first process of its PID namespace. A User-Mode Linux ends a
# panic with a signal to itself, which the first process would ignore.
env -i PATH=/usr/sbin:/usr/bin HOME=/tmp TMPDIR=/tmp chroot "$root" /lab/linux "$@" || exit
"""


def kernel(flavour):
    """The folder of a kernel that uml-prepare has built for this checkout."""
    return FOLDER / (machine.REPO / f"build/uml-{flavour}/kernel").read_text().strip()


class Machine(machine.Machine):
    """One User-Mode Linux of a flavour (debug, fast …)."""

    def __init__(self, flavour, role, logs, results, mem, wires=(), cpus=CPUS, lockdep=False):
        # pylint: disable=super-init-not-called # that would start QEMU
        self.role = role
        for folder in logs, results:
            folder.mkdir(parents=True, exist_ok=True)
        self.console = logs / f"console-{role}.log"
        self.port, theirs = socket.socketpair()
        self.received = b""
        self.start = 0
        arguments = [
            f"mem={mem}M", f"ncpus={cpus}", "seccomp=on",
            "root=/dev/root", "rootfstype=hostfs", "ro",
            "init=/riw/selftests/lab/guest/uml-init",
            # Only the cases create interfaces and block devices.
            "dummy.numdummies=0", "bonding.max_bonds=0", "null_blk.nr_devices=0",
            *machine.PATIENCE, *PARAMETERS.get(flavour, ()),
            *(NO_LOCKDEP if flavour in ("check", "series", "coverage") and not lockdep else ()),
            "con0=null,fd:1", "con=null", f"ssl0=fd:{theirs.fileno()}", "ssl=null",
            f"RIW_ROLE={role}", f"RIW_DRIVER={machine.DRIVER}",
            f"RIW_KO=/riw/build/uml-{flavour}/riw.ko", f"RIW_KHZ={machine.tsc_khz()}",
            "RIW_PORT=/dev/ttyS0"]
        index = {"case": 1, "peer": 2}[role]
        arguments += [f"vec{number - 1}:transport=fd,fd={wire.fileno()},depth=64,"
                      f"mac=52:54:00:00:0{index}:0{number}"
                      for number, wire in enumerate(wires, 1)]
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen(
                [*ENTER, "/bin/bash", "-euc", BOOT, "uml", machine.lab().root,
                 machine.REPO, kernel(flavour), results, *arguments],
                stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno(), *(wire.fileno() for wire in wires)])
        theirs.close()
        for wire in wires:
            wire.close()


@contextlib.contextmanager
def machines(flavour, number, logs, results, mem=machine.DEFAULT_MEM, lockdep=False):
    """As machine.machines(), with a flavour of User-Mode Linux."""
    with contextlib.ExitStack() as stack:
        # SOCK_SEQPACKET: one message per packet. A sender waits for room.
        yield machine.boot(stack, lambda: (
            Machine(flavour, role, logs, results, mem, ends, lockdep=lockdep)
            for role, ends in machine.roles(number, socket.SOCK_SEQPACKET)))
