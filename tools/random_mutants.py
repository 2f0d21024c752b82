"""Bugs drawn at random for tools/mutants.py: an operator is changed, or a call, a store or a guard
is deleted. The bugs that all files can have are listed, and a seed chooses among them.

A bug that no test can detect, because it does not change what the program does, is listed with the
reason in tests/mutants/equivalent.txt.
"""

import bisect
import os
import random
import re
import subprocess

from source_tree import blank, files, is_test, read

EQUIVALENT = "tests/mutants/equivalent.txt"
# Only operators between blanks are changed, not templates, pointers and signs.
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
             "||": "&&", "+": "-", "-": "+", "+=": "-=", "-=": "+=", "|=": "&=", "*": "/"}
OPERATOR = re.compile(r"(?<= )(?:%s)(?= )" % "|".join(
    re.escape(operator) for operator in sorted(OPERATORS, key=len, reverse=True)))
TRUTH = re.compile(r"\b(?:true|false)\b")
# Lines where a change does not affect the program at run time, or ends it.
PASSED_OVER = re.compile(
    r"^\s*(?:#|template|static_assert|using|typedef|namespace|requires|concept|friend|case\b"
    r"|public:|private:|protected:)|SPATE_ASSERT|static_assert|\boperator\b|constexpr")
CALL = re.compile(r"^\s*(?!return\b|delete\b|throw\b|co_)(?:\(void\))?[A-Za-z_][\w:.>*\[\]()-]*"
                  r"\((?P<arguments>.*)\);$")
STORE = re.compile(r"^\s*(?!return\b)[*(]?[A-Za-z_][\w.>()\[\]*-]*\s(?:[+|&-]?=)\s.*;$")
STEP = re.compile(r"^\s*(?:\+\+|--)[A-Za-z_][\w.>\[\]-]*;$")
GUARD = re.compile(r"^\s*(?P<keyword>if) (?P<condition>\(.*\)) (?P<rest>[^{].*;)$")
ENDS = re.compile(r"^\s*(?:return|break|continue)\b")


def is_balanced(text):
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))


def condition_end(code, start):
    """Returns where the bracket at `start` closes; -1 if not on this line."""
    depth = 0
    for place in range(start, len(code)):
        depth += (code[place] == "(") - (code[place] == ")")
        if depth == 0:
            return place
    return -1


def changes_of(line, code):
    """Returns (change, new line) for each change; `code` is the line without comments, strings."""
    if PASSED_OVER.search(code) or not code.strip():
        return []
    found = []
    for match in OPERATOR.finditer(code):
        new = OPERATORS[match.group()]
        found.append((f"operator {match.group()} became {new}",
                      line[:match.start()] + new + line[match.end():]))
    for match in TRUTH.finditer(code):
        new = "false" if match.group() == "true" else "true"
        found.append((f"{match.group()} became {new}", line[:match.start()] + new +
                      line[match.end():]))
    indent = line[:len(line) - len(line.lstrip())]
    if is_balanced(code):
        for pattern, what in ((CALL, "call"), (STORE, "store"), (STEP, "store")):
            if pattern.match(code):
                found.append((f"{what} deleted", indent + ";"))
                break
    at = code.find("if (")
    end = condition_end(code, at + 3) if at >= 0 and not code[:at].strip(" }else") else -1
    if end >= 0:
        head, condition, rest = line[:at], line[at + 4:end], line[end + 1:]
        if ";" not in code[at:end]:  # With ';' it declares a variable.
            found.append(("condition negated", f"{head}if (!({condition})){rest}"))
            if ENDS.match(code[end + 1:]) and code.rstrip().endswith(";"):
                found.append(("guard deleted", f"{head}if (false){rest}"))
            elif code.rstrip().endswith(";") and "=" not in condition:
                found.append(("guard deleted", f"{head}if (true){rest}"))
    return [(what, new) for what, new in found if new != line]


class RandomMutant:
    """One bug in one line: like mutants.Mutant, for the hunt."""

    filter = None

    def __init__(self, file, number, what, line, new, labels, survives=None):
        self.file, self.number, self.what, self.line, self.new = file, number, what, line, new
        self.labels, self.survives = labels, survives
        self.name = f"{file}:{number}"
        self.about = f"{what}: {line.strip()}"
        self.first = []  # Filters of the tests that reach the line, by label.

    def tries(self, quick):
        """Lists the runs until one fails: the tests that reach the line, then the labels."""
        near = [(label, pattern) for label, pattern in self.first]
        return near if quick and near else near + [(label, None) for label in self.labels]

    def applied_to(self, source):
        lines = source.split("\n")
        if lines[self.number - 1] != self.line:
            raise ValueError(f"{self.name} is another line now")
        lines[self.number - 1] = self.new
        return "\n".join(lines)


class Candidate:
    """A bug that can be drawn."""

    def __init__(self, file, number, what, line, new):
        self.file, self.number, self.what, self.line, self.new = file, number, what, line, new


def candidates(root, places, folder=None):
    """Returns all bugs that the sources below `places` can have, or only those of `folder`."""
    found = []
    for name in files(root):
        if not name.startswith(places) or is_test(name) or not name.endswith((".cc", ".h", ".c")):
            continue
        if folder and not (name == folder or name.startswith(folder.rstrip("/") + "/")):
            continue
        source = read(root, name) or ""
        lines = zip(source.split("\n"), blank(source).split("\n"))
        for number, (line, code) in enumerate(lines, 1):
            found += [Candidate(name, number, what, line, new)
                      for what, new in changes_of(line, code)]
    return found


def equivalents(root):
    """Reads the bugs that no test can detect: the reason by file, change, and line."""
    path = os.path.join(root, EQUIVALENT)
    if not os.path.exists(path):
        return {}, []
    known, problems = {}, []
    for block in re.split(r"\n\s*\n", read(root, EQUIVALENT)):
        lines = [line for line in block.split("\n") if line and not line.startswith("#")]
        if not lines:
            continue
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        if set(fields) != {"file", "change", "line", "reason"}:
            problems.append(f"{EQUIVALENT}: a block has not file, change, line and reason: {lines}")
            continue
        known[fields["file"], fields["change"], fields["line"]] = fields["reason"]
    for file, change, line in known:
        there = candidates(root, (file,), file) if os.path.isfile(os.path.join(root, file)) else []
        if not any(c.what == change and c.line.strip() == line for c in there):
            problems.append(f"{EQUIVALENT}: {file} cannot have `{change}: {line}`")
    return known, problems


def drawn(root, places, count, seed, folder, labels_of):
    """Draws `count` bugs; the same seed and tree give the same ones."""
    known, _ = equivalents(root)
    there = candidates(root, places, folder)
    picked = random.Random(seed).sample(there, min(count, len(there)))
    return [RandomMutant(c.file, c.number, c.what, c.line, c.new, labels_of(c.file),
                         known.get((c.file, c.what, c.line.strip())))
            for c in sorted(picked, key=lambda c: (c.file, c.number))]


# ---- which tests reach a line


class Reach:
    """The first tests that reach each place of the code, as written by tests/support/reach.cc."""

    FARTHEST = 40  # Lines between the beginning of a block and a line in it.

    def __init__(self):
        self.lines = {}  # By file, the lines, and by line its tests.

    def add(self, label, path, source):
        """Reads a program's output, with a line `module offset test...` per place."""
        places = {}
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            for row in map(str.split, file):
                places.setdefault(row[0], []).append((row[1], row[2:]))
        for module, found in places.items():
            for (_, tests), where in zip(found, self.lines_of(module, [o for o, _ in found])):
                file, line = where
                if not file.startswith(source + os.sep):
                    continue
                known = self.lines.setdefault(os.path.relpath(file, source), {})
                known.setdefault(line, []).extend((label, test) for test in tests)

    @staticmethod
    def lines_of(module, offsets):
        done = subprocess.run(["addr2line", "-e", module], input="\n".join(offsets) + "\n",
                              stdout=subprocess.PIPE, text=True, check=False)
        for row in done.stdout.split("\n")[:len(offsets)]:
            file, _, line = row.split(" ")[0].rpartition(":")
            yield os.path.normpath(file), int(line) if line.isdigit() else 0

    def tests_of(self, file, number):
        """Returns (label, filter) of the tests that reach the line, or its block."""
        known = self.lines.get(file, {})
        lines = sorted(known)
        at = bisect.bisect_right(lines, number) - 1
        if at < 0 or number - lines[at] > self.FARTHEST:
            return []
        by_label = {}
        for label, test in known[lines[at]]:
            by_label.setdefault(label, set()).add(test)
        return [(label, ":".join(sorted(tests))) for label, tests in by_label.items()]

    def labels_of(self, file):
        """Returns the labels with tests that reach the file."""
        return {label for tests in self.lines.get(file, {}).values() for label, _ in tests}
