#!/usr/bin/env python3
"""The record of the Worlds that were run, and the page that says it.

    tools/world_ledger.py --add build/night/worlds   sums a night's blocks into tests/sim/ledger.txt
    tools/world_ledger.py --write                    writes the section of docs/reliability.md
    tools/world_ledger.py --check                    exits with 1 if the page says something else

A line of the ledger is "swarm commit name seeds faults hours", of one commit and swarm, or "bug"
and what was found and mended. Failed blocks count no seeds: what they have found is a bug, and
noted.
"""

import argparse
import collections
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEDGER = os.path.join(ROOT, "tests", "sim", "ledger.txt")
PAGE = os.path.join(ROOT, "docs", "reliability.md")
BEGIN = "<!-- of tests/sim/ledger.txt, by tools/world_ledger.py --write -->"
END = "<!-- end -->"


class BadLedger(Exception):
    """A line that cannot be read; the message says which."""


def read(lines):
    """({(commit, swarm): [seeds, faults, hours]}, [bug, ...])"""
    swarms, bugs = {}, []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[0] == "bug":
            bugs.append(line.split(None, 1)[1].strip())
        elif words[0] == "swarm" and len(words) == 6:
            swarms[words[1], words[2]] = [int(words[3]), int(words[4]), float(words[5])]
        else:
            raise BadLedger(f"line {number}: neither a swarm nor a bug")
    return swarms, bugs


def add(swarms, blocks):
    """Sums the blocks of a night: commit swarm first last faults hours result."""
    for words in map(str.split, blocks):
        if len(words) != 7 or words[6] != "passed":
            continue
        row = swarms.setdefault((words[0], words[1]), [0, 0, 0.0])
        row[0] += int(words[3]) - int(words[2]) + 1
        row[1] += int(words[4])
        row[2] += float(words[5])


def ledger_text(swarms, bugs):
    lines = ["# What was run of the swarms in tests/sim: tools/world_ledger.py explains it."]
    lines += [f"swarm {commit} {name} {seeds} {faults} {hours:.3f}"
              for (commit, name), (seeds, faults, hours) in sorted(swarms.items())]
    return "\n".join(lines + [f"bug {bug}" for bug in bugs]) + "\n"


def section(swarms, bugs):
    """What the page says."""
    sums = collections.defaultdict(lambda: [0, 0, 0.0])
    for (_, name), row in swarms.items():
        sums[name] = [left + right for left, right in zip(sums[name], row)]
    lines = [BEGIN, "| swarm | Worlds | faults | simulated |", "|---|---|---|---|"]
    sums["all"] = [sum(column) for column in zip(*sums.values())] or [0, 0, 0.0]
    for name, (seeds, faults, hours) in sums.items():
        lines.append(f"| `{name}` | {seeds:,} | {faults:,} | {hours / 24:,.0f} days |")
    lines += ["", "Bugs found, and mended:", ""] + [f"* {bug}" for bug in bugs]
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
            add(swarms, load(arguments.add))
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
