"""The timed repetitions of each case, interleaved."""
import time

from harness import machine, runner, stats
from harness.absences import FAILED, Absence
from harness.workload import RATES

# A cell is run again while its samples lie farther apart than this share of their median, and has
# been repeated less often than this.
WIDE = 0.1
MOST_REPEATS = 15


def best(outputs):
    """One output with the best value of each metric: a repetition of several program runs."""
    merged = outputs[0]
    for name in merged.metrics:
        choose = max if name in RATES else min
        merged.metrics[name] = choose(o.metrics[name] for o in outputs if name in o.metrics)
    return merged


class Cell:
    """One case of a workload and its contestants; a repetition runs all of them, by turns.

    A contestant that fails twice in a row is left out from then on; one that hangs, of the other
    cases of the workload too.
    """

    def __init__(self, workload, case, contestants, hung=None):
        self.workload, self.case = workload, case
        self.contestants = [c for c in contestants if case.params_of(c.name) is not None]
        self.repeats = 0
        self._hung = set() if hung is None else hung  # names, shared by the cells of a workload
        self._samples = {}  # (contestant, metric) -> values

    def part(self, contestant):
        """Returns the name by which the schedule knows a program run."""
        return self.workload.name, self.case.title, contestant.name

    def plan(self, schedule, repeats):
        for c in self.contestants:
            schedule.plan(self.part(c), min(repeats, self.case.most_repeats) * self.case.runs)

    def seconds(self, schedule):
        """Returns the seconds that a repetition takes."""
        return self.case.runs * sum(schedule.seconds_of(self.part(c)) for c in self.contestants)

    def width(self):
        """How far apart the samples lie, of the metric and the contestant where they do most."""
        return max((stats.width(values) for (_, metric), values in self._samples.items()
                    if metric in self.workload.metrics), default=0.0)

    def run(self, schedule, sink, absent, progress):
        """One repetition, which begins with another contestant each time."""
        self._leave_out_hung(schedule, absent)
        ready = list(self.contestants)
        outputs = {c.name: [] for c in ready}
        disturbances = {c.name: machine.Disturbance() for c in ready}
        for run in range(self.case.runs):
            first = (self.repeats * self.case.runs + run) % max(1, len(ready))
            for c in ready[first:] + ready[:first]:
                if c not in self.contestants:
                    continue
                progress(f"{self.workload.name} {self.case.title} {c.name}")
                begin = time.monotonic()
                with disturbances[c.name]:
                    output = self._run_case(c, absent)
                if output is None:
                    schedule.drop(*self.part(c))
                    continue
                outputs[c.name].append(output)
                schedule.ran(self.part(c), time.monotonic() - begin)
        for c in self.contestants:
            self._emit(c, best(outputs[c.name]), disturbances[c.name], sink)
        self.repeats += 1

    def _run_case(self, contestant, absent):
        """Returns the output, or leaves the contestant out."""
        try:
            return runner.twice(lambda: runner.run_case(self.workload, self.case, contestant))
        except runner.LeftOut as reason:
            text = f"it left itself out: {reason}"
        except runner.Failed as reason:
            text = str(reason)
            if isinstance(reason, runner.Hung):
                self._hung.add(contestant.name)
        self._leave_out(contestant, text, absent)
        return None

    def _leave_out_hung(self, schedule, absent):
        for c in [c for c in self.contestants if c.name in self._hung]:
            self._leave_out(c, "it hung in another case of the workload", absent)
            schedule.drop(*self.part(c))

    def _leave_out(self, contestant, reason, absent):
        self.contestants.remove(contestant)
        absent(Absence(FAILED, self.workload.name, contestant.name, self.case.title, reason))

    def _emit(self, contestant, output, disturbance, sink):
        for metric, value in output.metrics.items():
            self._samples.setdefault((contestant.name, metric), []).append(value)
            sink({"workload": self.workload.name, "case": dict(self.case.key),
                  "params": self.case.params_of(contestant.name), "contestant": contestant.name,
                  "version": output.version, "library": output.library, "metric": metric,
                  "unit": output.units[metric], "value": value, "repeat": self.repeats,
                  "steal": disturbance.steal, "load": disturbance.load})


def cells_of(workload, contestants):
    hung = set()
    return [Cell(workload, case, contestants, hung) for case in workload.cases]


def run_all(cells, repeats, schedule, sink, absent, progress):
    """Every repetition of every cell."""
    for cell in cells:
        for _ in range(min(repeats, cell.case.most_repeats)):
            cell.run(schedule, sink, absent, progress)


def run_again(cells, seconds, schedule, sink, absent, progress):
    """Repeats the cells whose samples lie far apart, the widest first, while there is time."""
    end = time.monotonic() + seconds

    def may_repeat(cell):
        return (cell.repeats < min(MOST_REPEATS, cell.case.most_repeats) and
                cell.seconds(schedule) < end - time.monotonic())

    while wide := [cell for cell in cells if cell.width() > WIDE and may_repeat(cell)]:
        max(wide, key=Cell.width).run(schedule, sink, absent, lambda text: progress(
            f"again, its samples lie apart: {text}"))
