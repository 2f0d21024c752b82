"""Runs contestants: the check that all do equal work, then the timed repetitions, interleaved."""
import dataclasses
import json
import os
import re
import subprocess
import sys
import time

from harness import machine, stats, workloads

# A cell is run again while its samples lie farther apart than this share of their median, and has
# been repeated less often than this.
WIDE = 0.1
MOST_REPEATS = 15


class Refused(Exception):
    """The contestants differ in the work they do, or one fails: nothing is timed."""


class LeftOut(Exception):
    """A contestant cannot run here, and says why."""


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
        if "left_out" in row:
            raise LeftOut(row["left_out"])
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
    try:
        output = parse(done.stdout)
    except ValueError as error:
        raise Refused(f"{' '.join(command)}: not the protocol: {error}") from None
    if stub := re.search(r"\w+ is not implemented by spate's libevent", done.stderr):
        raise LeftOut(stub[0])
    if done.returncode != 0:
        raise Refused(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-500:]}")
    return output


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
    """Those that can run here, if each has its library and all do the same work on short cases.

    Otherwise Refused says who does not. Of those that cannot run, a line on stderr says why.
    """
    for c in contestants:
        wrong = c.wrong_libraries()
        if wrong:
            raise Refused(f"{workload.name} {c.name}: it would run on {', '.join(wrong)}")
    left_out = {}
    for case in workload.check:
        outputs = {}
        for c in contestants:
            if c.name in left_out or case.params_of(c.name) is None:
                continue
            try:
                outputs[c.name] = run_case(workload, case, c)
            except LeftOut as reason:
                left_out[c.name] = reason
        told = differences(outputs)
        if told:
            raise Refused(f"{workload.name} {case.title}: unequal work: " + "; ".join(told))
    for name, reason in left_out.items():
        print(f"bench: {workload.name}/{name} left out: {reason}", file=sys.stderr)
    return [c for c in contestants if c.name not in left_out]


def best(outputs):
    """One output with the best value of each metric: a repetition of several program runs."""
    merged = outputs[0]
    for name in merged.metrics:
        choose = max if name in workloads.RATES else min
        merged.metrics[name] = choose(output.metrics[name] for output in outputs)
    return merged


class Cell:
    """One case of a workload and its contestants; a repetition runs all of them, by turns."""

    def __init__(self, workload, case, contestants):
        self.workload, self.case = workload, case
        self.contestants = [c for c in contestants if case.params_of(c.name) is not None]
        self.repeats = 0
        self._samples = {}  # (contestant, metric) -> values

    def part(self, contestant):
        """What the schedule knows a program run by."""
        return self.workload.name, self.case.title, contestant.name

    def plan(self, schedule, repeats):
        for c in self.contestants:
            schedule.plan(self.part(c), min(repeats, self.case.most_repeats) * self.case.runs)

    def seconds(self, schedule):
        """What a repetition takes."""
        return self.case.runs * sum(schedule.seconds_of(self.part(c)) for c in self.contestants)

    def width(self):
        """How far apart the samples lie, of the metric and the contestant where they do most."""
        return max((stats.width(values) for (_, metric), values in self._samples.items()
                    if metric in self.workload.metrics), default=0.0)

    def run(self, schedule, sink, progress):
        """One repetition, which begins with another contestant each time."""
        ready = self.contestants
        outputs = {c.name: [] for c in ready}
        disturbances = {c.name: machine.Disturbance() for c in ready}
        for run in range(self.case.runs):
            first = (self.repeats * self.case.runs + run) % max(1, len(ready))
            for c in ready[first:] + ready[:first]:
                progress(f"{self.workload.name} {self.case.title} {c.name}")
                begin = time.monotonic()
                with disturbances[c.name]:
                    outputs[c.name].append(run_case(self.workload, self.case, c))
                schedule.ran(self.part(c), time.monotonic() - begin)
        for c in ready:
            self._emit(c, best(outputs[c.name]), disturbances[c.name], sink)
        self.repeats += 1

    def _emit(self, contestant, output, disturbance, sink):
        for metric, value in output.metrics.items():
            self._samples.setdefault((contestant.name, metric), []).append(value)
            sink({"workload": self.workload.name, "case": dict(self.case.key),
                  "params": self.case.params_of(contestant.name), "contestant": contestant.name,
                  "version": output.version, "library": output.library, "metric": metric,
                  "unit": output.units[metric], "value": value, "repeat": self.repeats,
                  "steal": disturbance.steal, "load": disturbance.load})


def run_all(cells, repeats, more, schedule, sink, progress):
    """Every repetition of every cell; `more`: the seconds of what follows."""
    for cell in cells:
        for _ in range(min(repeats, cell.case.most_repeats)):
            cell.run(schedule, sink, lambda text: progress(text, schedule.seconds_left() + more))


def run_again(cells, seconds, schedule, sink, progress):
    """Repeats the cells whose samples lie far apart, the widest first, while there is time."""
    end = time.monotonic() + seconds

    def may_repeat(cell):
        return (cell.repeats < min(MOST_REPEATS, cell.case.most_repeats) and
                cell.seconds(schedule) < end - time.monotonic())

    while wide := [cell for cell in cells if cell.width() > WIDE and may_repeat(cell)]:
        max(wide, key=Cell.width).run(
            schedule, sink, lambda text: progress(f"again, its samples lie apart: {text}",
                                                  end - time.monotonic()))
