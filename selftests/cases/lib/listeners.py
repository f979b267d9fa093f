# SPDX-License-Identifier: GPL-2.0
"""What holds for listeners over each transport, with several devices in several namespaces."""
import socket
from contextlib import ExitStack

import lab
from ksft import ksft_eq, ksft_in, ksft_pr, point
from netns import NetNS, NetNSEnter, sysctl
from utils import NOBODY, bkg, cmd, ip, wait_until

PRIVILEGED = 901
"""A port for which a program needs CAP_NET_BIND_SERVICE."""


def serve(node, addr, port, *options, within=20, who=()):
    """Starts a `cm_peer serve` on an address that need not be the node's own."""
    process = bkg([*who, "cm_peer", "serve", addr, port, *options], host=node)
    process.says("listening", within)
    return process


def reach(client, addr, port, *options):
    output = cmd(["cm_peer", "connect", addr, port, *options], host=client).stdout
    ksft_in("ESTABLISHED status=0", output)


def blocked(node, port):
    """Starts a program that listens on the port by TCP."""
    blocker = bkg(["python3", "-c", f"import socket, time\n"
                   f"s = socket.create_server(('', {port}))\ntime.sleep(60)"], host=node)
    lab.wait_port_listen(port, host=node, server=blocker)
    return blocker


def here(stack):
    """Creates two devices in the initial namespace, on dummy interfaces."""
    nodes = []
    for i in range(2):
        addr, addr6 = f"10.79.{i}.1", f"fd79:{i}::1"
        stack.enter_context(lab.netdev(f"dummy{i}", "type", "dummy", addr=f"{addr}/24",
                                       addr6=f"{addr6}/64"))
        stack.enter_context(lab.rdma_link(f"here{i}", f"dummy{i}"))
        nodes.append(lab.Node(f"here{i}", f"dummy{i}", addr, addr6))
    return nodes


def common(one, two, left, right):
    """Checks that hold in both modes."""
    with point("one wildcard listener serves all devices of its namespace"):
        port = lab.new_port()
        with serve(one, "0.0.0.0", port):
            reach(one, one.addr, port)
            reach(one, two.addr, port)
    with point("by IPv6 too"):
        port = lab.new_port()
        with serve(one, "::", port):
            reach(one, one.addr6, port)
            reach(one, two.addr6, port)
    with point("an IPv6 wildcard takes IPv4 as well"):
        port = lab.new_port()
        with serve(one, "::", port):
            reach(one, two.addr, port)
    with point("a specific listener serves its address only"):
        port = lab.new_port()
        with serve(one, one.addr, port):
            reach(one, one.addr, port)
            said = cmd(f"cm_peer connect {two.addr} {port}", fail=False, host=one).stdout
            ksft_in("REJECTED", said, "the other one is served")
    with point("two specific listeners at one port"):
        port = lab.new_port()
        with serve(one, one.addr, port), serve(two, two.addr, port):
            reach(one, one.addr, port)
            reach(one, two.addr, port)
    for server, client in ((left, right), (right, left)):
        with point(f"a wildcard listener in {server.netns}"):
            port = lab.new_port()
            with serve(server, "0.0.0.0", port):
                reach(client, server.addr, port)
    with point("wildcard listeners at one port in three namespaces, each with its own clients"):
        port = lab.new_port()
        with serve(left, "0.0.0.0", port) as on_left, serve(one, "0.0.0.0", port) as on_one, \
                serve(right, "0.0.0.0", port) as on_right:
            for client, addr, process in ((right, left.addr, on_left), (left, right.addr, on_right),
                                          (one, two.addr, on_one)):
                reach(client, addr, port, "data=1")
                process.says("ESTABLISHED", 5)
            for process in (on_left, on_one, on_right):
                ksft_eq(process.output.count("REQUEST"), 1, f"requests to {process}")
    with point("a listener takes over when another one goes"):
        port = lab.new_port()
        with serve(left, "0.0.0.0", port):
            reach(right, left.addr, port)
        with serve(left, "0.0.0.0", port):
            reach(right, left.addr, port)


def plain(node, port, protocol):
    """Listens on all addresses in a node's namespace without RDMA, and connects."""
    with NetNSEnter(node.netns), \
            socket.socket(socket.AF_INET6, socket.SOCK_STREAM, protocol) as server, \
            socket.socket(socket.AF_INET6, socket.SOCK_STREAM, protocol) as client:
        server.bind(("::", port))
        server.listen()
        client.connect((node.addr6, port))
        with server.accept()[0] as accepted:
            accepted.sendall(b"plain")
            ksft_eq(client.recv(5), b"plain", "the plain server's data")


def elsewhere(left, right, protocol):
    """Checks what a listener leaves alone in namespaces that are not its program's."""
    with point("a listener takes no port in other namespaces"):
        for addr in ("0.0.0.0", "::", "127.0.0.1", "::1"):
            port = lab.new_port()
            with serve(left, addr, port):
                plain(right, port, protocol)
    with point("not even one for which it has the capability"):
        with serve(left, "0.0.0.0", PRIVILEGED):
            plain(right, PRIVILEGED, protocol)
    with point("it needs no right there"):
        port = lab.new_port()
        with sysctl("ip_unprivileged_port_start", "32000", right.netns), \
                serve(left, "0.0.0.0", port, who=NOBODY) as server:
            reach(right, left.addr, port)
            server.says("ESTABLISHED", 5)


def second(one):
    with point("a second listener at the port is refused, also in another port space of rdma_cm"):
        port = lab.new_port()
        with serve(one, "0.0.0.0", port) as first, \
                bkg(f"cm_peer serve 0.0.0.0 {port} ib", host=one) as late:
            late.says("rdma_listen: Address already in use", 20)
            reach(one, one.addr, port)
            first.says("ESTABLISHED", 5)
    with point("whichever comes first"):
        port = lab.new_port()
        with serve(one, "0.0.0.0", port, "ib") as first, \
                bkg(f"cm_peer serve 0.0.0.0 {port}", host=one) as late:
            late.says("rdma_listen: Address already in use", 20)
            reach(one, one.addr, port)
            first.says("ESTABLISHED", 5)


def rejection(left, right):
    port = lab.new_port()
    with point("a rejection is one although others listen at the port elsewhere"):
        with serve(left, "0.0.0.0", port, "reject"), serve(right, "0.0.0.0", port):
            said = cmd(f"cm_peer connect {left.addr} {port}", fail=False, host=right).stdout
            ksft_in("REJECTED status=-111", said)
    with point("with private data as well"):
        port = lab.new_port()
        with serve(left, "0.0.0.0", port, "reject", "data=40"):
            said = cmd(f"cm_peer connect {left.addr} {port}", fail=False, host=right).stdout
            ksft_in("REJECTED status=-111 data=40 ", said)


def comings(one):
    """Devices appear and disappear below a listener."""
    port = lab.new_port()
    with serve(one, "0.0.0.0", port):
        with lab.netdev("dummy9", "type", "dummy", addr="10.79.9.1/24"):
            with point("a device that comes later is served by a wildcard listener"):
                lab.link_add("late", "dummy9")
                reach(one, "10.79.9.1", port)
            with point("and when it goes the others still are"):
                lab.link_del("late")
                reach(one, one.addr, port)
        with point("an address that comes later as well"):
            ip(f"addr add 10.79.77.1/24 dev {one.netdev}")
            reach(one, "10.79.77.1", port)


def goings(one):
    """Devices disappear while programs start to listen on all of them."""
    with point("a wildcard listener does not mind a device that is about to go"):
        for _ in range(10):
            port = lab.new_port()
            with lab.netdev("dummy9", "type", "dummy", addr="10.79.9.1/24"):
                lab.link_add("late", "dummy9")
                with bkg("ip link delete dummy9", host=one) as delete:
                    with serve(one, "0.0.0.0", port):
                        delete.succeed(30)
                        reach(one, one.addr, port)


def in_both_modes(checks):
    """Calls `checks(one, two, left, right)` in the shared and the exclusive mode of `rdma system`: with
    two devices here, and one on each side of a cable."""
    for mode in ("shared", "exclusive"):
        lab.set_mode(mode)
        ksft_pr(f"mode {mode}")
        with ExitStack() as stack:
            left, right = stack.enter_context(lab.veth_pair())
            one, two = here(stack)
            checks(one, two, left, right)


def to_lo():
    """rdma_cm connects to a loopback address by any device."""
    lab.set_mode("shared")
    with lab.loopback() as node, NetNS("other"):
        with point("a connection to a loopback address does not leave the namespace"):
            for addr in ("127.0.0.1", "::1"):
                port = lab.new_port()
                with serve(node, addr, port) as server:
                    said = cmd(f"cm_peer connect {addr} {port}", fail=False, ns="other").stdout
                    ksft_in("rdma_connect: No such device", said)
                    reach(node, addr, port)
                    server.says("ESTABLISHED", 5)
                    ksft_eq(server.output.count("REQUEST"), 1, "requests")


def on_lo():
    with point("on lo itself"):
        with lab.loopback() as node:
            for listen in ("127.0.0.1", "0.0.0.0"):
                port = lab.new_port()
                with serve(node, listen, port):
                    reach(node, "127.0.0.1", port)
            port = lab.new_port()
            with serve(node, "::", port):
                reach(node, "::1", port)
    with point("nothing is left"):
        wait_until(lambda: not lab.resources("cm_id"), 5, "no cm_id")
