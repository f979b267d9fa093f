# SPDX-License-Identifier: GPL-2.0
"""The settings of rust/riw/settings/list.rs, and what follows from them in README.md and in the manual page."""
import pathlib
import re
import textwrap

LIST = pathlib.Path(__file__).resolve().parent.parent.parent / "rust/riw/settings/list.rs"
ENTRY = re.compile(r"((?: {12}//.*\n)*) {12}(\w+)(?:: \w+)? \{\n((?: {16}.*\n)+) {12}\}\n")
LINK = r"\[([^\]]*)\]\([^)]*\)"


class Setting:
    """A setting: its directory, its name, its description, the paragraphs in Markdown that go on with it, its values,
    and its default."""

    def __init__(self, directory, comments, name, fields):
        self.directory, self.name = directory, name
        strings = {key: re.sub(r"\\\n *", "", value)
                   for key, value in re.findall(r'(\w+):\s+"((?:[^"\\]|\\\n)*)",', fields)}
        self.description = strings["description"]
        doc = "\n".join(re.findall(r"^ +/// ?(.*)$", comments, re.MULTILINE))
        self.paragraphs = [" ".join(paragraph.split()) for paragraph in doc.split("\n\n") if paragraph]
        if "words:" in fields:
            words = [f"`{word}`" for word in re.findall(r'c"(\w+)"', fields)]
            self.values, self.default = ", ".join(words), words[0]
        elif "range:" in fields:
            low, high, self.default = (number.replace("_", "") for number in re.search(
                r"range: ([\d_]+)\.\.=([\d_]+),\s+default: ([\d_]+),", fields).groups())
            self.values = f"{low}, {high}" if int(high) == int(low) + 1 else f"{low} to {high}"
        else:
            self.values, self.default = strings["values"], strings["default"]

    def row(self):
        """Returns the row in README.md."""
        text = ". ".join([self.description, *self.paragraphs[:1]]).removesuffix(".")
        return f"| `{self.name}` | `{self.directory}` | {text} | {self.values} | {self.default} |\n"

    def sentences(self):
        """Returns the whole text without links, sentence by sentence. A sentence that is only a link is left out."""
        text = " ".join([f"{self.description}.", *self.paragraphs,
                         f"Values: {self.values}.", f"Default: {self.default}."])
        return [re.sub(LINK, r"\1", sentence) for sentence in re.split(r"(?<=\.) (?=[A-Z0-9`[])", text)
                if not re.fullmatch(rf"{LINK}\.", sentence)]

    def item(self):
        """Returns the item in the manual page."""
        lines = [f".TP\n.B {self.name}"]
        for sentence in [*self.sentences(), f"Directory: {self.directory}."]:
            lines += textwrap.wrap(re.sub(r"`(\w+)`", r"\\fI\1\\fR", sentence), 110,
                                   break_long_words=False, break_on_hyphens=False)
        return "\n".join(lines) + "\n"


def settings():
    """Returns the settings in the order of the list. Raises ValueError if the list has entries of another form."""
    source, found = LIST.read_text(), []
    for directory, block in re.findall(r"^ {8}(\w+) \w+ \{\n(.*?)^ {8}\}", source, re.DOTALL | re.MULTILINE):
        found += [Setting(directory, *entry) for entry in ENTRY.findall(block)]
    if not found or len(found) != len(re.findall(r"^ +description:", source, re.MULTILINE)):
        raise ValueError(f"{LIST} has entries that are not understood")
    return found


def table():
    """Returns the table of README.md."""
    head = "\n| setting | directory | meaning | values | default |\n|---|---|---|---|---|\n"
    return head + "".join(setting.row() for setting in settings()) + "\n"


def items():
    """Returns the settings in the manual page."""
    return "".join(setting.item() for setting in settings())
