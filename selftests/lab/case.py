# SPDX-License-Identifier: GPL-2.0
"""A case, as its header describes it. See selftests/README.md."""
import dataclasses
import os
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "cases"
HEADER_LINES = 20
# The instrumented kernels, and the factor by which each may be slower than the stock kernel.
PACE = {"debug": 4, "kasan": 4}
# The factor for a clock that counts instructions: it jumps to the next timer whenever the VM waits for the
# host.
PACE_OF_INSTRUCTIONS = 60


@dataclasses.dataclass
class Case:
    name: str
    timeout: int = 60
    module: str = "riw"
    vms: int = 1
    peer: str = "none"
    mem: int = 2048
    clock: str = "time"
    kernel: str = "any"
    run: str = "check"
    provider: str = "siw"
    needs: str = ""
    transport: str = "tcp"
    allow: list = dataclasses.field(default_factory=list)

    # The values that a key may have; keys not listed take any.
    VALUES = {"module": ("riw", "none"), "peer": ("siw", "riw", "none"),
              "clock": ("time", "instructions"),
              "kernel": ("any", "stock", "uml", "debug"), "run": ("check", "full"),
              "provider": ("siw", "riw"), "transport": ("tcp", "sctp", "both"),
              "needs": ("valkey",)}

    @property
    def machines(self):
        """The VMs that the case needs. Cases with equal ones can share them."""
        return self.vms, self.mem, self.clock

    def pace(self, kernel):
        """Returns the factor by which limits of time in the VM are longer than on the stock kernel."""
        return PACE_OF_INSTRUCTIONS if self.clock == "instructions" else PACE.get(kernel, 1)

    @classmethod
    def read(cls, path):
        case = cls(path.name)
        kinds = {field.name: type(getattr(case, field.name)) for field in dataclasses.fields(cls)}
        with path.open() as source:
            for _, line in zip(range(HEADER_LINES), source):
                if match := re.match(r"# lab: (.*)", line):
                    for word in match[1].split():
                        key, _, value = word.partition("=")
                        if key not in ("timeout", "module", "vms", "peer", "mem", "clock", "kernel",
                                       "run", "provider", "transport", "needs"):
                            raise ValueError(f"{path}: unknown key {key!r}")
                        if value not in cls.VALUES.get(key, [value]):
                            raise ValueError(f"{path}: unknown {key} {value!r}")
                        setattr(case, key, kinds[key](value))
                        if key == "peer":
                            case.vms = 2
                elif match := re.match(r"# lab-allow: (.*)", line):
                    case.allow.append(match[1].strip())
        return case


def find(patterns, kernel="stock", full=False):
    """Returns the cases for a kernel; with patterns, only those that match one. Slow cases must be
    named, unless all are wanted."""
    paths = sorted(path for path in FOLDER.iterdir()
                   if path.is_file() and "." not in path.name and os.access(path, os.X_OK))
    chosen = []
    for pattern in patterns or ["*"]:
        matching = [path for path in paths if path.match(pattern)]
        if not matching and patterns:
            raise ValueError(f"no case {pattern!r} in selftests/cases")
        chosen += [path for path in matching if path not in chosen]
    kinds = ["any", "stock"] if kernel == "stock" else ["any", "uml"]
    if kernel in PACE:
        kinds.append("debug")
    cases = [case for case in map(Case.read, chosen) if case.kernel in kinds]
    if not patterns and not full:
        cases = [case for case in cases if case.run == "check"]
    for case in cases:
        case.timeout *= PACE.get(kernel, 1)
    return cases
