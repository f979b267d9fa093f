# SPDX-License-Identifier: GPL-2.0
"""Fits rdma-core's test suite to iWARP and to a machine without a graphics card.

- The suite connects its queue pairs by ibv_modify_qp() with addresses of InfiniBand. Here rdma_cm does:
  iWARP has no other way.
- Tests that use unreliable datagrams, but do not test them, get reliable connections.
- Tests of dma-bufs get those of /dev/udmabuf, not of a graphics card. Regions are smaller.
- On iWARP a Send or an RDMA Write completes before the peer has checked it and has the data. An RDMA Read of
  no length follows each: it completes after that. If the peer has refused the Send or the Write, the Read is
  flushed, where the suite expects the peer's error from the Send or the Write.
- A test resizes a completion queue to fewer entries than it has completions. A worker may still be sending: the test
  waits for them.

All else that the tests expect is left alone.
"""

import fcntl
import itertools
import json
import mmap
import os
import re
import struct
import subprocess
import time

import pyverbs.cm_enums as ce
import pyverbs.enums as e
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam
from pyverbs.mr import DmaBufMR
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QPAttr
from pyverbs.wr import SGE, SendWR

UDMABUF_CREATE = 0x40187542
"""The ioctl request of <linux/udmabuf.h>."""

F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2
"""Of <linux/fcntl.h>."""

REFUSED = re.compile(r"Remote (access|operation) error")
"""What the suite expects when a peer refuses a WR."""

SHOW_CQS = ["rdma", "--json", "-dd", "resource", "show", "cq"]
"""The command that shows completion queues, with riw's details."""

TIMEOUT = 20
"""Maximum seconds until a connection is gone."""

MAX_MR_SIZE = 65536
"""Maximum length of regions of a random length, in bytes. The suite's, 4 MiB, takes minutes on an emulated
machine: it registers hundreds."""

ports = itertools.count(20000)


class Connection:
    """A connection of two queue pairs by rdma_cm."""

    def __init__(self, address, active, passive):
        """Connects the queue pairs with these numbers."""
        port = str(next(ports))
        self.listening, self.connecting = CMEventChannel(), CMEventChannel()
        self.listener = CMID(creator=self.listening, port_space=ce.RDMA_PS_TCP)
        self.listener.bind_addr(AddrInfo(src=address, src_service=port, port_space=ce.RDMA_PS_TCP,
                                         flags=ce.RAI_PASSIVE))
        self.listener.listen(1)
        self.active = CMID(creator=self.connecting, port_space=ce.RDMA_PS_TCP)
        self.active.resolve_addr(AddrInfo(src=address, dst=address, dst_service=port,
                                          port_space=ce.RDMA_PS_TCP))
        self.expect(self.connecting, ce.RDMA_CM_EVENT_ADDR_RESOLVED)
        self.active.resolve_route()
        self.expect(self.connecting, ce.RDMA_CM_EVENT_ROUTE_RESOLVED)
        self.active.connect(ConnParam(qp_num=active))
        self.passive = self.expect(self.listening, ce.RDMA_CM_EVENT_CONNECT_REQUEST)
        self.passive.accept(ConnParam(qp_num=passive))
        self.expect(self.listening, ce.RDMA_CM_EVENT_ESTABLISHED)
        self.expect(self.connecting, ce.RDMA_CM_EVENT_ESTABLISHED)

    def expect(self, channel, kind):
        """Takes the next event. Returns the new id of a CONNECT_REQUEST."""
        event = CMEvent(channel)
        assert event.event_type == kind, f"{event.event_str()}, not {kind}"
        new = None
        if kind == ce.RDMA_CM_EVENT_CONNECT_REQUEST:
            new = CMID(creator=event, listen_id=self.listener)
        event.ack_cm_event()
        return new

    def close(self):
        """Ends the connection."""
        for this in (self.active, self.passive, self.listener, self.listening, self.connecting):
            this.close()


class Connections:
    """Those of a test."""

    def __init__(self, base):
        self.base = base
        self.connections = []
        self.players = {}
        self.waiting = {}

    def connect(self, player):
        """Connects the queue pairs of `player` to those of its peer, if that has called this before."""
        self.players.update(zip(player.qps_num, itertools.repeat(player)))
        peer = self.waiting.pop(tuple(player.rqps_num), None)
        if peer is None:
            self.waiting[tuple(player.qps_num)] = player
            return
        case = self.base.RDMATestCase
        address, _ = case.get_ip_mac_address(case.get_net_name(player.dev_name, player.ib_port))
        for active, passive in zip(peer.qps_num, player.qps_num):
            self.connections.append(Connection(address, active, passive))

    def close(self):
        """Ends all of them."""
        for connection in self.connections:
            connection.close()
        self.connections.clear()
        self.players.clear()
        self.waiting.clear()

    def follow(self, wc):
        """Posts an RDMA Read after the WR that has completed with `wc`. Returns whether it has to."""
        player = self.players.get(wc.qp_num)
        if wc.status != e.IBV_WC_SUCCESS or wc.opcode not in (e.IBV_WC_SEND, e.IBV_WC_RDMA_WRITE) \
                or player is None or not getattr(player, "followed", True):
            return False
        empty = SGE(player.mr.buf, 0, player.mr.lkey)
        read = SendWR(opcode=e.IBV_WR_RDMA_READ, num_sge=1, sg=[empty])
        read.set_wr_rdma(0, 0)
        player.qps[player.qps_num.index(wc.qp_num)].post_send(read)
        return True


class UdmabufMR(DmaBufMR):
    """A region of a dma-buf of /dev/udmabuf."""

    def __init__(self, pd, length, access, dmabuf=None, offset=0, gpu=0, gtt=0):
        assert dmabuf is None and not gpu and not gtt
        pages = -(-(length + offset) // mmap.PAGESIZE)
        size = max(pages, 1) * mmap.PAGESIZE
        memfd = os.memfd_create("udmabuf", os.MFD_ALLOW_SEALING)
        os.ftruncate(memfd, size)
        fcntl.fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)
        create = bytearray(struct.pack("=IIQQ", memfd, 0, 0, size))
        device = os.open("/dev/udmabuf", os.O_RDWR)
        fd = fcntl.ioctl(device, UDMABUF_CREATE, create)
        self.memory = mmap.mmap(memfd, size)
        self.first = offset
        try:
            super().__init__(pd, length, access, dmabuf=fd, offset=offset)
        finally:
            # The region keeps the memory.
            for file in (fd, memfd, device):
                os.close(file)

    def write(self, data, length, offset=0):
        """Writes to the region."""
        data = data.encode() if isinstance(data, str) else data
        first = self.first + offset
        self.memory[first:first + length] = data[:length]

    def read(self, length, offset):
        """Returns bytes of the region."""
        first = self.first + offset
        return self.memory[first:first + length]


def order(test):
    """The key by which the tests are sorted. Those of rdma_cm come first: they fork, and a process cannot use a
    device that its parent has opened. librdmacm, which connects the other tests, keeps the device open."""
    return not test.id().startswith("tests.test_rdmacm.")


def disconnect(player):
    """Ends the connections of `player`."""
    for qp in player.qps:
        if qp.qp_state != e.IBV_QPS_ERR:
            qp.modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)


def reset(player):
    """Returns the queue pairs of `player` to IDLE, and discards its completions."""
    for qp in player.qps:
        limit = time.monotonic() + TIMEOUT
        while True:
            try:
                qp.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
                break
            except PyverbsRDMAError:
                # The connection is not gone yet.
                if time.monotonic() > limit:
                    raise
                time.sleep(0.01)
    while player.cq.poll()[0]:
        pass


def await_completions(player):
    """Waits until the completion queue of `player` has a completion for each Send so far."""
    player.sent = getattr(player, "sent", 0) + 1
    limit = time.monotonic() + TIMEOUT
    # `utils` is the suite's here.
    while player.sent not in [row["drv_used"] for row in json.loads(subprocess.check_output(SHOW_CQS))
                              if row.get("pid") == os.getpid()]:
        if time.monotonic() > limit:
            raise TimeoutError("the queue does not get its completions")


def install():
    """Changes the suite, whose tests are loaded."""
    from tests import base, test_cq, test_mr, test_qpex, utils

    connections = Connections(base)
    close_players, get_global_ah = base.RDMATestCase.tearDown, utils.get_global_ah
    poll_cq, assert_raises, send = utils._poll_cq, base.RDMATestCase.assertRaisesRegex, utils.send

    def to_rts(player):
        connections.connect(player)

    def close_all(test):
        close_players(test)
        connections.close()

    def restate_qps(test):
        for player in (test.server, test.client):
            disconnect(player)
        for player in (test.server, test.client):
            reset(player)
        for player in (test.server, test.client):
            player.to_rts()

    def no_ah(player, *args):
        return None if isinstance(player, base.RCResources) else get_global_ah(player, *args)

    def poll_followed(cq, count=1, data=None):
        wcs = poll_cq(cq, count, data)
        for wc in wcs:
            if connections.follow(wc):
                read, = poll_cq(cq)
                if read.status != e.IBV_WC_SUCCESS:
                    return [read]
        return wcs

    def send_on(player, *args, **options):
        send(player, *args, **options)
        if isinstance(player, test_cq.CQUDResources):
            await_completions(player)

    def assert_raises_regex(test, exception, regex, *args, **options):
        if REFUSED.search(regex):
            regex = f"{regex}|WR flush error"
        return assert_raises(test, exception, regex, *args, **options)

    utils.MAX_MR_SIZE = MAX_MR_SIZE
    base.RCResources.to_rts = to_rts
    base.RDMATestCase.tearDown = close_all
    base.RDMATestCase.assertRaisesRegex = assert_raises_regex
    utils.get_global_ah, utils._poll_cq, utils.send = no_ah, poll_followed, send_on
    test_mr.MRTest.restate_qps = restate_qps
    test_mr.DmaBuf, test_mr.DmaBufMR = lambda *_, **__: None, UdmabufMR
    test_cq.CQUDResources.__bases__ = (base.RCResources,)
    # It sends without receives.
    test_cq.CQUDResources.followed = False
    test_qpex.QpExUDSend = test_qpex.QpExRCSend
