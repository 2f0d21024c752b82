#!/usr/bin/env python3
"""The record of the Worlds that were run, and the page that says it.

    tools/world_ledger.py --add build/night/worlds   sums a night's blocks into tests/sim/ledger.txt
    tools/world_ledger.py --write                    writes the section of docs/reliability.md
    tools/world_ledger.py --check                    exits with 1 if the page says something else

A line of the ledger is "swarm commit name seeds faults hours first..last ...", for one commit and
one swarm, or "bug" and a bug that was found and fixed. Failed blocks count no seeds; their bug is
noted instead. A block is counted once, even if its file is added again, because its line then
contains some of its seeds. Older lines have no spans.
"""

import argparse
import collections
import dataclasses
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEDGER = os.path.join(ROOT, "tests", "sim", "ledger.txt")
PAGE = os.path.join(ROOT, "docs", "reliability.md")
BEGIN = "<!-- of tests/sim/ledger.txt, by tools/world_ledger.py --write -->"
END = "<!-- end -->"


class BadLedger(Exception):
    """A line that cannot be read; the message says which."""


@dataclasses.dataclass
class Row:
    """The sums for one commit and swarm."""
    seeds: int = 0
    faults: int = 0
    hours: float = 0.0
    spans: list = dataclasses.field(default_factory=list)  # [first, last], ascending.

    def has(self, first, last):
        """Whether one of these seeds is counted."""
        return any(first <= end and begin <= last for begin, end in self.spans)

    def count(self, first, last, faults, hours):
        self.seeds += last - first + 1
        self.faults += faults
        self.hours += hours
        merged = []
        for begin, end in sorted([*self.spans, [first, last]]):
            if merged and merged[-1][1] + 1 == begin:
                merged[-1][1] = end
            else:
                merged.append([begin, end])
        self.spans = merged


def read_row(words):
    """Parses the words after "swarm commit name"."""
    spans = [[int(seed) for seed in span.split("..")] for span in words[3:]]
    if any(len(span) != 2 for span in spans):
        raise ValueError
    return Row(int(words[0]), int(words[1]), float(words[2]), spans)


def read(lines):
    """({(commit, swarm): Row}, [bug, ...])"""
    swarms, bugs = {}, []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[0] == "bug":
            bugs.append(line.split(None, 1)[1].strip())
            continue
        try:
            if words[0] != "swarm" or len(words) < 6:
                raise ValueError
            swarms[words[1], words[2]] = read_row(words[3:])
        except ValueError:
            raise BadLedger(f"line {number}: neither a swarm nor a bug") from None
    return swarms, bugs


def add(swarms, blocks):
    """Sums the blocks of a night: commit swarm first last faults hours result. Returns how many it
    has left out, since they were counted before."""
    left_out = 0
    for words in map(str.split, blocks):
        if len(words) != 7 or words[6] != "passed":
            continue
        row = swarms.setdefault((words[0], words[1]), Row())
        first, last = int(words[2]), int(words[3])
        if row.has(first, last):
            left_out += 1
        else:
            row.count(first, last, int(words[4]), float(words[5]))
    return left_out


def row_text(commit, name, row):
    spans = "".join(f" {first}..{last}" for first, last in row.spans)
    return f"swarm {commit} {name} {row.seeds} {row.faults} {row.hours:.3f}{spans}"


def ledger_text(swarms, bugs):
    lines = ["# What was run of the swarms in tests/sim: tools/world_ledger.py explains it."]
    lines += [row_text(commit, name, row) for (commit, name), row in
              sorted(swarms.items(), key=lambda item: item[0])]
    return "\n".join(lines + [f"bug {bug}" for bug in bugs]) + "\n"


def section(swarms, bugs):
    """Returns the section of the page."""
    sums = collections.defaultdict(lambda: [0, 0, 0.0])
    for (_, name), row in swarms.items():
        counted = [row.seeds, row.faults, row.hours]
        sums[name] = [left + right for left, right in zip(sums[name], counted)]
    lines = [BEGIN, "| swarm | Worlds | faults | simulated |", "|---|---|---|---|"]
    sums["all"] = [sum(column) for column in zip(*sums.values())] or [0, 0, 0.0]
    for name, (seeds, faults, hours) in sums.items():
        lines.append(f"| `{name}` | {seeds:,} | {faults:,} | {hours / 24:,.0f} days |")
    lines += ["", "Bugs found and fixed:", ""] + [f"* {bug}" for bug in bugs]
    return "\n".join(lines + ["", END])


def with_section(page, text):
    """The page with its section replaced."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise BadLedger("docs/reliability.md has no section for Worlds")
    return before + text + after


def load(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.readlines()


def save(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", metavar="FILE", help="blocks of tools/night")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    try:
        swarms, bugs = read(load(LEDGER))
        if arguments.add:
            left_out = add(swarms, load(arguments.add))
            if left_out:
                print(f"world_ledger: {left_out} blocks were counted before, and are not again")
            save(LEDGER, ledger_text(swarms, bugs))
        page = "".join(load(PAGE))
        wanted = with_section(page, section(swarms, bugs))
    except BadLedger as bad:
        sys.exit(f"world_ledger: {bad}")
    if arguments.write:
        save(PAGE, wanted)
    elif arguments.check and page != wanted:
        sys.exit("world_ledger: docs/reliability.md is not what the ledger says: "
                 "run tools/world_ledger.py --write")
    return 0


if __name__ == "__main__":
    sys.exit(main())
