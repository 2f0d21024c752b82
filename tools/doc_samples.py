#!/usr/bin/env python3
"""Extracts the programs of the docs.   tools/doc_samples.py --root DIR --out DIR page.md...

A block fenced as ```cpp run is a whole program. Each becomes OUT/<page>_<n>.cc, and its path is
printed. One fenced as ```cpp serve WORD is a server at port 7000 that answers a line with WORD by
one that has it, too, or, if WORD begins with a slash, a GET of that path with 200; PATH=WORD is
printed.

One fenced as ```cpp talk is a program whose use is shown by the next block, fenced as ```console.
That block becomes OUT/<page>_<n>.console, which tests/docs/console.py reads, and PATH=@CONSOLE is
printed.

Programs that serve or talk take their port from the environment (SPATE_SAMPLE_PORT), so that
several can be tried at once: (7000) becomes that port, and (7001) the next one.

<page> is the page's path below docs/ (or the root), in snake_case. Files that no longer belong to a
block are removed; those that did not change are left alone, so as not to rebuild them.
"""

import argparse
import os
import re
import sys


PORT = """#include <cstdint>
#include <cstdlib>
static std::uint16_t sample_port(int offset = 0) {
  return static_cast<std::uint16_t>(std::atoi(std::getenv("SPATE_SAMPLE_PORT")) + offset);
}
"""


class BadPage(Exception):
    """A malformed page; the message has the position."""


def page_name(path):
    stem = re.sub(r"^docs/|\.md$", "", path)
    return re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")


def fenced(path, text):
    """(line of the first line, words after the fence, lines) of each block."""
    fence, words, code, first, indent = None, [], [], 0, 0
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})\s*(.*?)\s*$", line)
        if fence is None:
            if mark:
                fence, words = mark.group(1), mark.group(2).split()
                indent, code, first = len(line) - len(line.lstrip()), [], number + 1
        elif mark and not mark.group(2) and mark.group(1).startswith(fence):
            yield first, words, "\n".join(code) + "\n"
            fence = None
        else:
            code.append(line[indent:] if not line[:indent].strip() else line)
    if fence is not None:
        raise BadPage(f"{path}:{first - 1}: this block does not end")


def blocks(path, text):
    """(line of the first line of code, code, WORD or None, console or None) of each sample."""
    talk = None
    for first, words, code in fenced(path, text):
        if talk is not None:
            if words != ["console"]:
                raise BadPage(f"{path}:{first - 1}: a block fenced as console has to be here")
            yield *talk, None, code
            talk = None
        elif words == ["cpp", "talk"]:
            talk = first, code
        elif words == ["cpp", "run"]:
            yield first, code, None, None
        elif words[:2] == ["cpp", "serve"] and len(words) == 3:
            yield first, code, words[2], None
    if talk is not None:
        raise BadPage(f"{path}:{talk[0] - 1}: no block fenced as console follows")


def with_ports(code):
    """The code with ports from the environment."""
    return PORT, re.sub(r"\(700(\d)\)", lambda port: f"(sample_port({port[1].lstrip('0')}))", code)


def samples(root, pages):
    """The text of each file by its name, and the word or None of each program by its name."""
    texts, words = {}, {}
    for page in pages:
        path = os.path.relpath(page, root)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for count, (line, code, word, console) in enumerate(blocks(path, text), 1):
            if not re.search(r"\bmain\s*\(", code):
                raise BadPage(f"{path}:{line}: a sample to run needs a main()")
            stem = f"{page_name(path)}_{count}"
            if stem + ".cc" in texts:
                raise BadPage(f"{path}: another page is called {page_name(path)} as well")
            if word is not None and "(7000)" not in code:
                raise BadPage(f"{path}:{line}: a sample that serves needs (7000)")
            is_driven = word is not None or console is not None
            head, code = with_ports(code) if is_driven and "(7000)" in code else ("", code)
            texts[stem + ".cc"] = f'{head}#line {line} "{path}"\n{code}'
            words[stem + ".cc"] = word
            if console is not None:
                texts[stem + ".console"] = console
                words[stem + ".cc"] = f"@{stem}.console"
    return texts, words


def write(out, texts):
    os.makedirs(out, exist_ok=True)
    for name in os.listdir(out):
        if name.endswith((".cc", ".console")) and name not in texts:
            os.remove(os.path.join(out, name))
    for name, text in texts.items():
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
        texts, words = samples(options.root, options.pages)
        write(options.out, texts)
    except (BadPage, OSError, UnicodeDecodeError) as problem:
        print(f"doc_samples: {problem}", file=sys.stderr)
        return 1
    for name, word in words.items():
        print(os.path.join(options.out, name) + ("" if word is None else "=" + word))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
