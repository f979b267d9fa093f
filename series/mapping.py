# SPDX-License-Identifier: GPL-2.0
"""The files of riw as a kernel's tree has them: the mapping of series/tree, and what differs in their text."""
import fnmatch
import pathlib
import re
import sys
import textwrap

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(REPO / "selftests/lab"))

from settings import settings  # noqa: E402

FOLDER = "drivers/infiniband/sw/riw"
MANUAL = "Documentation/man/riw.4"


def rows():
    """Returns the rows of series/tree, (from, to), and its patterns of files that are left out."""
    lines = [line.split() for line in (REPO / "series/tree").read_text().splitlines()
             if line and not line.startswith("#")]
    return [line for line in lines if line[0] != "-"], [line[1] for line in lines if line[0] == "-"]


def files():
    """Yields (file, place) of all files that the series adds, relative to the repository and to the kernel's tree."""
    wanted, unwanted = rows()
    for origin, place in wanted:
        path = REPO / origin
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            name = str(file.relative_to(REPO))
            if file.is_file() and not any(fnmatch.fnmatch(name, pattern) for pattern in unwanted):
                yield name, str(pathlib.Path(place) / file.relative_to(path))


def text(name):
    """Returns the text of a file as the kernel's tree has it."""
    content = (REPO / name).read_text()
    return {"Kbuild": in_tree_kbuild, MANUAL: sysfs_abi}.get(name, str)(content)


def in_tree_kbuild(content):
    """Kbuild without the blocks for other versions of Linux and for a build outside of the tree, and with the places
    of the tree."""
    for block in r"# On Linux 7\.2,.*?^endif\n\n", r"# Outside of the kernel's tree,.*?\n\n":
        content, cut = re.subn(block, "", content, flags=re.DOTALL | re.MULTILINE)
        if cut != 1:
            raise ValueError(f"Kbuild has no block {block}, or several")
    content = content.replace("$(or $(CONFIG_RDMA_RIW),m)", "$(CONFIG_RDMA_RIW)").replace(":= riw.o", "+= riw.o")
    return re.sub(r"(?<!objtree\)/)(?<![A-Za-z])rust/", "", content)


def sysfs_abi(_):
    """The settings as a file of Documentation/ABI, which takes the place of the manual page."""
    entries = []
    for setting in settings():
        described = textwrap.fill(" ".join(setting.sentences()).replace("`", ""), 80, initial_indent=" " * 16,
                                  subsequent_indent=" " * 16, break_long_words=False, break_on_hyphens=False)
        entries.append(f"What:\t\t/sys/class/infiniband/<device>/{setting.directory}/{setting.name}\n"
                       "Date:\t\t<month and year of the merge>\nKernelVersion:\t<version of the merge>\n"
                       "Contact:\tlinux-rdma@vger.kernel.org\nDescription:\n"
                       + described.replace(" " * 16, "\t\t") + "\n")
    return "sysfs interface of the driver riw: the settings of a device\n" + "-" * 59 + "\n\n" + "\n".join(entries)


def replace_line(line, new):
    """Returns a function that replaces a line of a text."""
    def change(content):
        if content.count(line) != 1:
            raise ValueError(f"the line {line.strip()!r} is not there once")
        return content.replace(line, new)
    return change


def add_line(before, line):
    """Returns a function that adds a line to a text, behind another one."""
    return replace_line(before, before + line)


def add_maintainer(content):
    """Adds the entry of series/maintainers to MAINTAINERS, at its place in the alphabet."""
    lines = (REPO / "series/maintainers").read_text().splitlines(keepends=True)
    entry = "".join(line for line in lines if not line.startswith("#"))
    title = entry.partition("\n")[0]
    # An entry is a title, and lines such as `M:` up to an empty one.
    others = re.finditer(r"^(.+)\n(?:[A-Z]:\t.*\n)+(?:\n|\Z)", content, re.MULTILINE)
    titles = {match[1]: match.end() for match in others}
    place = titles[max(other for other in titles if other < title)]
    return f"{content[:place]}{entry}\n{content[place:]}"


# The lines that files of the kernel get.
CHANGES = {
    "Documentation/infiniband/index.rst": add_line("   ipoib\n", "   riw\n"),
    "MAINTAINERS": add_maintainer,
    "drivers/infiniband/Kconfig": add_line('source "drivers/infiniband/sw/siw/Kconfig"\n',
                                           f'source "{FOLDER}/Kconfig"\n'),
    "drivers/infiniband/sw/Makefile": add_line("obj-$(CONFIG_RDMA_SIW)\t\t\t+= siw/\n",
                                               "obj-$(CONFIG_RDMA_RIW)\t\t\t+= riw/\n"),
    # RDMA_RIW_TLS links to the functions of NET_HANDSHAKE.
    "net/Kconfig": replace_line("\tdepends on SUNRPC || NVME_TARGET_TCP || NVME_TCP\n",
                                "\tdepends on SUNRPC || NVME_TARGET_TCP || NVME_TCP || RDMA_RIW_TLS\n"),
}


def changed(kernel, name):
    """Returns the text of a file of the kernel with what is added to it."""
    try:
        return CHANGES[name]((kernel / name).read_text())
    except FileNotFoundError:
        raise ValueError(f"{kernel} has no {name}: it must be the whole source of Linux") from None
    except ValueError as error:
        raise ValueError(f"{kernel / name}: {error}") from None


def tree(kernel):
    """Returns the files to which the whole series leads, {place: text}."""
    return {place: text(name) for name, place in files()} | {name: changed(kernel, name) for name in CHANGES}
