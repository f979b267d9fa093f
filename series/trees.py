# SPDX-License-Identifier: GPL-2.0
"""A tree of a kernel to which riw is added: a copy of hard links, whose files are replaced, not written."""
import os
import shutil
import subprocess

import mapping


def put(tree, place, content):
    """Replaces a file of the tree, unless it has this content. So it keeps its time, and make keeps its objects."""
    path = tree / place
    if path.is_file() and path.read_text() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(content)
    if content.startswith("#!"):
        path.chmod(0o755)


def link(kernel, tree):
    """Makes a copy of the kernel's source, with hard links: on the same file system. Keeps a copy of that source."""
    if (tree / "Makefile").exists() and os.path.samefile(kernel / "Makefile", tree / "Makefile"):
        return
    new = tree.with_name(f"{tree.name}.new")
    for folder in new, tree:
        shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["cp", "-al", kernel, new], check=True)
    new.rename(tree)


def fill_folder(tree, texts):
    """Makes the driver's folder in the tree have its files of these, {place: text}, and no others."""
    for path in (tree / mapping.FOLDER).rglob("*"):
        if path.is_file() and str(path.relative_to(tree)) not in texts:
            path.unlink()
    for place, content in texts.items():
        if place.startswith(mapping.FOLDER):
            put(tree, place, content)


def fill(kernel, tree, texts):
    """Makes a copy of the kernel's source have these files, {place: text}, and no others of riw."""
    fill_folder(tree, texts)
    for place in {place for _, place in mapping.files()} - texts.keys():
        (tree / place).unlink(missing_ok=True)
    for name in mapping.CHANGES.keys() - texts.keys():
        put(tree, name, (kernel / name).read_text())
    for place, content in texts.items():
        put(tree, place, content)
