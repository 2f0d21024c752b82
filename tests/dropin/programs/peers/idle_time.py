"""Whether a program that has nothing to do does nothing: a loop that turns without cause answers
every request, and no other check would see it."""

import os
import time

import harness

SECONDS = 1.0
SHARE_MAX = 0.3  # Of one core.


def used_seconds(pid):
    """The processor time of a process and of the children that it has now."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(used_seconds, children))


def check_idle(program):
    before = used_seconds(program.pid)
    time.sleep(SECONDS)
    used = used_seconds(program.pid) - before
    harness.check(used < SECONDS * SHARE_MAX,
                  f"{program.name} used {used:.2f} s of {SECONDS} s with nothing to do")
