# SPDX-License-Identifier: GPL-2.0
"""The files of riw as a kernel's tree has them: the mapping of series/tree, and what differs in their text."""
import fnmatch
import pathlib
import re

REPO = pathlib.Path(__file__).resolve().parent.parent
FOLDER = "drivers/infiniband/sw/riw"
# The lines that are added to files of the kernel: behind which line, or before which entry.
MENU = ("drivers/infiniband/Kconfig", 'source "drivers/infiniband/sw/siw/Kconfig"\n',
        f'source "{FOLDER}/Kconfig"\n')
BUILD = ("drivers/infiniband/sw/Makefile", "obj-$(CONFIG_RDMA_SIW)\t\t\t+= siw/\n",
         "obj-$(CONFIG_RDMA_RIW)\t\t\t+= riw/\n")


CHANGES = (MENU, BUILD)


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
    return in_tree_kbuild(content) if name == "Kbuild" else content


def in_tree_kbuild(content):
    """Kbuild without what serves other versions of Linux, and with the places of the tree."""
    content, cut = re.subn(r"# On Linux 7\.2,.*?^endif\n\n", "", content, flags=re.DOTALL | re.MULTILINE)
    if cut != 1:
        raise ValueError("Kbuild has no block for Linux 7.2, or several")
    content = content.replace("$(or $(CONFIG_RDMA_RIW),m)", "$(CONFIG_RDMA_RIW)").replace(":= riw.o", "+= riw.o")
    return re.sub(r"(?<!objtree\)/)(?<![A-Za-z])rust/", "", content)


def added_line(kernel, change):
    """Returns the text of a file of the kernel with a line added behind another one."""
    name, line, new = change
    content = (kernel / name).read_text()
    if content.count(line) != 1:
        raise ValueError(f"{kernel / name} does not have the line {line.strip()!r} once")
    return content.replace(line, line + new)
