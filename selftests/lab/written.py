# SPDX-License-Identifier: GPL-2.0
"""The parts of documents that selftests/check_documents --write writes."""
import pathlib
import re

import events
import settings

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
PARTS = {
    "README.md": settings.table,
    "Documentation/man/riw.4": settings.items,
    "Documentation/tracing.md": events.table,
}


def document(name):
    """Returns the text of a document with its part as its source has it."""
    text, count = re.subn(r"(check_documents --write\b[^\n]*\n).*?(?=^[^\n]*End of what it writes)",
                          lambda begin: begin[1] + PARTS[name](), (REPO / name).read_text(),
                          flags=re.DOTALL | re.MULTILINE)
    if count != 1:
        raise ValueError(f"{name} has no part that is written, or several")
    return text
