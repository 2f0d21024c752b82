"""The course of a run: each workload is built, checked, timed and shown; the counts follow."""
import dataclasses
import sys
import time

from harness import build, cells, closing, counts, equal_work, smoke, stats, summary, workloads
from harness.absences import LEFT_OUT, WRONG, Absence
from harness.contestants import is_main
from harness.schedule import BUILD, COUNTS, EQUAL_WORK, Progress, Schedule, in_words

QUICK_TIMEOUT_S = 120  # of a program run, most of which take less than a second


def counts_part(workload, of_main):
    return workload, COUNTS, "main" if of_main else "other"


class Course:
    """One run. `rows` gets every result at once, so that an interrupted run has lost nothing."""

    def __init__(self, options, rows):
        self.build_s = 0.0
        self._options, self._rows = options, rows
        self._begin = time.monotonic()
        self._end = self._begin + 60 * options.minutes if options.minutes else float("inf")
        self._progress = Progress()
        kind = "smoke" if options.smoke else "quick" if options.quick else "full"
        self._schedule = Schedule(build.BINARY_DIR / "durations" / f"{kind}.json", kind)
        self._prepared = {}  # workload -> (Workload, the contestants that can run)
        self._cells = []

    def run(self):
        try:
            self._run_all()
        finally:
            self._progress.end()
            self._schedule.save()

    def elapsed_s(self):
        return time.monotonic() - self._begin

    def _run_all(self):
        names = self._options.workloads
        if not self._options.no_build:
            self._build("configuring", build.configure)
        build.check_names(names, self._options.only)
        contestants = build.chosen(names, self._options.only)
        for name in names:
            self._plan(name, self._workload(name, contestants[name]), contestants[name], True)
        self._say(f"{closing.count(len(names), 'workload')}, about "
                  f"{in_words(self._seconds_left())}. Ctrl-C keeps what was measured until then.")
        for number, name in enumerate(names, 1):
            self._prepare(name)
            if not self._options.only_counts:
                self._time(name, f"{number} of {len(names)}")
        if not self._options.only_counts:
            self._time_again()
        if not self._options.no_counts:
            self._count()

    # --- The steps of a workload ---

    def _prepare(self, name):
        """Builds the workload, and finds the contestants that can run and do equal work."""
        failure = ""
        if not self._options.no_build:
            failure = self._build(f"{name}: building", lambda: build.build(name), (name, BUILD, ""))
        contestants = self._built(name, failure)
        workload = self._workload(name, contestants)
        begin = time.monotonic()
        able = equal_work.check(workload, contestants, self._absent, self._tell)
        self._schedule.ran((name, EQUAL_WORK, ""), time.monotonic() - begin)
        self._prepared[name] = workload, able
        self._schedule.drop(name)
        self._plan(name, workload, able, False)

    def _built(self, name, failure):
        """Returns the contestants whose programs are there; `failure`: the output of the build."""
        if failure:
            self._say(f"{name}: not all of it compiles:\n{failure}")
        found = []
        for c in build.chosen([name], self._options.only)[name]:
            if c.left_out:
                self._absent(Absence(LEFT_OUT, name, c.name, "", c.left_out))
            elif failure and not build.can_be_built(c):
                self._absent(Absence(WRONG, name, c.name, "", "it does not compile"))
            else:
                found.append(c)
        return found

    def _time(self, name, which):
        workload, able = self._prepared[name]
        own = cells.cells_of(workload, able)
        cells.run_all(own, self._options.repeat, self._schedule, self._rows.append, self._absent,
                      self._tell)
        self._cells += own
        self._progress.end()
        results = stats.Results(self._rows[1:])
        left = f"{which}; {in_words(self._seconds_left())} left"
        if self._options.smoke:
            summary.print_smoke(results, name, left)
        else:
            summary.print_workload(results, name, left, self._options.tables)
        sys.stdout.flush()

    def _time_again(self):
        seconds = min(60 * self._options.again, self._end - time.monotonic())
        cells.run_again(self._cells, seconds, self._schedule, self._rows.append, self._absent,
                        self._tell)

    def _count(self):
        for tool in counts.missing_tools():
            self._absent(Absence(LEFT_OUT, "counts", tool, "", f"{tool} is not installed"))
        # The twins and the variants of each workload are last, in case the time is used up.
        for of_main in (True, False):
            for name, (workload, able) in self._prepared.items():
                begin = time.monotonic()
                part = [c for c in able if is_main(c.name) == of_main]
                counts.measure(workload, part, self._rows.append, self._absent, self._tell,
                               self._end)
                self._schedule.ran(counts_part(name, of_main), time.monotonic() - begin)

    # --- What they share ---

    def _workload(self, name, contestants):
        workload = workloads.ALL[name](self._options.quick)
        if self._options.smoke:
            return smoke.workload(workload, contestants)
        if not self._options.quick:
            return workload
        cases, check = ([dataclasses.replace(case, timeout_s=min(case.timeout_s, QUICK_TIMEOUT_S))
                         for case in part] for part in (workload.cases, workload.check))
        return dataclasses.replace(workload, cases=cases, check=check)

    def _plan(self, name, workload, contestants, is_new):
        """Enters the steps that follow into the schedule."""
        if is_new and not self._options.no_build:
            self._schedule.plan((name, BUILD, ""))
        if is_new:
            self._schedule.plan((name, EQUAL_WORK, ""))
        if workload.counts and not self._options.no_counts:
            for of_main in (True, False):
                self._schedule.plan(counts_part(name, of_main))
        if not self._options.only_counts:
            for cell in cells.cells_of(workload, [c for c in contestants if not c.left_out]):
                cell.plan(self._schedule, self._options.repeat)

    def _build(self, text, command, part=None):
        self._progress(text, self._seconds_left() if part else None)
        begin = time.monotonic()
        result = command()
        took = time.monotonic() - begin
        self.build_s += took
        if part:
            self._schedule.ran(part, took)
        return result

    def _seconds_left(self):
        """Returns the seconds left; counts stop when the time is used up, but timed runs do not."""
        timed = self._schedule.seconds_left(without=COUNTS)
        all_of_it = self._schedule.seconds_left() + 60 * self._options.again
        return max(timed, min(all_of_it, self._end - time.monotonic()))

    def _tell(self, text):
        self._progress(text, self._seconds_left())

    def _say(self, line):
        self._progress.end()
        print(f"bench: {line}", file=sys.stderr)

    def _absent(self, absence):
        self._rows.append(absence.row())
        if absence.is_hole:
            self._say(f"{absence.where}: {absence.kind}: {absence.reason}")
