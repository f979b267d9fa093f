# SPDX-License-Identifier: GPL-2.0
"""Removal of a device under traffic: by its link, its netdev, or a move of the netdev."""

import errno
import re
from contextlib import ExitStack, contextmanager

import lab
from ksft import KsftFailEx, ksft_in, ksft_true
from perftest import ATTEMPTS, REJECTED
from utils import bkg, cmd, ip, wait_until

KILOBYTES = 200


def passed(node):
    """Returns the bytes that the node has sent."""
    return int(cmd(f"cat /sys/class/net/{node.netdev}/statistics/tx_bytes", host=node).stdout)


def wait_busy(left, processes):
    """Waits until traffic runs."""
    def busy():
        for process in processes:
            if not process.running:
                raise KsftFailEx(f"ended before: {process}\n{process.output}")
        return passed(left) > before + (KILOBYTES << 10)
    before = passed(left)
    wait_until(busy, 30, "traffic")


@contextmanager
def stress(left, right):
    """Runs both ends in one process, which is in no namespace itself."""
    with bkg(f"verbs_stress -q 2 -n 10000000 {left.side} {right.side}") as process:
        wait_busy(left, [process])
        yield [process]


@contextmanager
def perftest(left, right, size=65536):
    """Writes messages of `size` bytes from `left` to `right`."""
    with ExitStack() as stack:
        yield _busy_perftest(stack, left, right, size)


def _busy_perftest(stack, left, right, size):
    """Starts both ends, which end with `stack`. Starts them again if the client was ahead of its server (see
    `perftest.TooEarly`). Returns them."""
    attempts = ATTEMPTS
    while True:
        with ExitStack() as started:
            port = lab.new_port()
            common = ["-R", "-F", "-p", port, "-s", size, "-D", 300]
            server = started.enter_context(bkg(["ib_write_bw", "-d", right.dev, *common], host=right))
            lab.wait_port_listen(port, host=right, server=server)
            client = started.enter_context(bkg(["ib_write_bw", "-d", left.dev, *common, right.addr], host=left))
            try:
                wait_busy(left, [client, server])
            except KsftFailEx:
                attempts -= 1
                if not attempts or not REJECTED.search(client.output):
                    raise
                continue
            stack.push(started.pop_all())
            return [client, server]


def link(left, right):
    lab.link_del(left.dev)


def far_link(left, right):
    lab.link_del(right.dev)


def netdev(left, right):
    ip(f"link delete {left.netdev}", ns=left.netns)


def moved(left, right):
    """Moves the netdev to another namespace, which removes the device."""
    ip(f"link set {left.netdev} netns {right.netns} name moved", ns=left.netns)


def ended(process):
    """Checks that the process ended by itself, because of an error."""
    process.wait(20)
    if "verbs_stress" in process.argv:
        # An error of a posted request, or of the post itself.
        ksft_true(re.search(rf"Work Request Flushed Error|post.\w+ \({errno.EIO}, ", process.output),
                  process.output)
        ksft_in("ok 2 - everything can be destroyed", process.output)
    else:
        ksft_true(process.wait(0), f"no error: {process.output}")


def nothing_left():
    wait_until(lambda: not lab.left_over(), 10, "empty resource lists")


def act(traffic, event):
    """Removes a device under traffic. Checks that the programs end because of that, and leave nothing."""
    with lab.veth_pair() as (left, right):
        gone = right if event is far_link else left
        with traffic(left, right) as processes:
            event(left, right)
            for process in processes:
                ended(process)
            wait_until(lambda: gone.dev not in lab.links(), 10, f"{gone.dev} is gone")
            nothing_left()
