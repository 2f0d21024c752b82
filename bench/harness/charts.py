"""Charts as SVG that is part of the page: its colours are the page's, and so light or dark.

All are WIDTH wide, in units that are about a pixel each, so that their text is as readable on a
telephone, where there is one a row, as on a wide screen.
"""
import dataclasses
import html
import math

from harness import subjects
from harness.contestants import is_floor

WIDTH = 380
TEXT = 10.5  # of all text but that of the ticks
TICK = 9.5
CHARACTER = 0.6  # of the size of the text, about

MARKS = {"ahead": "M0 -4.5L4.5 3.5H-4.5Z", "behind": "M0 4.5L4.5 -3.5H-4.5Z",
         "level": "M-3.5 0A3.5 3.5 0 1 0 3.5 0A3.5 3.5 0 1 0 -3.5 0",
         "": "M-3 0A3 3 0 1 0 3 0A3 3 0 1 0 -3 0"}


@dataclasses.dataclass(frozen=True)
class Point:
    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    points: dict  # x -> Point


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    point: Point
    text: str


def family(name):
    """Returns the contestant that shares its colour: libevent for libevent_direct."""
    return name.split("_")[0]


def look(name):
    """Returns the attributes of a contestant's elements."""
    kind = "ours" if name == "spate" else "floor" if is_floor(name) else (
        "variant" if "_" in name else "plain")
    return f'class="{kind}" style="--c:var(--{family(name)},var(--other))"'


def text(x, y, words, kind="", anchor="start", size=TEXT):
    kind = f' class="{kind}"' if kind else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{kind}>'
            f"{html.escape(words)}</text>")


def rule(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def picture(height, alt, parts):
    return (f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{html.escape(alt)}">'
            + "".join(parts) + "</svg>")


def has_place(value):
    """Returns whether a logarithmic axis has a place for the value.

    A count is the difference of two runs, so noise can make it zero or negative.
    """
    return value is not None and 0 < value < math.inf


class Scale:
    """A logarithmic axis: values between `low` and `high` are mapped from `begin` to `end`."""

    def __init__(self, low, high, begin, end):
        assert has_place(low) and has_place(high), (low, high)
        if high < low * 1.5:  # nearby values stay close
            middle = math.sqrt(low * high)
            low, high = middle / 1.25, middle * 1.25
        self.low, self.high, self._begin, self._end = low, high, begin, end

    def __call__(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self._begin + share * (self._end - self._begin)

    def ticks(self, apart):
        """Round numbers, at least so many units apart."""
        for steps in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
            found = [step * 10**power for power in range(-4, 10) for step in steps]
            found = [v for v in found if self.low <= v <= self.high]
            places = [self(v) for v in found]
            if all(abs(a - b) >= apart for a, b in zip(places, places[1:])):
                return found
        return found[::2]


def short(value):
    """A number for an axis."""
    if value < 1e4:
        return f"{value:,.0f}" if value >= 1000 else f"{value:g}"
    return f"{value / 1e3:.3g}k" if value < 1e6 else f"{value / 1e6:.3g}M"


def spread_out(wanted, apart, low, high):
    """Places near the wanted ones (ascending), no two closer than `apart`, within the limits."""
    places = []
    for place in wanted:
        places.append(max(place, places[-1] + apart if places else low))
    limit = high
    for i in reversed(range(len(places))):
        places[i] = min(places[i], limit)
        limit = places[i] - apart
    return places


def extent(points):
    return min(p.low for p in points), max(p.high for p in points)


# --- Lines over a parameter, and below them the ratio to the best peer ---

LEFT, RIGHT = 40, 250  # of the panels; names are to the right of them
NAMES = 264
PANEL = 200
RATIO_TOP, RATIO = 30, 52


def line_chart(lines, x_name, unit, verdicts, alt):
    """`verdicts`: x -> stats.Verdict."""
    xs = sorted({x for line in lines for x in line.points})
    low, high = extent([p for line in lines for p in line.points.values()])
    across = Scale(xs[0], xs[-1], LEFT + 6, RIGHT - 6)
    height = max(PANEL, 12.5 * len(lines))
    up = Scale(low, high, 14 + height - 4, 14 + 4)
    parts = [text(LEFT, 9, subjects.unit(unit), "tick", "end", TICK)]
    for value in up.ticks(14):
        parts += [rule(LEFT, up(value), RIGHT, up(value), "grid"),
                  text(LEFT - 4, up(value) + 3.3, short(value), "tick", "end", TICK)]
    ends = []
    for line in sorted(lines, key=lambda line: line.name == "spate"):  # ours on top
        parts.append(drawn_line(line, across, up))
        last = max(line.points)
        ends.append((up(line.points[last].value), across(last), line.name))
    parts += names_at(sorted(ends), 14, 14 + height)
    bottom = 14 + height
    if verdicts:
        parts += ratio_panel(verdicts, across, bottom + RATIO_TOP)
        bottom += RATIO_TOP + RATIO
    parts += x_axis(xs, x_name, across, bottom)
    return picture(bottom + 32, alt, parts)


def drawn_line(line, across, up):
    points = sorted(line.points.items())
    path = "M" + "L".join(f"{across(x):.1f} {up(p.value):.1f}" for x, p in points)
    marks = "".join(
        rule(across(x), up(p.low), across(x), up(p.high), "spread") +
        f'<circle cx="{across(x):.1f}" cy="{up(p.value):.1f}" r="2.4" class="dot"/>'
        for x, p in points)
    return f'<g {look(line.name)}><path d="{path}" class="line"/>{marks}</g>'


def names_at(ends, low, high):
    """The names of the lines beside their ends."""
    places = spread_out([y for y, _, _ in ends], 12.5, low + 4, high - 2)
    for place, (y, x, name) in zip(places, ends):
        yield (f"<g {look(name)}>" + rule(x + 4, y, NAMES - 3, place, "leader") +
               text(NAMES, place + 3.6, name, "name") + "</g>")


def x_axis(xs, x_name, across, bottom):
    last = -math.inf
    for x in xs:
        place, room = across(x), len(short(x)) * TICK * CHARACTER + 5
        yield rule(place, bottom, place, bottom + 3, "axis")
        if place - last >= room:
            yield text(place, bottom + 13, short(x), "tick", "middle", TICK)
            last = place
    yield rule(LEFT, bottom, RIGHT, bottom, "axis")
    yield text((LEFT + RIGHT) / 2, bottom + 26, x_name, "tick", "middle", TICK + 0.5)


def ratio_panel(verdicts, across, top):
    shown = {x: v for x, v in verdicts.items() if v.factor}
    low = min([0.9, *(v.spread.low for v in shown.values())])
    high = max([1.1, *(v.spread.high for v in shown.values())])
    up = Scale(low, high, top + RATIO - 6, top + 6)
    yield text(LEFT, top - 14, "spate beside the best peer: × as good", "tick", "start", TICK)
    yield rule(LEFT, up(1), RIGHT, up(1), "one")
    yield text(LEFT - 4, up(1) + 3.3, "1", "tick", "end", TICK)
    yield text(NAMES, up(1) + 3.3, "best peer", "tick", "start", TICK)
    last = -math.inf
    for x, v in sorted(shown.items()):
        place, words = across(x), f"{v.factor:.2f}" if v.factor < 10 else f"{v.factor:.0f}"
        yield f'<g class="{v.word or "untold"}">'
        yield rule(place, up(v.spread.low), place, up(v.spread.high), "spread")
        yield (f'<path d="{MARKS[v.word]}" class="mark" '
               f'transform="translate({place:.1f} {up(v.factor):.1f})"/>')
        if place - last >= len(words) * TICK * CHARACTER + 3:
            yield text(place, top - 2, words, "word", "middle", TICK)
            last = place
        yield "</g>"


# --- Contestants below each other ---

ROW = 18
NAMED, VALUES = 124, 92  # the widths of the names' column and of the values'


def dot_chart(rows, more_is_better, alt):
    """The best one first."""
    rows = sorted(rows, key=lambda row: row.point.value, reverse=more_is_better)
    low, high = extent([row.point for row in rows])
    across = Scale(low, high, NAMED + 8, WIDTH - VALUES - 4)
    bottom = 4 + ROW * len(rows)
    parts = []
    for value in across.ticks(34):
        parts += [rule(across(value), 2, across(value), bottom, "grid"),
                  text(across(value), bottom + 12, short(value), "tick", "middle", TICK)]
    for i, row in enumerate(rows):
        parts.append(drawn_row(row, across, 4 + ROW * i))
    return picture(bottom + 18, alt, parts)


def drawn_row(row, across, top):
    middle = top + ROW / 2
    band = (f'<rect x="0" y="{top}" width="{WIDTH}" height="{ROW}" rx="3" class="band"/>'
            if row.name == "spate" else "")
    return (f"<g {look(row.name)}>{band}" +
            text(NAMED - 2, middle + 3.8, row.name, "name", "end") +
            rule(NAMED + 4, middle, across(row.point.value), middle, "leader") +
            rule(across(row.point.low), middle, across(row.point.high), middle, "spread") +
            f'<circle cx="{across(row.point.value):.1f}" cy="{middle}" r="3.4" class="dot"/>' +
            text(WIDTH - 4, middle + 3.8, row.text, "value", "end", TICK + 0.5) + "</g>")
