# SPDX-License-Identifier: GPL-2.0
"""SMB Direct between the kernel's server (ksmbd) and client (cifs). Debian's kernel lacks it: these cases
need `kernel=uml`.

    with lab.veth_pair(sides=smb.SIDES) as (left, right), smb.Server(right) as server, \\
            smb.Client(left) as client:
        with client.mounted(server):
            cmd(f"touch {smb.MOUNT}/file", host=client)

A machine has one ksmbd. It listens in the first network namespace only (a worker of the kernel creates
its sockets), by IPv4, on the iWARP devices at port 5445 and on others at 445. Its threads see the first
mount namespace. A client may be in any namespace.
"""

import re
from contextlib import ExitStack, contextmanager

import lab
from nfs import End
from utils import bkg, cmd, wait_until

SIDES = ("left", "")
"""The namespaces of a client and a server for `lab.veth_pair`."""
PORT = 5445
SHARE = "share"
EXPORT = "/srv"
"""The exported folder, as the server sees it."""
MOUNT = "/mnt"
"""Where a client mounts it."""

READS = 8
"""RDMA Reads that the server has in flight, and tells the client when it connects. The client allows
32."""
THRESHOLD = 4096
"""The client registers data from this size on, and the server moves it by RDMA Read or Write. Smaller
data is in the Sends."""

USER, PASSWORD = "root", "secret"
CONTROL = "/sys/class/ksmbd-control"
FOLDER = "/etc/ksmbd"

# No interface has the name "none", so ksmbd does not listen for TCP.
CONFIGURATION = f"""
[global]
	bind interfaces only = yes
	interfaces = none
	server min protocol = SMB3_11
[{SHARE}]
	path = {EXPORT}
	read only = no
	force user = root
	force group = root
	create mask = 0777
	directory mask = 0777
	store dos attributes = no
"""


class Server:
    """ksmbd at a node. It exports a ramfs: on a file system with ACLs, it gives other modes to the files
    than the client has asked for."""

    def __init__(self, node):
        self.node = node
        self._stack = ExitStack()
        self._daemon = None

    def __enter__(self):
        with ExitStack() as stack:
            cmd(f"mount -t ramfs ramfs {EXPORT}", host=self.node)
            # Fails if ksmbd has leaked a reference to a file.
            stack.callback(cmd, f"umount {EXPORT}", host=self.node)
            cmd(f"mount -t tmpfs tmpfs {FOLDER}", host=self.node)
            stack.callback(cmd, f"umount {FOLDER}", host=self.node)
            cmd(["sh", "-c", f'echo "$1" >{FOLDER}/ksmbd.conf', "sh", CONFIGURATION], host=self.node)
            cmd(f"ksmbd.adduser --add --password={PASSWORD} {USER}", host=self.node)
            stack.callback(self.stop)
            self.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *reason):
        return self._stack.__exit__(*reason)

    def _state(self):
        """Returns the state of the kernel's part: "startup", "running", "reset"."""
        return cmd(f"cat {CONTROL}/stats", host=self.node).stdout.split()[1]

    def start(self):
        """Starts to listen."""
        self._daemon = bkg("ksmbd.mountd --nodetach", host=self.node)
        wait_until(lambda: self._state() == "running", 20, "ksmbd runs")

    def stop(self):
        """Ends all connections, and ceases to listen."""
        if self._daemon is None:
            return
        # Tells the daemon to end, and then the kernel.
        cmd("ksmbd.control --shutdown", host=self.node, timeout=60)
        self._daemon.wait(20)
        self._daemon = None
        wait_until(lambda: self._state() == "startup", 20, "ksmbd has stopped")

    def restart(self):
        """Stops ksmbd and starts it again."""
        self.stop()
        self.start()


class Client(End):
    """A client of SMB in the network namespace of a node."""

    def mount(self, server, *options, password=PASSWORD, fail=True):
        """Mounts the export of a `Server` on MOUNT. Returns a `cmd`."""
        chosen = ["rdma", "vers=3.1.1", "posix", "iocharset=utf8", f"username={USER}",
                  f"password={password}", *options]
        with lab.set_up_slowly(self.node, server.node):
            return cmd(["mount", "-t", "cifs", "-o", ",".join(chosen),
                        f"//{server.node.addr}/{SHARE}", MOUNT],
                       fail=fail, host=self, timeout=60)

    @contextmanager
    def mounted(self, server, *options):
        """Mounts the export of a `Server` on MOUNT during the block."""
        self.mount(server, *options)
        try:
            yield
        finally:
            cmd(["umount", MOUNT], host=self, timeout=60)

    def options(self):
        """Returns the options in effect of the mount on MOUNT."""
        row, = [line.split() for line in self.read("/proc/self/mounts").splitlines()
                if f" {MOUNT} cifs " in line]
        return row[3].split(",")

    def reads(self):
        """Returns how many RDMA Reads the client lets its only server have in flight."""
        return int(re.search(r"MR responder_resources: (\d+) ", self.read("/proc/fs/cifs/DebugData"))[1])
