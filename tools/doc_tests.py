#!/usr/bin/env python3
"""Compares the docs with the tests and the tree.   tools/doc_tests.py [root of the tree]

* A table in docs/ whose last column is headed "test" must name an existing test, `Suite.Name`, in
  each row, and no test twice.
* A link from a Markdown file to another file, or to a heading, must lead somewhere.
* The source trees of README.md and docs/design.md must show the folders as they are.
* A table whose last column is headed "spate", on a page about porting or about C, may use only
  names of the public headers there.
* `Type::name` must be in a public header that defines the type.
"""

import os
import re
import sys

from source_tree import blank, files, finish, is_test, read, root_from

TEST = re.compile(r"\bTEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
NAME = re.compile(r"`(\w+\.\w+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
TREES = ("README.md", "docs/design.md")
PORTING = re.compile(r"docs/(?:porting-from-[\w-]+|guide/c)\.md")
CODE_NAME = re.compile(r"(?<![\w\"])[A-Za-z]\w{2,}")
OTHER_TYPES = ("docs/design.md", "docs/guide/perl.md")  # Private types, and those of Perl.
MEMBER = re.compile(r"(\w+)(?=::(\w+))")
TYPE = re.compile(r"^(?:class|struct|enum class)\s+(?:[A-Z]+_EXPORT\s+)?(\w+)\b(?!::)[^;()]*\{",
                  re.M)
FOLDER = re.compile(r"(?:^|(?<=  ))([\w./-]+/)(?= )")


def tests_of(root, names):
    """Every test of GoogleTest in the tree, as Suite.Name."""
    found = set()
    for name in names:
        if name.endswith(".cc") and is_test(name):
            text = read(root, name)
            if text is not None:
                found.update(".".join(match) for match in TEST.findall(blank(text)))
    return found


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text, title="test"):
    """Yields (table, line number, last cell) of each row in each table whose last column has this
    title.

    The line number of its head identifies a table.
    """
    table, within = None, False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("|"):
            table = None
        elif table is None:
            table, within = number, cells(line)[-1] == title
        elif within and not re.fullmatch(r"[|\s:-]+", line):
            yield table, number, cells(line)[-1]


def check_page(text, tests):
    seen = set()
    for table, number, cell in rows(text):
        named = NAME.findall(cell)
        if not named:
            yield number, "a row without a test"
        for test in named:
            if test not in tests:
                yield number, f"there is no test {test}"
            if (table, test) in seen:
                yield number, f"{test} stands for two rows"
            seen.add((table, test))


def public_names(texts):
    """Returns the words of the public headers; and by type, those of the headers that define it."""
    words, by_type = set(), {}
    for text in texts:
        code = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
        own = set(re.findall(r"\w+", code))
        words |= own
        for name in TYPE.findall(code):
            by_type.setdefault(name, set()).update(own)
    return words, by_type


def code_of(line):
    """The code of a line, without literals."""
    return [re.sub(r'"[^"]*"', "", code) for code in re.findall(r"`([^`]*)`", line)]


def check_names(text, words):
    for _, number, cell in rows(text, "spate"):
        for code in code_of(cell):
            for name in CODE_NAME.findall(code):
                if name not in words and name != "NULL":
                    yield number, f"no public header has {name}"


def check_members(text, by_type):
    for number, line in prose_lines(text):
        for code in code_of(line):
            for owner, name in MEMBER.findall(code):
                if owner in by_type and name not in by_type[owner]:
                    yield number, f"the header of {owner} has no {name}"


def prose_lines(text):
    """(number, line) of each line that is not in a block of code."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark is None and fence is None:
            yield number, line
        elif mark:
            fence = mark.group(1) if fence is None else None if line.strip() == fence else fence


def anchors(text):
    """The anchors of the headings of a page, as GitHub makes them."""
    found = set()
    for _, line in prose_lines(text):
        if re.match(r"#+ ", line):
            heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("# ")).strip().lower()
            found.add(re.sub(r"[^\w -]", "", heading).replace(" ", "-"))
    return found


def check_links(name, texts, exists):
    for number, line in prose_lines(texts[name]):
        for link in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            path, _, anchor = link.partition("#")
            if re.match(r"\w+:", link):
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not exists(target):
                yield number, f"there is no file {target}"
            elif anchor and target in texts and anchor not in anchors(texts[target]):
                yield number, f"{target} has no heading #{anchor}"


def tree_of(text):
    """line number by folder of the first source tree of a page."""
    found, parent, is_inside = {}, "", False
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"(?:include/spate|src/\w+)/ ", line):
            is_inside = True
        elif is_inside and line.startswith("```"):
            break
        for folder in FOLDER.findall(line) if is_inside else ():
            if line.startswith(folder):
                parent = folder
            found[folder if line.startswith(folder) else parent + folder] = number
    return found


def check_source_tree(text, folders):
    """Every folder of the page exists; and beside each, all of its siblings are shown."""
    shown = tree_of(text)
    if not shown:
        yield 1, "no source tree"
        return
    for folder, number in shown.items():
        if folder not in folders:
            yield number, f"there is no folder {folder}"
    parents = {os.path.dirname(folder.rstrip("/")) for folder in shown} - {"include", "bindings"}
    for folder in sorted(folders):
        parent = os.path.dirname(folder.rstrip("/"))
        if parent in parents and not any(name.startswith(folder) for name in shown):
            yield min(shown.values()), f"the tree lacks {folder}"


def folders_of(names):
    """All folders that have files, except the hidden ones, with a slash at the end."""
    found = set()
    for name in names:
        parts = name.split("/")[:-1]
        if parts and not parts[0].startswith("."):
            found.update("/".join(parts[:count]) + "/" for count in range(1, len(parts) + 1))
    return found


def check_tree(root):
    names = files(root)
    tests = tests_of(root, names)
    texts = {name: read(root, name) or "" for name in names if name.endswith(".md")}
    pages = [name for name in texts if name.startswith("docs/")]
    folders = folders_of(names)
    headers = [read(root, name) or "" for name in names
               if name.startswith("include/") and name.endswith(".h")]
    words, by_type = public_names(headers)
    problems = [f"{name}:{line}: {message}" for name in pages
                for line, message in check_page(texts[name], tests)]
    problems += [f"{name}:{line}: {message}" for name in texts for line, message in check_links(
        name, texts, lambda target: os.path.exists(os.path.join(root, target)))]
    problems += [f"{name}:{line}: {message}" for name in pages if PORTING.fullmatch(name)
                 for line, message in check_names(texts[name], words)]
    problems += [f"{name}:{line}: {message}" for name in pages if name not in OTHER_TYPES
                 for line, message in check_members(texts[name], by_type)]
    problems += [f"{name}:{line}: {message}" for name in TREES if name in texts
                 for line, message in check_source_tree(texts[name], folders)]
    return problems, len(texts)


def main(arguments):
    return finish("doc tests", *check_tree(root_from(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
