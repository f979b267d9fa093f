# SPDX-License-Identifier: GPL-2.0
"""What a case starts from, and putting the VM back to it."""
import glob
import json
import os
import subprocess
import time

import leaks

# Interfaces of the VM itself; all others were made by the case.
OWN = {"lo", "lab0", "mgmt0"}
# What the removal of namespaces, devices and modules may take, each.
LIMIT = 30


def call(*command):
    """Runs a command; returns what it complained about, or nothing."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return done.returncode and (done.stderr.strip() or f"{command[0]}: {done.returncode}")


def names(*command, key="ifname"):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    return [entry[key] for entry in json.loads(done.stdout or "[]") if key in entry]


def within_limit(attempt):
    """Repeats what removes something until it says nothing, and returns what it still
    says at the end: removal goes on behind the back of the one who asked for it."""
    deadline = time.monotonic() + LIMIT
    while True:
        complaint = attempt()
        if not complaint or time.monotonic() > deadline:
            return complaint
        time.sleep(0.02)


def remove_netdevs():
    for name in names("ip", "-j", "link"):
        if name not in OWN:
            call("ip", "link", "delete", name)
    back = os.path.exists("/sys/class/net/lab0") or not has_peer()
    return None if back else "lab0 did not come back from its namespace"


def remove_module(name):
    if os.path.exists(f"/sys/module/{name}"):
        return call("rmmod", name)
    return None


def await_namespaces():
    """Those that the case deleted are dismantled when nothing holds them any more. The
    kernel changes this mode only when they are gone."""
    busy = call("rdma", "system", "set", "netns", "exclusive")
    call("rdma", "system", "set", "netns", "shared")
    return busy and f"something holds a network namespace that has been deleted: {busy}"


def has_peer():
    return os.path.exists("/sys/class/net/mgmt0")


def reset():
    """Removes what a case left. Returns what could not be removed."""
    for namespace in names("ip", "-j", "netns", key="name"):
        call("ip", "netns", "delete", namespace)
    complaints = [within_limit(lambda: call("rdma", "system", "set", "netns", "shared"))]
    for link in names("rdma", "-j", "link"):
        call("rdma", "link", "delete", link)
    complaints.append(within_limit(remove_netdevs))
    for module in "riw", "siw":
        complaints.append(within_limit(lambda name=module: remove_module(name)))
    complaints.append(within_limit(await_namespaces))
    for name in OWN.intersection(os.listdir("/sys/class/net")) - {"mgmt0"}:
        call("tc", "qdisc", "delete", "dev", name, "root")
        call("tc", "qdisc", "delete", "dev", name, "ingress")
    if has_peer():
        # It stays up, with its link-local address: with the interface, a User-Mode Linux closes its
        # end of the wire for good.
        call("ip", "link", "set", "lab0", "nomaster", "mtu", "1500")
        call("ip", "address", "flush", "dev", "lab0", "scope", "global")
    call("sysctl", "-q", "vm.nr_hugepages=0")
    for leftover in glob.glob("/tmp/*"):
        call("rm", "-rf", leftover)
    return [complaint for complaint in complaints if complaint] + leaks.found()


def setup(module=None, link=False):
    """Readies the VM for a case: loads riw or siw; brings up lab0, where there is a
    peer; and if `link`, adds the module's device on it. Returns what failed."""
    complaints = []
    if module:
        complaints.append(call("insmod", os.environ[f"{module.upper()}_KO"]))
    if has_peer():
        number = 2 if os.uname().nodename == "peer" else 1
        complaints += [
            call("ip", "link", "set", "lab0", "up"),
            call("ip", "address", "add", f"10.77.0.{number}/24", "dev", "lab0"),
            # Usable at once: there is nobody else on the wire to ask.
            call("ip", "address", "add", f"fd77::{number}/64", "dev", "lab0", "nodad")]
    if link:
        complaints.append(call("rdma", "link", "add", f"{module}0", "type", module,
                               "netdev", "lab0"))
    return [complaint for complaint in complaints if complaint]
