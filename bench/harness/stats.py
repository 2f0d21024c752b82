"""Samples by workload, case, metric and contestant: medians, how sure they are, and verdicts."""
import collections
import dataclasses
import math
import statistics

from harness import absences
from harness.contestants import ORDER, OURS, is_floor, is_peer, twin_of
from harness.workload import RATES

AHEAD, LEVEL, BEHIND = "ahead", "level", "behind"

# The least probability that the interval contains the true median, if there are enough samples.
CONFIDENCE = 0.9

# Fewer samples than this say nothing about noise, and so allow no verdict.
FEWEST_SAMPLES = 3

# Metrics that are counted rather than timed: one sample is as good as many.
EXACT = {"bytes_per_connection", "resident_per_connection", "object_bytes", "user_bytes"}

# Counts that differ by less are level: the turns of a loop are not the same in each run.
COUNTS_APART = 1.01


@dataclasses.dataclass(frozen=True)
class Interval:
    low: float
    high: float

    def overlaps(self, other):
        return self.low <= other.high and other.low <= self.high


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One contestant compared with another in one case. `factor`: how many times as good it is."""

    workload: str
    key: tuple
    metric: str
    contestant: str
    other: str
    factor: float | None  # None where one of the two is nothing
    spread: Interval | None  # of the factor
    word: str  # AHEAD, LEVEL, BEHIND, or "" where there are too few samples


def interval(values):
    """Where the true median lies: the samples that enclose it with CONFIDENCE, whatever their
    distribution; least and greatest where they are too few for that."""
    ordered, n = sorted(values), len(values)
    cut, outside = 0, 2 / 2**n  # how many are cut off at each end; the chance to miss the median
    while outside + 2 * math.comb(n, cut + 1) / 2**n <= 1 - CONFIDENCE:
        cut += 1
        outside += 2 * math.comb(n, cut) / 2**n
    return Interval(ordered[cut], ordered[-1 - cut])


def width(values):
    """The width of the interval as a share of the median."""
    around, middle = interval(values), abs(statistics.median(values))
    return (around.high - around.low) / middle if middle else 0.0


def compare(mine, others, more_is_better):
    """Returns (factor, its spread, word) of samples compared with others."""
    me, other = interval(mine), interval(others)
    if me.overlaps(other):
        word = LEVEL
    else:
        word = AHEAD if (me.low > other.high) == more_is_better else BEHIND
    factor, spread = None, None
    if min(me.low, other.low) > 0:
        factor = statistics.median(mine) / statistics.median(others)
        spread = Interval(me.low / other.high, me.high / other.low)
        if not more_is_better:
            factor, spread = 1 / factor, Interval(1 / spread.high, 1 / spread.low)
    return factor, spread, word


def count_word(mine, other):
    """A verdict on counts, which have no noise to speak of."""
    if max(mine, other) <= min(mine, other) * COUNTS_APART:
        return LEVEL
    return AHEAD if mine < other else BEHIND


class Results:
    def __init__(self, rows):
        self._samples = collections.defaultdict(dict)
        self.units, self.versions, self.libraries, self.counts = {}, {}, {}, {}
        self._series = {}  # (workload, operation) -> (axis, {size: the name of the count})
        self.disturbances = []  # (steal, load) of each repetition of a contestant in a case
        self.absences = [absences.of_row(row) for row in rows if "absent" in row]
        seen = set()
        for row in rows:
            if "absent" in row:
                continue
            if row["metric"].endswith("_per_op"):
                self.counts[row["workload"], row["params"]["op"], row["metric"],
                            row["contestant"]] = row["value"]
                self._note_series(row["workload"], row["params"])
                continue
            key = tuple(row["case"].items())
            place = self._samples[row["workload"], key, row["metric"]]
            place.setdefault(row["contestant"], {})[row["repeat"]] = row["value"]
            self.units[row["metric"]] = row["unit"]
            self.versions[row["contestant"]] = row["version"]
            self.libraries[row["contestant"]] = row.get("library", "")
            run = (row["workload"], key, row["contestant"], row["repeat"])
            if run not in seen:
                seen.add(run)
                self.disturbances.append((row.get("steal", 0), row.get("load", 0)))

    def holes(self, workload=None):
        """Returns the failures and the wrong results, of one workload or of all."""
        return [a for a in self.absences if a.is_hole and workload in (None, a.workload)]

    def has_hole(self, workload, key, contestant):
        """Whether the contestant failed in this case of the workload."""
        title = " ".join(f"{k}={v}" for k, v in key)
        return any(a.contestant == contestant and a.case == title for a in self.holes(workload))

    def workloads(self):
        return list(dict.fromkeys(workload for workload, _, _ in self._samples))

    def cases(self, workload):
        return list(dict.fromkeys(key for w, key, _ in self._samples if w == workload))

    def metrics(self, workload):
        return list(dict.fromkeys(m for w, _, m in self._samples if w == workload))

    def contestants(self, workload):
        rank = {name: i for i, name in enumerate(ORDER)}
        names = {n for (w, _, _), by_name in self._samples.items() if w == workload
                 for n in by_name}
        return sorted(names, key=lambda n: (rank.get(n, len(rank)), n))

    def pairs(self, workload):
        """(contestant, its twin on spate's drop-in) of those that were both run."""
        names = self.contestants(workload)
        return [(name, twin_of(name)) for name in names
                if twin_of(name) in names]

    def peers(self, workload):
        return [n for n in self.contestants(workload) if is_peer(n)]

    def samples(self, workload, key, metric, contestant):
        """Values in the order of the repetitions; empty when it was not run."""
        by_repeat = self._samples.get((workload, key, metric), {}).get(contestant, {})
        return [by_repeat[r] for r in sorted(by_repeat)]

    def median(self, workload, key, metric, contestant):
        values = self.samples(workload, key, metric, contestant)
        return statistics.median(values) if values else None

    def interval(self, workload, key, metric, contestant):
        values = self.samples(workload, key, metric, contestant)
        return interval(values) if values else None

    def width(self, workload, key, metric):
        """Returns the relative width of the widest interval of any contestant; 0 for exact
        metrics."""
        if metric in EXACT:
            return 0.0
        return max((width(list(by_repeat.values())) for by_repeat in
                    self._samples.get((workload, key, metric), {}).values()), default=0.0)

    def best_peer(self, workload, key, metric):
        """The peer with the best median, or None."""
        found = [(self.median(workload, key, metric, n), n) for n in self.peers(workload)]
        found = [pair for pair in found if pair[0] is not None]
        choose = max if metric in RATES else min
        return choose(found)[1] if found else None

    def verdict(self, workload, key, metric, contestant, other):
        """Compares two contestants; None where one of them was not run."""
        mine = self.samples(workload, key, metric, contestant)
        others = self.samples(workload, key, metric, other) if other else []
        if not mine or not others:
            return None
        factor, spread, word = compare(mine, others, metric in RATES)
        if metric not in EXACT and min(len(mine), len(others)) < FEWEST_SAMPLES:
            word = ""
        return Verdict(workload, key, metric, contestant, other, factor, spread, word)

    def verdicts(self, workload, metrics):
        """Compares ours with the best peer, in each case that has one."""
        me = self.ours(workload)
        found = [self.verdict(workload, key, metric, me, self.best_peer(workload, key, metric))
                 for metric in metrics for key in self.cases(workload)] if me else []
        return [v for v in found if v is not None]

    def twin_verdicts(self, workload, metrics):
        """Compares each twin with its original."""
        found = [self.verdict(workload, key, metric, twin, original)
                 for original, twin in self.pairs(workload)
                 for metric in metrics for key in self.cases(workload)]
        return [v for v in found if v is not None]

    def ours(self, workload):
        """The contestant that stands for spate, or None."""
        names = self.contestants(workload)
        return next((n for n in names if n in OURS), None)

    def cost_ratio(self, workload, key, metric, contestant, reference):
        """Median over the repetitions of contestant / reference; over 1 is worse, for rates too."""
        places = self._samples.get((workload, key, metric), {})
        return paired_ratio(places.get(contestant, {}), places.get(reference, {}),
                            inverted=metric in RATES)

    def across(self, workload, metric, contestant, key, reference_key):
        """Median over the repetitions of one case / another case of the same contestant."""
        return paired_ratio(self._samples.get((workload, key, metric), {}).get(contestant, {}),
                            self._samples.get((workload, reference_key, metric), {}).get(
                                contestant, {}))

    def reference(self, workload):
        """Returns the contestant that ratios are relative to: spate; without it the first that
        is not a floor."""
        names = self.contestants(workload)
        return next((n for n in names if not is_floor(n)), names[0])

    def operations(self, workload):
        return list(dict.fromkeys(op for w, op, _, _ in self.counts if w == workload))

    def count(self, workload, operation, kind, contestant):
        return self.counts.get((workload, operation, f"{kind}_per_op", contestant))

    def fewest(self, workload, operation, kind):
        """(count, peer) of the peer that needs fewest, or (None, "")."""
        found = [(self.count(workload, operation, kind, n), n) for n in self.peers(workload)]
        return min((pair for pair in found if pair[0] is not None), default=(None, ""))

    def _note_series(self, workload, params):
        if "series" in params:
            axis, sizes = self._series.setdefault((workload, params["series"]),
                                                  (params["axis"], {}))
            sizes[params["size"]] = params["op"]

    def series(self, workload):
        """(operation, what its size is) of operations that were counted at several sizes."""
        return [(name, axis) for (w, name), (axis, _) in self._series.items() if w == workload]

    def is_in_series(self, workload, operation):
        return any(w == workload and operation in sizes.values()
                   for (w, _), (_, sizes) in self._series.items())

    def counted(self, workload, series, contestant):
        """Returns instructions by size."""
        _, sizes = self._series[workload, series]
        found = {size: self.count(workload, op, "instructions", contestant)
                 for size, op in sorted(sizes.items())}
        return {size: value for size, value in found.items() if value is not None}

    def count_words(self, kind):
        """By operation of any workload: a verdict on ours against the peer that needs fewest."""
        found = {}
        for workload, operation in dict.fromkeys((w, op) for w, op, _, _ in self.counts):
            mine = self.count(workload, operation, kind, self.ours(workload))
            least, _ = self.fewest(workload, operation, kind)
            if mine is not None and least is not None:
                found[workload, operation] = count_word(mine, least)
        return found


def tally(verdicts):
    """How many are ahead, level and behind."""
    counted = collections.Counter(v.word for v in verdicts)
    return tuple(counted[word] for word in (AHEAD, LEVEL, BEHIND))


def typical(verdicts):
    """The geometric mean of the factors, or None."""
    logs = [math.log(v.factor) for v in verdicts if v.factor]
    return math.exp(statistics.fmean(logs)) if logs else None


def worst(verdicts):
    """The one that does worst, or None."""
    return min((v for v in verdicts if v.factor), key=lambda v: v.factor, default=None)


def paired_ratio(values, references, inverted=False):
    ratios = []
    for repeat in values.keys() & references.keys():
        above, below = values[repeat], references[repeat]
        if inverted:
            above, below = below, above
        if below > 0:
            ratios.append(above / below)
    return statistics.median(ratios) if ratios else None
