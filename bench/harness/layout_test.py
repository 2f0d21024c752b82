#!/usr/bin/env python3
"""The page as a browser lays it out, on a desk and on a telephone: nothing is cut off, no label
lies on another. Without a browser it is skipped."""
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import example, report, stats  # noqa: E402

WIDTHS = (1280, 400, 360)
SKIPPED = 77  # CTest's status for a skipped test

CHECK = """
function findings(page, width) {
  const found = [], say = (what, e) => found.push(
      `${width}: ${what}: ${e.tagName} "${e.textContent.trim().slice(0, 60)}"`);
  for (const folded of page.querySelectorAll('details')) folded.open = true;
  const root = page.documentElement;
  if (root.scrollWidth > width) say(`the page is ${root.scrollWidth} wide`, root);
  for (const svg of page.querySelectorAll('svg')) {
    const box = svg.viewBox.baseVal, places = [];
    for (const text of svg.querySelectorAll('text')) {
      const at = text.getBBox();
      if (at.x < 0 || at.y < 0 || at.x + at.width > box.width || at.y + at.height > box.height)
        say('cut off in the chart ' + svg.getAttribute('aria-label'), text);
      for (const [other, there] of places)
        if (Math.min(at.x + at.width, there.x + there.width) - Math.max(at.x, there.x) > 1 &&
            Math.min(at.y + at.height, there.y + there.height) - Math.max(at.y, there.y) > 3)
          say('lies on "' + other.textContent + '"', text);
      places.push([text, at]);
    }
    if (svg.getBoundingClientRect().width / box.width < 0.85) say('too small to read', svg);
  }
  for (const e of page.querySelectorAll('body *:not(svg *)')) {
    const style = page.defaultView.getComputedStyle(e);
    if (style.display === 'inline' || e.matches('.scroll')) continue;
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0) say('overflows', e);
    if (!e.closest('.scroll') && e.getBoundingClientRect().right > width + 1)
      say('beyond the edge', e);
  }
  return found;
}
"""

FRAME = """<!doctype html><meta charset="utf-8">
<body style="margin:0"><script>{check}</script>{frames}
<script>onload = () => {{
  const found = [], frames = [...document.querySelectorAll('iframe')];
  for (const f of frames) found.push(...findings(f.contentDocument, f.clientWidth));
  const told = {{frames: frames.length, found: found}};
  document.body.innerHTML = '<pre>' + JSON.stringify(told).replace(/</g, '&lt;') + '</pre>';
}}</script>"""


def browser():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def page_text(directory):
    rows = list(example.rows())
    path = pathlib.Path(directory, "index.html")
    report.write_html(stats.Results(rows[1:]), rows[0]["run"], path)
    return path.read_text(encoding="utf-8")


def findings(program, directory, text):
    frames = "".join(f'<iframe style="border:0;height:900px;width:{w}px" '
                     f'srcdoc="{html.escape(text)}"></iframe>' for w in WIDTHS)
    path = pathlib.Path(directory, "frames.html")
    path.write_text(FRAME.format(check=CHECK, frames=frames), encoding="utf-8")
    done = subprocess.run(
        [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={directory}/profile", "--window-size=1800,1000",
         "--virtual-time-budget=60000", "--dump-dom", path.as_uri()],
        text=True, capture_output=True, check=False, timeout=240)
    told = re.search(r"<pre>(.*)</pre>", done.stdout, re.DOTALL)
    if told is None:
        raise SystemExit(f"{program} has laid nothing out: {done.stderr[-500:]}")
    told = json.loads(html.unescape(told.group(1)))
    if told["frames"] != len(WIDTHS):
        raise SystemExit(f"{told['frames']} widths were looked at")
    return told["found"]


def main():
    program = browser()
    if program is None:
        print("chromium is not installed (package chromium)")
        return SKIPPED
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        found = findings(program, directory, page_text(directory))
    for line in found[:40]:
        print(line)
    print(f"layout: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
