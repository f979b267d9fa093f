# SPDX-License-Identifier: GPL-2.0
"""The state of the VM at the start of a case, and how to restore it."""
import glob
import json
import os
import re
import subprocess
import time

import leaks

# Interfaces of the VM itself; the case has created all others.
OWN = {"lo", "lab0", "mgmt0"}
# Interfaces that the kernel creates with the code for tunnels, and does not delete without it: link_kinds
# loads that code, and the User-Mode Linux kernels contain it.
FALLBACK = {"tunl0", "gre0", "gretap0", "erspan0"}
TRACING = "/sys/kernel/tracing"
LOCKDEP = "/proc/lockdep_stats"
# riw's user library, as libibverbs wants it: without the number of its private interface.
LIBRIW = "/riw/build/lab/provider/libriw"
# The parameters of riw that a case can choose.
DEFAULTS = {"provider": "siw", "transport": "tcp"}
# Time limit for each removal (of namespaces, devices, modules), in seconds.
LIMIT = 30


def call(*command):
    """Runs a command. Returns its error output if it fails, else 0."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return done.returncode and (done.stderr.strip() or f"{command[0]}: {done.returncode}")


def names(*command, key="ifname"):
    """Returns the names that a command lists. Raises OSError if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
    return [entry[key] for entry in json.loads(done.stdout or "[]") if key in entry]


def within_limit(attempt):
    """Repeats `attempt` until it returns no complaint, for LIMIT seconds at most. Returns the last
    complaint. A removal may fail at first, because the kernel completes earlier ones in the
    background."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            complaint = attempt()
        except OSError as error:
            complaint = str(error)
        if not complaint or time.monotonic() > deadline:
            return complaint
        time.sleep(0.02)


def remove(tool, kind, kept=(), key="ifname"):
    """Deletes all objects that `tool kind` lists, except `kept`. Returns a complaint if one is left. What
    the deletion returns does not tell: for a veth whose peer went before it fails, and for some netdevs it
    succeeds and does nothing."""
    def left():
        return [name for name in names(tool, "-j", kind, key=key) if name not in kept]

    errors = {name: call(tool, kind, "delete", name) for name in left()}
    behind = [f"{name} ({errors.get(name) or 'no error'})" for name in left()]
    return f"left behind, {tool} {kind}: {', '.join(behind)}" if behind else None


def remove_netdevs():
    if complaint := remove("ip", "link", OWN | FALLBACK):
        return complaint
    back = os.path.exists("/sys/class/net/lab0") or not has_peer()
    return None if back else "lab0 did not come back from its namespace"


def built_in(name):
    """Whether the kernel has a driver built in: then it can be neither loaded nor removed."""
    return os.path.exists(f"/sys/module/{name}") and not os.path.exists(f"/sys/module/{name}/initstate")


def remove_module(name):
    if os.path.exists(f"/sys/module/{name}") and not built_in(name):
        return call("rmmod", name)
    return None


def insert_module(name, choice):
    """Loads a driver with the parameters that differ from its defaults. Sets those of a driver that is built in.
    Returns a complaint if that fails."""
    if not built_in(name):
        parameters = [f"{parameter}={value}" for parameter, value in choice.items()
                      if name == "riw" and value != DEFAULTS[parameter]]
        return call("insmod", os.environ[f"{name.upper()}_KO"], *parameters)
    try:
        for parameter, value in choice.items():
            with open(f"/sys/module/{name}/parameters/{parameter}", "w", encoding="ascii") as file:
                file.write(value)
    except OSError as error:
        return f"the parameters of {name} cannot be set: {error}"
    return None


def await_namespaces():
    """Waits for the namespaces that the case has deleted: the kernel dismantles one when its last
    reference is dropped. It changes the netns mode of RDMA only after that."""
    busy = call("rdma", "system", "set", "netns", "exclusive")
    call("rdma", "system", "set", "netns", "shared")
    return busy and f"something holds a network namespace that has been deleted: {busy}"


def has_peer():
    return os.path.exists("/sys/class/net/mgmt0")


def reset_tracing():
    """Disables all trace events, removes probes, and empties the trace buffer. Returns a complaint if that
    fails."""
    try:
        for instance in glob.glob(f"{TRACING}/instances/*"):
            os.rmdir(instance)
        with open(f"{TRACING}/tracing_on", "w", encoding="ascii") as switch:
            switch.write("1")
        # Truncation clears the enabled events, the PID filter, the probes and the buffer. An enabled
        # probe cannot be removed, and a User-Mode Linux has none.
        for name in "set_event", "set_event_pid", "kprobe_events", "trace":
            if os.path.exists(f"{TRACING}/{name}"):
                with open(f"{TRACING}/{name}", "w", encoding="ascii"):
                    pass
    except OSError as error:
        return f"tracing cannot be reset: {error}"
    return None


def checks_off():
    """Returns a complaint if the kernel has lockdep and it is off: the kernel turns it off after a report of
    lockdep, and after an oops and the like."""
    with open("/proc/cmdline", encoding="ascii") as parameters:
        if not os.path.exists(LOCKDEP) or "debug_locks=0" in parameters.read().split():
            return []
    with open(LOCKDEP, encoding="ascii") as stats:
        on = re.search(r"^ debug_locks: +1$", stats.read(), re.MULTILINE)
    return [] if on else ["lockdep is off"]


def reset():
    """Removes everything that a case has left. Returns complaints about failed removals, about leaks, and
    about locks that the kernel no longer checks."""
    complaints = [within_limit(lambda: remove("ip", "netns", key="name")),
                  within_limit(reset_tracing),
                  within_limit(lambda: call("rdma", "system", "set", "netns", "shared")),
                  within_limit(lambda: remove("rdma", "link")), within_limit(remove_netdevs)]
    for module in "riw", "siw":
        complaints.append(within_limit(lambda name=module: remove_module(name)))
    complaints.append(within_limit(await_namespaces))
    for name in OWN.intersection(os.listdir("/sys/class/net")) - {"mgmt0"}:
        call("tc", "qdisc", "delete", "dev", name, "root")
        call("tc", "qdisc", "delete", "dev", name, "ingress")
    if has_peer():
        # Keep it up, with its link-local address: a User-Mode Linux that takes it down closes its
        # end of the wire for good.
        call("ip", "link", "set", "lab0", "nomaster", "mtu", "1500")
        call("ip", "address", "flush", "dev", "lab0", "scope", "global")
    call("sysctl", "-q", "vm.nr_hugepages=0")
    for leftover in glob.glob("/tmp/*"):
        call("rm", "-rf", leftover)
    return [complaint for complaint in complaints if complaint] + checks_off() + leaks.found()


def setup(module=None, link=False, provider="siw", transport="tcp"):
    """Sets the VM up for a case: loads `module` (riw or siw), riw for this user library and for this
    transport; with a peer, brings up lab0; if `link`, adds a device of the module on lab0. Returns complaints about failures."""
    complaints = []
    # For all processes that the agent starts. libsiw needs no mention.
    os.environ.pop("IBV_DRIVERS", None)
    if provider == "riw":
        os.environ["IBV_DRIVERS"] = LIBRIW
    if module:
        complaints.append(insert_module(module, {"provider": provider, "transport": transport}))
    if has_peer():
        number = 2 if os.uname().nodename == "peer" else 1
        complaints += [
            call("ip", "link", "set", "lab0", "up"),
            call("ip", "address", "add", f"10.77.0.{number}/24", "dev", "lab0"),
            # Usable at once: no other host on the wire can have this address.
            call("ip", "address", "add", f"fd77::{number}/64", "dev", "lab0", "nodad")]
    if link:
        complaints.append(call("rdma", "link", "add", f"{module}0", "type", module,
                               "netdev", "lab0"))
    return [complaint for complaint in complaints if complaint]
