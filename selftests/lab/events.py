# SPDX-License-Identifier: GPL-2.0
"""The trace events of rust/trace/events.h, and the table of Documentation/tracing.md that follows from them."""
import pathlib
import re

HEADER = pathlib.Path(__file__).resolve().parent.parent.parent / "rust/trace/events.h"
HEAD = re.compile(r"(?:^/\*((?:(?!\*/).)*)\*/\n)?^(TRACE_EVENT|DEFINE_EVENT|DECLARE_EVENT_CLASS)\((?:(\w+), )?(\w+),\n",
                  re.DOTALL | re.MULTILINE)
# `__string(name, …)`, or `__field(type, name)`.
FIELD = re.compile(r"^\t\t__(?:string(?:_len)?\(|(?:field|array)\([^,]+, )(\w+)", re.MULTILINE)


def events():
    """Returns the events: {name: (comment, fields)}. Raises ValueError for one without a comment or fields."""
    text, classes, found = HEADER.read_text(), {}, {}
    heads = list(HEAD.finditer(text))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)]):
        comment, macro, base, name = head.groups()
        fields = classes.get(base) or FIELD.findall(text[head.end():end])
        if macro == "DECLARE_EVENT_CLASS":
            classes[name] = fields
            continue
        if not comment or not fields:
            raise ValueError(f"{HEADER}: {name} has no comment or no fields")
        found[name] = " ".join(re.sub(r"\n \*", " ", comment).split()), fields
    return found


def table():
    """Returns the table of the events."""
    lines = [f"| `{name}` | {comment.removesuffix('.')} | {', '.join(f'`{field}`' for field in fields)} |\n"
             for name, (comment, fields) in events().items()]
    return "\n| event | when | fields |\n|---|---|---|\n" + "".join(lines) + "\n"
