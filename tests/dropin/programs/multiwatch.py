#!/usr/bin/env python3
"""multiwatch: children that it watches, restarts and signals (ev_child, ev_signal, ev_unref)."""

import collections
import os
import signal

import harness

CHILDREN = 6
ROUNDS = 5
# The child logs its events, one a line, and runs until USR1.
LIVES = """#!/bin/sh
trap 'echo usr1 $$ >>"$1"; exit 0' USR1
trap 'echo usr2 $$ >>"$1"' USR2
echo start $$ >>"$1"
while :; do sleep 60 & wait $!; done
"""
FAILS = """#!/bin/sh
echo start $$ >>"$1"
exit 3
"""


class Log:
    """The children's log."""

    def __init__(self, run, name):
        self.path = run.file(name, "")

    def pids(self, word):
        with open(self.path, encoding="ascii") as file:
            return [int(line.split()[1]) for line in file if line.startswith(word + " ")]

    def wait(self, program, word, count):
        """Returns the pids of exactly that many lines."""
        program.wait_for(lambda: len(self.pids(word)) >= count, f"{count} children's {word!r}")
        pids = self.pids(word)
        harness.check(len(pids) == count, f"{len(pids)} times {word!r}, not {count}")
        return pids


def start(run, log, script, *options):
    path = run.file(f"{os.path.basename(log.path)}.sh", script, 0o755)
    program = run.start("multiwatch", f"--forks={CHILDREN}", *options, "--", path, log.path)
    return program


def check_restarts(program, log):
    """Ends one child at a time and then all at once, when one SIGCHLD may stand for several."""
    alive = log.wait(program, "start", CHILDREN)
    program.assert_uses()
    count = CHILDREN
    for number in range(ROUNDS):
        victims = alive if number % 2 else alive[:1]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        count += len(victims)
        started = log.wait(program, "start", count)
        alive = [pid for pid in alive if pid not in victims] + started[-len(victims):]
        harness.check(len(set(started)) == count, "a child has started twice")
    return alive


def check_signals(program, log, alive):
    for count in range(1, 4):
        program.kill(signal.SIGUSR2)
        told = log.wait(program, "usr2", count * len(alive))
        harness.check(sorted(told[-len(alive):]) == sorted(alive), "other children were told")
    program.stop(status=0)
    harness.check(sorted(log.pids("usr1")) == sorted(alive), "not all children were ended")


def check_giving_up(run):
    """Children that fail are restarted as often as configured, each separately."""
    log = Log(run, "fails")
    program = start(run, log, FAILS, "--retry=4")
    output = program.wait(status=0)
    starts = len(log.pids("start"))
    harness.check(starts == CHILDREN * 5, f"{starts} starts, not {CHILDREN * 5}")
    said = collections.Counter(line.split("]")[-1].strip() for line in output.splitlines())
    harness.check(said["died to often, not forking again"] == CHILDREN, str(said))


def test(run):
    harness.need("multiwatch")
    log = Log(run, "lives")
    # A child that lived for 1 ms counts as started.
    program = start(run, log, LIVES, "--timeout=1")
    alive = check_restarts(program, log)
    check_signals(program, log, alive)
    check_giving_up(run)


if __name__ == "__main__":
    harness.main(test, library="libev.so.4", has_traffic=False)
