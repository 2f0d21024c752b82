"""Before anything is timed: can the contestants run here, and do all of them do the same work?"""
import collections
import concurrent.futures
import os

from harness import runner
from harness.absences import FAILED, LEFT_OUT, WRONG, Absence
from harness.schedule import EQUAL_WORK


def check(workload, contestants, absent, progress=lambda text: None):
    """Returns the contestants that can be timed; calls absent(Absence) for each of the others."""
    out = set()

    def leave_out(name, kind, case, reason):
        out.add(name)
        absent(Absence(kind, workload.name, name, case, reason))

    for c in contestants:
        if wrong := c.wrong_libraries():
            leave_out(c.name, WRONG, "", f"it would run on {', '.join(wrong)}")
    for case in workload.check:
        where = f"{EQUAL_WORK}: {case.title}"
        ready = [c for c in contestants
                 if c.name not in out and case.params_of(c.name) is not None]
        outputs = {}
        for c, output in zip(ready, run_all(workload, case, ready, progress)):
            if isinstance(output, runner.LeftOut):
                leave_out(c.name, LEFT_OUT, "", str(output))
            elif isinstance(output, runner.Failed):
                leave_out(c.name, FAILED, where, str(output))
            else:
                outputs[c.name] = output
        for name, told in differences(outputs).items():
            leave_out(name, WRONG, where, "; ".join(told))
    return [c for c in contestants if c.name not in out]


def run_all(workload, case, contestants, progress):
    """Runs one case of each, side by side as it is not timed: yields its output, or why not."""
    def one(contestant):
        progress(f"{workload.name}: {EQUAL_WORK}? {contestant.name}")
        try:
            return runner.twice(lambda: runner.run_case(workload, case, contestant, False))
        except (runner.LeftOut, runner.Failed) as reason:
            return reason

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(one, contestants)


def differences(outputs):
    """By contestant, the counters in which it differs from most of the others.

    A counter that a contestant lacks is not compared. If as many say one thing as another, those
    are right that come first in the order of the tables.
    """
    told = {}
    for counter in sorted({name for output in outputs.values() for name in output.work}):
        values = {name: o.work[counter] for name, o in outputs.items() if counter in o.work}
        usual = collections.Counter(values.values()).most_common(1)[0][0]
        for name, value in values.items():
            if value != usual:
                told.setdefault(name, []).append(f"unequal work: {counter} is {value}, not {usual}")
    return told
