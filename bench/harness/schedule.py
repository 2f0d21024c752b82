"""Estimates the rest of a run from the time that its parts took before: in this run, or in an
earlier one."""
import collections
import json
import shutil
import statistics
import sys
import time

# The steps of a workload beside its cases, as parts in place of a case.
BUILD, EQUAL_WORK, COUNTS = STEPS = ("build", "equal work", "counts")
PROGRAM = "program run"

# Guesses for two idle cores, by the kind of run, for parts that no earlier run has measured.
GUESSES_S = {"smoke": {BUILD: 8, EQUAL_WORK: 3, COUNTS: 4, PROGRAM: 0.15},
             "quick": {BUILD: 8, EQUAL_WORK: 3, COUNTS: 12, PROGRAM: 0.25},
             "full": {BUILD: 8, EQUAL_WORK: 3, COUNTS: 12, PROGRAM: 1.5}}


class Schedule:
    def __init__(self, memory, kind="full"):
        """`memory`: the file that keeps the durations for the next run of this kind."""
        self._memory, self._guesses = memory, GUESSES_S[kind]
        try:
            self._took = json.loads(memory.read_text())
        except (OSError, ValueError):
            self._took = {}
        self._planned = collections.Counter()

    def plan(self, part, times=1):
        """`part` (workload, case, contestant) is to run so many times more."""
        self._planned[self._key(part)] += times

    def drop(self, *part):
        """Nothing of this part is to run any more, or of the parts that begin so."""
        for key in [k for k in self._planned if (k + "/").startswith(self._key(part) + "/")]:
            del self._planned[key]

    def ran(self, part, seconds):
        key = self._key(part)
        self._took[key] = seconds
        self._planned[key] = max(0, self._planned[key] - 1)

    def seconds_of(self, part):
        return self._guess(self._key(part))

    def seconds_left(self, without=None):
        """Returns the time for all that is planned, except the step `without`."""
        return sum(times * self._guess(key) for key, times in self._planned.items()
                   if times and key.split("/")[1] != without)

    def save(self):
        self._memory.parent.mkdir(parents=True, exist_ok=True)
        self._memory.write_text(json.dumps(self._took))

    @staticmethod
    def _key(part):
        return "/".join(part)

    def _guess(self, key):
        """Returns the time that this run took before; otherwise the median of others in its
        case, then in its workload, then in any."""
        if key in self._took:
            return self._took[key]
        workload, case, _ = key.split("/", 2)
        if case in STEPS:
            return self._guesses[case]
        for prefix in (f"{workload}/{case}/", f"{workload}/"):
            like = [s for other, s in self._took.items()
                    if other.startswith(prefix) and other.split("/")[1] not in STEPS]
            if like:
                return statistics.median(like)
        return self._guesses[PROGRAM]


class Progress:
    """One line on a terminal, always the latest; elsewhere a line now and then."""

    NOW_AND_THEN_S = 10.0

    def __init__(self):
        self._last = 0.0

    def __call__(self, text, seconds_left=None):
        if seconds_left is not None:
            text = f"{in_words(max(0.0, seconds_left))} left: {text}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{text[:shutil.get_terminal_size().columns - 1]}")
        elif time.monotonic() >= self._last + self.NOW_AND_THEN_S:
            self._last = time.monotonic()
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def end(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")


def in_words(seconds):
    """As one says it: "40 s", "6 min", "2 h 10 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
