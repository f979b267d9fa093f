# SPDX-License-Identifier: GPL-2.0
"""A virtual machine that runs the stock kernel on the lab's Debian root. An agent in it runs
commands."""
import collections
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
LAB = pathlib.Path(os.environ.get("RIW_LAB") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "riw"))

# The module under test: riw, or siw to compare the two.
DRIVER = os.environ.get("RIW_DRIVER", "riw")
# The user library of riw's devices: each case's own choice, or riw for all cases.
PROVIDER = os.environ.get("RIW_PROVIDER")
# The transport of riw's devices: each case's own choice, or this one for all cases.
TRANSPORT = os.environ.get("RIW_TRANSPORT")
# The kernel: the stock one, or a flavour of User-Mode Linux (see uml.py).
KERNEL = os.environ.get("RIW_KERNEL", "stock")
# The target: a row of selftests/reach/targets, whose kernel and root take the place of the stock ones. It has a
# folder of what is built for it, relative to the repository.
TARGET = os.environ.get("RIW_TARGET", "stock")
BUILD = "build" if TARGET == "stock" else f"build/reach/{TARGET}"

BOOT_LIMIT = 300  # s; an emulated machine on a busy host is slow
BOOT_ATTEMPTS = 3
PROBE_LIMIT = 15
PROBE_KEPT = 24 * 60 * 60
DEFAULT_MEM = 2048  # MiB
# Seconds that the agent may take to answer, or to report that a command exceeded its time limit.
GRACE = 30


class MachineDied(Exception):
    """The VM is gone, no longer answers, or is not fit for tests."""


Lab = collections.namedtuple("Lab", "root kernel boot libraries emulator")


@functools.cache
def lab():
    """Returns what the script `prepare` prints: the folders of the lab, and the emulator. Builds missing ones."""
    done = subprocess.run([HERE / "prepare"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(1)
    return Lab(*map(pathlib.Path, done.stdout.splitlines()))


@contextlib.contextmanager
def alone(folder):
    """Locks `folder` for this run: another run would remove or overwrite its files. Exits if
    another run holds the lock."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"riw lab: another run is using {folder}: wait for it, or end it")
        yield


def writer(stream):
    """Returns a function that writes the output of a command in a machine to `stream` at once."""
    def write(data):
        stream.buffer.write(data)
        stream.flush()
    return write


# A CPU of a machine gets no time for seconds if the host is busy. So a soft lockup is reported after 60 s, which is
# twice the threshold.
PATIENCE = ["watchdog_thresh=30", "rcupdate.rcu_cpu_stall_timeout=60"]
PARAMETERS = [
    "loglevel=7", "panic=-1", "log_buf_len=1M",
    # Mitigations are slow in emulation and protect nothing here. With address space randomization,
    # the emulator translates the code of each process again: starting one takes twice as long.
    "mitigations=off", "norandmaps",
    *PATIENCE,
]
# Of each emulator: the machine, and further parameters of the kernel.
MACHINES = {
    "qemu-system-x86_64": (["-cpu", "max,-erms"], [
        "console=ttyS0",
        # perftest calibrates against this clock.
        "tsc=reliable",
        # An emulated CPU may stop for seconds without a fault of its timer.
        "no_timer_check"]),
    # Its authentication of pointers is the slowest part of an emulated CPU, and checks nothing of ours.
    "qemu-system-aarch64": (["-machine", "virt", "-cpu", "max,pauth=off"], ["console=ttyAMA0"]),
}


def tsc_khz():
    """Returns the frequency of the time stamp counter, in kHz, as text."""
    return subprocess.run([lab().boot / "tsc"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


ACCELERATORS = {
    "kvm": ["-accel", "kvm"],
    "tcg": ["-accel", "tcg,thread=multi"],
    # The clocks count instructions, one a nanosecond. One CPU only.
    "icount": ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"],
}


def emulator():
    """Returns the command that runs the QEMU of the stock kernel's root on the host. Debian 12's own, 7.2, may execute
    code that the kernel has just replaced, which ends in "Oops: int3"; 8.1 mended that."""
    usr = lab().libraries / "usr"
    libraries = usr / "lib/x86_64-linux-gnu"
    return ["env", f"QEMU_MODULE_DIR={libraries}/qemu",
            usr / "lib64/ld-linux-x86-64.so.2", "--library-path", libraries,
            lab().emulator, "-L", usr / "share/qemu", "-L", usr / "share/seabios"]


def qemu(accelerator, cpus, append, *more):
    """Returns the command line of QEMU. The kernel puts assignments in `append` that it does not
    know into the environment of its first process."""
    hardware, its_parameters = MACHINES[lab().emulator.name]
    parameters = [*its_parameters, *PARAMETERS, append]
    if native() and accelerator != "kvm":
        khz = "1000000" if accelerator == "icount" else tsc_khz()
        parameters.append(f"tsc_early_khz={khz}")
    return [
        # QEMU must not outlive this process.
        "setpriv", "--pdeathsig", "KILL",
        *emulator(), *ACCELERATORS[accelerator], *hardware,
        "-smp", str(cpus), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", lab().boot / "vmlinuz", "-initrd", lab().boot / "initrd",
        "-append", " ".join(parameters),
        *more]


def native():
    """Returns whether the machines have the architecture of this one."""
    return lab().emulator.name == "qemu-system-x86_64"


def kvm_boots():
    """Returns whether the kernel reaches user space under KVM."""
    command = qemu("kvm", 2, "RIW_ROLE=probe", "-m", "512", "-serial", "stdio")
    try:
        output = subprocess.run(command, timeout=PROBE_LIMIT, stdin=subprocess.DEVNULL,
                                capture_output=True).stdout
    except subprocess.TimeoutExpired:
        output = b""
    return b"riw: user space reached" in output


@functools.cache
def kvm_works():
    """Returns whether KVM runs this kernel. On some hosts with /dev/kvm it does not, so a first
    boot tries it. The result is stored: a "no" for a day, because the host may only have been
    busy."""
    if not native() or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    verdict = lab().boot / "kvm"
    known = verdict.read_text() if verdict.exists() else ""
    if not known or known != "yes" and time.time() - verdict.stat().st_mtime > PROBE_KEPT:
        known = "yes" if kvm_boots() else "no"
        verdict.write_text(known)
    if known != "yes":
        print("riw lab: this kernel did not boot on /dev/kvm, so the VMs are emulated; "
              f"remove {verdict} to try again", file=sys.stderr, flush=True)
    return known == "yes"


def accelerator():
    """Returns the accelerator of a VM whose clock is time."""
    return "kvm" if kvm_works() else "tcg"


class Machine:
    """One VM. Its console is written to a file in `logs`; it can write to the folder `results`.
    `wires` are its ends of the socket pairs that connect it to its peer. `clock`: see `case.Case`."""

    def __init__(self, role, logs, results, mem=DEFAULT_MEM, wires=(), clock="time"):
        self.role = role
        for folder in logs, results:
            folder.mkdir(parents=True, exist_ok=True)
        self.console = logs / f"console-{role}.log"
        self.port, theirs = socket.socketpair()
        self.received = b""
        # The seconds that it takes to start a program. wait_ready() sets it.
        self.start = 0
        index = {"case": 1, "peer": 2, "shell": 3}[role]
        nics = []
        for number, wire in enumerate(wires, 1):
            nics += ["-netdev", f"socket,id=net{number},fd={wire.fileno()}", "-device",
                     f"virtio-net-pci,netdev=net{number},mac=52:54:00:00:0{index}:0{number}"]
        shares = []
        for tag, path, mode in (("root", lab().root, "on"), ("riw", REPO, "on"),
                                ("lab", lab().kernel, "on"), ("results", results, "off")):
            shares += ["-fsdev", f"local,id={tag},path={path},security_model=none,"
                       f"multidevs=remap,readonly={mode}",
                       "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        # Panic after an oops: the state of the kernel is unknown, and the console has the log.
        more, terminal = "oops=panic softlockup_panic=1 hung_task_panic=1", []
        if role == "shell":
            columns, lines = shutil.get_terminal_size()
            more = f"TERM={os.environ.get('TERM', 'linux')} LINES={lines} COLUMNS={columns}"
            terminal = ["-chardev", "stdio,id=terminal,signal=off",
                        "-device", "virtconsole,chardev=terminal"]
        if clock == "instructions":
            kind, cpus = "icount", 1
        else:
            kind, cpus = accelerator(), 1 if role == "peer" else 2
        self.process = subprocess.Popen(
            qemu(kind, cpus,
                 f"RIW_ROLE={role} RIW_DRIVER={DRIVER} RIW_BUILD={BUILD} {more}", "-m", str(mem),
                 "-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console",
                 "-chardev", f"socket,id=agent,fd={theirs.fileno()}",
                 "-device", "virtio-serial-pci",
                 "-device", "virtserialport,chardev=agent,name=riw.agent",
                 *terminal, *shares, *nics),
            stdin=None if role == "shell" else subprocess.DEVNULL,
            pass_fds=[theirs.fileno(), *(wire.fileno() for wire in wires)])
        theirs.close()
        for wire in wires:
            wire.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.port.close()

    def wait_ready(self):
        """Waits for the agent. Discards the kernel's log of the boot."""
        hello = self._answer(time.monotonic() + BOOT_LIMIT)
        complaints, self.start = hello["complaints"], hello["start"]
        if complaints:
            raise MachineDied(f"the {self.role} VM is not fit for tests: {', '.join(complaints)}")
        self.kernel_log()

    def _answer(self, deadline):
        while b"\n" not in self.received:
            self.port.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self.port.recv(65536)
            except socket.timeout:
                raise MachineDied(f"the {self.role} VM does not answer") from None
            except ConnectionResetError:
                data = b""
            if not data:
                raise MachineDied(f"the {self.role} VM went down")
            self.received += data
        line, self.received = self.received.split(b"\n", 1)
        return json.loads(line)

    def _send(self, request):
        self.port.settimeout(GRACE)
        try:
            self.port.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise MachineDied(f"the {self.role} VM went down") from None

    def _ask(self, request, limit):
        self._send(request)
        return self._answer(time.monotonic() + limit)

    def run(self, command, timeout, out, err, env=None, cwd="/tmp", until=None):
        """Runs a command; ends it after a line of its output that matches the regular expression `until`.
        Passes its output (bytes) to `out` and `err`. Returns its exit status, negative for a signal, or
        None if it was ended, or exceeded the time limit."""
        self._send({"run": [str(word) for word in command], "timeout": timeout,
                    "env": env or {}, "cwd": cwd, "until": until})
        deadline = time.monotonic() + timeout + GRACE
        while True:
            answer = self._answer(deadline)
            for name, sink in ("out", out), ("err", err):
                if name in answer:
                    sink(answer[name].encode(errors="surrogateescape"))
            if "exit" in answer:
                return answer["exit"]

    def setup(self, **what):
        """Sets the VM up for a case (see guest/state.py). Returns the errors."""
        return self._ask({"setup": what}, 2 * GRACE)["complaints"]

    def reset(self):
        """Cleans up after a case. Returns the errors."""
        # kmemleak reads all memory several times: after hours of use, on a busy host, that takes
        # minutes.
        return self._ask({"reset": {}}, 40 * GRACE)["complaints"]

    def kernel_log(self):
        """Returns the lines that the kernel has logged since the last call."""
        return self._ask({"kernel_log": {}}, GRACE)["kernel_log"]


@contextlib.contextmanager
def machines(number, logs, results, mem=DEFAULT_MEM, clock="time", kernel=None, lockdep=False):
    """Boots the VM for cases; if `number` is 2, also its peer, connected by two wires (lab0 and
    mgmt0). Yields the list of VMs. `clock`, for the stock kernel: see `case.Case`. `kernel`: another one
    than `KERNEL`. `lockdep`: turns lockdep and debug objects on, which the kernel `check` has off."""
    kernel = kernel or KERNEL
    if kernel != "stock":
        import uml  # pylint: disable=import-outside-toplevel # uml imports this module
        with uml.machines(kernel, number, logs, results, mem, lockdep) as booted:
            yield booted
        return
    with contextlib.ExitStack() as stack:
        yield boot(stack, lambda: (Machine(role, logs, results, mem, ends, clock) for role, ends in roles(number)))


def roles(number, kind=socket.SOCK_STREAM):
    """Returns the roles of `number` machines, each with its ends of the wires (sockets of type
    `kind`)."""
    wires = [socket.socketpair(type=kind) for _ in range(2)] if number == 2 else []
    return list(zip(["case", "peer"][:number], list(zip(*wires)) or [()]))


def boot(stack, start):
    """Boots the VMs that the iterable `start()` creates; tries BOOT_ATTEMPTS times. riw is not loaded by then. QEMU's
    emulation sometimes crashes on code that the other CPU patches during boot; the network driver of
    User-Mode Linux takes a lock in a way that can make lockdep turn itself off."""
    for attempt in range(BOOT_ATTEMPTS):
        with contextlib.ExitStack() as attempted:
            booted = [attempted.enter_context(one) for one in start()]
            try:
                for one in booted:
                    one.wait_ready()
            except MachineDied as died:
                if attempt == BOOT_ATTEMPTS - 1:
                    raise
                print(f"riw lab: {died} during boot; trying again", file=sys.stderr)
                continue
            stack.push(attempted.pop_all())
            return booted
    raise AssertionError("the last attempt returns or raises")
