# SPDX-License-Identifier: GPL-2.0
"""
The list of all points, selftests/points: what a run must have shown. A point that vanishes, because a loop
runs over nothing, a case is not executable or a test is ignored, is a failure.

A line has the name of a case or of a host test, a tab, and the title of a point. A name may end in
`@stock` or `@uml`: the case has the point on that kernel only. Numbers in titles do not count: some are
results.
"""
import collections
import pathlib
import re

FILE = pathlib.Path(__file__).resolve().parent.parent / "points"
HEAD = ("# SPDX-License-Identifier: GPL-2.0\n"
        "# All points of the tests: see lab/points.py. `selftests/run_tests --write-points` adds those of the\n"
        "# cases that it runs, and removes those that they do not have any more.\n")
KINDS = "stock", "uml"


NUMBER = re.compile(r"\d+")


def compared(titles):
    """Returns the titles as they are compared, with how often each comes."""
    return collections.Counter(NUMBER.sub("N", title) for title in titles)


def kind(kernel):
    """Returns the name of the kernel in the list."""
    return "stock" if kernel == "stock" else "uml"


class Points:
    """The list. It has the titles of each case on each kind of kernel."""

    def __init__(self, text):
        self.listed = {}
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            name, _, title = line.partition("\t")
            name, _, only = name.partition("@")
            for one in [only] if only else KINDS:
                self._of(name, one)[title] += 1

    @classmethod
    def read(cls):
        return cls(FILE.read_text() if FILE.exists() else "")

    def _of(self, name, one):
        return self.listed.setdefault(name, {each: collections.Counter() for each in KINDS})[one]

    @property
    def names(self):
        """The cases and host tests that have points."""
        return set(self.listed)

    def titles(self, name):
        """Returns the titles of the points of a case, on any kernel."""
        return set().union(*self.listed.get(name, {}).values())

    def differences(self, name, kernel, titles):
        """Returns what is wrong with the titles of a complete run of a case, as lines."""
        wanted = compared(self.listed.get(name, {}).get(kind(kernel), collections.Counter()).elements())
        made = compared(titles)
        return ([f"did not run: {title}" for title in (wanted - made).elements()]
                + [f"is not listed: {title}" for title in (made - wanted).elements()])

    def replace(self, name, kernels, titles):
        """Notes the titles of a complete run of a case for these kinds of kernels."""
        for one in kernels:
            counter = self._of(name, one)
            counter.clear()
            counter.update(titles)

    def keep(self, names):
        """Removes all cases but these."""
        self.listed = {name: kinds for name, kinds in self.listed.items() if name in names}

    def text(self):
        """Returns the lines of the list."""
        lines = []
        for name, kinds in sorted(self.listed.items()):
            common = kinds["stock"] & kinds["uml"]
            lines += [f"{name}\t{title}" for title in common.elements()]
            for one in KINDS:
                lines += [f"{name}@{one}\t{title}" for title in (kinds[one] - common).elements()]
        return "".join(f"{line}\n" for line in lines)

    def write(self):
        FILE.write_text(HEAD + self.text())
