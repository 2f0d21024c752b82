#!/usr/bin/env python3
"""Takes the programs out of the docs.   tools/doc_samples.py --root DIR --out DIR page.md...

A block fenced as ```cpp run is a whole program. Each becomes OUT/<page>_<n>.cc, and its path is
printed. One fenced as ```cpp serve WORD is a server at port 7000 that answers a line with WORD by
one that has it, too, or, if WORD begins with a slash, a GET of that path with 200; PATH=WORD is
printed, and the program takes its port from the environment (SPATE_SAMPLE_PORT), so that several
can be tried at once.

<page> is the page's path below docs/ (or the root), in snake_case. Files that no longer belong to a
block are removed; those that did not change are left alone, so as not to rebuild them.
"""

import argparse
import os
import re
import sys


PORT = """#include <cstdint>
#include <cstdlib>
static std::uint16_t sample_port() {
  return static_cast<std::uint16_t>(std::atoi(std::getenv("SPATE_SAMPLE_PORT")));
}
"""


class BadPage(Exception):
    """A page that cannot be read as meant; the message says where."""


def page_name(path):
    stem = re.sub(r"^docs/|\.md$", "", path)
    return re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")


def blocks(path, text):
    """(line of the first line of code, code, WORD or None) of each block to be run."""
    fence, code, first = None, [], 0
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})\s*(.*?)\s*$", line)
        if fence is None:
            if mark:
                fence, words = mark.group(1), mark.group(2).split()
                serves = words[:2] == ["cpp", "serve"] and len(words) == 3
                wanted, word = words == ["cpp", "run"] or serves, words[2] if serves else None
                indent, code, first = len(line) - len(line.lstrip()), [], number + 1
        elif mark and not mark.group(2) and mark.group(1).startswith(fence):
            if wanted:
                yield first, "\n".join(code) + "\n", word
            fence = None
        else:
            code.append(line[indent:] if not line[:indent].strip() else line)
    if fence is not None:
        raise BadPage(f"{path}:{first - 1}: this block does not end")


def samples(root, pages):
    """The text and the word of each sample, by its file's name."""
    found = {}
    for page in pages:
        path = os.path.relpath(page, root)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for count, (line, code, word) in enumerate(blocks(path, text), 1):
            if not re.search(r"\bmain\s*\(", code):
                raise BadPage(f"{path}:{line}: a sample to run needs a main()")
            name = f"{page_name(path)}_{count}.cc"
            if name in found:
                raise BadPage(f"{path}: another page is called {page_name(path)} as well")
            if word is not None and "(7000)" not in code:
                raise BadPage(f"{path}:{line}: a sample that serves needs (7000)")
            head = "" if word is None else PORT
            code = code if word is None else code.replace("(7000)", "(sample_port())")
            found[name] = f'{head}#line {line} "{path}"\n{code}', word
    return found


def write(out, found):
    os.makedirs(out, exist_ok=True)
    for name in os.listdir(out):
        if name.endswith(".cc") and name not in found:
            os.remove(os.path.join(out, name))
    for name, (text, _) in found.items():
        path = os.path.join(out, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def main(arguments):
    parser = argparse.ArgumentParser(description="Takes the programs out of the docs.")
    parser.add_argument("--root", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("pages", nargs="*")
    options = parser.parse_args(arguments)
    try:
        found = samples(options.root, options.pages)
        write(options.out, found)
    except (BadPage, OSError, UnicodeDecodeError) as problem:
        print(f"doc_samples: {problem}", file=sys.stderr)
        return 1
    for name, (_, word) in found.items():
        print(os.path.join(options.out, name) + ("" if word is None else "=" + word))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
