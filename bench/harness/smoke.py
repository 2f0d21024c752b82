"""The smallest run of everything, as a test that the benchmarks work: its figures mean nothing."""
import dataclasses

# The greatest value of each parameter that is an amount. Others select the task.
MOST = {"pairs": 100, "count": 1000, "restarts": 2000, "stop_starts": 2000, "rounds": 1,
        "milliseconds": 1, "connections": 10, "total_count": 64, "subscribers": 10,
        "requests": 500, "heads": 20, "watchers": 200, "servers": 20, "active": 100,
        "operations": 1000, "events": 500}
TIMEOUT_S = 60


def smaller(params):
    less = {name: min(value, MOST.get(name, value)) if isinstance(value, int) else value
            for name, value in params.items()}
    if "servers" in less:
        less["active"] = min(less["active"], 3)
    return {**less, "rest_ms": 0}


def smallest(case):
    overrides = {name: params and {k: v for k, v in smaller(params).items() if k in params}
                 for name, params in case.overrides.items()}
    return dataclasses.replace(case, params=smaller(case.params), overrides=overrides, runs=1,
                               hidden=(*case.hidden, "rest_ms"), most_repeats=1,
                               timeout_s=TIMEOUT_S)


def workload(whole, contestants):
    """Returns the workload with the first cases that give each contestant one, and fewer counts."""
    cases, covered = [], set()
    for case in whole.cases:
        able = {c.name for c in contestants if case.params_of(c.name) is not None}
        if able - covered:
            covered |= able
            cases.append(smallest(case))
    check = [dataclasses.replace(case, timeout_s=TIMEOUT_S) for case in whole.check]
    return dataclasses.replace(whole, cases=cases, check=check, counts=fewer(whole.counts))


def fewer(counts):
    """Returns all of the system calls, but instructions of the first alone: those take long. A
    series has the system calls at the smallest size."""
    least = {}
    for count in counts:
        if count.series and "syscalls" in count.kinds:
            least.setdefault(count.series, dataclasses.replace(count, kinds=("syscalls",)))
    if least:
        return list(least.values())
    return counts[:1] + [dataclasses.replace(count, kinds=("syscalls",)) for count in counts[1:]
                         if "syscalls" in count.kinds]
