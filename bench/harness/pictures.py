"""A picture of each part of the page, to share: an SVG file with its title and its charts."""
import html
import re
import string

from harness import charts

GAP = 24
CAPTION = 26
HEAD = 92
FOOT = 34
COLUMNS = 3
PARAGRAPH = 15  # the size of the text; a line of it is as wide as the picture
CHARACTER = 0.55  # of the size of the text, about

PICTURE = string.Template("""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $width $height" \
width="$width" height="$height" font-family="system-ui, 'DejaVu Sans', sans-serif">
<style>
$style
</style>
<rect width="$width" height="$height" fill="var(--page)"/>
$parts
</svg>
""")


def style_of(template):
    """Returns the page's rules for charts, with the light colours."""
    root = re.search(r"^:root \{.*?^\}", template, re.DOTALL | re.MULTILINE).group()
    rules = [line for line in template.splitlines() if re.match(r"svg (\.|text|g )", line)]
    return "\n".join([root, *rules])


def lines_of(words, width):
    """Breaks words into lines of a width."""
    most, lines = int(width / (PARAGRAPH * CHARACTER)), [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def height_of(drawing):
    return float(re.match(r'<svg viewBox="0 0 \S+ (\d+)"', drawing).group(1))


def placed(drawing, x, y):
    size = f'x="{x}" y="{y}" width="{charts.WIDTH}" height="{height_of(drawing):.0f}" '
    return drawing.replace("<svg ", f"<svg {size}", 1)


def caption(figure, x, y):
    return (f'<text x="{x}" y="{y}" font-size="14"><tspan font-weight="700">'
            f"{html.escape(figure.title)}</tspan> {html.escape(figure.words)}</text>")


def picture(title, measured, run, figures, template):
    """Returns the text of the file. `figures`: report.Figure."""
    columns = min(COLUMNS, len(figures))
    width = GAP + columns * (charts.WIDTH + GAP)
    told = lines_of(measured, width - 2 * GAP)
    parts = [charts.text(GAP, 40, title, size=24).replace("<text ", '<text font-weight="700" ', 1)]
    parts += [charts.text(GAP, 66 + 19 * i, line, "tick", size=PARAGRAPH)
              for i, line in enumerate(told)]
    top = HEAD + 19 * (len(told) - 1)
    for first in range(0, len(figures), columns):
        row = figures[first:first + columns]
        for column, figure in enumerate(row):
            x = GAP + column * (charts.WIDTH + GAP)
            parts += [caption(figure, x, top + 14), placed(figure.drawing, x, top + CAPTION)]
        top += CAPTION + max(height_of(figure.drawing) for figure in row) + GAP
    parts.append(charts.text(GAP, top + 8, run, "tick", size=11))
    return PICTURE.substitute(width=width, height=int(top + FOOT), style=style_of(template),
                              parts="\n".join(parts))


def write(directory, name, text):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text, encoding="utf-8")
