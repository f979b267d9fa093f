# SPDX-License-Identifier: GPL-2.0
"""A case, as its header describes it. See selftests/README.md."""
import collections
import dataclasses
import os
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "cases"
# The folders in it that have no cases.
SHARED = {"lib", "modules", "progs"}
HEADER_LINES = 20
# The kernel on which `make check` runs the cases that need no stock kernel.
CHECK_KERNEL = "check"
# Seconds that a case takes whose header does not say it.
SECONDS = 30
# The instrumented kernels, and the factor by which each may be slower than the stock kernel.
PACE = {"debug": 4, "check": 4, "series": 4, "coverage": 4}
# The seconds that it takes to start a program on a machine of the lab that does nothing else, and the highest
# factor by which a busy one may be slower.
START = {"stock": 0.05, "debug": 0.05, "check": 0.04, "series": 0.04, "coverage": 0.04}
BUSY = 4
# The factor for a clock that counts instructions: it jumps to the next timer whenever the VM waits for the
# host.
PACE_OF_INSTRUCTIONS = 60


@dataclasses.dataclass
class Case:
    name: str
    # The folder in which it is.
    area: str
    timeout: int = 60
    module: str = "riw"
    vms: int = 1
    peer: str = "none"
    mem: int = 2048
    clock: str = "time"
    kernel: str = "any"
    run: str = "check"
    smoke: str = "no"
    provider: str = "siw"
    needs: str = ""
    transport: str = "tcp"
    lockdep: str = "no"
    fresh: str = "no"
    allow: list = dataclasses.field(default_factory=list)
    # How long it takes on the stock kernel.
    seconds: int = SECONDS
    # The first sentence of the header.
    about: str = ""
    # A glob: only points with such a title are wanted. The case ends after the first one.
    wanted: str = ""

    # The values that a key may have; keys not listed take any.
    VALUES = {"module": ("riw", "none"), "peer": ("siw", "riw", "none"),
              "clock": ("time", "instructions"),
              "kernel": ("any", "stock", "uml", "debug"), "run": ("check", "full"), "smoke": ("no", "yes"),
              "provider": ("siw", "riw"), "transport": ("tcp", "sctp", "both"),
              "lockdep": ("no", "yes"), "fresh": ("no", "yes"), "needs": ("options", "valkey", "versions")}

    def machines(self, kernel):
        """Returns the VMs that the case needs on the kernel, as arguments of machine.machines(). Cases with equal
        ones can share them."""
        needs = {"number": self.vms, "mem": self.mem}
        if kernel == "stock":
            needs["clock"] = self.clock
        elif kernel == CHECK_KERNEL:
            needs["lockdep"] = self.lockdep == "yes"
        return needs

    def pace(self, kernel, start):
        """Returns the factor by which limits of time in the VM are longer than on the stock kernel and an
        idle host. `start`: the seconds that it takes to start a program."""
        if self.clock == "instructions":
            return PACE_OF_INSTRUCTIONS
        return round(PACE.get(kernel, 1) * min(max(start / START.get(kernel, start), 1), BUSY))

    @classmethod
    def read(cls, path):
        case = cls(path.name, path.parent.name)
        kinds = {field.name: type(getattr(case, field.name)) for field in dataclasses.fields(cls)}
        with path.open() as source:
            header = [line for _, line in zip(range(HEADER_LINES), source)]
        for line in header:
            if match := re.match(r"# lab: (.*)", line):
                for word in match[1].split():
                    key, _, value = word.partition("=")
                    if key not in ("timeout", "module", "vms", "peer", "mem", "clock", "kernel",
                                   "run", "smoke", "provider", "transport", "lockdep", "fresh", "needs"):
                        raise ValueError(f"{path}: unknown key {key!r}")
                    if value not in cls.VALUES.get(key, [value]):
                        raise ValueError(f"{path}: unknown {key} {value!r}")
                    setattr(case, key, kinds[key](value))
                    if key == "peer":
                        case.vms = 2
            elif match := re.match(r"# lab-allow: (.*)", line):
                case.allow.append(match[1].strip())
        text = " ".join(line.lstrip("# ").rstrip("\n") for line in header)
        if match := re.search(r"SPDX-License-Identifier: \S+ (.*?)\.\s", text):
            case.about = match[1]
        if match := re.search(r"Takes about (\d+) (s|min)", text):
            case.seconds = int(match[1]) * {"s": 1, "min": 60}[match[2]]
        return case

    def runs_on(self, kernel):
        """Whether the case can run on the kernel."""
        return self.kernel in {"stock": ["any", "stock"], "fast": ["any", "uml"]}.get(
            kernel, ["any", "uml", "debug"])

    def limit(self, kernel, start):
        """Returns the seconds until the case is killed. The parameters are those of `pace`."""
        return self.timeout * (1 if self.clock == "instructions" else self.pace(kernel, start))


def everything():
    """Returns all cases, sorted by name. Raises ValueError for a file that looks like one and is not executable,
    or is in no area, and for a name that two cases have."""
    paths = sorted((path for path in FOLDER.glob("**/*")
                    if path.is_file() and "." not in path.name
                    and path.relative_to(FOLDER).parts[0] not in SHARED), key=lambda path: path.name)
    for path in paths:
        if not os.access(path, os.X_OK):
            raise ValueError(f"{path} is not executable")
        if path.parent.parent != FOLDER:
            raise ValueError(f"{path} is in no folder of selftests/cases")
    for name, times in collections.Counter(path.name for path in paths).items():
        if times > 1:
            raise ValueError(f"there are {times} cases {name!r}")
    return [Case.read(path) for path in paths]


def find(patterns, full=False):
    """Returns the cases; with patterns, only those that match one. A pattern is a glob of names, or of
    `AREA/NAME`; `NAME:GLOB` is for the points of a case whose titles match. Slow cases must be named, unless all
    are wanted."""
    cases = everything()
    if not patterns:
        return [case for case in cases if full or case.run == "check"]
    chosen = []
    for pattern in patterns:
        name, _, wanted = pattern.partition(":")
        matching = [dataclasses.replace(case, wanted=wanted) for case in cases
                    if pathlib.PurePath(case.area, case.name).match(name)]
        if not matching:
            raise ValueError(f"no case {name!r} in selftests/cases")
        chosen += [case for case in matching if case not in chosen]
    return chosen


def lanes(cases, smoke):
    """Returns the kernels of `make check`, each with its cases: those that need the stock kernel there,
    all others on `CHECK_KERNEL`. With `smoke`, those that are chosen for it on the stock kernel as well."""
    return {
        CHECK_KERNEL: [case for case in cases if case.runs_on(CHECK_KERNEL)],
        "stock": [case for case in cases
                  if case.kernel == "stock" or smoke and case.smoke == "yes" and case.runs_on("stock")],
    }
