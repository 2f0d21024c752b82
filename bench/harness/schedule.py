"""How long a run still takes, by what its parts took before: in this run, or in an earlier one."""
import collections
import json
import shutil
import statistics
import sys
import time

UNKNOWN_S = 1.0  # of a program run whose like has never been seen


class Schedule:
    def __init__(self, memory):
        """`memory`: the file that keeps the durations for the next run."""
        self._memory = memory
        try:
            self._took = json.loads(memory.read_text())
        except (OSError, ValueError):
            self._took = {}
        self._planned = collections.Counter()

    def plan(self, part, times=1):
        """`part` (workload, case, contestant) is to run so many times more."""
        self._planned[self._key(part)] += times

    def ran(self, part, seconds):
        key = self._key(part)
        self._took[key] = seconds
        self._planned[key] = max(0, self._planned[key] - 1)

    def seconds_of(self, part):
        return self._guess(self._key(part))

    def seconds_left(self):
        return sum(times * self._guess(key) for key, times in self._planned.items() if times)

    def save(self):
        self._memory.parent.mkdir(parents=True, exist_ok=True)
        self._memory.write_text(json.dumps(self._took))

    @staticmethod
    def _key(part):
        return "/".join(part)

    def _guess(self, key):
        """What it took itself; else what others took in its case, in its workload, in any."""
        if key in self._took:
            return self._took[key]
        workload, case, _ = key.split("/", 2)
        for prefix in (f"{workload}/{case}/", f"{workload}/"):
            like = [s for other, s in self._took.items() if other.startswith(prefix)]
            if like:
                return statistics.median(like)
        return UNKNOWN_S


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
