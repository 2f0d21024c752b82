"""Instructions (callgrind, user space) and system calls (strace) per operation.

Each is the difference between two run lengths over the difference of operations, so that start-up
is cancelled. Neither depends on noise; results are kept by the hash of the program, the libraries
that it loads, and its arguments.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import build, runner, workloads

CACHE = build.BINARY_DIR / "counts"


def missing_tools():
    return [tool for tool in ("valgrind", "strace") if shutil.which(tool) is None]


def run_under(tool, contestant, params):
    """What a run under the tool prints, stdout and stderr."""
    command = contestant.command(params, under=tool)
    done = subprocess.run(command, text=True, capture_output=True, timeout=600, check=False,
                          env=contestant.environment)
    if done.returncode != 0:
        raise runner.Refused(f"{' '.join(command)}: {done.stderr[-400:]}")
    return done.stdout, done.stderr


def count_instructions(contestant, params):
    """User-space instructions of a run, and what it printed."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    printed, told = run_under(tool, contestant, params)
    collected = re.search(r"Collected : (\d+)", told)
    if collected is None:
        raise runner.Refused(f"{contestant.name}: callgrind counted nothing: {told[-400:]}")
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
    """A hash of all that runs: the program, what starts it, and the libraries it loads."""
    digest = hashlib.sha256()
    for path in (contestant.binary, contestant.program, *sorted(contestant.libraries().values())):
        digest.update(pathlib.Path(path).read_bytes())
    return digest.hexdigest()


def cached(kind, contestant, params):
    """(value, operations) of one run, from the cache or by running it."""
    what = json.dumps([digest_of(contestant), kind, contestant.command(params)[1:]])
    entry = CACHE / (hashlib.sha256(what.encode()).hexdigest()[:32] + ".json")
    if entry.exists():
        return json.loads(entry.read_text())
    count = count_instructions if kind == "instructions" else count_system_calls
    value, output = count(contestant, params)
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
    return (long_value - short_value) / (long_ops[spec.ops] - short_ops[spec.ops])


def measure(workload, contestants, sink, progress=None):
    """Calls sink(row) for each count; the runs share the cores, since noise does not matter."""
    tools = {"instructions": "valgrind", "syscalls": "strace"}
    kinds = [kind for kind, tool in tools.items() if shutil.which(tool)]
    jobs = [(kind, c, spec) for c in contestants for spec in workload.counts for kind in kinds
            if kind in spec.kinds and c.name not in spec.without
            and (kind != "instructions" or workloads.can_be_counted(c.name))]

    def job(kind, contestant, spec):
        value = per_operation(kind, contestant, spec)
        if progress:
            progress(f"{workload.name} {kind} per {spec.name}: {contestant.name}")
        return value

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for (kind, c, spec), value in zip(jobs, pool.map(lambda j: job(*j), jobs)):
            if value is not None:
                sink({"workload": workload.name, "params": {"op": spec.name},
                      "contestant": c.name, "version": "", "metric": f"{kind}_per_op",
                      "unit": f"{kind}/op", "value": value, "repeat": 0})
