# SPDX-License-Identifier: GPL-2.0
"""Line plots as SVG: a line for each contender, an x for what failed."""
import math
from html import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 50
COLOURS = {"riw": "#c0392b", "siw": "#2471a3", "tcp": "#7d8471"}
OTHER = "#8e44ad"
STYLE = ("text{font:12px sans-serif;fill:#222}.title{font-size:15px}"
         ".grid{stroke:#ddd}.axis{stroke:#222}")


def ticks(low, high):
    """The powers of ten around a range, and 2 and 5 times them if those are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(decades) > 4 else (1, 2, 5)
    return [step * 10 ** decade for decade in decades for step in steps
            if low <= step * 10 ** decade <= high]


def short(value):
    return f"{value:g}" if value < 10000 else f"{value / 1000:g}k"


def plot(title, x_title, y_title, names, lines):
    """The text of an SVG. `names` are the places on the x axis, evenly spaced; `lines`
    is {contender: [value, or None where it failed, or False where there is none]}."""
    values = [value for line in lines.values() for value in line if value]
    if not values:
        return None
    low, high = min(values) / 1.3, max(values) * 1.3

    def x(index):
        return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / len(names)

    def y(value):
        part = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
           "<!-- SPDX-License-Identifier: GPL-2.0 -->", f"<style>{STYLE}</style>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           f'<text class="title" x="{LEFT}" y="22">{escape(title)}</text>',
           f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_title)}</text>',
           f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">'
           f"{escape(y_title)}</text>"]
    for tick in ticks(low, high):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" '
                   f'y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
                   f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for index, name in enumerate(names):
        out.append(f'<text x="{x(index):.1f}" y="{HEIGHT - BOTTOM + 18}" '
                   f'text-anchor="middle">{escape(str(name))}</text>')
    out.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    for number, (contender, line) in enumerate(lines.items()):
        colour = COLOURS.get(contender, OTHER)
        pieces, pen = [], "M"
        for index, value in enumerate(line):
            if value:
                pieces.append(f"{pen}{x(index):.1f} {y(value):.1f}")
                out.append(f'<circle cx="{x(index):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>')
                pen = "L"
            else:
                pen = "M"
                if value is None:
                    out.append(f'<text x="{x(index):.1f}" y="{HEIGHT - BOTTOM - 6 - 14 * number}" '
                               f'text-anchor="middle" style="fill:{colour}">✗ {escape(contender)}'
                               "</text>")
        out.append(f'<path fill="none" stroke="{colour}" stroke-width="2" d="{"".join(pieces)}"/>')
        at = WIDTH - RIGHT - 90 * (len(lines) - number)
        out.append(f'<line x1="{at}" x2="{at + 24}" y1="18" y2="18" stroke="{colour}" '
                   f'stroke-width="2"/><text x="{at + 30}" y="22">{escape(contender)}</text>')
    out.append("</svg>\n")
    return "\n".join(out)
