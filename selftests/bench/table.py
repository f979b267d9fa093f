# SPDX-License-Identifier: GPL-2.0
"""The Markdown table of a run."""
import dataclasses

import rows
from stats import number

TITLES = {"bandwidth": "Bandwidth", "kernel": "CPU time of the kernels", "rate": "Message rate",
          "latency": "Latency, mean or typical, one way (read: round trip)",
          "connections": "Connections", "memory": "Memory", "cpu": "CPU time",
          "nfs": "NFS 4.2, bandwidth", "nvme": "NVMe, bandwidth", "nvme rate": "NVMe, random requests"}

HEADINGS = {**rows.TWO_NETWORKS, **rows.NETWORKS}


def cell(figure, applies):
    """Formats a figure: the median with its spread, and the reason of a failure."""
    if figure is None:
        return "not yet" if applies else "–"
    if not figure.values:
        return f"**failed**: {figure.failures[0]}"
    text = number(figure.median)
    if spread := figure.spread:
        text += f" ({spread[0] * 100:+.0f}…{spread[1] * 100:+.0f} %)"
    if figure.failures:
        text += f" **{len(figure.failures)} of {len(figure.values) + len(figure.failures)}" \
                f" failed**: {figure.failures[0]}"
    return text


def ratio(row, ours, theirs):
    """Formats how many times better `ours` is than `theirs`, in bold if it is worse."""
    if ours is None or theirs is None:
        return "–"
    value = ours.ratio(theirs) if row.more_is_better else theirs.ratio(ours)
    if value is None:
        return "–"
    return f"{value:.2f}" if value >= 1 else f"**{value:.2f}**"


def crc_costs(out, contenders, measured, chosen):
    """Writes the table of the bandwidth that CRCs cost each contender."""
    contenders = [name for name in contenders if name != "tcp"]
    some = [(row, dataclasses.replace(row, framing="")) for row in chosen
            if row.framing == "CRC" and row.kind == "bandwidth"]
    if not some:
        return
    out.write("\n## CRC at both ends: loss of bandwidth, %\n\n")
    out.write("| " + " | ".join(["", *contenders]) + " |\n" + "|---" * (len(contenders) + 1) + "|\n")
    for row, plain in some:
        costs = []
        for name in contenders:
            ours, theirs = (measured.get(one.name, {}).get(name) for one in (row, plain))
            part = ours.ratio(theirs) if ours and theirs else None
            costs.append("–" if part is None else f"{100 - 100 * part:.0f}")
        out.write("| " + " | ".join([f"{row.network} {row.operation} {rows.label(row.size)}", *costs])
                  + " |\n")


def write(out, run, measured, chosen):
    """Writes all tables. `run` has the facts about the run, as in figures.json."""
    contenders = run["contenders"]
    two = any(row.network in rows.TWO_NETWORKS for row in chosen)
    out.write("<!-- SPDX-License-Identifier: GPL-2.0 -->\n"
              f"<!-- Written by make bench{'-two' if two else ''}. -->\n"
              f"# Figures{' of two machines' if two else ''}\n\n")
    rare = "" if two else " (every second one for MTU 9000 and sizes that only the plots need)"
    out.write(f"{run['date']}, riw {run['revision']}, {run['rounds']} rounds{rare}, contenders in turn.\n\n")
    out.write(f"- Machine: {run['machine']['cpu']}, {run['machine']['cpus']} CPUs.\n"
              f"- Kernel: {run['kernel']}.\n")
    ceilings = run["machine"]["ceilings"]
    if ceilings:
        out.write("- Ceilings: it copies memory at "
                  f"{number(ceilings['memcpy_64KiB'])} MiB/s (64 KiB) and "
                  f"{number(ceilings['memcpy_64MiB'])} MiB/s (64 MiB), and computes CRC-32C at "
                  f"{number(ceilings['crc32c_tables'])} MiB/s by tables")
        if "crc32c_instruction" in ceilings:
            out.write(f", {number(ceilings['crc32c_instruction'])} MiB/s by the instruction")
        out.write(".\n")
        if "link" in ceilings:
            sender, receiver = map(number, ceilings["link"])
            out.write(f"- The link itself, of packets of 64 KiB: {sender} ms per GiB at the sender, {receiver} at the "
                      "receiver. The CPU time of the kernels includes it.\n")
        if any(row.storage for row in chosen):
            disk = ", ".join(f"{what} {number(value)}" for what, value in ceilings["disk"].items())
            out.write(f"- fio on the disk of the NVMe rows itself, in the target's machine, kIOPS: {disk}.\n")
    out.write("\nMedian (smallest … largest round). The last columns give how many times better "
              "riw is than a contender, in **bold** where it is worse. Queue depth and CQ "
              "moderation are perftest's defaults. CRCs are off at both ends, except in rows that "
              "say CRC; SCTP always has its own. In rows of SCTP, the column tcp is SCTP without "
              f"RDMA: iperf3 --sctp, with messages of {rows.label(rows.IPERF3_SCTP_MOST)} at most, "
              "and qperf. In rows of TLS, riw is below MPA, with handshakes by tlshd, and the column "
              "tcp is iperf3 and qperf over connections that the kernel encrypts in the same way, by TLS "
              "1.3 with AES-256-GCM; siw has no TLS. In rows of WireGuard, all of them are above a "
              "tunnel.")
    if any(row.storage for row in chosen):
        out.write(" NFS and NVMe: fio, direct I/O, with the named number of requests in flight.")
    out.write("\n")
    against = [name for name in contenders if name != "riw"]
    head = ["", *contenders, *(f"riw : {name}" for name in against)]
    for network in dict.fromkeys(row.network for row in chosen):
        for kind in TITLES:
            some = [row for row in chosen if (row.network, row.kind) == (network, kind)]
            if not some:
                continue
            out.write(f"\n## {TITLES[kind]}, {some[0].unit}: {HEADINGS[network]}\n\n")
            out.write("| " + " | ".join(head) + " |\n")
            out.write("|---" * len(head) + "|\n")
            for row in some:
                of_row = measured.get(row.name, {})
                words = row.what or kind
                # TCP has no operations: its row of writes stands for all of them.
                tcp = row if row.applies("tcp") else None
                if tcp is None and row.qps == 1 and not (row.events or row.framing or row.typical):
                    tcp = next((one for one in some if one.applies("tcp")
                                and (one.size, one.transport, one.encryption, one.end)
                                == (row.size, row.transport, row.encryption, row.end)),
                               None)
                applies = {name: bool(tcp) if name == "tcp" else row.applies(name.partition("@")[0])
                           for name in contenders}
                got = {name: measured.get(tcp.name, {}).get("tcp") if name == "tcp" and tcp
                       else of_row.get(name) for name in contenders}
                out.write("| " + " | ".join(
                    [words, *(cell(got[name], applies[name]) for name in contenders),
                     *(ratio(row, got.get("riw"), got[name]) for name in against)]) + " |\n")
    crc_costs(out, contenders, measured, chosen)
