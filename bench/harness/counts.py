"""Instructions (callgrind, user space) and system calls (strace) per operation.

Each is the difference between two run lengths over the difference of operations, so that start-up
is cancelled. Neither depends on noise; results are kept by the hash of the program, the libraries
that it loads, and its arguments.
"""
import concurrent.futures
import functools
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import tempfile
import threading
import time

from harness import build, runner
from harness.absences import FAILED, LATER, Absence
from harness.contestants import can_be_counted
from harness.schedule import COUNTS

CACHE = build.BINARY_DIR / "counts"
TIMEOUT_S = 300  # of a run under a tool
TOOLS = {"instructions": "valgrind", "syscalls": "strace"}
turns = {}  # the lock of each entry of the cache


def missing_tools():
    return [tool for tool in TOOLS.values() if shutil.which(tool) is None]


def run_under(tool, contestant, params):
    """Runs the contestant under the tool. Returns its stdout and stderr."""
    command = contestant.command(params, under=tool)
    return runner.run_command(command, contestant.environment, TIMEOUT_S)


def count_instructions(contestant, params):
    """Returns the user-space instructions of a run, and its output."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    printed, told = run_under(tool, contestant, params)
    collected = re.search(r"Collected : (\d+)", told)
    if collected is None:
        raise runner.Failed(f"callgrind counted nothing{runner.last_words(told)}")
    return int(collected.group(1)), runner.parse(printed)


def count_system_calls(contestant, params):
    with tempfile.TemporaryDirectory() as directory:
        log = pathlib.Path(directory, "strace")
        printed, _ = run_under(["strace", "-f", "-c", "-o", str(log)], contestant, params)
        return total_calls(log.read_text()), runner.parse(printed)


def total_calls(table):
    """The sum of the column `calls` of strace -c: after % time, seconds and usecs/call."""
    total = 0
    for line in table.splitlines():
        words = line.split()
        if len(words) >= 5 and re.fullmatch(r"[\d.,]+", words[0]) and words[-1] != "total":
            total += int(words[3])
    return total


@functools.cache
def digest_of(contestant):
    """Returns a hash of everything that runs: the program, its launcher, and the libraries it
    loads."""
    digest = hashlib.sha256()
    for path in (contestant.binary, contestant.program, *sorted(contestant.libraries().values())):
        digest.update(pathlib.Path(path).read_bytes())
    return digest.hexdigest()


def cached(kind, contestant, params):
    """Returns (value, operations) of one run, from the cache or by running it.

    Two counts may need the same run. The thread that comes second waits for the first.
    """
    what = json.dumps([digest_of(contestant), kind, contestant.command(params)[1:]])
    entry = CACHE / (hashlib.sha256(what.encode()).hexdigest()[:32] + ".json")
    with turns.setdefault(entry, threading.Lock()):
        if entry.exists():
            return json.loads(entry.read_text())
        return run(entry, kind, contestant, params)


def run(entry, kind, contestant, params):
    """Runs the contestant, and keeps (value, operations) in the cache."""
    count = count_instructions if kind == "instructions" else count_system_calls
    value, output = runner.twice(lambda: count(contestant, params))
    CACHE.mkdir(parents=True, exist_ok=True)
    partial = entry.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps([value, output.ops]))
    partial.replace(entry)
    return value, output.ops


def per_operation(kind, contestant, spec):
    short_value, short_ops = cached(kind, contestant, spec.shorter)
    long_value, long_ops = cached(kind, contestant, spec.longer)
    if spec.ops not in short_ops or spec.ops not in long_ops:
        return None  # this contestant does not do such operations
    operations = long_ops[spec.ops] - short_ops[spec.ops]
    if operations <= 0:
        raise runner.Failed("the longer run did not do more operations than the shorter one")
    return (long_value - short_value) / operations


def jobs_of(workload, contestants):
    """(kind, contestant, Count) of all that can be counted with the tools that there are."""
    kinds = [kind for kind, tool in TOOLS.items() if shutil.which(tool)]
    return [(kind, c, spec) for c in contestants for spec in workload.counts for kind in kinds
            if kind in spec.kinds and c.name not in spec.without
            and (kind != "instructions" or can_be_counted(c.name))]


def measure(workload, contestants, sink, absent, progress=lambda text: None, end=math.inf):
    """Calls sink(row) for each count, and absent(Absence) for each that there is not.

    The runs share the cores, since noise does not matter. None begins after `end`.
    """
    jobs = jobs_of(workload, contestants)

    def job(kind, contestant, spec):
        if time.monotonic() >= end:
            return None, Absence(LATER, workload.name, contestant.name, COUNTS, "no time was left")
        progress(f"{workload.name} {kind} per {spec.name}: {contestant.name}")
        try:
            return per_operation(kind, contestant, spec), None
        except (runner.Failed, runner.LeftOut) as reason:
            return None, Absence(FAILED, workload.name, contestant.name,
                                 f"{kind} per {spec.name}", str(reason))

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for (kind, c, spec), (value, absence) in zip(jobs, pool.map(lambda j: job(*j), jobs)):
            if absence:
                absent(absence)
            if value is not None:
                sink({"workload": workload.name, "params": spec.params,
                      "contestant": c.name, "version": "", "metric": f"{kind}_per_op",
                      "unit": f"{kind}/op", "value": value, "repeat": 0})
