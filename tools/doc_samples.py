#!/usr/bin/env python3
"""Takes the programs out of the docs.   tools/doc_samples.py --root DIR --out DIR page.md...

A block fenced as ```cpp run is a whole program. Each becomes OUT/<page>_<n>.cc, and its path is
printed. <page> is the page's path below docs/ (or the root), in snake_case. Files that no longer
belong to a block are removed; those that did not change are left alone, so as not to rebuild them.
"""

import argparse
import os
import re
import sys


class BadPage(Exception):
    """A page that cannot be read as meant; the message says where."""


def page_name(path):
    stem = re.sub(r"^docs/|\.md$", "", path)
    return re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")


def blocks(path, text):
    """(line of the first line of code, code) of each block marked `cpp run`."""
    fence, code, first = None, [], 0
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})\s*(.*?)\s*$", line)
        if fence is None:
            if mark:
                fence, wanted = mark.group(1), mark.group(2).split() == ["cpp", "run"]
                indent, code, first = len(line) - len(line.lstrip()), [], number + 1
        elif mark and not mark.group(2) and mark.group(1).startswith(fence):
            if wanted:
                yield first, "\n".join(code) + "\n"
            fence = None
        else:
            code.append(line[indent:] if not line[:indent].strip() else line)
    if fence is not None:
        raise BadPage(f"{path}:{first - 1}: this block does not end")


def samples(root, pages):
    """The file name and the text of each sample."""
    found = {}
    for page in pages:
        path = os.path.relpath(page, root)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for count, (line, code) in enumerate(blocks(path, text), 1):
            if not re.search(r"\bmain\s*\(", code):
                raise BadPage(f"{path}:{line}: a sample to run needs a main()")
            name = f"{page_name(path)}_{count}.cc"
            if name in found:
                raise BadPage(f"{path}: another page is called {page_name(path)} as well")
            found[name] = f'#line {line} "{path}"\n{code}'
    return found


def write(out, found):
    os.makedirs(out, exist_ok=True)
    for name in os.listdir(out):
        if name.endswith(".cc") and name not in found:
            os.remove(os.path.join(out, name))
    for name, text in found.items():
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
    for name in found:
        print(os.path.join(options.out, name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
