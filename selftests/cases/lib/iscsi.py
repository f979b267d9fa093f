# SPDX-License-Identifier: GPL-2.0
"""open-iscsi over iSER: the daemon, sessions of the kernel's initiator. It works in the first network
namespace only.

    with iscsi.running(), iscsi.connected(target) as session:
        block.compare(session.disk(lio.RAM), "-n", 100, length=1 << 20)
"""

import os
import re
import socket
import struct
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import modules
import scsi
from ksft import PACE, KsftFailEx
from utils import CmdExitFailure, bkg, cmd, wait_until

SESSIONS = Path("/sys/class/iscsi_session")
MODULES = (scsi.MODULE, "ib_iser")
INTERFACE = "iser"
"""open-iscsi's name for iSER through any device."""

INITIATOR = "iqn.2026-01.test.riw:initiator"
LOCKS = Path("/run/lock/iscsi")
SOCKET = "@ISCSIADM_ABSTRACT_NAMESPACE"
"""The socket at which the daemon listens."""

PATIENT = {
    # A connection fails within 4 s if the target does not answer.
    "node.conn[0].timeo.noop_out_interval": 2, "node.conn[0].timeo.noop_out_timeout": 2,
    "node.conn[0].timeo.login_timeout": 5,
    # Requests wait for so long. It is below the time of the kernel's detector of hung tasks.
    "node.session.timeo.replacement_timeout": 90,
}
"""Settings of a session that finds out soon, and does not give up."""


def admin(*args, fail=True, timeout=60):
    """Runs iscsiadm."""
    return cmd(["iscsiadm", *args], fail=fail, timeout=timeout)


@contextmanager
def running():
    """Runs the daemon. At the end logs out of all sessions, forgets all targets, and keeps what the
    daemon has said as the result "iscsid"."""
    def listening():
        if not daemon.running:
            raise KsftFailEx(f"iscsid has ended\n{daemon.output}")
        return SOCKET in Path("/proc/net/unix").read_text(encoding="ascii")

    name = Path("initiatorname.iscsi").resolve()
    name.write_text(f"InitiatorName={INITIATOR}\n", encoding="ascii")
    # iscsiadm creates only the last part.
    LOCKS.mkdir(parents=True, exist_ok=True)
    with modules.loaded(*MODULES), \
            bkg(["iscsid", "--foreground", "--no-pid-file", "--initiatorname", name]) as daemon:
        try:
            wait_until(listening, 20, "iscsid listens")
            yield
        finally:
            try:
                logout_all()
            finally:
                for mode in "node", "discoverydb":
                    admin("-m", mode, "-o", "delete", fail=False)
                result = Path(os.environ["RIW_RESULTS"], "iscsid")
                result.write_text(daemon.output, encoding="utf-8")


def discover(target):
    """Asks the IPv4 portal for its targets, by iSER: pairs of a name and a portal.

    Linux loses one discovery in about 70, whatever the RNIC (siw too): ib_iser never gets the second
    PDU of iscsiadm, which reuses the login's task. Tries again then."""
    where = ("-m", "discovery", "-t", "sendtargets", "-p", target.portal(), "-I", INTERFACE)
    for tries in reversed(range(3)):
        try:
            said = admin(*where, timeout=20).stdout
            break
        except CmdExitFailure:
            _abandon()
            if not tries:
                raise
    return {(name, portal) for portal, name in re.findall(r"^(\S+),\d+ (\S+)$", said, re.MULTILINE)}


# Requests to the kernel (include/scsi/iscsi_if.h, enum iscsi_uevent_e).
NETLINK_ISCSI = 8
DESTROY_SESSION, DESTROY_CONN, STOP_CONN, EP_DISCONNECT = 12, 14, 18, 24
STOP_CONN_TERM = 1


def _abandon():
    """Removes the sessions that a killed iscsiadm has left: nobody else does."""
    def request(kind, values):
        # struct nlmsghdr, and struct iscsi_uevent with room for its longest members.
        event = struct.pack("=IIQ", kind, 0, transport) + values.ljust(256, b"\0")
        kernel.send(struct.pack("=IHHII", 16 + len(event), kind, 1, 0, 0) + event)
        answer = kernel.recv(4096)
        error = struct.unpack_from("=i", answer, 16 + 4)[0]
        if struct.unpack_from("=I", answer, 16)[0] != kind or error:
            raise KsftFailEx(f"request {kind} to the kernel's iSCSI: error {error}")

    transport = int(Path("/sys/class/iscsi_transport/iser/handle").read_text(encoding="ascii"))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ISCSI) as kernel:
        kernel.bind((0, 0))
        kernel.settimeout(20 * PACE)
        for session in sessions():
            request(STOP_CONN, struct.pack("=IIQI", session.number, 0, 0, STOP_CONN_TERM))
        for endpoint in Path("/sys/class/iscsi_endpoint").glob("ep-*"):
            handle = int((endpoint / "ep_handle").read_text(encoding="ascii"))
            request(EP_DISCONNECT, struct.pack("=Q", handle))
        for session in sessions():
            request(DESTROY_CONN, struct.pack("=II", session.number, 0))
            request(DESTROY_SESSION, struct.pack("=I", session.number))


def record(name, portal, settings=()):
    """Enters a target into open-iscsi's database, with settings. Returns the arguments of iscsiadm that
    select it."""
    where = ("-m", "node", "-T", name, "-p", portal, "-I", INTERFACE)
    admin(*where, "-o", "new")
    for setting, value in dict(settings).items():
        admin(*where, "-o", "update", "-n", setting, "-v", value)
    return where


@dataclass
class Session:
    """A session of the initiator."""

    number: int

    @property
    def folder(self):
        return SESSIONS / f"session{self.number}"

    def attribute(self, name):
        """Returns an attribute, or "" if the session is gone."""
        try:
            return (self.folder / name).read_text(encoding="ascii").strip()
        except OSError:
            return ""

    @property
    def host(self):
        """Returns the number of its SCSI host."""
        return int(re.search(r"/host(\d+)/", os.path.realpath(self.folder))[1])

    def disk(self, lun):
        """Returns the block device of a logical unit."""
        return scsi.disk(self.host, lun)

    def wait_state(self, state, timeout=60):
        """Waits for "LOGGED_IN", "FAILED" or "FREE", or "" if it has to go."""
        wait_until(lambda: self.attribute("state") == state, timeout,
                   f"session{self.number} is {state or 'gone'}; it is {self.attribute('state')!r}")


def sessions():
    """Returns all sessions."""
    return [Session(int(path.name.removeprefix("session"))) for path in SESSIONS.glob("session*")]


def login(target, settings=(), family=4):
    """Logs in to a target, which must not have a session. Returns the `Session`."""
    where = record(target.name, target.portal(family), {**PATIENT, **dict(settings)})
    before = {session.number for session in sessions()}
    admin(*where, "--login")
    new = [session for session in sessions() if session.number not in before]
    if len(new) != 1:
        raise KsftFailEx(f"one new session, not {new}")
    return new[0]


def logout_all():
    """Logs out of all sessions. On return they are gone."""
    if sessions():
        admin("-m", "node", "--logoutall=all", fail=False)
        wait_until(lambda: not sessions(), 60, "all sessions are gone")


@contextmanager
def connected(target, settings=(), family=4):
    """Has a session with a target during the block."""
    try:
        yield login(target, settings, family)
    finally:
        logout_all()
        admin("-m", "node", "-T", target.name, "-o", "delete", fail=False)
