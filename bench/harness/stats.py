"""Samples by workload, case, metric and contestant; medians and ratios of them."""
import collections
import statistics

from harness import workloads


class Results:
    def __init__(self, rows, cases):
        """`cases`: workload -> its cases, by which a row's parameters are told apart."""
        self._samples = collections.defaultdict(dict)
        self.units, self.versions, self.libraries, self.counts = {}, {}, {}, {}
        keys = {}
        for name, listed in cases.items():
            for case in listed:
                keys[name] = tuple(k for k, _ in case.key)
        for row in rows:
            if row["metric"].endswith("_per_op"):
                self.counts[row["workload"], row["params"]["op"], row["metric"],
                            row["contestant"]] = row["value"]
                continue
            key = tuple((k, row["params"][k]) for k in keys[row["workload"]])
            place = self._samples[row["workload"], key, row["metric"]]
            place.setdefault(row["contestant"], {})[row["repeat"]] = row["value"]
            self.units[row["metric"]] = row["unit"]
            self.versions[row["contestant"]] = row["version"]
            self.libraries[row["contestant"]] = row.get("library", "")

    def workloads(self):
        return list(dict.fromkeys(workload for workload, _, _ in self._samples))

    def cases(self, workload):
        return list(dict.fromkeys(key for w, key, _ in self._samples if w == workload))

    def metrics(self, workload):
        return list(dict.fromkeys(m for w, _, m in self._samples if w == workload))

    def contestants(self, workload):
        rank = {name: i for i, name in enumerate(workloads.ORDER)}
        names = {n for (w, _, _), by_name in self._samples.items() if w == workload
                 for n in by_name}
        return sorted(names, key=lambda n: (rank.get(n, len(rank)), n))

    def pairs(self, workload):
        """(contestant, its twin on spate's drop-in) of those that were both run."""
        names = self.contestants(workload)
        return [(name, workloads.twin_of(name)) for name in names
                if workloads.twin_of(name) in names]

    def samples(self, workload, key, metric, contestant):
        """Values in the order of the repetitions; empty when it was not run."""
        by_repeat = self._samples.get((workload, key, metric), {}).get(contestant, {})
        return [by_repeat[r] for r in sorted(by_repeat)]

    def median(self, workload, key, metric, contestant):
        values = self.samples(workload, key, metric, contestant)
        return statistics.median(values) if values else None

    def cost_ratio(self, workload, key, metric, contestant, reference):
        """Median over the repetitions of contestant / reference; over 1 is worse, for rates too."""
        places = self._samples.get((workload, key, metric), {})
        return paired_ratio(places.get(contestant, {}), places.get(reference, {}),
                            inverted=metric in workloads.RATES)

    def across(self, workload, metric, contestant, key, reference_key):
        """Median over the repetitions of one case / another case of the same contestant."""
        return paired_ratio(self._samples.get((workload, key, metric), {}).get(contestant, {}),
                            self._samples.get((workload, reference_key, metric), {}).get(
                                contestant, {}))

    def reference(self, workload):
        """What ratios are taken against: spate; without it the first that is no mere floor."""
        names = self.contestants(workload)
        return next((n for n in names if not workloads.is_floor(n)), names[0])


def paired_ratio(values, references, inverted=False):
    ratios = []
    for repeat in values.keys() & references.keys():
        above, below = values[repeat], references[repeat]
        if inverted:
            above, below = below, above
        if below > 0:
            ratios.append(above / below)
    return statistics.median(ratios) if ratios else None
