# SPDX-License-Identifier: GPL-2.0
"""The cost of the link between two machines, without machines: what its socket pair takes of the host's CPU time."""
import multiprocessing
import os
import time

import uml

PACKET, PACKETS = 64 << 10, 16 << 10


def spend(host_cpu, work, answer):
    """Calls `work` PACKETS times on a CPU of the host. Answers with the CPU time in ms."""
    os.sched_setaffinity(0, {host_cpu})
    begin = time.process_time()
    for _ in range(PACKETS):
        work()
    answer.send(1000 * (time.process_time() - begin))


def cost():
    """Returns the CPU time, in ms per GiB, of the sender and the receiver of packets of 64 KiB."""
    (left, right), data = uml.link(), bytearray(PACKET)
    begun = []
    fork = multiprocessing.get_context("fork")
    works = (lambda: left.send(data)), (lambda: right.recv_into(data))
    for host_cpu, work in zip(uml.host_cpus(), works):
        ours, theirs = fork.Pipe()
        process = fork.Process(target=spend, args=(host_cpu, work, theirs), daemon=True)
        process.start()
        theirs.close()
        begun.append((process, ours))
    costs = [ours.recv() for _, ours in begun]
    for process, _ in begun:
        process.join()
    left.close()
    right.close()
    return [spent * (1 << 30) / (PACKET * PACKETS) for spent in costs]
