# SPDX-License-Identifier: GPL-2.0
"""A device in a namespace of its own, and what can happen to it while connections are set up."""
import lab
from ksft import PACE, defer, ksft_true, point
from netns import NetNS
from utils import bkg, ip, rdma, wait_until, within

AT_ONCE = 9
"""Seconds for an end that waits for no peer: less than riw's own time limits, on a slow kernel too."""
LINGER = 11
"""Seconds until riw resets a connection whose peer does not answer. They do not depend on the kernel."""


class Scene:
    """A device on a dummy interface in its own namespace; plain sockets use the same interface. What is
    left of it is removed at the end of the point. A subclass is for one transport."""

    def __init__(self):
        self.netns = "scene"
        self.addr = "10.79.0.1"
        defer(NetNS(self.netns).delete)
        defer(rdma, "link delete riw0", fail=False)
        ip("link add dummy0 type dummy", ns=self.netns)
        lab.bring_up("dummy0", f"{self.addr}/24", netns=self.netns)
        lab.link_add("riw0", "dummy0", self.netns)
        self.node = lab.Node("riw0", "dummy0", self.addr, netns=self.netns)
        self.processes = []

    def start(self, *argv):
        process = bkg(argv, host=self.node)
        defer(process.kill)
        self.processes.append(process)
        return process

    def serve(self, *options):
        port = lab.new_port()
        process = self.start("cm_peer", "serve", self.addr, port, *options)
        process.says("listening", 10)
        return process, port

    def ours(self, peer):
        """Closes a plain connection by a reset. After an unacknowledged end it would hold the namespace
        for minutes."""
        defer(peer.reset)
        return peer

    def no_sockets(self):
        """Returns whether riw has no socket in the namespace."""
        raise NotImplementedError

    def kill(self):
        for process in self.processes:
            process.kill()


# --- phases that need no plain socket

def listening(scene):
    scene.serve()


def established(scene):
    server, port = scene.serve()
    scene.start("cm_peer", "connect", scene.addr, port, "stay").says("ESTABLISHED", 10)
    server.says("ESTABLISHED", 5)


# --- events

def netdev_goes(scene):
    ip("link delete dummy0", ns=scene.netns)


def link_goes(_):
    rdma("link delete riw0")


def namespace_goes(scene):
    """Deletes the namespace. It exists until its last process has ended."""
    scene.kill()
    ip("link set dummy0 netns 1", ns=scene.netns)
    ip("link delete dummy0", fail=False)
    ip(f"netns delete {scene.netns}")


def killed(scene):
    scene.kill()


EVENTS = [netdev_goes, link_goes, namespace_goes, killed]


def act(scene, phase, event):
    """Lets an event happen in a phase. Checks that nothing of riw is left then."""
    phase(scene)
    ksft_true(not scene.no_sockets(), "there is nothing to be ended")
    event(scene)
    if event is not namespace_goes:
        # A silent peer may keep a lingering connection until the time-out.
        patience = LINGER + 4 * PACE if event is killed else AT_ONCE
        with within(patience):
            wait_until(scene.no_sockets, patience, "no sockets")
    for process in scene.processes:
        if event is not killed and process.running and "serve" not in process.argv:
            with within(AT_ONCE):
                process.wait(AT_ONCE)
    scene.kill()
    gone = ["qp", "cm_id"]
    with within(LINGER + 2 * PACE):
        wait_until(lambda: not any(lab.resources(kind) for kind in gone), LINGER + 2, "no QP, no cm_id")
    if event is not killed:
        wait_until(lambda: "riw0" not in lab.links(), 5, "no link")


def act_all(make_scene, phases):
    """Runs each event in each phase, as a point each."""
    for event in EVENTS:
        for phase in phases:
            with point(f"{event.__name__.replace('_', ' ')} while {phase.__name__.replace('_', ' ')}"):
                act(make_scene(), phase, event)
