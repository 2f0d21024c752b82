"""Runs contestants: the check that all do equal work, then the timed repetitions, interleaved."""
import dataclasses
import json
import os
import subprocess
import sys

from harness import workloads


class Refused(Exception):
    """The contestants differ in the work they do, or one fails: nothing is timed."""


@dataclasses.dataclass
class Output:
    """What one program run printed."""

    version: str = ""
    library: str = ""
    metrics: dict = dataclasses.field(default_factory=dict)  # name -> value
    units: dict = dataclasses.field(default_factory=dict)
    work: dict = dataclasses.field(default_factory=dict)
    ops: dict = dataclasses.field(default_factory=dict)


def parse(text):
    output = Output()
    for line in text.splitlines():
        row = json.loads(line)
        if "metric" in row:
            output.metrics[row["metric"]] = row["value"]
            output.units[row["metric"]] = row["unit"]
        elif "work" in row:
            output.work[row["work"]] = row["value"]
        elif "ops" in row:
            output.ops[row["ops"]] = row["value"]
        elif "version" in row:
            output.version, output.library = row["version"], row.get("library", "")
    return output


def pinned_core():
    """The last core: the first one is where interrupts tend to go."""
    return max(os.sched_getaffinity(0))


def run_once(contestant, params, pinned, timeout_s):
    command = contestant.command(params)

    def pin():
        os.sched_setaffinity(0, {pinned_core()})

    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=timeout_s,
                              env=contestant.environment, preexec_fn=pin if pinned else None,
                              check=False)
    except subprocess.TimeoutExpired:
        raise Refused(f"{' '.join(command)}: no end after {timeout_s} s") from None
    if done.returncode != 0:
        raise Refused(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-500:]}")
    try:
        return parse(done.stdout)
    except ValueError as error:
        raise Refused(f"{' '.join(command)}: not the protocol: {error}") from None


def run_case(workload, case, contestant):
    return run_once(contestant, case.params_of(contestant.name), workload.pinned, case.timeout_s)


def differences(outputs):
    """Counters on which contestants disagree, as text; a counter that one lacks is not compared."""
    told = []
    for counter in sorted({name for output in outputs.values() for name in output.work}):
        values = {name: o.work[counter] for name, o in outputs.items() if counter in o.work}
        if len(set(values.values())) > 1:
            told.append(f"{counter}: " + ", ".join(f"{n} {v}" for n, v in values.items()))
    return told


def check(workload, contestants):
    """Each has its library and all do the same work on short cases, or Refused says who not."""
    for c in contestants:
        wrong = c.wrong_libraries()
        if wrong:
            raise Refused(f"{workload.name} {c.name}: it would run on {', '.join(wrong)}")
    for case in workload.check:
        outputs = {c.name: run_case(workload, case, c) for c in contestants
                   if case.params_of(c.name) is not None}
        told = differences(outputs)
        if told:
            raise Refused(f"{workload.name} {case.title}: unequal work: " + "; ".join(told))


def best(outputs):
    """One output with the best value of each metric: a repetition of several program runs."""
    merged = outputs[0]
    for name in merged.metrics:
        choose = max if name in workloads.RATES else min
        merged.metrics[name] = choose(output.metrics[name] for output in outputs)
    return merged


def measure(workload, contestants, repeats, sink, progress=None):
    """Round-robin over the contestants inside each repetition, each time from another one on.

    Calls sink(row) for every sample; a row is a line of the results.
    """
    for number, case in enumerate(workload.cases):
        ready = [c for c in contestants if case.params_of(c.name) is not None]
        times = min(repeats, case.most_repeats)
        for repeat in range(times):
            if progress:
                progress(f"{workload.name} {number + 1}/{len(workload.cases)} {case.title} "
                         f"repeat {repeat + 1}/{times}")
            outputs = {c.name: [] for c in ready}
            for run in range(case.runs):
                first = (repeat * case.runs + run) % max(1, len(ready))
                for c in ready[first:] + ready[:first]:
                    outputs[c.name].append(run_case(workload, case, c))
            for c in ready:
                emit(workload, case, c, best(outputs[c.name]), repeat, sink)


def emit(workload, case, contestant, output, repeat, sink):
    params = case.params_of(contestant.name)
    for metric, value in output.metrics.items():
        sink({"workload": workload.name, "params": params, "contestant": contestant.name,
              "version": output.version, "library": output.library, "metric": metric,
              "unit": output.units[metric], "value": value, "repeat": repeat})


def show_progress(text):
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text[:100]}")
    else:
        sys.stderr.write(text + "\n")
    sys.stderr.flush()
