#!/usr/bin/env python3
"""Holds comments and Markdown to plain English, and commit subjects to their form.

    tools/prose.py                    checks the tree; exits with 1 if a limit is exceeded
    tools/prose.py --show PATH...     prints each marked clause of files or folders
    tools/prose.py --worst COUNT      prints the files with the most marks per 1,000 words
    tools/prose.py --commits [BASE]   checks the subjects of BASE..HEAD (default: the upstream)

A mark is a construction that makes a reader go back: a clause as a subject ("What was read is
kept"), a person's pronoun for a thing, a rare word for a common one. CONTRIBUTING.md has the rules.
A mark is a hint: rewrite the sentence, not the mark.
"""

import argparse
import io
import math
import os
import re
import subprocess
import sys
import tokenize

from source_tree import TOKEN, files, read

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))

# Marks per 1,000 words that a file may have, by the beginning of its path; the first one counts.
# Shorter files are only counted with their folder.
LIMITS = (
    ("README.md", 2.0),
    ("CONTRIBUTING.md", 2.0),
    ("CHANGELOG.md", 2.0),
    ("docs/", 2.0),
    ("include/", 2.0),
    ("examples/", 2.0),
    ("bench/", 2.0),
    ("", 3.0),
)
FOLDER_LIMIT = 3.0
WORDS_MIN = 150

CHECKERS = ("tools/prose.py", "tools/prose_test.py")  # They have to write down what they look for.

COLUMNS_MAX = 72
AREA = re.compile(r"[a-z][\w./+-]*(?:,? [\w./+-]+){0,3}: (?=\S)")
NOT_IMPERATIVE = re.compile(
    r"(?!(?:embed|exceed|feed|need|proceed|seed|shed|speed|bring|string)\b)\w+(?:ed|ing)\b"
    r"|(?:an?|the|of|what|who|whoever|whose|those|nobody|no|it|its|this|that|wip|fixes|adds)\b",
    re.IGNORECASE)

C_LIKE = (".h", ".cc", ".c", ".xs", ".js", ".go", ".inc")
HASH = (".cmake", ".sh", ".pm", ".pl", ".t", ".yml")

PERSON = r"(?:who|whom|whoever)"
VERB = (r"(?:is|are|was|were|has|have|had|may|can|could|must|comes?|came|remains|follows?|waits?"
        r"|happens|it|they|we|others)")


def rule(name, pattern):
    return name, re.compile(pattern)


RULES = (
    rule("opens with a clause", r"^(?:What|Who|Whoever|Whom|Whose)\b(?!.*\?$)"),
    rule("opens without its subject", r"^(?:Of(?! course)|Those|The same)\b"),
    rule("'who' without a noun",
         rf"\b(?:to|for|of|by|from|with|than|as|and|or|whether) {PERSON}\b|, {PERSON}\b"
         r"|\bone who\b"),
    rule("nobody, somebody, anybody", r"(?i)\b(?:no|some|any)body\b"),
    rule("he, him, his", r"\b(?:he|him|his)\b"),
    rule("'what' as a noun", rf"\bwhat {VERB}\b"),
    rule("is told, tells", r"\b(?:is|are|was|were|be|been|being) told\b"
                           r"|\btells?\b(?!\(| (?:you|the user))"),
    rule("goodbye, farewell", r"(?i)\b(?:good-?bye|farewell)\b"),
    rule("anew, afresh", r"\b(?:anew|afresh)\b"),
    rule("behind, for after", r"(?<!server )\bbehind (?:it|its|them|that|those|what)\b"
                              r"|\b(?:come|comes|came|sent|written|queued|lies) behind\b"),
    rule("but for", r"\bbut for\b"),
    rule("is to be", r"\b(?:is|are|was|has|have) to be\b"),
    rule("goes on", r"\b(?:go|goes|going|went) on\b"),
    rule("there is none", r"(?i)\bthere (?:is|are|was|were) (?:none|nothing)\b"),
    rule("has come, has gone", r"\b(?:has|have|had) (?:come|gone)\b"),
    rule("of its own", r"(?<!one )\bof (?:its|their|our|one's) own\b"),
    rule("so far, as far as", r"(?i)\b(?:so far|as far as)\b"),
)


# --- Prose of a file: (line, text) for each paragraph. ---


def paragraphs(first, text, prefix):
    """Joins the lines of `text`, which begins at line `first`, without `prefix`, at empty lines."""
    start, parts = first, []
    for number, line in enumerate(text.split("\n"), first):
        words = re.sub(prefix, "", line).strip()
        if words and not parts:
            start = number
        if words:
            parts.append(words)
        elif parts:
            yield start, " ".join(parts)
            parts = []
    if parts:
        yield start, " ".join(parts)


def markdown(text):
    """Paragraphs, items of lists, headings and rows of tables; code and comments are left out."""
    text = re.sub(r"<!--.*?-->", lambda match: "\n" * match.group().count("\n"), text, flags=re.S)
    fence, separated = None, []
    for line in text.split("\n"):
        mark = re.match(r"[ \t]*(```+|~~~+)", line)
        is_code = fence is not None or mark is not None or line.startswith("    ")
        if mark:
            fence = mark.group(1) if fence is None else None if line.strip() == fence else fence
        line = "" if is_code else re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "X", line))
        separated.append(line)
    start, parts = 0, []
    for number, line in enumerate(separated + [""], 1):
        is_alone = re.match(r"[#|]", line)
        if parts and (not line.strip() or is_alone or re.match(r"[ \t]*(?:[*-]|\d+\.) ", line)):
            yield start, " ".join(parts)
            parts = []
        if line.strip():
            start = start if parts else number
            parts.append(re.sub(r"^[ \t]*(?:[#>|*-]+|\d+\.)?[ \t]*", "", line).rstrip())
        if is_alone:
            yield start, parts.pop()


def c_like(text):
    """Comments; those on lines that follow each other are one."""
    block, first, last = [], 0, -1
    for match in TOKEN.finditer(text):
        token = match.group()
        if not token.startswith("/"):
            continue
        line = text.count("\n", 0, match.start()) + 1
        is_alone = not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        if not (is_alone and line == last + 1) and block:
            yield from paragraphs(first, "\n".join(block), r"^[ \t]*(?:///?|/?\*+/?)")
            block = []
        if not block:
            first = line
        block += token.split("\n")
        last = line + token.count("\n") if is_alone else -1
    if block:
        yield from paragraphs(first, "\n".join(block), r"^[ \t]*(?:///?|/?\*+/?)")


def hash_comments(text):
    for match in re.finditer(r"(?:^[ \t]*#(?!!)[^\n]*(?:\n|\Z))+|(?<=[ \t])# [^\n]*", text, re.M):
        yield from paragraphs(text.count("\n", 0, match.start()) + 1, match.group(), r"^[ \t]*#+")


def mutants(text):
    """The descriptions of mutants: each precedes the lines that its mutant changes."""
    line = 0
    for section in re.split(r"(?m)^(?==== )", text):
        for number, paragraph in hash_comments(section.partition("\n---\n")[0]):
            yield line + number, paragraph
        line += section.count("\n")


def python(text):
    """Comments and docstrings."""
    yield from hash_comments(text)
    before = tokenize.NEWLINE
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING and before in (
                    tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                yield from paragraphs(token.start[0], token.string.strip("\"'"), r"^")
            if token.type not in (tokenize.NL, tokenize.COMMENT):
                before = token.type
    except (tokenize.TokenError, IndentationError):
        return


def extractor(name, text):
    base = os.path.basename(name)
    shebang = text[:text.find("\n")] if text.startswith("#!") else ""
    if name.endswith(".md"):
        return markdown
    if name.endswith(".mutants"):
        return mutants
    if name.endswith(C_LIKE):
        return c_like
    if name.endswith(".py") or "python" in shebang:
        return python
    if name.endswith(HASH) or base in ("CMakeLists.txt", "Makefile") or shebang:
        return hash_comments
    return None


# --- Marks. ---


def clauses(paragraph):
    """The sentences of a paragraph, also split at colons, semicolons and cells of a table."""
    for clause in re.split(r"(?<=[.!?:;])\s+|\s*\|\s*", paragraph):
        clause = clause.strip().lstrip("*_(\"")
        if clause:
            yield clause


class Prose:
    """The number of words of a file, and its marks: (line, rule, clause)."""

    def __init__(self, name, text):
        self.words, self.marks = 0, []
        extract = extractor(name, text)
        for line, paragraph in extract(text) if extract else ():
            self.words += len(re.findall(r"[A-Za-z']+", paragraph))
            for clause in clauses(paragraph):
                for title, pattern in RULES:
                    self.marks += [(line, title, clause)] * len(pattern.findall(clause))

    def density(self):
        return 1000 * len(self.marks) / max(1, self.words)


def prose_of(root, names):
    """Prose by name, of the files that have any."""
    found = {}
    for name in names:
        text = None if name in CHECKERS else read(root, name)
        if text is not None and extractor(name, text) is not None:
            found[name] = Prose(name, text)
    return found


def over_limits(found, limits):
    """A line for each file and each top folder that has more marks than it may."""
    folders = {}
    for name, prose in found.items():
        limit = next((limit for start, limit in limits if name.startswith(start)), math.inf)
        if prose.words >= WORDS_MIN and prose.density() > limit:
            yield (f"{name}: {prose.density():.1f} marks per 1,000 words, more than {limit}: "
                   f"tools/prose.py --show {name}")
        words, marks = folders.get(name.partition("/")[0], (0, 0))
        folders[name.partition("/")[0]] = words + prose.words, marks + len(prose.marks)
    for folder, (words, marks) in folders.items():
        if words >= WORDS_MIN and 1000 * marks / words > FOLDER_LIMIT:
            yield (f"{folder}: {1000 * marks / words:.1f} marks per 1,000 words, more than "
                   f"{FOLDER_LIMIT}: tools/prose.py --show {folder}")


# --- Commits. ---


def subject_problem(subject):
    """Returns the fault of a commit's subject, or None."""
    area = AREA.match(subject)
    if area is None:
        return "not `area: imperative`"
    if len(subject) > COLUMNS_MAX:
        return f"{len(subject)} columns, more than {COLUMNS_MAX}"
    if NOT_IMPERATIVE.match(subject, area.end()):
        return "not an imperative"
    return None


def git(root, *arguments):
    return subprocess.run(("git", "-C", root, *arguments), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False)


def check_commits(root, base):
    if base == "@{upstream}" and git(root, "rev-parse", "--verify", "-q", base).returncode != 0:
        print("prose: no upstream, so no commits are checked")
        return 0
    log = git(root, "log", "--no-merges", "--format=%h %s", f"{base}..HEAD")
    if log.returncode != 0:
        sys.exit(f"prose: {log.stderr.strip()}")
    rows = [row.partition(" ") for row in log.stdout.split("\n") if row]
    problems = [f"{commit} {subject}: {subject_problem(subject)}"
                for commit, _, subject in rows if subject_problem(subject)]
    print("\n".join([*problems, f"prose: {len(rows)} commits, {len(problems)} problems"]))
    return 1 if problems else 0


def show(root, paths):
    names = [name for name in files(root)
             if any(name == path or name.startswith(path.rstrip("/") + "/") for path in paths)]
    for name, prose in prose_of(root, names).items():
        for line, title, clause in prose.marks:
            print(f"{name}:{line}: {title}: {clause[:160]}")
    return 0


def show_worst(root, count):
    found = [(prose.density(), len(prose.marks), prose.words, name)
             for name, prose in prose_of(root, files(root)).items()
             if prose.words >= WORDS_MIN]
    for density, marks, words, name in sorted(found, reverse=True)[:count]:
        print(f"{density:6.1f}  {marks:4d} in {words:6d} words  {name}")
    return 0


def check_tree(root):
    found = prose_of(root, files(root))
    problems = list(over_limits(found, LIMITS))
    print("\n".join([*problems, f"prose: {len(found)} files, {len(problems)} problems"]))
    return 1 if problems else 0


def main(arguments):
    parser = argparse.ArgumentParser(description="Checks the language of comments and Markdown.")
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--show", nargs="+", metavar="PATH")
    parser.add_argument("--worst", type=int, metavar="COUNT")
    parser.add_argument("--commits", nargs="?", const="@{upstream}", metavar="BASE")
    options = parser.parse_args(arguments)
    if options.show:
        return show(options.root, options.show)
    if options.worst:
        return show_worst(options.root, options.worst)
    if options.commits:
        return check_commits(options.root, options.commits)
    return check_tree(options.root)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
