#!/usr/bin/env python3
"""Runs one program on an original library and on the drop-in, and compares the output.

    run.py PROGRAM (--lib-dir DIRECTORY | --other PROGRAM) [--seeds FIRST:LAST,...] [--stderr]
           [--undefined] [--settings NAME,...] [--weather LIBRARY] [-- ARGUMENT...]

The program is linked to the original; DIRECTORY has the drop-in under the same name, or the other
program is the same with the drop-in compiled in. Compared are the lines on stdout, how the program
ended and, with --stderr, the lines on stderr. The drop-in runs with DIFFERENTIAL_DROP_IN=1. With
--seeds it is called as `PROGRAM --seed N --count M ARGUMENT...`, once for --chunk seeds;
"1:300,4711" is 300 seeds and one more. A line that begins with "# " opens a block (a seed, a case),
and of the blocks that differ the shortest is shown. With --undefined a block that ends the original
by a signal, or that never ends there, is compared up to that point; then the drop-in only has to
end. With --weather the drop-in runs in the weather of ../weather, in which calls on sockets fail
with EAGAIN or EINTR, or move a part of the bytes, and the original does not: the program's output
must be the same. With --settings the comparison is repeated under each of the named settings of
libevent, on both; "all" names every one.

Exits with 0 if everything is equal, 1 if not, 2 if it could not be compared, 77 if it is skipped.
"""

import argparse
import difflib
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

LOADED = re.compile(r"calling init: (\S*/lib(?:ev|event\S*)[.-][\d.]*so[\d.]*)\s*$", re.MULTILINE)
FORGOTTEN = re.compile(r"LD_|LIBEV_|EVENT_")  # Variables that change the libraries' behaviour.
# As harness.h says it.
GAVE_UP = re.compile(r".*(ran out of time|lost patience|ended by signal \d+)")
HANGS = "ran out of time"
CONTEXT = 12
SHOWN_MAX = 60
WEATHER = {"WEATHER_SHARE": "0.3", "WEATHER_KINDS": "again,interrupt,short"}
COUNTER_BYTES = 8
# Debug mode and lock debugging are turned on by harness.h. poll() and select() report one
# descriptor at a time, as the original begins with one by chance.
SETTINGS = {
    "debug": {"DIFFERENTIAL_DEBUG_MODE": "1"},
    "locks": {"DIFFERENTIAL_LOCK_DEBUGGING": "1"},
    "changelist": {"EVENT_EPOLL_USE_CHANGELIST": "1"},
    "precise": {"EVENT_PRECISE_TIMER": "1"},
    "poll": {"EVENT_NOEPOLL": "1", "DIFFERENTIAL_ONE_READY": "1"},
    "select": {"EVENT_NOEPOLL": "1", "EVENT_NOPOLL": "1", "DIFFERENTIAL_ONE_READY": "1"},
}


class Outcome:
    def __init__(self, stdout, stderr, ending, loaded):
        self.stdout, self.stderr, self.ending, self.loaded = stdout, stderr, ending, loaded


def ending_of(status):
    if status is None:
        return "did not end in time"
    return f"exit status {status}" if status >= 0 else f"ended by {signal.Signals(-status).name}"


def run(command, lib_dir, seconds, variables):
    environment = {k: v for k, v in os.environ.items() if not FORGOTTEN.match(k)}
    if lib_dir:
        environment.update(LD_LIBRARY_PATH=lib_dir, DIFFERENTIAL_DROP_IN="1")
    environment.update(variables)
    with tempfile.TemporaryDirectory() as directory:
        environment.update(LD_DEBUG="files", LD_DEBUG_OUTPUT=os.path.join(directory, "loaded"))
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        try:
            stdout, stderr = process.communicate(timeout=seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            # It has its own session: kills its children as well.
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            status = None
        loaded = set()
        for name in glob.glob(os.path.join(directory, "loaded.*")):
            with open(name, errors="replace") as file:
                loaded.update(LOADED.findall(file.read()))
    return Outcome(stdout.decode(errors="replace").splitlines(),
                   stderr.decode(errors="replace").splitlines(), ending_of(status), loaded)


def wrong_library(outcome, options):
    """Returns an error if the outcome is of the wrong library; otherwise ""."""
    if options.other and outcome.is_ours:
        return f"it has loaded {outcome.loaded}" if outcome.loaded else ""
    if not outcome.loaded:
        return "no libev or libevent was loaded"
    for name in outcome.loaded:
        inside = os.path.dirname(os.path.realpath(name)) == os.path.realpath(options.lib_dir or "")
        if inside != outcome.is_ours:
            return f"{'the drop-in' if outcome.is_ours else 'the original'} was wanted, not {name}"
    return ""


def is_undefined(lines):
    """Returns true if these lines show that the original did not end normally."""
    return bool(lines) and GAVE_UP.fullmatch(lines[-1])


def gave_up(outcome):
    """Returns the title of a block that the original did not finish, and which therefore cannot
    be compared; "" if it finished all."""
    for title, lines in blocks([] if outcome.is_ours else outcome.stdout):
        for line in lines:
            if GAVE_UP.fullmatch(line):
                return f"the original, \"{title}\": {line}"
    return ""


def blocks(lines):
    """Returns [(title, lines)] in order; lines before the first title are the block ""."""
    found = [("", [])]
    for line in lines:
        if line.startswith("# "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [block for block in found if block[0] or block[1]]


def are_alike(theirs, ours, undefined):
    if not undefined or theirs is None or ours is None or not is_undefined(theirs):
        return theirs == ours
    until = len(theirs) - 1
    return ours[:until] == theirs[:until] and ours[-1:] != [HANGS]


def differing_blocks(theirs, ours, undefined):
    ours_by_title = dict(blocks(ours))
    theirs_by_title = dict(blocks(theirs))
    for title in dict.fromkeys([*theirs_by_title, *ours_by_title]):
        pair = theirs_by_title.get(title), ours_by_title.get(title)
        if not are_alike(*pair, undefined):
            yield title, pair[0], pair[1]


def show(what, title, theirs, ours):
    print(f"--- {what}: differs in \"{title}\" (- the original, + the drop-in)")
    if theirs is None or ours is None:
        print("    only the " + ("drop-in" if theirs is None else "original") + " came to it")
        return
    same = 0
    while same < min(len(theirs), len(ours)) and theirs[same] == ours[same]:
        same += 1
    start = max(0, same - CONTEXT)
    difference = list(difflib.unified_diff(theirs[start:same + SHOWN_MAX],
                                           ours[start:same + SHOWN_MAX], n=CONTEXT, lineterm=""))
    print(f"    first difference at line {same + 1} of the block")
    for line in difference[2:SHOWN_MAX]:
        print("    " + line)


class Comparison:
    def __init__(self, options):
        self.options = options
        self.differing = []  # (length, message, title, theirs, ours)
        self.endings = []
        self.compared = 0
        self.weather = None
        self.faults = 0  # Calls that the weather made fail.
        self.undefined = 0  # Compared blocks that the original did not finish.
        self.setting = None

    def variables(self):
        """Returns environment variables for both libraries."""
        return SETTINGS[self.setting] if self.setting else {}

    def compare(self, arguments):
        """Returns False if the two could not be compared."""
        pair = []
        for is_ours in (False, True):
            program = self.options.other if is_ours and self.options.other else self.options.program
            command = [program, *arguments, *self.options.arguments]
            outcome = run(command, self.options.lib_dir if is_ours else None, self.options.limit,
                          self.variables() | ((self.weather or {}) if is_ours else {}))
            outcome.is_ours = is_ours
            problem = wrong_library(outcome, self.options)
            if not problem and not self.options.undefined:
                problem = gave_up(outcome)
            if problem:
                print(f"{' '.join(command)}: {problem}")
                print("\n".join(outcome.stderr[-10:]))
                return False
            pair.append(outcome)
        self.note(" ".join(command), *pair)
        return True

    def compare_in_weather(self, arguments, seed):
        """Like compare(), with faults that depend on the seed."""
        with tempfile.NamedTemporaryFile() as report:
            self.weather = dict(WEATHER, LD_PRELOAD=os.path.abspath(self.options.weather),
                                WEATHER_SEED=str(seed), WEATHER_REPORT=report.name)
            could_compare = self.compare(arguments)
            report.seek(COUNTER_BYTES)  # After the counter of calls.
            self.faults += sum(int.from_bytes(report.read(COUNTER_BYTES), sys.byteorder)
                               for _ in range(3))
        return could_compare

    def note(self, command, theirs, ours):
        streams = [("stdout", theirs.stdout, ours.stdout)]
        if self.options.stderr:
            streams.append(("stderr", theirs.stderr, ours.stderr))
        for what, one, other in streams:
            for title, a, b in differing_blocks(one, other, self.options.undefined):
                missing = 10 ** 6 if a is None or b is None else 0
                title = f"{title}, {self.setting}" if self.setting else title
                self.differing.append((missing + len(a or b or []), what, title, a, b))
        found = blocks(theirs.stdout)
        self.compared += len(found)
        if self.options.undefined:
            self.undefined += sum(1 for _, lines in found if is_undefined(lines))
        if theirs.ending != ours.ending:
            self.endings.append((command, theirs, ours))

    def report(self):
        if not self.differing and not self.endings:
            also = f", {self.undefined} as far as the original goes" if self.undefined else ""
            if self.options.weather:
                also += f", {self.faults} calls failed or were cut short"
            print(f"{self.compared} blocks are equal{also}")
            return 1 if self.options.weather and self.faults == 0 else 0
        for command, theirs, ours in self.endings[:3]:
            print(f"--- {command}\n    the original: {theirs.ending}; the drop-in: {ours.ending}")
            for line in ours.stderr[-10:]:
                print("    stderr of the drop-in: " + line)
        if self.differing:
            self.differing.sort(key=lambda entry: entry[0])
            titles = [entry[2] for entry in self.differing]
            print(f"{len(titles)} of {self.compared} blocks differ: " + ", ".join(titles[:20]))
            for entry in self.differing[:self.options.show]:
                show(*entry[1:])
        return 1


def chunks(seeds, size):
    for part in seeds.split(","):
        first, _, last = part.partition(":")
        end = int(last or first) + 1
        for seed in range(int(first), end, size):
            yield ["--seed", str(seed), "--count", str(min(size, end - seed))]


def options_from(words):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--lib-dir", help="where the drop-in is")
    parser.add_argument("--other", metavar="PROGRAM", help="has the drop-in compiled in")
    parser.add_argument("--missing", metavar="PACKAGE", help="say so, and end with 77")
    parser.add_argument("--seeds", metavar="FIRST:LAST,...")
    parser.add_argument("--chunk", type=int, default=250, help="seeds for one call")
    parser.add_argument("--limit", type=int, default=100, help="seconds for one call")
    parser.add_argument("--show", type=int, default=1, help="differing blocks to show")
    parser.add_argument("--stderr", action="store_true", help="compare stderr too")
    parser.add_argument("--weather", metavar="LIBRARY", help="calls of the drop-in's fail")
    parser.add_argument("--settings", metavar="NAME,...", help="of libevent, on both")
    parser.add_argument("--undefined", action="store_true",
                        help="what ends the original by a signal is not defined")
    words, arguments = (words[:words.index("--")], words[words.index("--") + 1:]) \
        if "--" in words else (words, [])
    options = parser.parse_args(words)
    options.arguments = arguments
    return options


def settings_from(words):
    if not words:
        return [None]
    return list(SETTINGS) if words == "all" else words.split(",")


def main():
    options = options_from(sys.argv[1:])
    if options.missing:
        print(f"its headers are not installed (package {options.missing})")
        return 77
    comparison = Comparison(options)
    parts = list(chunks(options.seeds, options.chunk)) if options.seeds else [[]]
    for comparison.setting in settings_from(options.settings):
        for number, arguments in enumerate(parts):
            could_compare = comparison.compare_in_weather(arguments, number) if options.weather \
                else comparison.compare(arguments)
            if not could_compare:
                return 2
    return comparison.report()


if __name__ == "__main__":
    sys.exit(main())
